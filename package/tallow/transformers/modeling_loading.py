"""Load a model by transformers' arguments, by the loader of `tallow.models`, with new weights for what a file lacks."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tallow import devices, dtypes
from tallow.core.creation import full, ones, zeros
from tallow.errors import ArgumentError, CheckpointError, TallowWarning, warn
from tallow.hub import local_model, local_variant
from tallow.io.model_folder import load_folder
from tallow.models import loading
from tallow.models.gguf import models as gguf_models
from tallow.nn import init
from tallow.transformers.adapters import base_of
from tallow.transformers.configuration import PreTrainedConfig, dtype_of
from tallow.transformers.downloads import find_folder
from tallow.transformers.quantization_config import quant_of
from tallow.transformers.without_effect import ATTENTION, Neutral, effective

SHOWN = 20  # names in a warning
# Arguments that choose how weights are read or computed, not what: there is one way here.
NEUTRAL: Neutral = {
    **ATTENTION,
    **dict.fromkeys(("low_cpu_mem_usage", "_fast_init"), (None, True, False)),  # no weights are drawn before they load
    "use_safetensors": (None, True),
    **dict.fromkeys(("from_tf", "from_flax", "use_kernels", "disable_mmap", "offload_state_dict"), (None, False)),
    **dict.fromkeys(("offload_folder", "offload_buffers", "max_memory", "kernel_config"), (None, False)),
    **dict.fromkeys(("tp_plan", "tp_size", "distributed_config", "adapter_kwargs", "adapter_name"), (None,)),
}


def load(cls: Any, name: str | Path, config: Any = None, *model_args: Any, **kwargs: Any) -> Any:
    """Load a folder or a repository of the Hub.

    Args:
        cls: the class of the model.
        name: a folder, `owner/repository`, or a GGUF file as in `tallow.models.AutoModel`.
        config: a config in place of the folder's, or its path.
        kwargs: the arguments of transformers:
            dtype, torch_dtype: of the weights; "auto" means as in the file, None float32 or as the file's.
            device_map: "auto" or a device; a map of parts has to name one device.
            quantization_config: of `BitsAndBytesConfig`, which becomes blocks of llama.cpp's formats, with a warning.
            gguf_file: a file of the folder.
            revision, token, subfolder, cache_dir, local_files_only, force_download: where files are.
            output_loading_info: return also which weights are missing, unexpected or of another shape.
            ignore_mismatched_sizes: make weights of another shape new.
            state_dict: weights in place of the folder's.
            generation_config: in place of the folder's.
            others: entries that override those of the config, such as num_labels, id2label and output_attentions; and
                arguments of the class that omit parts of it, such as add_pooling_layer.

    Weights that the file lacks are drawn, and weights that the model has no use for are left out, each with a
    TallowWarning that names them.

    Raises:  CheckpointError, HubError, ArgumentError
    """
    plan, kwargs = _plan(kwargs)
    generation = kwargs.pop("generation_config", None)
    loaded = _load(cls, name, config, plan, model_args, kwargs)
    if generation is not None:
        (loaded[0] if plan.info else loaded).generation_config = generation
    return loaded


def _load(
    cls: Any, name: str | Path, config: Any, plan: Plan, model_args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    gguf = kwargs.pop("gguf_file", None)
    folder, kwargs = find_folder(name, kwargs, locator(plan.variant))
    if gguf is not None:
        folder = folder / gguf
    if (base := base_of(folder)) is not None:
        if plan.is_base:
            raise CheckpointError(f"{folder}, the model of an adapter, is an adapter too", hint="load its model first")
        plan.is_base = True
        loaded = _load(cls, base, config, plan, model_args, kwargs)
        (loaded[0] if plan.info else loaded).load_adapter(folder)
        return loaded
    if folder.is_file():
        return load_gguf(cls, gguf_models.load(folder, plan.as_dtype, plan.device), plan, str(name), kwargs)
    unknown = kwargs
    if config is None or isinstance(config, str | Path):
        where = folder if config is None else config
        config, unknown = cls.config_class.from_pretrained(where, return_unused_kwargs=True, **kwargs)
    else:
        unknown = {key: value for key, value in kwargs.items() if not hasattr(config, key)}
        config = copy.deepcopy(config)
        config.update({key: value for key, value in kwargs.items() if key not in unknown})
    parts = {key: unknown.pop(key) for key in cls.parts_to_omit() & unknown.keys()}
    if unknown:
        raise ArgumentError(
            f"{cls.__name__}.from_pretrained has no arguments {', '.join(unknown)}",
            hint="entries of the config are arguments too: see config.to_dict()",
        )
    config._name_or_path = str(name)
    if cls.core_class is None:
        return _load_own(cls, config, folder, plan, model_args)
    if (state := plan.state) is None and plan.variant is None:
        state = cls.core_class.read_folder(folder)
    elif state is None:
        state = load_folder(folder, variant=plan.variant)
    return _load_state(cls, config, state, folder, plan, str(name), parts)


def _load_own(cls: Any, config: Any, folder: Path, plan: Plan, model_args: tuple[Any, ...]) -> Any:
    """Load a class that a program wrote itself: make it, and fill in the weights of the folder."""
    architectures = config.architectures
    model = cls(config, *model_args)
    config.architectures = architectures  # which models inside it have set to theirs
    state = load_folder(folder, variant=plan.variant) if plan.state is None else plan.state
    result = model.load_state_dict(_with_prefix(model, state), strict=False)
    missing, unexpected = sorted(result.missing_keys), sorted(result.unexpected_keys)
    _report(cls, str(folder), missing, unexpected)
    model = model.to(plan.device, dtype=plan.as_dtype).eval()
    info = {"missing_keys": set(missing), "unexpected_keys": set(unexpected), "mismatched_keys": set()}
    return (model, {**info, "error_msgs": []}) if plan.info else model


def _with_prefix(model: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return weights under the names that a program's class has, from a file of the model without a head, or with."""
    if not (prefix := getattr(model, "base_model_prefix", "")):  # which classes of programs may lack
        return state
    prefix += "."
    has, given = (any(name.startswith(prefix) for name in names) for names in (model.state_dict(), state))
    if has and not given:
        own = model.state_dict()
        return {name if name in own else prefix + name: value for name, value in state.items()}
    return {name.removeprefix(prefix): value for name, value in state.items()} if given and not has else state


