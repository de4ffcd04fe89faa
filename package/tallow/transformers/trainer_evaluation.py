"""The part of the Trainer that evaluates and predicts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor
from tallow.data import DataLoader, SequentialSampler
from tallow.errors import ArgumentError
from tallow.optim.lr_scheduler import ReduceLROnPlateau
from tallow.tape.modes import no_grad
from tallow.transformers.trainer_callback import TrainerState, metric_name
from tallow.transformers.trainer_models import LossRules
from tallow.transformers.trainer_pt_utils import find_batch_size, nested_concat, nested_detach, nested_numpify
from tallow.transformers.trainer_utils import (
    EvalLoopOutput,
    EvalPrediction,
    PredictionOutput,
    denumpify_detensorize,
    has_length,
    speed_metrics,
)
from tallow.transformers.training_args import TrainingArguments


class Kept:
    """The losses, results, labels and inputs of the batches of an evaluation, as arrays."""

    def __init__(self) -> None:
        self.parts: dict[str, list[Any]] = {"losses": [], "predictions": [], "label_ids": [], "inputs": []}

    def add(self, **values: Any) -> None:
        """Keep what a batch has; None is left out."""
        for name, value in values.items():
            if value is not None:
                self.parts[name].append(nested_numpify(value))

    def get(self, name: str, joined: bool) -> Any:
        """Return what the batches had, one after another or as a list; None if there is none."""
        parts = self.parts[name]
        return (nested_concat(parts) if joined else parts) if parts else None


def batch_samples(dataloader: Any, inputs: Any, before: int) -> int | None:
    """Return the number of samples of a batch, whose rows may hold several; None if nothing tells it.

    Args:    before: the number of samples of the batches before
    """
    size: int | None = getattr(dataloader, "batch_size", None)
    sampler: Any = getattr(dataloader, "sampler", None)
    return find_batch_size(inputs) if size is None or not has_length(sampler) else min(size, len(sampler) - before)


class TrainerEvaluation:
    """Evaluation and prediction; `Trainer` inherits them."""

    args: TrainingArguments
    model: Any
    state: TrainerState
    rules: LossRules
    label_names: list[str]
    eval_dataset: Any
    lr_scheduler: Any
    callback_handler: Any
    compute_metrics: Callable[..., dict[str, Any]] | None
    preprocess_logits_for_metrics: Callable[[Any, Any], Any] | None
    compute_loss: Callable[..., Any]
    compute_loss_context_manager: Callable[[], AbstractContextManager[Any]]
    log: Callable[..., None]
    _loader: Callable[..., DataLoader[Any]]
    _event: Callable[..., None]
    _prepare_inputs: Callable[[Any], Any]
    _get_num_items_in_batch: Callable[[Any], Any]

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[Any]:
        """Return the loader of batches for evaluation, in order.

        Args:  eval_dataset: samples, or a name in the dictionary of them; None means the Trainer's

        Raises:  ArgumentError without samples
        """
        if isinstance(eval_dataset, str):
            eval_dataset = self.eval_dataset[eval_dataset]
        dataset = self.eval_dataset if eval_dataset is None else eval_dataset
        if dataset is None:
            raise ArgumentError("Trainer: evaluation needs an eval_dataset")
        return self._loader(dataset, self.args.eval_batch_size, self._eval_sampler(dataset))

    def _eval_sampler(self, dataset: Any) -> Any:
        return SequentialSampler(dataset) if has_length(dataset) else None

    def get_test_dataloader(self, test_dataset: Any) -> DataLoader[Any]:
        """Return the loader of batches for prediction, in order."""
        return self.get_eval_dataloader(test_dataset)

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Return the loss and the metrics of samples, and log them.

        Args:
            eval_dataset: None means the Trainer's; a dictionary's names become part of those of metrics.
            ignore_keys: results of the model that `compute_metrics` does not get.
            metric_key_prefix: what names of metrics begin with.
        """
        dataset = self.eval_dataset if eval_dataset is None else eval_dataset
        if isinstance(dataset, dict):
            metrics: dict[str, float] = {}
            for name, part in dataset.items():
                metrics |= self.evaluate(part, ignore_keys, f"{metric_key_prefix}_{name}")
            return metrics
        started = time.time()
        loader = self.get_eval_dataloader(dataset)
        only_loss = True if self.compute_metrics is None else None
        output = self.evaluation_loop(loader, "Evaluation", only_loss, ignore_keys, metric_key_prefix)
        metrics = self._with_speed(output, metric_key_prefix, started)
        self.log(metrics)
        self._event("on_evaluate", metrics=metrics)
        return metrics

    def predict(
        self, test_dataset: Any, ignore_keys: list[str] | None = None, metric_key_prefix: str = "test"
    ) -> PredictionOutput:
        """Return the results of the model for samples, and metrics if they have labels.

        Rows of different lengths are filled with -100.

        Args:  as `evaluate`
        """
        started = time.time()
        loader = self.get_test_dataloader(test_dataset)
        output = self.evaluation_loop(loader, "Prediction", None, ignore_keys, metric_key_prefix)
        metrics = self._with_speed(output, metric_key_prefix, started)
        self._event("on_predict", metrics=metrics)
        return PredictionOutput(output.predictions, output.label_ids, metrics)

    def _with_speed(self, output: EvalLoopOutput, prefix: str, started: float) -> dict[str, float]:
        samples = output.num_samples or 0
        steps = math.ceil(samples / self.args.eval_batch_size)
        return {**(output.metrics or {}), **speed_metrics(prefix, started, num_samples=samples, num_steps=steps)}

    def evaluation_loop(
        self,
        dataloader: DataLoader[Any],
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Return the results, labels and metrics of all batches of a loader.

        Args:
            description: "Evaluation" or "Prediction".
            prediction_loss_only: keep no results; None means as the arguments say.
            ignore_keys, metric_key_prefix: as in `evaluate`.
        """
        only_loss = self.args.prediction_loss_only if prediction_loss_only is None else prediction_loss_only
        by_batch = self.args.batch_eval_metrics
        keeps = not by_batch or description == "Prediction"
        self.model.eval()
        self.callback_handler.eval_dataloader = dataloader
        kept, seen, metrics = Kept(), 0, {}
        last = len(dataloader) - 1 if has_length(dataloader) else None
        for step, inputs in enumerate(dataloader):
            size = batch_samples(dataloader, inputs, seen) or self.args.eval_batch_size
            seen += size
            loss, logits, labels = self.prediction_step(self.model, inputs, only_loss, ignore_keys=ignore_keys)
            if logits is not None and self.preprocess_logits_for_metrics is not None:
                logits = self.preprocess_logits_for_metrics(logits, labels)
            losses = None if loss is None else loss.reshape(1).expand(self._weight(size))
            kept.add(losses=losses)
            if keeps:
                wanted = "inputs" in self.args.include_for_metrics
                kept.add(predictions=logits, label_ids=labels, inputs=inputs[self.rules.main_input] if wanted else None)
            self._event("on_prediction_step")
            if by_batch and self.compute_metrics is not None and logits is not None and labels is not None:
                prediction = EvalPrediction(logits, labels, **self._extras(inputs, losses))
                metrics = self.compute_metrics(prediction, compute_result=step == last)
        joined = self.args.eval_do_concat_batches
        losses, predictions, label_ids, inputs = (kept.get(name, joined) for name in kept.parts)
        if self.compute_metrics is not None and not by_batch and predictions is not None and label_ids is not None:
            metrics = self.compute_metrics(EvalPrediction(predictions, label_ids, **self._extras(inputs, losses)))
        metrics = denumpify_detensorize(dict(metrics or {}))
        if losses is not None:
            metrics[f"{metric_key_prefix}_loss"] = self._mean(losses if joined else np.concatenate(losses))
        start = f"{metric_key_prefix}_"
        named = {name: value for name, value in metrics.items() if name.startswith(start)}  # the loss first
        named |= {start + name: value for name, value in metrics.items() if not name.startswith(start)}
        samples = len(dataloader.dataset) if has_length(dataloader.dataset) else seen
        return EvalLoopOutput(predictions, label_ids, named, samples)

    def _weight(self, size: int) -> int:
        """Return how often the loss of a batch of `size` samples counts in the mean."""
        return size

    def _extras(self, inputs: Any, losses: Any) -> dict[str, Any]:
        wanted = self.args.include_for_metrics
        return {"inputs": inputs if "inputs" in wanted else None, "losses": losses if "loss" in wanted else None}

    def _mean(self, losses: Any) -> float:
        finite = losses[np.isfinite(losses)]
        return float((finite if self.args.logging_nan_inf_filter and len(finite) else losses).mean())

    def prediction_step(
        self, model: Any, inputs: Any, prediction_loss_only: bool, ignore_keys: list[str] | None = None
    ) -> tuple[Tensor | None, Any, Any]:
        """Return the loss, the results and the labels of a batch, each None if there is none."""
        has_labels = bool(self.label_names) and all(inputs.get(name) is not None for name in self.label_names)
        inputs = self._prepare_inputs(inputs)
        if ignore_keys is None:
            config = getattr(model, "config", None)
            ignore_keys = getattr(config, "keys_to_ignore_at_inference", ["past_key_values"])
        loss, labels = None, None
        with no_grad(), self.compute_loss_context_manager():
            if has_labels:
                given = nested_detach(tuple(inputs[name] for name in self.label_names))
                labels = given[0] if len(given) == 1 else given
                count = self._get_num_items_in_batch([inputs])
                loss, outputs = self.compute_loss(model, inputs, return_outputs=True, num_items_in_batch=count)
                loss = loss.detach().mean()
            else:
                outputs = model(**inputs)
        if prediction_loss_only:
            return loss, None, None
        if isinstance(outputs, Mapping):
            left_out = [*ignore_keys, *(["loss"] if has_labels else [])]
            logits: Any = tuple(value for name, value in outputs.items() if name not in left_out)
        else:
            logits = outputs[1:] if has_labels else outputs
        logits = nested_detach(logits)
        return loss, logits[0] if isinstance(logits, tuple) and len(logits) == 1 else logits, labels

    def _evaluated(self) -> dict[str, float]:
        """Evaluate during training, and step a schedule that depends on the result."""
        metrics = self.evaluate()
        if isinstance(self.lr_scheduler, ReduceLROnPlateau):
            self.lr_scheduler.step(self._metric(metrics))
        return metrics

    def _metric(self, metrics: dict[str, float]) -> float:
        """Return the metric that says which model is best.  Raises: ArgumentError if it is missing"""
        name = metric_name(self.args)
        if name not in metrics:
            raise ArgumentError(
                f"metric_for_best_model={self.args.metric_for_best_model!r:.80}: the evaluation has no {name}",
                hint=f"it has {', '.join(metrics)}",
            )
        return metrics[name]

    def _note_metric(self, metrics: dict[str, float]) -> bool:
        """Note the metric of an evaluation. Return whether it is the best so far."""
        if self.args.metric_for_best_model is None:
            return False
        value, best = self._metric(metrics), self.state.best_metric
        if best is not None and not (value > best if self.args.greater_is_better else value < best):
            return False
        self.state.best_metric = value
        if self.args.save_strategy != "no":
            self.state.best_global_step = self.state.global_step
        return True
