"""`AutoModel` and its relatives: the class of a folder's config, with the head of the task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tallow.errors import ArgumentError, HubError
from tallow.hub import local_model
from tallow.lazy_names import import_name
from tallow.models.architectures import ARCHITECTURES, PREFIXES
from tallow.models.gguf import models as gguf_models
from tallow.optimum.folders import onnx_file
from tallow.transformers.adapters import base_of
from tallow.transformers.configuration import PreTrainedConfig, unsupported
from tallow.transformers.downloads import find_folder
from tallow.transformers.model_classes import model_class
from tallow.transformers.model_names import HEADS, NAMES, ONLY
from tallow.transformers.modeling_loading import Plan, load_gguf, locator

if TYPE_CHECKING:
    from tallow.transformers.modeling import PreTrainedModel


class AutoClass:
    """The base: loads a folder with the class of its architecture, and the head of the task.

    Attributes:
        registered: the classes that a program added, by the class of their config.
    """

    registered: ClassVar[dict[type, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ArgumentError(
            f"{type(self).__name__}({len(args) + len(kwargs)} arguments) makes no model",
            hint=f"call {type(self).__name__}.from_pretrained(name) or from_config(config)",
        )

    def __init_subclass__(cls) -> None:
        cls.registered = {}

    @classmethod
    def class_for(cls, config: PreTrainedConfig) -> Any:
        """Return the class for a config.

        Raises:  CheckpointError for an architecture or a head that tallow does not have
        """
        if type(config) in cls.registered:
            return cls.registered[type(config)]
        kind, task = config.model_type, cls.__name__
        if kind in PREFIXES and kind in ONLY.get(task, (kind,)):
            for head in HEADS[task].split():
                if PREFIXES[kind] + head in NAMES:
                    return model_class(PREFIXES[kind] + head)
        raise unsupported(f"class of {task} for model_type {kind!r}", config.name_or_path)

    @classmethod
    def from_config(cls, config: PreTrainedConfig, **kwargs: Any) -> PreTrainedModel:
        """Make a model with random weights.

        Args:    kwargs: as `PreTrainedModel.from_config`
        """
        return cls.class_for(config).from_config(config, **kwargs)

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | Path, *model_args: Any, config: Any = None, **kwargs: Any
    ) -> PreTrainedModel:
        """Load a folder or a repository of the Hub. One with an ONNX file alone loads as Optimum's classes do.

        Args:    kwargs: as `modeling_loading.load`
        Raises:  CheckpointError for an architecture that tallow does not have; and as `modeling_loading.load`
        """
        name = pretrained_model_name_or_path
        where = {key: value for key, value in kwargs.items() if key != "gguf_file"}
        try:
            path, _ = find_folder(name, where, locator(kwargs.get("variant")))
        except HubError as error:  # it may be a repository for transformers.js, without other weights
            if (kind := cls._in_onnx()) is None or Path(name).exists():
                raise
            try:
                return kind.from_pretrained(name, config=config, **kwargs)
            except HubError:
                raise error from None
        if onnx_file(path) is not None and (kind := cls._in_onnx()) is not None:
            return kind.from_pretrained(path, config=config, **kwargs)
        if kwargs.get("gguf_file") is not None or path.is_file():
            file = path / kwargs.pop("gguf_file") if path.is_dir() else path
            return cls._from_gguf(file, str(name), kwargs)
        if not isinstance(config, PreTrainedConfig):
            if (base := base_of(path)) is not None:
                found = {key: value for key, value in where.items() if key not in ("revision", "subfolder")}
                path, _ = find_folder(base, found, local_model)
            config = PreTrainedConfig.from_pretrained(path if config is None else config)
            config._name_or_path = str(name)
            kind = cls.class_for(config)
            return kind.from_pretrained(name, *model_args, **kwargs)
        return cls.class_for(config).from_pretrained(name, *model_args, config=config, **kwargs)

    @classmethod
    def _in_onnx(cls) -> Any:
        """Return the class that loads models of the task in ONNX files, or None."""
        return import_name("tallow.optimum.onnxruntime:BY_AUTO").get(cls.__name__)

    @classmethod
    def _from_gguf(cls, path: Path, name: str, kwargs: dict[str, Any]) -> Any:
        plan = Plan(kwargs)
        core = gguf_models.load(path, plan.as_dtype, plan.device)
        names = [each for each, own in ARCHITECTURES.items() if own == type(core).__name__]
        fitting = [each for each in names if each.endswith(tuple(HEADS[cls.__name__].split()))]
        if not fitting:
            raise unsupported(f"class of {cls.__name__} for a {type(core).__name__}", path)
        return load_gguf(model_class(fitting[0]), core, plan, name, kwargs)

    @classmethod
    def register(cls, config_class: type, model_class: Any, exist_ok: bool = False) -> None:
        """Let a class that a program wrote load its own configs.  Raises: ArgumentError for a class that is there"""
        if config_class in cls.registered and not exist_ok:
            raise ArgumentError(f"{cls.__name__} has a class for {config_class.__name__}", hint="pass exist_ok=True")
        cls.registered[config_class] = model_class


_classes: dict[str, type[AutoClass]] = {}


def __getattr__(name: str) -> Any:
    if name not in HEADS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _classes:
        documented = {"__module__": __name__, "__doc__": f"Loads models with names that end in {HEADS[name]}."}
        _classes[name] = type(name, (AutoClass,), documented)
    return _classes[name]