class Plan:
    """How to load, by the arguments of `from_pretrained`."""

    def __init__(self, kwargs: dict[str, Any]) -> None:
        dtype = kwargs.pop("dtype", None)
        older = kwargs.pop("torch_dtype", None)
        self.dtype = older if dtype is None else dtype
        self.device = device_of(kwargs.pop("device_map", None))
        self.quant = quant_of(kwargs)
        self.info = bool(kwargs.pop("output_loading_info", False))
        self.loose = bool(kwargs.pop("ignore_mismatched_sizes", False))
        self.state = kwargs.pop("state_dict", None)
        self.variant = kwargs.pop("variant", None)
        self.is_base = False  # whether an adapter names what is loaded

    @property
    def as_dtype(self) -> Any:
        """The dtype to convert to; None leaves that of the file."""
        return None if self.dtype in (None, "auto") else dtype_of(self.dtype)


def _plan(kwargs: Mapping[str, Any]) -> tuple[Plan, dict[str, Any]]:
    kwargs = effective("from_pretrained", kwargs, NEUTRAL)
    return Plan(kwargs), kwargs


def locator(variant: str | None) -> Any:
    """Return what finds the folder of a model: all of it, or with one variant of the weights."""
    return local_model if variant is None else partial(local_variant, variant=variant)


def device_of(device_map: Any) -> Any:
    """Return the device that `device_map` names; None means the default one.

    Raises:  ArgumentError for a map of several devices
    """
    if device_map in (None, "auto", "balanced", "balanced_low_0", "sequential"):
        return None
    if isinstance(device_map, Mapping):
        named = {str(device) for device in device_map.values()}
        if len(named) > 1:
            raise ArgumentError(
                f"device_map with {len(named)} devices: {', '.join(sorted(named))}",
                hint='pass device_map="auto", or one device',
            )
        device_map = named.pop() if named else "cpu"
    if isinstance(device_map, int):
        device_map = f"cuda:{device_map}"
    return devices.chosen(device_map)


def load_gguf(cls: Any, core: Any, plan: Plan, name: str, kwargs: Mapping[str, Any]) -> Any:
    """Turn a model that was loaded from a GGUF file into one of `cls`.

    Args:    core: of a class of `tallow.models`
    Raises:  CheckpointError for a model of another class
    """
    if not isinstance(core, cls.core_class):
        raise CheckpointError(
            f"{name} is a {type(core).__name__}, not a {cls.core_class.__name__}", hint="use its class"
        )
    model = loading.quantized(core, plan.quant, plan.as_dtype)
    entries = {**_entries_of(core.config), "model_type": cls.model_type, **kwargs}
    return _finish(model, cls, cls.config_class(**entries), name)


