"""The tables behind `AutoModel`: configs by `model_type`, and the models of a task by the class of their config."""

from __future__ import annotations

from typing import Any

from tallow.errors import CheckpointError, MissingNameError
from tallow.transformers import auto
from tallow.transformers.configuration import PreTrainedConfig, config_class
from tallow.transformers.configuration_defaults import NAMES
from tallow.transformers.model_names import MAPPINGS


def __getattr__(name: str) -> Any:
    if name == "CONFIG_MAPPING":
        return {model_type: config_class(model_type) for model_type in NAMES}
    if name not in MAPPINGS:
        raise MissingNameError(f"module {__name__!r} has no attribute {name!r}")
    classes = ((config_class(model_type), getattr(auto, MAPPINGS[name])) for model_type in NAMES)
    return {config: model for config, owner in classes if (model := _model_of(owner, config)) is not None}


def _model_of(owner: Any, config: type[PreTrainedConfig]) -> Any:
    """Return the class of a task for a config; None if there is none."""
    try:
        return owner.class_for(config())
    except CheckpointError:
        return None
