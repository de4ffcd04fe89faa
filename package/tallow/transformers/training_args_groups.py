"""Methods of TrainingArguments that set a group of them at once, as in scripts that begin with the defaults."""

from __future__ import annotations

from typing import Any, Self

from tallow.errors import ArgumentError
from tallow.transformers.without_effect import Neutral, effective

NEUTRAL: Neutral = {
    "accumulation_steps": (None,),  # results are kept in main memory
    "level": ("passive",),
    "on_each_node": (False, True),  # there is one
    "replica_level": ("passive", "warning"),
}


class ArgumentGroups:
    """Adds the methods. Each returns the arguments, and sets all that it names: those not given to their defaults."""

    def _set(self, **values: Any) -> Self:
        steps = next((name for name in ("eval_steps", "save_steps", "logging_steps") if name in values), "")
        if steps and not values[steps] and "steps" in map(str, values.values()):
            raise ArgumentError(f"strategy='steps' with {steps}=0", hint="pass a positive number of steps")
        for name, value in values.items():
            setattr(self, name, value)
        self._as_choices()
        return self

    def _as_choices(self) -> None:
        raise NotImplementedError

    def set_training(
        self,
        learning_rate: float = 5e-5,
        batch_size: int = 8,
        weight_decay: float = 0,
        num_epochs: float = 3,
        max_steps: int = -1,
        gradient_accumulation_steps: int = 1,
        seed: int = 42,
        activation_checkpointing: bool = False,
        gradient_checkpointing: bool | None = None,
    ) -> Self:
        """Set what training reads.  Args: gradient_checkpointing: the older name of activation_checkpointing"""
        is_older = gradient_checkpointing is not None
        return self._set(
            do_train=True,
            learning_rate=learning_rate,
            per_device_train_batch_size=batch_size,
            weight_decay=weight_decay,
            num_train_epochs=num_epochs,
            max_steps=max_steps,
            gradient_accumulation_steps=gradient_accumulation_steps,
            seed=seed,
            activation_checkpointing=gradient_checkpointing if is_older else activation_checkpointing,
        )

    def set_evaluate(
        self,
        strategy: str = "no",
        steps: int = 500,
        batch_size: int = 8,
        accumulation_steps: int | None = None,
        delay: float | None = None,
        loss_only: bool = False,
    ) -> Self:
        """Set when and how to evaluate.  Raises: ArgumentError for steps of 0"""
        effective("set_evaluate", {"accumulation_steps": accumulation_steps}, NEUTRAL)
        return self._set(
            eval_strategy=strategy,
            do_eval=strategy != "no",
            eval_steps=steps,
            per_device_eval_batch_size=batch_size,
            eval_delay=delay or 0,
            prediction_loss_only=loss_only,
        )

    def set_testing(self, batch_size: int = 8, loss_only: bool = False) -> Self:
        """Set how to predict."""
        return self._set(do_predict=True, per_device_eval_batch_size=batch_size, prediction_loss_only=loss_only)

    def set_save(
        self, strategy: str = "steps", steps: int = 500, total_limit: int | None = None, on_each_node: bool = False
    ) -> Self:
        """Set when to save checkpoints.  Raises: ArgumentError for steps of 0"""
        effective("set_save", {"on_each_node": on_each_node}, NEUTRAL)
        return self._set(save_strategy=strategy, save_steps=steps, save_total_limit=total_limit)

    def set_logging(
        self,
        strategy: str = "steps",
        steps: int = 500,
        report_to: str | list[str] = "none",
        level: str = "passive",
        first_step: bool = False,
        nan_inf_filter: bool = False,
        on_each_node: bool = False,
        replica_level: str = "passive",
    ) -> Self:
        """Set when and where to log.  Raises: ArgumentError for steps of 0"""
        effective(
            "set_logging", {"level": level, "on_each_node": on_each_node, "replica_level": replica_level}, NEUTRAL
        )
        return self._set(
            logging_strategy=strategy,
            logging_steps=steps,
            report_to=report_to,
            logging_first_step=first_step,
            logging_nan_inf_filter=nan_inf_filter,
        )

    def set_push_to_hub(
        self,
        model_id: str,
        strategy: str = "every_save",
        token: str | None = None,
        private_repo: bool | None = None,
        always_push: bool = False,
        revision: str | None = None,
    ) -> Self:
        """Set to which repository to upload the model, and when."""
        return self._set(
            push_to_hub=True,
            hub_model_id=model_id,
            hub_strategy=strategy,
            hub_token=token,
            hub_private_repo=private_repo,
            hub_always_push=always_push,
            hub_revision=revision,
        )

    def set_optimizer(
        self,
        name: str = "adamw_torch",
        learning_rate: float = 5e-5,
        weight_decay: float = 0,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        args: str | None = None,
    ) -> Self:
        """Set the optimizer."""
        return self._set(
            optim=name,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            adam_beta1=beta1,
            adam_beta2=beta2,
            adam_epsilon=epsilon,
            optim_args=args,
        )

    def set_lr_scheduler(
        self, name: str = "linear", num_epochs: float = 3.0, max_steps: int = -1, warmup_steps: float = 0
    ) -> Self:
        """Set the schedule of the learning rate."""
        return self._set(
            lr_scheduler_type=name, num_train_epochs=num_epochs, max_steps=max_steps, warmup_steps=warmup_steps
        )

    def set_dataloader(
        self,
        train_batch_size: int = 8,
        eval_batch_size: int = 8,
        drop_last: bool = False,
        num_workers: int = 0,
        pin_memory: bool = True,
        persistent_workers: bool = False,
        prefetch_factor: int | None = None,
        multiprocessing_context: str | None = None,
        in_order: bool = True,
        auto_find_batch_size: bool = False,
        ignore_data_skip: bool = False,
        sampler_seed: int | None = None,
    ) -> Self:
        """Set how samples are read."""
        return self._set(
            per_device_train_batch_size=train_batch_size,
            per_device_eval_batch_size=eval_batch_size,
            dataloader_drop_last=drop_last,
            dataloader_num_workers=num_workers,
            dataloader_pin_memory=pin_memory,
            dataloader_persistent_workers=persistent_workers,
            dataloader_prefetch_factor=prefetch_factor,
            dataloader_multiprocessing_context=multiprocessing_context,
            dataloader_in_order=in_order,
            auto_find_batch_size=auto_find_batch_size,
            ignore_data_skip=ignore_data_skip,
            data_seed=sampler_seed,
        )
