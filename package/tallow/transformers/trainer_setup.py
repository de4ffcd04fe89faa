"""The part of the Trainer that makes the loaders of batches, the optimizer and the schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tallow import random
from tallow.data import DataLoader, IterableDataset, SequentialSampler
from tallow.errors import ArgumentError
from tallow.nn.module import Module
from tallow.optim import SGD, Adafactor, Adagrad, AdamW, Lion, RMSprop
from tallow.transformers.optimization import get_scheduler
from tallow.transformers.trainer_models import LossRules
from tallow.transformers.trainer_pt_utils import (
    LengthGroupedSampler,
    RemoveColumnsCollator,
    SeededSampler,
    decayed_names,
    mapped,
    readable,
)
from tallow.transformers.trainer_utils import has_length
from tallow.transformers.training_args import OptimizerNames, TrainingArguments

OPTIMIZERS: dict[OptimizerNames, type] = {
    OptimizerNames.ADAMW_TORCH: AdamW,
    OptimizerNames.ADAMW_TORCH_FUSED: AdamW,
    OptimizerNames.ADAFACTOR: Adafactor,
    OptimizerNames.SGD: SGD,
    OptimizerNames.ADAGRAD: Adagrad,
    OptimizerNames.RMSPROP: RMSprop,
    OptimizerNames.LION: Lion,
}


class TrainerSetup:
    """Loaders, optimizer and schedule; `Trainer` inherits them."""

    args: TrainingArguments
    model: Any
    rules: LossRules
    label_names: list[str]
    train_dataset: Any
    processing_class: Any
    data_collator: Callable[[list[Any]], Any]
    optimizer: Any
    lr_scheduler: Any
    optimizer_cls_and_kwargs: tuple[type, dict[str, Any]] | None
    _made_scheduler: bool

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the loader of the training batches.  Raises: ArgumentError without training data"""
        if self.train_dataset is None:
            raise ArgumentError("Trainer: training needs a train_dataset")
        return self._loader(self.train_dataset, self.args.train_batch_size, self._train_sampler())

    def _train_sampler(self) -> Any:
        dataset, args = self.train_dataset, self.args
        if not has_length(dataset):
            return None
        seed = random.initial_seed() if args.data_seed is None else args.data_seed
        if args.train_sampling_strategy == "sequential":
            return SequentialSampler(dataset)
        if args.train_sampling_strategy == "group_by_length":
            columns = getattr(dataset, "column_names", None) or ()
            lengths = dataset[args.length_column_name] if args.length_column_name in columns else None
            name = getattr(self.processing_class, "model_input_names", [None])[0]
            steps = args.train_batch_size * args.gradient_accumulation_steps
            return LengthGroupedSampler(steps, dataset, lengths, name, seed)
        return SeededSampler(len(dataset), seed)

    def _loader(self, dataset: Any, batch_size: int, sampler: Any) -> DataLoader[Any]:
        args, collate = self.args, self.data_collator
        dataset = readable(dataset)
        if args.remove_unused_columns:
            names = self.rules.arguments + self.label_names
            collate = RemoveColumnsCollator(collate, [*names, "label", "label_ids"])
        workers = args.dataloader_num_workers
        extra: dict[str, Any] = (
            {}
            if not workers
            else {
                "persistent_workers": args.dataloader_persistent_workers,
                "prefetch_factor": args.dataloader_prefetch_factor,
                "multiprocessing_context": args.dataloader_multiprocessing_context,
            }
        )
        return DataLoader(
            dataset,
            batch_size,
            sampler=None if isinstance(dataset, IterableDataset) else sampler,
            collate_fn=collate,
            num_workers=workers,
            pin_memory=args.dataloader_pin_memory and args.device.type == "cuda",
            drop_last=args.dataloader_drop_last,
            in_order=args.dataloader_in_order,
            **extra,
        )

    def _prepare_inputs(self, inputs: Any) -> Any:
        """Return a batch on the device of the run."""
        device = self.args.device
        if isinstance(inputs, Mapping):
            return {name: mapped(lambda each: each.to(device), value) for name, value in inputs.items()}
        return mapped(lambda each: each.to(device), inputs)

    # ------------------------------------------------------------------------------------------------------- optimizer

    def create_optimizer_and_scheduler(self, num_training_steps: int) -> None:
        """Make the optimizer and the schedule of a run, where they are missing."""
        self.create_optimizer()
        self.create_scheduler(num_training_steps)

    def create_optimizer(self) -> Any:
        """Make and return the optimizer if it is missing; biases and norms have no weight decay."""
        if self.optimizer is None:
            decayed = self.get_decay_parameter_names(self._trained())
            trained = [(name, each) for name, each in self._trained().named_parameters() if each.requires_grad]
            groups = [
                {"params": [p for n, p in trained if n in decayed], "weight_decay": self.args.weight_decay},
                {"params": [p for n, p in trained if n not in decayed], "weight_decay": 0.0},
            ]
            kind, options = self.optimizer_cls_and_kwargs or self.get_optimizer_cls_and_kwargs(self.args)
            self.optimizer = kind([group for group in groups if group["params"]], **options)
        return self.optimizer

    def _trained(self) -> Module:
        """Return the module whose parameters the optimizer gets."""
        return self.model

    @staticmethod
    def get_optimizer_cls_and_kwargs(args: TrainingArguments) -> tuple[type, dict[str, Any]]:
        """Return the class of the optimizer and its arguments."""
        name = OptimizerNames(args.optim)
        options: dict[str, Any] = {"lr": args.learning_rate}
        if OPTIMIZERS[name] is AdamW:
            options |= {"betas": (args.adam_beta1, args.adam_beta2), "eps": args.adam_epsilon}
        if name is OptimizerNames.LION:
            options |= {"betas": (args.adam_beta1, args.adam_beta2)}
        return OPTIMIZERS[name], options

    def get_decay_parameter_names(self, model: Module) -> list[str]:
        """Return the names of the parameters with weight decay."""
        return sorted(decayed_names(model))

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Make and return the schedule if it is missing."""
        if self.lr_scheduler is None:
            self.lr_scheduler = get_scheduler(
                self.args.lr_scheduler_type,
                self.optimizer if optimizer is None else optimizer,
                self.args.get_warmup_steps(num_training_steps),
                num_training_steps,
                self.args.lr_scheduler_kwargs,  # type: ignore[arg-type]
            )
            self._made_scheduler = True
        return self.lr_scheduler

    def _get_learning_rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])
