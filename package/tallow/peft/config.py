"""The settings of a LoRA adapter, and its `adapter_config.json`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from tallow.errors import ArgumentError, CheckpointError, TokenizerError
from tallow.hub import local_folder
from tallow.models.config import ADAPTER_CONFIG, read_entries, report_unknown, write_entries
from tallow.text import patterns

PEFT_TYPE = "LORA"
MAX_RANK = 1 << 20
BIASES = ("none", "all", "lora_only")
# Heads that are new in a model for a task, so an adapter for it trains and contains them.
HEADS = {
    "SEQ_CLS": ("classifier", "score"),
    "TOKEN_CLS": ("classifier", "score"),
    "QUESTION_ANS": ("qa_outputs",),
}


class TaskType(StrEnum):
    """The kinds of models that an adapter is for."""

    CAUSAL_LM = "CAUSAL_LM"
    FEATURE_EXTRACTION = "FEATURE_EXTRACTION"
    SEQ_2_SEQ_LM = "SEQ_2_SEQ_LM"
    SEQ_CLS = "SEQ_CLS"
    TOKEN_CLS = "TOKEN_CLS"
    QUESTION_ANS = "QUESTION_ANS"


class PeftType(StrEnum):
    """The kinds of adapters."""

    LORA = "LORA"


class PeftConfig:
    """The base of the settings of adapters, of which `LoraConfig` is the only kind."""

    @property
    def peft_type(self) -> PeftType:
        """The kind of the adapter."""
        return PeftType.LORA

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | Path, *, revision: str | None = None, token: str | None = None
    ) -> LoraConfig:
        """Read the `adapter_config.json` of a folder or a repository of the Hub.

        Raises:  HubError; and as `LoraConfig.from_pretrained`
        """
        folder = local_folder(pretrained_model_name_or_path, revision=revision, token=token)
        return LoraConfig.from_pretrained(folder)


TASKS = tuple(TaskType)
# Entries of adapter_config.json that do not change the result: its origin, and how other programs load or train it.
NEUTRAL = frozenset(
    {
        *("auto_mapping", "peft_type", "peft_version", "revision", "megatron_config", "megatron_core"),
        *("loftq_config", "eva_config", "corda_config", "lora_ga_config", "qalora_group_size", "runtime_config"),
    }
)
# Entries of peft's LoraConfig that change the result, by other products or other weights.
REFUSED = frozenset(
    {
        *("alora_invocation_tokens", "arrow_config", "ensure_weight_tying", "layer_replication", "lora_bias"),
        *("target_parameters", "trainable_token_indices", "use_bdlora", "use_qalora"),
    }
)
# Initial values that differ from those of tallow, but leave the base model unchanged: a file replaces them.
OTHER_STARTS = ("eva", "orthogonal")


@dataclass(frozen=True, kw_only=True)
class LoraConfig(PeftConfig):
    """The settings of a LoRA adapter: y = layer(x) + scale · B(A(dropout(x))).

    Attributes:
        r: the rank: rows of A and columns of B.
        lora_alpha: scale = lora_alpha / r.
        use_rslora: scale = lora_alpha / √r instead.  Source: arXiv:2312.03732
        use_dora: train the length of each row of the adapted weight apart from its direction; of linear layers whose
            weights are not quantised.  Source: arXiv:2402.09353
        target_modules: the layers to adapt: names, or ends of dotted paths; a string is a regular expression for whole
            paths, or "all-linear" for every linear layer but the head. None means those of the model's type.
        exclude_modules: layers not to adapt, in the same form.
        layers_to_transform: index or indices of the only blocks to adapt, for names in `target_modules`.
        layers_pattern: name of the list, or names of the lists, that the indices belong to; None means the first list.
        lora_dropout: probability of dropout before A.
        bias: biases to train: "none", "all", or "lora_only" for those of adapted layers.
        modules_to_save: ends of the paths of other modules, which are trained as a whole and saved with the adapter.
        init_lora_weights: True draws A from U(-1/√in, 1/√in) and "gaussian" from N(0, 1/r²), with B = 0, so that the
            adapter changes nothing at first; False also draws B.
        rank_pattern, alpha_pattern: other values of `r` and `lora_alpha` by regular expressions of path ends.
        fan_in_fan_out: True if adapted layers store their weight transposed, as GPT-2's; adding the adapter sets it.
        task_type: kind of the model, such as "CAUSAL_LM"; those with new heads add them to `modules_to_save`.
        base_model_name_or_path: the model that the adapter is for.
        inference_mode: True if the adapter is frozen.

    Raises:  ArgumentError
    """

    r: int = 8
    lora_alpha: float = 8
    target_modules: Sequence[str] | str | None = None
    lora_dropout: float = 0.0
    bias: str = "none"
    use_rslora: bool = False
    modules_to_save: Sequence[str] | None = None
    fan_in_fan_out: bool = False
    init_lora_weights: bool | str = True
    exclude_modules: Sequence[str] | str | None = None
    layers_to_transform: Sequence[int] | int | None = None
    layers_pattern: Sequence[str] | str | None = None
    rank_pattern: Mapping[str, int] = field(default_factory=dict)
    alpha_pattern: Mapping[str, float] = field(default_factory=dict)
    task_type: str | None = None
    base_model_name_or_path: str | None = None
    inference_mode: bool = False
    use_dora: bool = False

    def __post_init__(self) -> None:
        _check(self)

    @property
    def saved_modules(self) -> tuple[str, ...]:
        """The names of modules that are trained as a whole, with those of the task."""
        return tuple(dict.fromkeys((*(self.modules_to_save or ()), *HEADS.get(self.task_type or "", ()))))

    def scale(self, r: int, alpha: float) -> float:
        """Return the factor of B(A(x))."""
        return alpha / (math.sqrt(r) if self.use_rslora else r)

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, strict: bool = False) -> Self:  # type: ignore[override]
        """Read the `adapter_config.json` of a local folder.

        Args:    strict: refuse every entry that is on and that tallow does not know; by default a TallowWarning names
                 those that peft does not know either
        Raises:  CheckpointError when it is missing or not JSON, is not LoRA's, has an invalid entry, or has an entry
                 that changes the result and that tallow does not support
        """
        path = Path(folder) / ADAPTER_CONFIG
        if not path.exists():
            raise CheckpointError(f"{path} does not exist", hint="pass the folder of an adapter")
        entries = read_entries(path)
        if (kind := entries.get("peft_type")) != PEFT_TYPE:
            raise CheckpointError(f"{path}: peft_type is {kind!r:.100}; tallow supports {PEFT_TYPE}")
        known = {each.name for each in fields(cls)}
        # Later versions of peft, and programs that train, add entries; those that are off or empty change nothing.
        unknown = {name: value for name, value in entries.items() if value and name not in known | NEUTRAL}
        if refused := [name for name in unknown if strict or name in REFUSED]:
            lines = [f"  {name} is {entries[name]!r:.100}" for name in refused]
            raise CheckpointError("\n".join([f"{path} has entries that tallow does not support", *lines]))
        report_unknown(unknown, f"{path}: LoraConfig")
        if entries.get("init_lora_weights") in OTHER_STARTS:
            del entries["init_lora_weights"]
        values = {name: value for name, value in entries.items() if name in known and value is not None}
        try:
            config = cls(**values)
            for pattern in config.patterns():
                patterns.check(pattern)
        except (ArgumentError, TokenizerError) as error:
            raise CheckpointError(f"{path}: {error}") from error
        return config

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the `adapter_config.json` of a folder.  Raises: OSError"""
        entries = asdict(self) | {"peft_type": PEFT_TYPE}
        write_entries(dict(sorted(entries.items())), Path(folder) / ADAPTER_CONFIG)

    def patterns(self) -> list[str]:
        """Return the regular expressions of the config."""
        whole = [each for each in (self.target_modules, self.exclude_modules) if isinstance(each, str)]
        return [*whole, *self.rank_pattern, *self.alpha_pattern, *names_of(self.layers_pattern)]


