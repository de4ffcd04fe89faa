"""SpladeRegularizerWeightSchedulerCallback: the regularizers of a SpladeLoss begin at 0."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError
from tallow.sentence_transformers.sparse_encoder.losses import SpladeLoss
from tallow.transformers.tensor_types import Choice
from tallow.transformers.trainer_callback import TrainerCallback


class SchedulerType(Choice):
    """The growth of the weights."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"


class SpladeRegularizerWeightSchedulerCallback(TrainerCallback):
    """Raises the weights of the regularizers from 0 to their values in the first steps.

    Args:
        loss: the SpladeLoss.
        scheduler_type: "linear" or "quadratic".
        warmup_ratio: the part of the steps in which they grow.

    Raises:  ArgumentError for another loss, and a part that is not above 0 and at most 1
    """

    def __init__(
        self, loss: SpladeLoss, scheduler_type: str | SchedulerType = "quadratic", warmup_ratio: float = 1 / 3
    ) -> None:
        if not isinstance(loss, SpladeLoss):
            raise ArgumentError(f"a schedule of a {type(loss).__name__}", hint="pass a SpladeLoss")
        if not 0 < warmup_ratio <= 1:
            raise ArgumentError(f"warmup_ratio={warmup_ratio}", hint="pass a number above 0, and at most 1")
        self.loss, self.warmup_ratio = loss, warmup_ratio
        self.scheduler_type = SchedulerType(scheduler_type)
        self.max_document_regularizer_weight = loss.document_regularizer_weight
        self.max_query_regularizer_weight = loss.query_regularizer_weight
        self.warmup_steps = 1

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count the steps, and begin at 0."""
        self.warmup_steps = int(state.max_steps * self.warmup_ratio) or 1
        self._set(0)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Set the weights of a step."""
        self._set(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Add the weights to what is logged."""
        for name in ("document_regularizer_weight", "query_regularizer_weight"):
            if logs is not None and getattr(self.loss, name) is not None:
                logs[name] = getattr(self.loss, name)

    def _set(self, step: int) -> None:
        part = min(step / self.warmup_steps, 1.0)
        part = part**2 if self.scheduler_type == SchedulerType.QUADRATIC else part
        for name in ("document_regularizer_weight", "query_regularizer_weight"):
            most = getattr(self, f"max_{name}")
            setattr(self.loss, name, None if most is None else most * part)
