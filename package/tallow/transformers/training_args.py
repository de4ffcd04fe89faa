"""TrainingArguments: what a Trainer does, and when."""

from __future__ import annotations

import dataclasses
import json
import logging as python_logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from tallow import cuda, devices
from tallow.errors import ArgumentError, TallowWarning, UnsupportedError, warn
from tallow.transformers.logging import get_verbosity
from tallow.transformers.tensor_types import Choice
from tallow.transformers.trainer_utils import IntervalStrategy, SaveStrategy, SchedulerType
from tallow.transformers.training_args_groups import ArgumentGroups
from tallow.transformers.without_effect import Neutral, effective


class OptimizerNames(Choice):
    """The names of the optimizers that TrainingArguments know."""

    ADAMW_TORCH = "adamw_torch"
    ADAMW_TORCH_FUSED = "adamw_torch_fused"
    ADAFACTOR = "adafactor"
    SGD = "sgd"
    ADAGRAD = "adagrad"
    RMSPROP = "rmsprop"
    LION = "lion_32bit"


class ParallelMode(Enum):
    """The division of a run: there is none."""

    NOT_PARALLEL = "not_parallel"


class HubStrategy(Choice):
    """When to upload: after each save, or at the end."""

    END = "end"
    EVERY_SAVE = "every_save"


# Names of version 4 -> those of version 5, or None for what a Trainer does not read.
RENAMED = {
    "evaluation_strategy": "eval_strategy",
    "no_cuda": "use_cpu",
    "warmup_ratio": "warmup_steps",
    "gradient_checkpointing": "activation_checkpointing",
    "gradient_checkpointing_kwargs": "activation_checkpointing_kwargs",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "push_to_hub_model_id": "hub_model_id",
    "overwrite_output_dir": None,  # only programs read it
}
# What changes the result, or what a user waits for, and is not there: a value other than the default is an error.
ABSENT = {
    "fp16": "train in float32, or pass bf16=True",
    "fp16_full_eval": "evaluate in float32",
    "bf16_full_eval": "call model.to(dtype=torch.bfloat16) before evaluate",
    "auto_find_batch_size": "pass a smaller per_device_train_batch_size with gradient_accumulation_steps",
    "fsdp": "train on one device",
    "fsdp_config": "train on one device",
    "deepspeed": "train on one device",
    "parallelism_config": "train on one device",
    "optim_args": "pass optimizer_cls_and_kwargs to the Trainer",
    "optim_target_modules": "pass optimizer_cls_and_kwargs to the Trainer",
    "hub_private_repo": "create the repository first",
    "hub_always_push": "leave it out; uploads are complete before the next step",
    "debug": "leave it out",
}
# What changes speed, memory or messages on other machines, and no result: values that ask for no more than that.
NEUTRAL: Neutral = {
    **dict.fromkeys(("average_tokens_across_devices", "log_on_each_node", "skip_memory_metrics"), (None, True)),
    **dict.fromkeys(("tf32", "use_liger_kernel", "save_on_each_node", "eval_use_gather_object"), (None, False)),
    **dict.fromkeys(("liger_kernel_config", "torch_empty_cache_steps", "eval_accumulation_steps"), (None,)),
    **dict.fromkeys(("torch_compile", "enable_jit_checkpoint"), (None, False)),
    **dict.fromkeys(("torch_compile_backend", "torch_compile_mode", "accelerator_config", "run_name"), (None,)),
    **dict.fromkeys(("ddp_find_unused_parameters", "ddp_bucket_cap_mb", "ddp_broadcast_buffers"), (None,)),
    **dict.fromkeys(("ddp_static_graph", "ddp_backend"), (None,)),
    **dict.fromkeys(("trackio_bucket_id", "trackio_static_space_id"), (None,)),
    "trackio_space_id": (None, "trackio"),
    "project": (None, "huggingface"),
    "ddp_timeout": (None, "1800"),
    "local_rank": (None, "-1", "0"),
    "log_level": (None, "passive"),
    "log_level_replica": (None, "warning"),
    "save_safetensors": (None, True),
    "half_precision_backend": (None, "auto"),
    "full_determinism": (None, True, False),  # a seed always decides on the result
}


