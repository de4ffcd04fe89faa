"""Samples of two answers to a prompt, of which one is preferred: what DPO, ORPO and rewards have in common."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallow.core.tensor import Tensor
from tallow.tape.modes import no_grad
from tallow.trl.log_probs import IGNORED, TokenScores, token_scores
from tallow.trl.rows import padded, right_padded
from tallow.trl.samples import Answer, Encoder, Sample, extract_prompt

ANSWERS = ("chosen", "rejected")


def encode_pair(encoder: Encoder, sample: Sample) -> dict[str, list[int]]:
    """Return the ids of the prompt and of both answers."""
    chosen, rejected = encoder.answers(extract_prompt(sample), ANSWERS)
    return {"prompt_ids": chosen.prompt, "chosen_ids": chosen.completion, "rejected_ids": rejected.completion}


def collate_pairs(
    samples: list[Sample], fill: int, length: int | None = None, keeps_end: bool = False, multiple: int | None = None
) -> dict[str, Tensor]:
    """Return a batch of the chosen answers, and then of the rejected ones, each after its prompt.

    Args:
        fill: the id to pad with.
        length: of rows at most; their end is cut off, or with `keeps_end` their start.

    Returns: `input_ids`, `attention_mask` and `completion_mask` (2 B, T), the last one 1 for answers
    """
    pairs = [Answer(list(each["prompt_ids"]), list(each[f"{name}_ids"])) for name in ANSWERS for each in samples]
    kept = slice(None) if length is None else slice(-length, None) if keeps_end else slice(None, length)
    rows = [(each.prompt + each.completion)[kept] for each in pairs]
    masks = [([0] * len(each.prompt) + [1] * len(each.completion))[kept] for each in pairs]
    ids, mask = right_padded(rows, fill, multiple)
    return {"input_ids": ids, "attention_mask": mask, "completion_mask": padded(masks, 0, multiple)}


class PairScores(NamedTuple):
    """The scores of the tokens of answers, chosen ones first, and their mask (2 B, T - 1)."""

    tokens: TokenScores

    @property
    def log_probs(self) -> Tensor:
        """The log-probability of each answer, (2 B,)."""
        return self.tokens.log_probs.sum(dim=1)

    def lengths(self) -> Tensor:
        """Return the number of tokens of each answer, (2 B,)."""
        return self.tokens.mask.sum(dim=1)

    def metrics(self) -> dict[str, float]:
        """Return the means that trainers log of the answers."""
        with no_grad():
            found = {"entropy": self.tokens.mean(self.tokens.entropy())}
            parts = zip(*(each.chunk(2) for each in self.tokens), strict=True)
            for name, part in zip(ANSWERS, map(TokenScores._make, parts), strict=True):
                found[f"logits/{name}"] = part.mean(part.logits.mean(dim=-1))
                if name == "chosen":
                    found["mean_token_accuracy"] = part.mean(part.is_top1())
        return found


def pair_scores(model: Any, batch: dict[str, Tensor]) -> PairScores:
    """Return what a model says of the answers of a batch of pairs."""
    ids, mask = batch["input_ids"], batch["attention_mask"]
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    return PairScores(token_scores(logits, ids.masked_fill(batch["completion_mask"].eq(0), IGNORED)))


def reward_metrics(chosen: Tensor, rejected: Tensor) -> dict[str, float]:
    """Return the means of rewards (B,), of their difference, and how often the chosen answer has the greater one."""
    return {
        "rewards/chosen": chosen.mean().item(),
        "rewards/rejected": rejected.mean().item(),
        "rewards/accuracies": chosen.gt(rejected).float().mean().item(),
        "rewards/margins": (chosen - rejected).mean().item(),
    }
