"""The layers of a model that an adapter changes: by names, regular expressions, or the type of the model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tallow.errors import ArgumentError
from tallow.nn.module import Module
from tallow.peft.config import LoraConfig, names_of

ALL_LINEAR = "all-linear"
# By model type. Those of peft, which has none for DistilBERT, Marian, Phi-3 and Whisper.
DEFAULT_TARGETS = {
    **dict.fromkeys(("bert", "roberta"), ("query", "value")),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text", "llama", "mistral"), ("q_proj", "v_proj")),
    **dict.fromkeys(("bart", "marian", "qwen2", "qwen3", "whisper"), ("q_proj", "v_proj")),
    "distilbert": ("q_lin", "v_lin"),
    "falcon": ("query_key_value",),
    "gpt2": ("c_attn",),
    "phi3": ("qkv_proj",),
    "t5": ("q", "v"),
}
OUTPUT_HEADS = ("lm_head", "proj_out", "decoder")  # heads of language models, which "all-linear" omits


def with_targets(model: Module, config: LoraConfig, linear: Iterable[str]) -> LoraConfig:
    """Return the config with explicit `target_modules` and `modules_to_save`.

    Args:    linear: the paths of the model's linear layers
    Raises:  ArgumentError when there are no targets, and no default ones for the model
    """
    config = replace(config, modules_to_save=config.saved_modules or None)
    if config.target_modules is None:
        return replace(config, target_modules=_default_targets(model))
    if isinstance(config.target_modules, str) and config.target_modules.lower() == ALL_LINEAR:
        heads = {*OUTPUT_HEADS, *config.saved_modules}
        return replace(config, target_modules=tuple(path for path in linear if path.rpartition(".")[2] not in heads))
    return config


def _default_targets(model: Module) -> tuple[str, ...]:
    model_config: Any = getattr(model, "config", None)
    for kind in getattr(model_config, "model_types", ()):
        if kind in DEFAULT_TARGETS:
            return DEFAULT_TARGETS[kind]
    raise ArgumentError(
        f"no default target_modules for {type(model).__name__}",
        hint=f'name them: LoraConfig(target_modules=["q_proj"]), or target_modules="{ALL_LINEAR}"',
    )


def is_target(path: str, config: LoraConfig) -> bool:
    """Return whether an adapter changes the module at a path."""
    if not path or _matches(path, config.exclude_modules) or _is_inside_saved(path, config):
        return False
    if not _matches(path, config.target_modules):
        return False
    return isinstance(config.target_modules, str) or _is_in_transformed_layer(path, config)


def _matches(path: str, targets: Any) -> bool:
    """Return whether a regular expression matches the path, or the path ends with one of several names."""
    if isinstance(targets, str):
        return re.fullmatch(targets, path) is not None
    return any(path == name or path.endswith(f".{name}") for name in targets or ())


def _is_inside_saved(path: str, config: LoraConfig) -> bool:
    return any(f".{name}." in f".{path}." for name in config.saved_modules)


def is_saved(path: str, config: LoraConfig) -> bool:
    """Return whether the module at a path is trained as a whole: its path ends with a name, as in peft."""
    return path.endswith(config.saved_modules)


def _is_in_transformed_layer(path: str, config: LoraConfig) -> bool:
    wanted = config.layers_to_transform
    if wanted is None or wanted == [] or wanted == ():
        return True
    # The first number of the path: in a mixture of experts, later ones are those of experts.
    lists = [re.compile(rf"(?:^|.*?\.){name}\.(\d+)\.") for name in names_of(config.layers_pattern)]
    found = [match for each in lists or [re.compile(r".*?\.[^.]*\.(\d+)\.")] if (match := each.match(path))]
    indices = (wanted,) if isinstance(wanted, int) else wanted
    return bool(found) and int(found[0][1]) in indices


def value_for(path: str, values: Any, default: Any) -> Any:
    """Return the value of the first regular expression in `values` that matches the end of a path."""
    for pattern, value in values.items():
        if re.fullmatch(rf"(.*\.)?({pattern})", path):
            return value
    return default
