"""CrossEncoderTrainer: a Trainer of pairs of texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tallow.core.creation import tensor
from tallow.errors import ArgumentError
from tallow.nn.module import Module
from tallow.sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss, CrossEntropyLoss
from tallow.sentence_transformers.trainer import LABELS, SentenceTransformerTrainer


class CrossEncoderDataCollator:
    """Returns the texts of each column of a batch, and the labels: a tensor, or a list of them for lists of labels.

    Args:
        valid_label_columns: names of the column of labels.
        prompts: a text to write before the first text of each pair.

    Raises:  ArgumentError for prompts by column, which pairs do not have
    """

    def __init__(self, valid_label_columns: Sequence[str] = LABELS, prompts: str | None = None) -> None:
        if isinstance(prompts, Mapping):
            raise ArgumentError("prompts by column: the columns form pairs", hint="pass one text")
        self.valid_label_columns, self.prompts = valid_label_columns, prompts

    def __call__(self, features: list[Any]) -> dict[str, Any]:
        names = list(features[0])
        batch: dict[str, Any] = {}
        label = next((name for name in self.valid_label_columns if name in names), None)
        if label is not None:
            values = [each[label] for each in features]
            batch["label"] = [tensor(each) for each in values] if isinstance(values[0], Collection) else tensor(values)
        if self.prompts:
            batch["prompt"] = self.prompts
        return batch | {name: [each[name] for each in features] for name in names if name != label}


class CrossEncoderTrainer(SentenceTransformerTrainer):
    """Trains a CrossEncoder.

    Columns of the samples, in their order, are texts; one named label, labels, score or scores has the labels.

    Args:
        loss: of `cross_encoder.losses`; BinaryCrossEntropyLoss by default, or CrossEntropyLoss for several labels.
        others: as SentenceTransformerTrainer

    Example:
        samples = [{"query": "Where do cats sleep?", "text": "Cats sleep on sofas.", "label": 1.0}]
        CrossEncoderTrainer(CrossEncoder("bert-base-uncased"), train_dataset=samples).train()
    """

    def default_loss(self, model: Any) -> Module:
        return BinaryCrossEntropyLoss(model) if model.num_labels == 1 else CrossEntropyLoss(model)

    def collator_of(self, model: Any, prompts: Any) -> Any:
        return CrossEncoderDataCollator(prompts=prompts)

    def compute_loss(
        self, model: Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the loss of a batch; with `return_outputs`, and no outputs."""
        del model, num_items_in_batch  # the loss has the model, and takes means itself
        columns = [value for name, value in inputs.items() if name not in ("label", "prompt")]
        loss = self.loss(columns, inputs.get("label"), prompt=inputs.get("prompt"))
        return (loss, {}) if return_outputs else loss
