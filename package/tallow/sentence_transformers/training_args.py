"""SentenceTransformerTrainingArguments: TrainingArguments, with the way that batches are formed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallow.errors import UnsupportedError
from tallow.transformers.tensor_types import Choice
from tallow.transformers.training_args import TrainingArguments


class BatchSamplers(Choice):
    """Batches of random samples, or of random samples without a text in common."""

    BATCH_SAMPLER = "batch_sampler"
    NO_DUPLICATES = "no_duplicates"


@dataclass(repr=False)
class SentenceTransformerTrainingArguments(TrainingArguments):
    """As TrainingArguments.

    Attributes:
        prompts: a text to write before those of all columns, or one for each column by its name.
        batch_sampler: "batch_sampler", or "no_duplicates" for MultipleNegativesRankingLoss.
        multi_dataset_batch_sampler, router_mapping, learning_rate_mapping: not supported.

    Raises:  as TrainingArguments
    """

    prompts: str | dict[str, str] | None = None
    batch_sampler: BatchSamplers | str = "batch_sampler"
    multi_dataset_batch_sampler: str = "proportional"
    router_mapping: Any = None
    learning_rate_mapping: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.batch_sampler = BatchSamplers(self.batch_sampler)
        self.prediction_loss_only = True
        for name in ("router_mapping", "learning_rate_mapping"):
            if getattr(self, name):
                raise UnsupportedError(f"{name} is not supported", hint=f"leave out {name}")
