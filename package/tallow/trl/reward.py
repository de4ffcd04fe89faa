"""RewardTrainer: trains a model that scores answers, from pairs of which one is preferred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.creation import tensor
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.nn.module import Module
from tallow.transformers.auto import AutoModelForSequenceClassification
from tallow.trl.base import MethodConfig, MethodTrainer, without_dropout
from tallow.trl.preferences import ANSWERS
from tallow.trl.rows import right_padded
from tallow.trl.samples import Sample, after, is_conversational


@dataclass(repr=False)
class RewardConfig(MethodConfig):
    """The arguments of a RewardTrainer.

    Attributes:
        disable_dropout: compute without dropout.
        eos_token: the token that ends texts; None means the tokenizer's.
        max_length: samples with a longer answer, prompt included, are left out; None means no limit.
        center_rewards_coefficient: weight of a loss that draws the mean reward to 0 (arXiv:2312.09244, eq. 2).

    Raises:  as MethodConfig
    """

    learning_rate: float = 1e-4
    disable_dropout: bool = True
    eos_token: str | None = None
    max_length: int | None = 1024
    center_rewards_coefficient: float | None = None


class RewardTrainer(MethodTrainer):
    """Trains a classifier with one label, whose logit is the reward of a text.

    Samples: {"chosen": ..., "rejected": ...}, texts or messages, with a "prompt" before both and a "margin" by which
    the rewards should differ, if given.

    Source:  the loss of Bradley and Terry, as in arXiv:2203.02155, eq. 1; trl 1.16, `RewardTrainer`
    """

    config_class: ClassVar[type[MethodConfig]] = RewardConfig
    auto_class: ClassVar[Any] = AutoModelForSequenceClassification
    args: RewardConfig

    def __init__(self, *given: Any, **others: Any) -> None:
        super().__init__(*given, **others)
        if self.model.config.num_labels != 1:
            raise ArgumentError(
                f"the model has {self.model.config.num_labels} labels", hint="load it with num_labels=1"
            )
        if self.model.config.pad_token_id is None:
            self.model.config.pad_token_id = self.encoder.tokenizer.pad_token_id
        if self.args.disable_dropout:
            without_dropout(self.model)

    def _model_options(self, args: Any) -> dict[str, Any]:
        return {"num_labels": 1, **super()._model_options(args)}

    def encode(self, sample: Sample) -> Sample | None:
        """Return the ids of both answers after the prompt; None if one is too long."""
        made = {}
        for name in ANSWERS:
            if name not in sample:
                raise ArgumentError(f"a sample has no {name!r}, only {', '.join(sample)}")
            whole = after(sample["prompt"], sample[name]) if "prompt" in sample else sample[name]
            chats = is_conversational(sample)
            found = (
                self.encoder.chat(whole, sample)["input_ids"]
                if chats
                else self.encoder.text(self.encoder.with_end(whole))
            )
            made[f"{name}_ids"] = list(found)
        if self.args.max_length is not None and any(len(each) > self.args.max_length for each in made.values()):
            return None
        return {**made, **({"margin": sample["margin"]} if "margin" in sample else {})}

    def collate(self, samples: list[Sample]) -> dict[str, Tensor]:
        """Return `input_ids` and `attention_mask` (2 B, T), chosen answers first, and `margin` (B,)."""
        rows = [list(each[f"{name}_ids"]) for name in ANSWERS for each in samples]
        fill, multiple = self.encoder.tokenizer.pad_token_id, self.args.multiple
        ids, mask = right_padded(rows, fill, multiple)
        batch = {"input_ids": ids, "attention_mask": mask}
        if "margin" in samples[0]:
            batch["margin"] = tensor([float(each["margin"]) for each in samples])
        return batch

    def loss_of(self, model: Module, batch: dict[str, Tensor]) -> Tensor:
        """Return the loss of a batch of pairs."""
        rewards = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.squeeze(-1)
        chosen, rejected = rewards.chunk(2)
        loss = -F.logsigmoid(chosen - rejected - batch.get("margin", 0.0)).mean()
        if self.args.center_rewards_coefficient is not None:
            loss = loss + self.args.center_rewards_coefficient * ((chosen + rejected) ** 2).mean()
        self.note_tokens(batch["attention_mask"].sum().item())
        self.note(
            {
                "min_reward": rewards.min().item(),
                "mean_reward": rewards.mean().item(),
                "max_reward": rewards.max().item(),
                "accuracy": chosen.gt(rejected).float().mean().item(),
                "margin": (chosen - rejected).mean().item(),
            }
        )
        return loss
