"""Trainer: trains a model on samples, evaluates it, and saves checkpoints that a later run resumes.

Steps, losses and weights are those of transformers' Trainer with the same samples: the order of the samples is that of
PyTorch's generator (`torch_numbers`), and losses are scaled and logged in the same way. Dropout draws other numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tallow import amp, dtypes
from tallow.core.tensor import Tensor
from tallow.data import DataLoader
from tallow.errors import ArgumentError, warn
from tallow.nn.module import Module
from tallow.nn.utils.clip_grad import clip_grad_norm_, get_total_norm
from tallow.optim.lr_scheduler import ReduceLROnPlateau
from tallow.transformers.data_collator import DataCollatorWithPadding, default_data_collator
from tallow.transformers.trainer_callback import (
    CallbackHandler,
    DefaultFlowCallback,
    ExportableState,
    TrainerControl,
    TrainerState,
)
from tallow.transformers.trainer_checkpoints import TrainerCheckpoints
from tallow.transformers.trainer_evaluation import TrainerEvaluation
from tallow.transformers.trainer_models import LossRules, embedding_noise
from tallow.transformers.trainer_progress import TensorBoardCallback, progress_callback
from tallow.transformers.trainer_pt_utils import (
    LabelSmoother,
)
from tallow.transformers.trainer_search import TrainerSearch
from tallow.transformers.trainer_setup import TrainerSetup
from tallow.transformers.trainer_utils import IntervalStrategy, TrainOutput, has_length, set_seed, speed_metrics
from tallow.transformers.training_args import TrainingArguments


class Plan(NamedTuple):
    """The lengths of a run: batches and optimizer steps of an epoch, epochs and steps of all, samples."""

    batches: int
    updates: int
    epochs: int
    steps: int
    samples: float


class Trainer(TrainerSetup, TrainerEvaluation, TrainerCheckpoints, TrainerSearch):
    """Trains and evaluates a model whose forward takes the names of the samples and returns a loss.

    Args:
        model: a module; its result has `loss`, as an attribute and key, or first in a tuple.
        args: None means TrainingArguments("tmp_trainer").
        data_collator: function from a list of samples to a batch; None means padding with `processing_class`, or
            `default_data_collator` without one.
        train_dataset, eval_dataset: lists of mappings, `tallow.data` datasets, or those of the library datasets;
            eval_dataset may be a dictionary of them.
        processing_class: the tokenizer or processor, which is saved with the model. `tokenizer` is its old name.
        model_init: makes the model, in place of `model`, for each call of `train`; it may take the trial of a search.
        compute_loss_func: function (outputs, labels, num_items_in_batch=) that returns the loss.
        compute_metrics: function from an EvalPrediction to a dictionary.
        callbacks: TrainerCallback objects or classes.
        optimizers: an optimizer and a schedule; None for either means as the arguments say.
        optimizer_cls_and_kwargs: class and arguments of the optimizer.
        preprocess_logits_for_metrics: function of the logits and labels of a batch, whose result is kept.

    Attributes:
        state, control: the TrainerState and TrainerControl.
        optimizer, lr_scheduler: None before training.

    Raises:  ArgumentError without a model or with two

    Example:
        trainer = Trainer(model, TrainingArguments("out", max_steps=100), train_dataset=samples)
        trainer.train()
        trainer.save_model()
    """

    def __init__(
        self,
        model: Any = None,
        args: TrainingArguments | None = None,
        data_collator: Callable[[list[Any]], Any] | None = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        model_init: Callable[..., Module] | None = None,
        compute_loss_func: Callable[..., Tensor] | None = None,
        compute_metrics: Callable[..., dict[str, Any]] | None = None,
        callbacks: Sequence[Any] | None = None,
        optimizers: tuple[Any, Any] = (None, None),
        optimizer_cls_and_kwargs: tuple[type, dict[str, Any]] | None = None,
        preprocess_logits_for_metrics: Callable[[Any, Any], Any] | None = None,
        tokenizer: Any = None,
    ) -> None:
        self.args = TrainingArguments("tmp_trainer") if args is None else args
        set_seed(self.args.seed)
        if (model is None) == (model_init is None):
            raise ArgumentError("Trainer needs either a model or model_init")
        self.model_init = model_init
        self.processing_class = tokenizer if processing_class is None else processing_class
        self.train_dataset, self.eval_dataset = train_dataset, eval_dataset
        self.data_collator = data_collator or self._default_collator()
        self.compute_loss_func, self.compute_metrics = compute_loss_func, compute_metrics
        self.preprocess_logits_for_metrics = preprocess_logits_for_metrics
        self.optimizer, self.lr_scheduler = optimizers
        self.optimizer_cls_and_kwargs = optimizer_cls_and_kwargs
        smoothing = self.args.label_smoothing_factor
        self.label_smoother = LabelSmoother(epsilon=smoothing) if smoothing else None
        self._take(self.call_model_init() if model is None else model)
        self._check_datasets()
        reporters = [TensorBoardCallback] if "tensorboard" in (self.args.report_to or ()) else []
        given = [DefaultFlowCallback, *reporters, *(callbacks or ()), progress_callback(self.args)]
        self.callback_handler = CallbackHandler(
            given, self.model, self.processing_class, self.optimizer, self.lr_scheduler
        )
        self.control = TrainerControl()
        self.state = TrainerState()
        self.is_in_train = False
        self._made_scheduler = self.lr_scheduler is None
        Path(self.args.output_dir or ".").mkdir(parents=True, exist_ok=True)
        self._event("on_init_end")

    def _take(self, model: Module) -> None:
        """Train this model from now on."""
        self.model = self.model_wrapped = model.to(self.args.device)
        self.rules = LossRules.of(model, self.args.label_names)
        self.label_names = self.rules.label_names
        # A custom loss is divided by the number of accumulated batches unless a subclass says True.
        self.loss_is_scaled_for_ga: bool | None = None
        if hasattr(getattr(model, "config", None), "use_cache"):
            model.config.use_cache = self.args.use_cache

    def _default_collator(self) -> Callable[[list[Any]], Any]:
        tokenizer = self.processing_class
        return DataCollatorWithPadding(tokenizer) if hasattr(tokenizer, "pad") else default_data_collator

    def _check_datasets(self) -> None:
        if self.args.max_steps <= 0 and self.train_dataset is not None and not has_length(self.train_dataset):
            raise ArgumentError("the length of the training data is unknown", hint="pass max_steps")
        if self.args.eval_strategy != "no" and self.eval_dataset is None:
            raise ArgumentError(
                f"eval_strategy={IntervalStrategy(self.args.eval_strategy).value!r} without eval_dataset",
                hint="pass eval_dataset, or eval_strategy='no'",
            )

    # ------------------------------------------------------------------------------------------------------- callbacks

    def add_callback(self, callback: Any) -> None:
        """Add a callback, or an object of a class of callbacks."""
        self.callback_handler.add_callback(callback)

    def pop_callback(self, callback: Any) -> Any:
        """Remove a callback, or the first of a class, and return it; None if there is none."""
        return self.callback_handler.pop_callback(callback)

    def remove_callback(self, callback: Any) -> None:
        """Remove a callback, or the first of a class."""
        self.callback_handler.pop_callback(callback)

    def _event(self, name: str, **options: Any) -> None:
        self.control = self.callback_handler.call_event(name, self.args, self.state, self.control, **options)

    def log(self, logs: dict[str, Any], start_time: float | None = None) -> None:
        """Add values to `state.log_history`, and give them to the callbacks.

        Args:  start_time: when training began, for the speed in tokens, if tokens are counted
        """
        if self.state.epoch is not None:
            logs["epoch"] = self.state.epoch
        if self.args.include_num_input_tokens_seen != "no":
            logs["num_input_tokens_seen"] = self.state.num_input_tokens_seen
            if start_time is not None:
                tokens = self.state.num_input_tokens_seen - self._tokens_at_start
                logs.update(speed_metrics("train", start_time, num_tokens=tokens))
        self.state.log_history.append({**logs, "step": self.state.global_step})
        self._event("on_log", logs=logs)

    # -------------------------------------------------------------------------------------------------------- training

    def train(self, resume_from_checkpoint: str | bool | None = None, trial: Any = None) -> TrainOutput:
        """Take the steps that the arguments say.

        Args:
            resume_from_checkpoint: a folder, or True for the last one in `output_dir`.
            trial: of a search by other code, which is not supported.

        Raises:  ArgumentError without training data, and without a checkpoint to resume; CheckpointError, OSError
        """
        if trial is not None:
            raise ArgumentError("train takes no trial", hint="call trainer.hyperparameter_search")
        self.is_in_train = True
        if self.model_init is not None:
            set_seed(self.args.seed)
            self._take(self.call_model_init(self._trial))
            self.optimizer = self.lr_scheduler = None
        if self.args.activation_checkpointing:
            self.model.gradient_checkpointing_enable(self.args.activation_checkpointing_kwargs)
        checkpoint = self._found_checkpoint(resume_from_checkpoint)
        if checkpoint is not None:
            self._load_model(checkpoint)
        loader = self.get_train_dataloader()
        plan = self._plan(loader)
        self._start(plan, checkpoint)
        with embedding_noise(self.model, self.args.neftune_noise_alpha):
            return self._run(loader, plan, checkpoint)

    def _plan(self, loader: DataLoader[Any]) -> Plan:
        args, accumulated = self.args, self.args.gradient_accumulation_steps
        if not has_length(loader):
            steps = args.max_steps
            return Plan(steps * accumulated, steps, 2**31, steps, steps * accumulated * args.train_batch_size)
        batches = len(loader)
        updates = max(math.ceil(batches / accumulated), 1)
        if args.max_steps > 0:
            samples = args.max_steps * args.train_batch_size * accumulated
            return Plan(batches, updates, math.ceil(args.max_steps / updates), args.max_steps, samples)
        steps = math.ceil(args.num_train_epochs * updates)
        epochs = args.num_train_epochs
        return Plan(batches, updates, math.ceil(epochs), steps, len(self.train_dataset) * epochs)

    def _start(self, plan: Plan, checkpoint: str | None) -> None:
        """Make the state, the optimizer and the schedule, and read them from a checkpoint."""
        self.state = TrainerState(train_batch_size=self.args.train_batch_size)
        self.state.compute_steps(self.args, plan.steps)
        if checkpoint is not None:
            self._load_state(checkpoint)
        self.state.max_steps, self.state.num_train_epochs = plan.steps, plan.epochs
        if self._made_scheduler:
            self.lr_scheduler = None
        self.create_optimizer_and_scheduler(plan.steps)
        if checkpoint is not None:
            self._load_optimizer_and_scheduler(checkpoint)
        handler = self.callback_handler
        handler.model, handler.optimizer, handler.lr_scheduler = self.model, self.optimizer, self.lr_scheduler

    def _run(self, loader: DataLoader[Any], plan: Plan, checkpoint: str | None) -> TrainOutput:
        self.callback_handler.train_dataloader = loader
        started, first_step = time.time(), self.state.global_step
        self._started, self._tokens_at_start = started, self.state.num_input_tokens_seen
        self._loss_since_log, self._loss_total, self._last_logged = 0.0, 0.0, first_step
        self._flops_a_token = self.rules.flops_a_token(self.model)
        self.model.zero_grad()
        self._event("on_train_begin")
        if self.args.eval_on_start:
            self.evaluate()
        epoch, skipped = divmod(first_step, plan.updates)
        for number in range(epoch, plan.epochs):
            self._event("on_epoch_begin")
            done = skipped if number == epoch and not self.args.ignore_data_skip else 0
            self._run_epoch(loader, plan, number, done, checkpoint if number == epoch else None)
            if self.control.should_training_stop:
                break
        return self._finish(plan, started, first_step)

    def _run_epoch(self, loader: DataLoader[Any], plan: Plan, epoch: int, done: int, checkpoint: str | None) -> None:
        """Take the steps of an epoch after the first `done`, which a checkpoint has."""
        accumulated = self.args.gradient_accumulation_steps
        sources: tuple[Any, ...] = (loader.sampler, loader.batch_sampler, loader.dataset)
        for each in sources:
            if hasattr(each, "set_epoch"):
                each.set_epoch(epoch)
        batches = iter(loader)
        step = sum(1 for _ in islice(batches, done * accumulated)) - 1
        if checkpoint is not None:
            self._load_rng_state(checkpoint)
        norm: Tensor | None = None
        rate: float | None = None
        while samples := list(islice(batches, min(accumulated, plan.batches - step - 1))):
            count = self._get_num_items_in_batch(samples)
            self.current_gradient_accumulation_steps = len(samples)
            self._event("on_step_begin")
            for number, inputs in enumerate(samples, 1):
                step += 1
                self._add_loss(self.training_step(self.model, inputs, count).item())
                self._count(inputs)
                if number < len(samples):
                    self._event("on_substep_end")
            norm, rate = self._update()
            self.state.global_step += 1
            self.state.epoch = epoch + (step + 1) / plan.batches
            self._event("on_step_end")
            self._log_evaluate_save(norm, rate)
            if self.control.should_epoch_stop or self.control.should_training_stop:
                break
        if step < 0:
            warn(f"there are no batches to train on; the run ends at step {self.state.global_step}")
            self.control.should_training_stop = True
        self._event("on_epoch_end")
        self._log_evaluate_save(norm, rate)

    def _update(self) -> tuple[Tensor, float]:
        """Clip gradients and take an optimizer step. Return the norm of the gradients and the learning rate."""
        limit = self.args.max_grad_norm
        if limit > 0:
            norm = clip_grad_norm_(self.model.parameters(), limit)
        else:
            norm = get_total_norm([each.grad for each in self.model.parameters() if each.grad is not None])
        self._event("on_pre_optimizer_step")
        self.optimizer.step()
        self._event("on_optimizer_step")
        rate = self._get_learning_rate()
        if not isinstance(self.lr_scheduler, ReduceLROnPlateau):
            self.lr_scheduler.step()
        self._trained().zero_grad()
        return norm, rate

    def training_step(self, model: Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """Compute the gradients of a batch, and return its loss."""
        model.train()
        inputs = self._prepare_inputs(inputs)
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs, num_items_in_batch=num_items_in_batch)
        scaled = self.loss_is_scaled_for_ga
        if scaled is None:
            counted = self.rules.accepts_loss_kwargs and num_items_in_batch is not None
            scaled = counted or self.compute_loss_func is not None
        if not scaled:
            loss = loss / self.current_gradient_accumulation_steps
        loss.backward()
        return loss.detach()

    def compute_loss_context_manager(self) -> AbstractContextManager[Any]:
        """Return the context of forward passes: autocast to bfloat16 with `bf16`."""
        return amp.autocast(self.args.device.type, dtype=dtypes.bfloat16) if self.args.bf16 else nullcontext()

    def compute_loss(
        self, model: Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the loss of a batch, and with `return_outputs` the result of the model too.

        Raises:  ArgumentError if the model returns no loss
        """
        labels = None
        if (self.label_smoother is not None or self.compute_loss_func is not None) and "labels" in inputs:
            labels = inputs.pop("labels")
        counted = self.rules.accepts_loss_kwargs and num_items_in_batch is not None
        outputs = model(**inputs, **({"num_items_in_batch": num_items_in_batch} if counted else {}))
        if self.compute_loss_func is not None:
            loss = self.compute_loss_func(outputs, labels, num_items_in_batch=num_items_in_batch)
        elif labels is not None and self.label_smoother is not None:
            shift = self.rules.is_causal
            loss = self.label_smoother(outputs, labels, shift_labels=shift, num_items_in_batch=num_items_in_batch)
        elif isinstance(outputs, dict):
            if outputs.get("loss") is None:
                raise ArgumentError(
                    f"the model returned no loss, only {', '.join(outputs)}",
                    hint=f"it got {', '.join(inputs)}; samples need labels",
                )
            loss = outputs["loss"]
        else:
            loss = outputs[0]
        return (loss, outputs) if return_outputs else loss

    def _get_num_items_in_batch(self, samples: Sequence[Any]) -> Tensor | None:
        """Return the number of labels in the batches of a step; None where the loss does not need it."""
        wanted = self.rules.accepts_loss_kwargs or self.compute_loss_func is not None
        if not wanted or not isinstance(samples[0], Mapping) or not isinstance(samples[0].get("labels"), Tensor):
            return None
        shift = self.rules.counts_next
        labels = [
            each["shift_labels"] if "shift_labels" in each else each["labels"][..., 1:] if shift else each["labels"]
            for each in samples
        ]
        return sum(each.ne(-100).sum() for each in labels).to(self.args.device)

    def _add_loss(self, loss: float) -> None:
        if self.args.logging_nan_inf_filter and not math.isfinite(loss):
            loss = self._loss_since_log / (1 + self.state.global_step - self._last_logged)
        self._loss_since_log += loss

    def _count(self, inputs: Any) -> None:
        """Count the operations and tokens of a batch."""
        ids = inputs.get(self.rules.main_input) if isinstance(inputs, Mapping) else None
        if not isinstance(ids, Tensor):
            return
        self.state.total_flos += float(self._flops_a_token * ids.numel())
        kind = self.args.include_num_input_tokens_seen
        if kind != "no":
            mask = inputs.get("attention_mask") if kind == "non_padding" else None
            self.state.num_input_tokens_seen += ids.numel() if mask is None else int(mask.sum().item())

    def _log_evaluate_save(self, norm: Tensor | None, rate: float | None) -> None:
        steps = self.state.global_step - self._last_logged
        if self.control.should_log and steps > 0:
            logs: dict[str, Any] = {"loss": self._loss_since_log / steps}
            if norm is not None:
                logs["grad_norm"] = norm.item()
            logs["learning_rate"] = self._get_learning_rate() if rate is None else rate
            self._loss_total += self._loss_since_log
            self._loss_since_log, self._last_logged = 0.0, self.state.global_step
            self.log(logs, self._started)
        if self.control.should_evaluate:
            is_best = self._note_metric(self._evaluated())
            if self.args.save_strategy == "best":
                self.control.should_save = is_best
        if self.control.should_save:
            self._save_checkpoint()
            self._event("on_save")

    def _finish(self, plan: Plan, started: float, first_step: int) -> TrainOutput:
        steps = self.state.global_step - first_step
        loss = (self._loss_total + self._loss_since_log) / max(steps, 0.001)
        samples = plan.samples * steps / max(plan.steps, 1)
        metrics = speed_metrics("train", started, num_samples=samples, num_steps=steps)
        metrics |= {"total_flos": self.state.total_flos, "train_loss": loss}
        self.log(metrics)
        self._load_best_model()
        self._event("on_train_end")
        self.is_in_train = False
        return TrainOutput(self.state.global_step, loss, metrics)

    def stateful(self) -> Iterator[Any]:
        """Yield the callbacks and the control whose state is saved in checkpoints."""
        yield from (each for each in self.callback_handler.callbacks if isinstance(each, ExportableState))
        yield self.control

    def is_local_process_zero(self) -> bool:
        """Return True: there is one process."""
        return True

    def is_world_process_zero(self) -> bool:
        """Return True: there is one process."""
        return True

    def num_examples(self, dataloader: Any) -> int:
        """Return the number of samples of a loader."""
        return len(dataloader.dataset)

    def get_num_trainable_parameters(self) -> int:
        """Return the number of trained weights."""
        return sum(each.numel() for each in self.model.parameters() if each.requires_grad)

    def get_learning_rates(self) -> list[float]:
        """Return the learning rate of each group of parameters.  Raises: ArgumentError before training"""
        if self.optimizer is None:
            raise ArgumentError("there is no optimizer yet", hint="call train or create_optimizer first")
        return [group["lr"] for group in self.optimizer.param_groups]
