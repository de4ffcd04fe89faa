"""SentenceTransformerTrainer: a Trainer of texts in columns, and a loss of their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tallow.core.creation import tensor
from tallow.core.tensor import Tensor
from tallow.data import DataLoader
from tallow.data.sampler import Sampler
from tallow.errors import ArgumentError, UnsupportedError
from tallow.nn.module import Module
from tallow.sentence_transformers.losses import CoSENTLoss
from tallow.sentence_transformers.training_args import BatchSamplers, SentenceTransformerTrainingArguments
from tallow.tape.modes import no_grad
from tallow.transformers.trainer import Trainer
from tallow.transformers.trainer_pt_utils import nested_detach
from tallow.utils.torch_numbers import TorchNumbers

LABELS = ("label", "labels", "score", "scores")  # names of the column of labels
PARTS = ("input_ids", "attention_mask", "prompt_length")  # of the features of a column


class SentenceTransformerDataCollator:
    """Returns the features of each column of a batch, named as "anchor_input_ids", and the labels.

    Args:
        preprocess_fn: function (texts, prompt=) that returns the features of texts.
        valid_label_columns: names of the column of labels.
        prompts: as in SentenceTransformerTrainingArguments.
    """

    def __init__(
        self,
        preprocess_fn: Any,
        valid_label_columns: Sequence[str] = LABELS,
        prompts: str | Mapping[str, str] | None = None,
    ) -> None:
        self.preprocess_fn, self.valid_label_columns, self.prompts = preprocess_fn, valid_label_columns, prompts

    def __call__(self, features: list[Any]) -> dict[str, Any]:
        names = list(features[0])
        batch: dict[str, Any] = {}
        label = next((name for name in self.valid_label_columns if name in names), None)
        if label is not None:
            batch["label"] = tensor([each[label] for each in features])
        for name in names:
            if name != label:
                prompt = self.prompts if isinstance(self.prompts, str) else (self.prompts or {}).get(name)
                found = self.preprocess_fn([each[name] for each in features], prompt=prompt)
                batch |= {f"{name}_{part}": value for part, value in found.items()}
        return batch


class NoDuplicatesBatchSampler(Sampler[list[int]]):
    """Batches of random samples, of which no two have a text in common.

    Args:
        batch_size: samples of a batch.
        drop_last: leave out batches that are smaller.
        seed: of the order.
    """

    def __init__(self, dataset: Any, batch_size: int, drop_last: bool = False, seed: int = 0) -> None:
        self.dataset, self.batch_size, self.drop_last, self.seed, self.epoch = dataset, batch_size, drop_last, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, which the order depends on."""
        self.epoch = epoch

    def __len__(self) -> int:
        full, rest = divmod(len(self.dataset), self.batch_size)
        return full + bool(rest and not self.drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        left = TorchNumbers(self.seed + self.epoch).randperm(len(self.dataset))
        while left:
            batch: list[int] = []
            texts: set[str] = set()
            later: list[int] = []
            for at, i in enumerate(left):
                own = {str(value) for name, value in self.dataset[i].items() if name not in LABELS}
                if texts & own:
                    later.append(i)
                    continue
                batch.append(i)
                texts |= own
                if len(batch) == self.batch_size:
                    later += left[at + 1 :]
                    break
            left = later
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch


class SentenceTransformerTrainer(Trainer):
    """Trains a SentenceTransformer.

    Columns of the samples, in their order, are texts; one named label, labels, score or scores has the labels.

    Args:
        loss: of `losses`; CoSENTLoss by default. Its own weights are trained too.
        evaluator: called with the model in each evaluation; its results are metrics.
        others: as Trainer

    Raises:  UnsupportedError for several losses or datasets

    Example:
        loss = losses.MultipleNegativesRankingLoss(model)
        SentenceTransformerTrainer(model, train_dataset=[{"anchor": "...", "positive": "..."}], loss=loss).train()
    """

    def __init__(
        self,
        model: Any = None,
        args: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        loss: Module | None = None,
        evaluator: Any = None,
        data_collator: Any = None,
        **options: Any,
    ) -> None:
        if args is None:
            args = SentenceTransformerTrainingArguments("tmp_trainer")
        if isinstance(loss, Mapping) or isinstance(train_dataset, Mapping):
            raise UnsupportedError("several losses or datasets", hint="train on one list of samples with one loss")
        if model is None:
            raise ArgumentError("SentenceTransformerTrainer needs a model")
        self.loss = (self.default_loss(model) if loss is None else loss).to(args.device)
        self.evaluator = evaluator
        args.remove_unused_columns = False
        prompts = getattr(args, "prompts", None)
        collator = data_collator or self.collator_of(model, prompts)
        strategy, needed = args.eval_strategy, eval_dataset
        if evaluator is not None and eval_dataset is None:
            args.eval_strategy = type(strategy)("no")  # the Trainer wants samples for an evaluation
        super().__init__(model, args, collator, train_dataset, needed, **options)
        args.eval_strategy = strategy

    def default_loss(self, model: Any) -> Module:
        """Return the loss where none is given."""
        return CoSENTLoss(model)

    def collator_of(self, model: Any, prompts: Any) -> Any:
        """Return what makes a batch of samples."""
        return SentenceTransformerDataCollator(model.preprocess, prompts=prompts)

    def _loader(self, dataset: Any, batch_size: int, sampler: Any) -> DataLoader[Any]:
        kind = getattr(self.args, "batch_sampler", BatchSamplers.BATCH_SAMPLER)
        if kind != BatchSamplers.NO_DUPLICATES or dataset is not self.train_dataset:
            return super()._loader(dataset, batch_size, sampler)
        batches = NoDuplicatesBatchSampler(dataset, batch_size, self.args.dataloader_drop_last, self.args.seed)
        return DataLoader(dataset, batch_sampler=batches, collate_fn=self.data_collator)

    def _trained(self) -> Module:
        return self.loss

    def compute_loss(
        self, model: Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the loss of a batch; with `return_outputs`, and no outputs."""
        del model, num_items_in_batch  # the loss has the model, and takes means itself
        found = self.loss(self.collect_features(inputs), inputs.get("label"))
        loss = sum(found.values()) if isinstance(found, Mapping) else found
        return (loss, {}) if return_outputs else loss

    @staticmethod
    def collect_features(inputs: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the features of each column of a batch."""
        columns = [name.removesuffix("input_ids") for name in inputs if name.endswith("_input_ids")]
        return [{part: inputs[name + part] for part in PARTS if name + part in inputs} for name in columns]

    def prediction_step(
        self, model: Any, inputs: Any, prediction_loss_only: bool, ignore_keys: list[str] | None = None
    ) -> tuple[Tensor | None, Any, Any]:
        """Return the loss of a batch; vectors are not kept."""
        del prediction_loss_only, ignore_keys
        with no_grad():
            return nested_detach(self.compute_loss(model, self._prepare_inputs(inputs))).mean(), None, None

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Return the loss of samples, and the results of the evaluator."""
        if eval_dataset is not None or self.eval_dataset is not None:
            return super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)
        if self.evaluator is None:
            raise ArgumentError("evaluation needs an eval_dataset or an evaluator")
        metrics = self._evaluator_metrics(metric_key_prefix)
        self.log(metrics)
        self._event("on_evaluate", metrics=metrics)
        return metrics

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        """As Trainer's, with the results of the evaluator."""
        output = super().evaluation_loop(*args, **kwargs)
        prefix = kwargs.get("metric_key_prefix", args[4] if len(args) > 4 else "eval")
        return output._replace(metrics=(output.metrics or {}) | self._evaluator_metrics(prefix))

    def _evaluator_metrics(self, prefix: str) -> dict[str, float]:
        if self.evaluator is None:
            return {}
        found = self.evaluator(self.model)
        found = found if isinstance(found, Mapping) else {"evaluator": found}
        return {name if name.startswith(f"{prefix}_") else f"{prefix}_{name}": value for name, value in found.items()}

    def _load_model(self, checkpoint: str) -> None:
        saved = type(self.model)(Path(checkpoint))
        self.model.load_state_dict(saved.state_dict())