class _Renames(type):
    """Takes version 4's names of arguments, and names that have no effect here."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        for old, new in RENAMED.items():
            if old in kwargs:
                value = kwargs.pop(old)
                if new is not None and value is not None:
                    kwargs.setdefault(new, value)
        if kwargs.pop("group_by_length", False):
            kwargs.setdefault("train_sampling_strategy", "group_by_length")
        if "include_inputs_for_metrics" in kwargs and kwargs.pop("include_inputs_for_metrics"):
            kwargs.setdefault("include_for_metrics", ["inputs"])
        neutral = cls.neutral  # type: ignore[attr-defined]  # of TrainingArguments and its subclasses
        made = super().__call__(*args, **effective(cls.__name__, kwargs, neutral))
        vars(made).update({name: value for name, value in kwargs.items() if name in neutral})
        return made


@dataclass(repr=False)
class TrainingArguments(ArgumentGroups, metaclass=_Renames):
    """The arguments of a Trainer: names, defaults and meanings are those of transformers 5.

    Names of version 4, such as `evaluation_strategy`, are taken too. Arguments for other machines, such as
    `ddp_backend`, have no effect.

    Attributes:
        output_dir: the folder of checkpoints.
        max_steps: number of optimizer steps, in place of `num_train_epochs`; -1 means the epochs.
        warmup_steps: number of steps, or below 1 a share of all.
        logging_steps, eval_steps, save_steps: number of steps, or below 1 a share of all.
        max_grad_norm: clip gradients to this norm; 0 leaves them.
        bf16: compute in bfloat16 where autocast does.
        report_to: "none", or "tensorboard", which needs tensorboardX.
        data_seed: of the order of samples, which is that of PyTorch's generator; None means `seed`.
        disable_tqdm: print the logs as lines in place of a bar; None means a bar.
        neftune_noise_alpha: size of the noise on embeddings while training (arXiv:2310.05914).

    Raises:  ArgumentError for values that do not fit each other; UnsupportedError for what tallow does not compute
    Warns:   TallowWarning for arguments without an effect
    """

    neutral: ClassVar[Neutral] = NEUTRAL
    absent: ClassVar[Mapping[str, str]] = ABSENT
    other_names: ClassVar = (*NEUTRAL, *RENAMED)  # of arguments that are no fields, for a HfArgumentParser

    output_dir: str | None = None
    per_device_train_batch_size: int = 8
    num_train_epochs: float = 3.0
    max_steps: int = -1
    learning_rate: float = 5e-5
    lr_scheduler_type: SchedulerType | str = "linear"
    lr_scheduler_kwargs: dict[str, Any] | str | None = None
    warmup_steps: float = 0
    optim: OptimizerNames | str = "adamw_torch_fused"
    optim_args: str | None = None
    weight_decay: float = 0.0
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adam_epsilon: float = 1e-8
    optim_target_modules: Any = None
    gradient_accumulation_steps: int = 1
    max_grad_norm: float = 1.0
    label_smoothing_factor: float = 0.0
    bf16: bool = False
    fp16: bool = False
    bf16_full_eval: bool = False
    fp16_full_eval: bool = False
    activation_checkpointing: bool = False
    activation_checkpointing_kwargs: dict[str, Any] | None = None
    use_cache: bool = False
    neftune_noise_alpha: float | None = None
    auto_find_batch_size: bool = False
    logging_strategy: IntervalStrategy | str = "steps"
    logging_dir: str | None = None
    logging_steps: float = 500
    logging_first_step: bool = False
    logging_nan_inf_filter: bool = True
    include_num_input_tokens_seen: str | bool = "no"
    disable_tqdm: bool | None = None
    report_to: str | list[str] | None = "none"
    eval_strategy: IntervalStrategy | str = "no"
    eval_steps: float | None = None
    eval_delay: float = 0
    per_device_eval_batch_size: int = 8
    prediction_loss_only: bool = False
    eval_on_start: bool = False
    eval_do_concat_batches: bool = True
    include_for_metrics: list[str] = field(default_factory=list)
    batch_eval_metrics: bool = False
    save_only_model: bool = False
    save_strategy: SaveStrategy | str = "steps"
    save_steps: float = 500
    save_total_limit: int | None = None
    push_to_hub: bool = False
    hub_token: str | None = None
    hub_private_repo: bool | None = None
    hub_model_id: str | None = None
    hub_strategy: HubStrategy | str = "every_save"
    hub_always_push: bool = False
    hub_revision: str | None = None
    load_best_model_at_end: bool = False
    metric_for_best_model: str | None = None
    greater_is_better: bool | None = None
    ignore_data_skip: bool = False
    restore_callback_states_from_checkpoint: bool = False
    seed: int = 42
    data_seed: int | None = None
    use_cpu: bool = False
    parallelism_config: Any = None
    dataloader_drop_last: bool = False
    dataloader_num_workers: int = 0
    dataloader_pin_memory: bool = True
    dataloader_persistent_workers: bool = False
    dataloader_prefetch_factor: int | None = None
    dataloader_multiprocessing_context: str | None = None
    dataloader_in_order: bool = True
    remove_unused_columns: bool = True
    label_names: list[str] | None = None
    train_sampling_strategy: str = "random"
    length_column_name: str = "length"
    fsdp: Any = None
    fsdp_config: Any = None
    deepspeed: Any = None
    debug: Any = ""
    do_train: bool = False
    do_eval: bool = False
    do_predict: bool = False
    resume_from_checkpoint: str | None = None

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            if each.name in self.absent and getattr(self, each.name) not in (each.default, None, False, [], ""):
                given = f"{each.name}={getattr(self, each.name)!r:.80}"
                raise UnsupportedError(f"{given} is not supported", hint=self.absent[each.name])
        self._check_numbers()
        self.output_dir = str(Path(self.output_dir or "trainer_output").expanduser())
        if isinstance(self.lr_scheduler_kwargs, str):
            try:
                self.lr_scheduler_kwargs = json.loads(self.lr_scheduler_kwargs)
            except ValueError as error:
                raise ArgumentError(
                    f"lr_scheduler_kwargs={self.lr_scheduler_kwargs!r:.80} is not JSON", hint="pass a dictionary"
                ) from error
        self.disable_tqdm = find_spec("tqdm") is None if self.disable_tqdm is None else self.disable_tqdm
        if isinstance(self.include_num_input_tokens_seen, bool):
            self.include_num_input_tokens_seen = "all" if self.include_num_input_tokens_seen else "no"
        self._as_choices()
        self.do_eval = self.do_eval or self.eval_strategy != IntervalStrategy.NO
        self.eval_steps = self._eval_steps()
        plateau = self.lr_scheduler_type == SchedulerType.REDUCE_ON_PLATEAU
        if (self.load_best_model_at_end or plateau) and self.metric_for_best_model is None:
            self.metric_for_best_model = "loss"
        if self.greater_is_better is None and self.metric_for_best_model is not None:
            self.greater_is_better = not self.metric_for_best_model.endswith("loss")
        self._check()

    def _check_numbers(self) -> None:
        """Raise ArgumentError for an argument that is not of its default's kind, and for batches without samples."""
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if value is None and "None" in str(each.type):
                continue
            if type(each.default) in (int, float) and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ArgumentError(f"{each.name}={value!r:.80}", hint=f"pass a number, such as {each.default}")
        for name in ("per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"):
            if getattr(self, name) < 1:
                raise ArgumentError(f"{name}={getattr(self, name)!r:.80}", hint="pass 1 or more")
        if not isinstance(self.output_dir, str | PathLike | None):
            raise ArgumentError(f"output_dir={self.output_dir!r:.80}", hint="pass the path of a folder")

    def _as_choices(self) -> None:
        self.eval_strategy = IntervalStrategy(self.eval_strategy)
        self.logging_strategy = IntervalStrategy(self.logging_strategy)
        self.save_strategy = SaveStrategy(self.save_strategy)
        self.hub_strategy = HubStrategy(self.hub_strategy)
        self.lr_scheduler_type = SchedulerType(self.lr_scheduler_type)
        self.optim = OptimizerNames(self.optim)
        self.report_to = self._reporters()

    def _reporters(self) -> list[str]:
        given = [self.report_to] if isinstance(self.report_to, str) else list(self.report_to or [])
        if given == ["none"]:
            return []
        if given == ["all"]:
            return ["tensorboard"] if find_spec("tensorboardX") else []
        if unknown := [name for name in given if name != "tensorboard"]:
            raise UnsupportedError(f"report_to={unknown[0]!r:.80}", hint="pass 'tensorboard' or 'none', or a callback")
        return given

    def _eval_steps(self) -> float | None:
        if self.eval_strategy == IntervalStrategy.STEPS and not self.eval_steps:
            if self.logging_steps <= 0:
                raise ArgumentError("eval_strategy='steps' needs eval_steps, or logging_steps above 0")
            return self.logging_steps
        return self.eval_steps

    def _check(self) -> None:
        for kind in ("logging", "eval", "save"):
            steps = getattr(self, f"{kind}_steps")
            if getattr(self, f"{kind}_strategy") == "steps":
                if kind == "logging" and steps == 0:
                    raise ArgumentError("logging_strategy='steps' needs logging_steps above 0")
                if steps > 1 and steps != int(steps):
                    raise ArgumentError(f"{kind}_steps={steps}; expected an integer, or a share of the steps below 1")
                if steps > 1:
                    setattr(self, f"{kind}_steps", int(steps))
        if self.load_best_model_at_end and self.save_strategy != SaveStrategy.BEST:
            self._check_best()
        if self.lr_scheduler_type == SchedulerType.REDUCE_ON_PLATEAU and self.eval_strategy == IntervalStrategy.NO:
            raise ArgumentError("lr_scheduler_type='reduce_lr_on_plateau' needs an eval_strategy")
        if self.warmup_steps < 0:
            raise ArgumentError(f"warmup_steps={self.warmup_steps}; expected 0 or more")
        if self.train_sampling_strategy not in ("random", "sequential", "group_by_length"):
            raise ArgumentError(
                f"train_sampling_strategy={self.train_sampling_strategy!r:.80}",
                hint="pass 'random', 'sequential' or 'group_by_length'",
            )

    def _check_best(self) -> None:
        evaluates, saves = IntervalStrategy(self.eval_strategy).value, SaveStrategy(self.save_strategy).value
        if evaluates != saves:
            raise ArgumentError(
                f"load_best_model_at_end: eval_strategy is {evaluates!r}, and save_strategy {saves!r}",
                hint="pass the same for both, or save_strategy='best'",
            )
        if evaluates == "steps":
            shares = [steps < 1 for steps in (self.save_steps, self.eval_steps or 1)]
            ratio = self.save_steps / (self.eval_steps or 1)
            if any(shares) != all(shares) or not math.isclose(ratio, round(ratio)):
                raise ArgumentError(
                    f"load_best_model_at_end: save_steps={self.save_steps} is not a multiple of "
                    f"eval_steps={self.eval_steps}"
                )

    @property
    def train_batch_size(self) -> int:
        """Samples of a forward pass in training."""
        return self.per_device_train_batch_size

    @property
    def eval_batch_size(self) -> int:
        """Samples of a forward pass in evaluation."""
        return self.per_device_eval_batch_size

    @cached_property
    def device(self) -> devices.device:
        """The device of the run: a GPU if there is one, unless `use_cpu`. It is looked for once."""
        return devices.device("cuda" if not self.use_cpu and cuda.is_available() else "cpu")

    @property
    def n_gpu(self) -> int:
        """The number of GPUs in use."""
        return int(self.device.type == "cuda")

    @property
    def world_size(self) -> int:
        """The number of processes: 1."""
        return 1

    @property
    def process_index(self) -> int:
        """The number of this process: 0."""
        return 0

    @property
    def local_process_index(self) -> int:
        """The number of this process on this machine: 0."""
        return 0

    @property
    def parallel_mode(self) -> ParallelMode:
        """NOT_PARALLEL: there is one process."""
        return ParallelMode.NOT_PARALLEL

    @contextmanager
    def main_process_first(self, local: bool = True, desc: str = "work") -> Iterator[None]:
        """Run a block: this is the main process.

        Args:  local, desc: of several processes; they have no effect
        """
        del local, desc
        yield

    def get_process_log_level(self) -> int:
        """Return the level of the log of this process, which `log_level` names."""
        name = self.log_level
        return get_verbosity() if name == "passive" else int(python_logging.getLevelName(str(name).upper()))

    def __getattr__(self, name: str) -> Any:
        if renamed := RENAMED.get(name):
            return getattr(self, renamed)
        if name in type(self).neutral:
            value = type(self).neutral[name][-1]
            return int(value) if str(value).lstrip("-").isdigit() else value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def should_save(self) -> bool:
        """True: this process writes checkpoints."""
        return True

    @property
    def should_log(self) -> bool:
        """True: this process logs."""
        return True

    def get_warmup_steps(self, num_training_steps: int) -> int:
        """Return the number of warmup steps of a run."""
        steps = self.warmup_steps
        return int(steps) if steps >= 1 else math.ceil(num_training_steps * steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments, with a token as its name, as values of JSON."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {
            name: f"<{name.upper()}>" if name.endswith("_token") and value is not None else _plain(value)
            for name, value in values.items()
        }

    def to_json_string(self) -> str:
        """Return the arguments as JSON."""
        return json.dumps(self.to_dict(), indent=2, default=str)

    def to_sanitized_dict(self) -> dict[str, Any]:
        """Return the arguments, with all but numbers and texts as text."""
        values = {**self.to_dict(), "train_batch_size": self.train_batch_size, "eval_batch_size": self.eval_batch_size}
        return {
            name: value if isinstance(value, bool | int | float | str) else str(value) for name, value in values.items()
        }

    def __repr__(self) -> str:
        lines = "".join(f"{name}={value},\n" for name, value in sorted(self.to_dict().items()))
        return f"{type(self).__name__}(\n{lines})"


@dataclass(repr=False)
class Seq2SeqTrainingArguments(TrainingArguments):
    """As TrainingArguments, with generation.

    Attributes:
        sortish_sampler: not supported; train_sampling_strategy="group_by_length" sorts by length.
        predict_with_generate: predictions are generated texts.
        generation_max_length, generation_num_beams: arguments of `generate`; None means the model's.
        generation_config: a GenerationConfig, its folder or the name of a model.
    """

    sortish_sampler: bool = False
    predict_with_generate: bool = False
    generation_max_length: int | None = None
    generation_num_beams: int | None = None
    generation_config: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sortish_sampler:
            warn("sortish_sampler has no effect", TallowWarning)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.to_dict() if hasattr(value, "to_dict") else value
