"""Callbacks of a Trainer, its state and its control."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tallow.errors import ArgumentError, CheckpointError, warn
from tallow.io.json_object import parse_object
from tallow.io.regular import read_regular
from tallow.transformers.trainer_utils import IntervalStrategy, SaveStrategy
from tallow.transformers.training_args import TrainingArguments

MAX_DEPTH = 16  # of the JSON of a state


class ExportableState:
    """The base of callbacks whose state is saved in checkpoints."""

    def state(self) -> dict[str, Any]:
        """Return {"args": arguments of the constructor, "attributes": what is set afterwards}."""
        raise NotImplementedError(f"{type(self).__name__} has no method state")

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return an object from what `state` returned."""
        made = cls(**state["args"])
        vars(made).update(state["attributes"])
        return made


@dataclass
class TrainerControl(ExportableState):
    """Switches of the loop; callbacks change it and return it."""

    should_training_stop: bool = False
    should_epoch_stop: bool = False
    should_save: bool = False
    should_evaluate: bool = False
    should_log: bool = False

    def state(self) -> dict[str, Any]:
        return {"args": dataclasses.asdict(self), "attributes": {}}


@dataclass
class TrainerState:
    """The progress of a run; `trainer_state.json` in a checkpoint.

    Attributes:
        epoch: with the part of the current one.
        global_step: number of optimizer steps.
        log_history: what was logged, in order.
        best_metric, best_global_step, best_model_checkpoint: of the best evaluation.
        stateful_callbacks: states of callbacks by the name of their class.
    """

    epoch: float | None = 0
    global_step: int = 0
    max_steps: int = 0
    logging_steps: float = 500
    eval_steps: float = 500
    save_steps: float = 500
    train_batch_size: int | None = None
    num_train_epochs: int = 0
    num_input_tokens_seen: int = 0
    total_flos: float = 0
    log_history: list[dict[str, Any]] = field(default_factory=list)
    best_metric: float | None = None
    best_global_step: int | None = None
    best_model_checkpoint: str | None = None
    is_local_process_zero: bool = True
    is_world_process_zero: bool = True
    is_hyper_param_search: bool = False
    trial_name: str | None = None
    trial_params: dict[str, Any] | None = None
    stateful_callbacks: dict[str, Any] = field(default_factory=dict)

    def save_to_json(self, json_path: str | Path) -> None:
        """Write the state.  Raises: OSError"""
        text = json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True)
        Path(json_path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load_from_json(cls, json_path: str | Path) -> TrainerState:
        """Read a state.  Raises: CheckpointError for another file; OSError"""
        entries = parse_object(read_regular(Path(json_path)), str(json_path), MAX_DEPTH)
        known = {each.name for each in dataclasses.fields(cls)}
        step, history = entries.get("global_step"), entries.get("log_history")
        if type(step) is not int or step < 0 or not isinstance(history, list):
            raise CheckpointError(f"{json_path} is not the state of a Trainer")
        return cls(**{name: value for name, value in entries.items() if name in known})

    def compute_steps(self, args: TrainingArguments, max_steps: int) -> None:
        """Set the intervals: a share of the steps becomes a number."""
        for name in ("logging_steps", "eval_steps", "save_steps"):
            steps = getattr(args, name)
            if steps is not None:
                setattr(self, name, math.ceil(max_steps * steps) if steps < 1 else steps)


def _event(moment: str) -> Callable[..., Any]:
    """Return the method of an event, which does nothing."""

    def event(
        self: TrainerCallback, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> Any:
        return None

    event.__doc__ = f"Called {moment}."
    return event


class TrainerCallback:
    """The base of callbacks: a method for each event, called as (args, state, control, **what the trainer has).

    The keywords are model, processing_class, optimizer, lr_scheduler, train_dataloader, eval_dataloader, and `logs` for
    on_log, `metrics` for on_evaluate and on_predict. A method that changes `control` may return it.
    """

    on_init_end = _event("at the end of the Trainer's constructor")
    on_train_begin = _event("before the first step")
    on_train_end = _event("after the last step")
    on_epoch_begin = _event("before the first batch of an epoch")
    on_epoch_end = _event("after the last batch of an epoch")
    on_step_begin = _event("before the batches of an optimizer step")
    on_pre_optimizer_step = _event("after gradients are clipped, before the optimizer step")
    on_optimizer_step = _event("after the optimizer step, before gradients are set to zero")
    on_substep_end = _event("after each batch of a step but the last")
    on_step_end = _event("after each optimizer step")
    on_evaluate = _event("after an evaluation")
    on_predict = _event("after a prediction")
    on_save = _event("after a checkpoint is written")
    on_log = _event("after values are logged")
    on_prediction_step = _event("after each batch of an evaluation or a prediction")
    on_push_begin = _event("before an upload to the Hub")


class CallbackHandler:
    """Calls the callbacks of a Trainer in order."""

    def __init__(
        self, callbacks: Sequence[Any], model: Any, processing_class: Any, optimizer: Any, lr_scheduler: Any
    ) -> None:
        self.callbacks: list[Any] = []
        for callback in callbacks:
            self.add_callback(callback)
        self.model, self.processing_class = model, processing_class
        self.optimizer, self.lr_scheduler = optimizer, lr_scheduler
        self.train_dataloader: Any = None
        self.eval_dataloader: Any = None

    def add_callback(self, callback: Any) -> None:
        """Add a callback, or an object of a class of callbacks."""
        made = callback() if isinstance(callback, type) else callback
        if any(type(each) is type(made) for each in self.callbacks):
            warn(f"the Trainer has a {type(made).__name__} already, and gets another one")
        self.callbacks.append(made)

    def pop_callback(self, callback: Any) -> Any:
        """Remove a callback, or the first of a class, and return it; None if there is none."""
        is_it = (lambda each: isinstance(each, callback)) if isinstance(callback, type) else callback.__eq__
        found = next((each for each in self.callbacks if is_it(each) is True), None)
        if found is not None:
            self.callbacks.remove(found)
        return found

    def call_event(
        self, event: str, args: TrainingArguments, state: TrainerState, control: TrainerControl, **options: Any
    ) -> TrainerControl:
        """Call an event of all callbacks, and return the control."""
        for name in RESETS.get(event, ()):
            setattr(control, name, False)
        held = {name: value for name, value in vars(self).items() if name != "callbacks"}
        for callback in self.callbacks:
            control = getattr(callback, event)(args, state, control, **held, **options) or control
        return control


# Event -> switches of the control that it turns off first.
RESETS = {
    "on_train_begin": ("should_training_stop",),
    "on_epoch_begin": ("should_epoch_stop",),
    "on_step_begin": ("should_log", "should_evaluate", "should_save"),
    "on_evaluate": ("should_evaluate",),
    "on_save": ("should_save",),
    "on_log": ("should_log",),
}


class DefaultFlowCallback(TrainerCallback):
    """Logs, evaluates and saves at the intervals of the arguments."""

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        step = state.global_step
        if step == 1 and args.logging_first_step:
            control.should_log = True
        if args.logging_strategy == IntervalStrategy.STEPS and step % state.logging_steps == 0:
            control.should_log = True
        evaluates = args.eval_strategy == IntervalStrategy.STEPS and args.eval_delay <= step
        saves = args.save_strategy == SaveStrategy.STEPS
        if evaluates and step % state.eval_steps == 0:
            control.should_evaluate = True
        if saves and state.save_steps > 0 and step % state.save_steps == 0:
            control.should_save = True
        if step >= state.max_steps:
            control.should_training_stop = True
            control.should_evaluate |= evaluates
            control.should_save |= saves
        return control

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        control.should_log |= args.logging_strategy == IntervalStrategy.EPOCH
        control.should_evaluate |= args.eval_strategy == IntervalStrategy.EPOCH and args.eval_delay <= (
            state.epoch or 0
        )
        control.should_save |= args.save_strategy == SaveStrategy.EPOCH
        return control


class EarlyStoppingCallback(TrainerCallback, ExportableState):
    """Stops a run when its metric has not become better.

    Args:
        early_stopping_patience: number of evaluations in a row without a better metric.
        early_stopping_threshold: by how much a metric must be better.

    Raises:  ArgumentError, when training begins, without `metric_for_best_model` and an `eval_strategy`
    """

    def __init__(self, early_stopping_patience: int = 1, early_stopping_threshold: float | None = 0.0) -> None:
        self.early_stopping_patience = early_stopping_patience
        self.early_stopping_threshold = early_stopping_threshold
        self.early_stopping_patience_counter = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if args.metric_for_best_model is None or args.eval_strategy == IntervalStrategy.NO:
            raise ArgumentError("EarlyStoppingCallback needs metric_for_best_model and an eval_strategy")
        if not args.load_best_model_at_end:
            warn("EarlyStoppingCallback without load_best_model_at_end=True: the run ends with the last weights")

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        metric = kwargs["metrics"].get(metric_name(args))
        if metric is None:
            warn(f"early stopping has no effect: the evaluation has no {metric_name(args)}")
            return
        best, threshold = state.best_metric, self.early_stopping_threshold or 0
        better = best is None or (metric > best) == bool(args.greater_is_better)
        if best is None or (better and metric != best and abs(metric - best) > threshold):
            self.early_stopping_patience_counter = 0
        else:
            self.early_stopping_patience_counter += 1
        if self.early_stopping_patience_counter >= self.early_stopping_patience:
            control.should_training_stop = True

    def state(self) -> dict[str, Any]:
        names = ("early_stopping_patience", "early_stopping_threshold")
        counter = self.early_stopping_patience_counter
        return {
            "args": {name: getattr(self, name) for name in names},
            "attributes": {"early_stopping_patience_counter": counter},
        }


def metric_name(args: TrainingArguments) -> str:
    """Return the name, in results of an evaluation, of the metric that says which model is best."""
    name = str(args.metric_for_best_model)
    return name if name.startswith("eval_") else f"eval_{name}"