def names_of(value: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the names of an entry that holds one name, several names or None."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _check(config: LoraConfig) -> None:
    """Raise ArgumentError for an invalid setting."""
    for name, (expected, holds) in CHECKS.items():
        value = getattr(config, name)
        if not holds(value):
            raise ArgumentError(f"LoraConfig: {name}={value!r:.200}", hint=f"pass {expected}")
    for pattern in config.patterns():
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:  # a number of repetitions, or nesting
            raise ArgumentError(f"LoraConfig: {pattern!r:.200} is not a regular expression: {error}") from error


def _is_rank(value: Any) -> bool:
    return type(value) is int and 0 < value <= MAX_RANK


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | Mapping) and all(type(v) is str for v in value)


def _are_targets(value: Any) -> bool:
    return isinstance(value, str | None) or _are_names(value)


def _are_layers(value: Any) -> bool:
    values = value if isinstance(value, list | tuple | range) else () if value is None else (value,)
    return all(type(each) is int for each in values)


def _has_values(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Mapping) and all(type(k) is str and holds(v) for k, v in value.items())


_TARGETS = "names of modules, a regular expression, or None"
_BOOL = ("True or False", lambda value: type(value) is bool)
# By field: a description of valid values, and the check.
CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "r": (f"an integer from 1 to {MAX_RANK}", _is_rank),
    "lora_alpha": ("a finite number", _is_finite),
    "target_modules": (_TARGETS, _are_targets),
    "exclude_modules": (_TARGETS, _are_targets),
    "lora_dropout": ("a probability", lambda value: _is_finite(value) and 0 <= value <= 1),
    "bias": (f"one of {', '.join(BIASES)}", lambda value: value in BIASES),
    "use_rslora": _BOOL,
    "use_dora": _BOOL,
    "fan_in_fan_out": _BOOL,
    "inference_mode": _BOOL,
    "modules_to_save": ("names of modules or None", lambda value: value is None or _are_names(value)),
    "init_lora_weights": ('True, False or "gaussian"', lambda value: type(value) is bool or value == "gaussian"),
    "layers_to_transform": ("an integer, integers or None", _are_layers),
    "layers_pattern": ("names of lists of blocks, or None", _are_targets),
    "rank_pattern": ("ranks by regular expressions", _has_values(_is_rank)),
    "alpha_pattern": ("finite numbers by regular expressions", _has_values(_is_finite)),
    "task_type": (f"one of {', '.join(TASKS)}, or None", lambda value: value is None or value in TASKS),
    "base_model_name_or_path": ("a string or None", lambda value: isinstance(value, str | None)),
}
