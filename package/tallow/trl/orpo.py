"""ORPOTrainer: trains on chosen answers and against rejected ones at once (odds ratio preference optimization)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.nn import functional as F
from tallow.nn.module import Module
from tallow.trl.base import MethodConfig, MethodTrainer, without_dropout
from tallow.trl.log_probs import IGNORED, token_scores
from tallow.trl.preferences import ANSWERS, PairScores, collate_pairs, encode_pair, reward_metrics
from tallow.trl.samples import Sample


@dataclass(repr=False)
class ORPOConfig(MethodConfig):
    """The arguments of an ORPOTrainer.

    Attributes:
        max_length: of prompt and answer in tokens, whose end is cut off; None means no limit.
        beta: weight of the loss of the odds, λ of the paper.
        disable_dropout: compute without dropout.

    Raises:  as MethodConfig
    """

    learning_rate: float = 1e-6
    max_length: int | None = 1024
    beta: float = 0.1
    disable_dropout: bool = True


class ORPOTrainer(MethodTrainer):
    """Trains a language model on chosen answers, and so that their odds exceed those of rejected ones.

    It needs no reference. Samples are those of DPOTrainer.

    Source:  Hong et al. 2024, arXiv:2403.07691, eq. 6 and 7; trl 1.16, `ORPOTrainer`
    """

    config_class: ClassVar[type[MethodConfig]] = ORPOConfig
    args: ORPOConfig

    def __init__(self, *given: Any, **others: Any) -> None:
        super().__init__(*given, **others)
        if self.args.disable_dropout:
            without_dropout(self.model)

    def encode(self, sample: Sample) -> Sample | None:
        """Return the ids of the prompt and of both answers; None if the prompt alone is as long as a row.

        Unlike those of DPO, prompts begin with the start token, and answers to messages end with the end token too.
        """
        made = encode_pair(self.encoder, sample)
        tokenizer, limit = self.encoder.tokenizer, self.args.max_length
        if tokenizer.bos_token_id is not None and made["prompt_ids"][:1] != [tokenizer.bos_token_id]:
            made["prompt_ids"] = [tokenizer.bos_token_id, *made["prompt_ids"]]
        for name in ANSWERS:
            if made[f"{name}_ids"][-1:] != [tokenizer.eos_token_id]:
                made[f"{name}_ids"] = [*made[f"{name}_ids"], tokenizer.eos_token_id]
        return None if limit is not None and len(made["prompt_ids"]) >= limit else made

    def collate(self, samples: list[Sample]) -> dict[str, Tensor]:
        """Return a batch of chosen and then rejected answers, as `collate_pairs`."""
        fill = self.encoder.tokenizer.pad_token_id
        return collate_pairs(samples, fill, self.args.max_length, multiple=self.args.multiple)

    def loss_of(self, model: Module, batch: dict[str, Tensor]) -> Tensor:
        """Return the loss of a batch of pairs."""
        ids, mask = batch["input_ids"], batch["attention_mask"]
        logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        half = len(ids) // 2
        # The loss of chosen answers counts their prompts too.
        chosen_loss = F.cross_entropy(
            logits[:half, :-1].float().flatten(0, 1),
            ids[:half].masked_fill(mask[:half].eq(0), IGNORED)[:, 1:].flatten(),
            ignore_index=IGNORED,
        )
        scores = PairScores(token_scores(logits, ids.masked_fill(batch["completion_mask"].eq(0), IGNORED)))
        mean = scores.log_probs / scores.lengths()
        chosen, rejected = mean.chunk(2)
        log_odds = (chosen - rejected) - (_log_of_rest(chosen) - _log_of_rest(rejected))
        ratio = F.logsigmoid(log_odds)
        self.note(reward_metrics(self.args.beta * chosen.detach(), self.args.beta * rejected.detach()))
        self.note(
            {
                "logps/chosen": chosen.mean().item(),
                "logps/rejected": rejected.mean().item(),
                "logits/chosen": logits[:half, :-1].mean().item(),
                "logits/rejected": logits[half:, :-1].mean().item(),
                "nll_loss": chosen_loss.item(),
                "log_odds_ratio": ratio.mean().item(),
                "log_odds_chosen": log_odds.mean().item(),
            }
        )
        return chosen_loss - (self.args.beta * ratio).mean()


def _log_of_rest(log_probs: Tensor) -> Tensor:
    """Return log(1 - exp(x)) for x below 0.  Source: Mächler 2012, "Accurately computing log(1 - exp(-|a|))" """
    near = log_probs.gt(-0.6931472)
    return (-(log_probs.clamp(max=-1e-7).expm1())).log().where(near, (-log_probs.exp()).log1p())