def _entries_of(own: Any) -> dict[str, Any]:
    """Return the fields of a config of `tallow.models`, as entries of a `config.json`."""
    entries = {key: value for key, value in vars(own).items() if not key.startswith("_")}
    ends = entries.get("eos_token_id")
    if isinstance(ends, tuple):
        entries["eos_token_id"] = ends[0] if len(ends) == 1 else list(ends) or None
    labels = entries.pop("labels", None)
    if labels:
        entries["id2label"] = dict(enumerate(labels))
        entries["label2id"] = {label: i for i, label in enumerate(labels)}
    return entries


def _finish(model: Any, cls: Any, config: PreTrainedConfig, name: str) -> Any:
    """Turn a model of `tallow.models` into one of `cls`, in place."""
    model.__class__ = cls
    return model._adopt(config, name)


def _load_state(
    cls: Any,
    config: PreTrainedConfig,
    state: Mapping[str, Any],
    folder: Path,
    plan: Plan,
    name: str,
    parts: Mapping[str, bool],
) -> Any:
    core, source = cls.core_class, str(folder)
    own = config.own(core.config_class)
    tensors = own.separated(state)
    own.check_layers(len(tensors), source)
    model, tensors, report = loading.build(core, own, tensors, {**core.parts_of(tensors), **parts})
    shapes = {key: tuple(value.shape) for key, value in model.state_dict(keep_vars=True).items()}
    adapted = model.adapt({key: each for key, each in tensors.items() if key in shapes or not _drops(model, key)})
    unexpected = sorted(key for key in adapted if key not in shapes)
    mismatched = [
        (key, tuple(adapted[key].shape), shapes[key])
        for key in shapes
        if key in adapted and tuple(adapted[key].shape) != shapes[key]
    ]
    if mismatched and plan.loose:
        adapted = {key: each for key, each in adapted.items() if key not in {key for key, *_ in mismatched}}
    missing = [key for key in shapes if key not in adapted]
    if len(missing) == len(shapes):
        loading.fill(model, adapted, None, plan.device, source)  # raises
    dtype = plan.as_dtype
    stored = next((each.dtype for each in adapted.values() if each.dtype.is_floating_point), dtypes.float32)
    given = {key: each for key, each in adapted.items() if key in shapes}
    drawn = {key: _drawn(key, shapes[key], config, dtype or stored) for key in missing}
    model = loading.fill(model, given | drawn, dtype, plan.device, source)
    model.loading_report, model.folder = report, folder
    _report(cls, source, missing, unexpected)
    model = loading.quantized(model, plan.quant, dtype)
    if config.dtype is None or dtype is not None:
        config.dtype = dtype or stored
    model = _finish(model, cls, config, name)
    info = {
        "missing_keys": set(missing),
        "unexpected_keys": set(unexpected),
        "mismatched_keys": set(mismatched) if plan.loose else set(),
        "error_msgs": [],
    }
    return (model, info) if plan.info else model


def _drops(model: Any, name: str) -> bool:
    return bool(model.is_superfluous(name))


def _drawn(name: str, shape: tuple[int, ...], config: PreTrainedConfig, dtype: Any) -> Any:
    """Return a new weight: a matrix from N(0, initializer_range²), ones for a norm's weight, else zeros."""
    if len(shape) > 1:
        std = float(getattr(config, "initializer_range", 0.02))
        return init.normal_(zeros(shape), 0.0, std).to(dtype)
    if name.endswith("weight"):
        return ones(shape, dtype=dtype)
    if name == "logit_scale":
        return full(shape, float(config.logit_scale_init_value), dtype=dtype)
    return zeros(shape, dtype=dtype)


def _report(cls: Any, source: str, missing: list[str], unexpected: list[str]) -> None:
    if missing:
        warn(
            f"{source}: {len(missing)} weights of {cls.__name__} are not in the file, and are new: {_listed(missing)}. "
            "Train the model before you use it",
            TallowWarning,
        )
    if unexpected:
        warn(f"{source}: {cls.__name__} has no use for {_listed(unexpected)}", TallowWarning)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
