"""Configs of models: attributes with transformers' names and defaults, over the configs of `tallow.models`."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from tallow import dtypes
from tallow.errors import ArgumentError, CheckpointError, MissingNameError, TallowError
from tallow.hub import local_settings
from tallow.models.config import CONFIG, MAX_LABELS, read_entries, write_entries
from tallow.transformers.configuration_backbones import KINDS as STAGED
from tallow.transformers.configuration_backbones import BackboneConfigMixin
from tallow.transformers.configuration_defaults import BASE, DEFAULTS, NAMES
from tallow.transformers.configuration_pictures import BACKBONES
from tallow.transformers.downloads import find_folder
from tallow.transformers.uploads import upload


class PreTrainedConfig:
    """The settings of a model: attributes with the names of `config.json`.

    Values that are not given have transformers' defaults. Names under which other models keep the same size, such as
    `hidden_size` of GPT-2, read and write the model's own.

    Example:
        config = BertConfig(num_hidden_layers=2)
        model = BertModel(config)
    """

    model_type: ClassVar[str] = ""
    attribute_map: ClassVar[Mapping[str, str]] = {}
    defaults: ClassVar[Mapping[str, Any]] = {}
    sub_configs: ClassVar[Mapping[str, str]] = {}  # name -> its model_type
    _name_or_path: str = ""
    id2label: Any
    label2id: Any
    rope_parameters: Any

    def __init__(self, **kwargs: Any) -> None:
        vars(self).update(copy.deepcopy({**BASE, **self.defaults}))
        num_labels, dtype = kwargs.pop("num_labels", None), kwargs.pop("torch_dtype", None)
        if kwargs.get("dtype") is None and dtype is not None:
            kwargs["dtype"] = dtype
        for name in ("model_type", "transformers_version"):
            kwargs.pop(name, None)
        self._name_or_path = str(kwargs.pop("name_or_path", kwargs.pop("_name_or_path", "")))
        if "rope_parameters" in self.defaults:
            self._take_rope(kwargs)
        for name, kind in self.sub_configs.items():
            given = kwargs.get(name)
            if not isinstance(given, PreTrainedConfig):
                kwargs[name] = config_class(kind)(**(given or {}))
        if "backbone_config" in self.defaults:
            kwargs["backbone_config"] = _backbone(kwargs, BACKBONES.get(self.model_type))
        for name, value in kwargs.items():
            setattr(self, name, value)
        if num_labels is not None and kwargs.get("id2label") is None:
            self.num_labels = num_labels
        self._complete()

    def _take_rope(self, entries: dict[str, Any]) -> None:
        """Move rotary settings of older versions into `rope_parameters`, in place."""
        rope = dict(entries.pop("rope_scaling", None) or {})
        rope = dict(entries.pop("rope_parameters", None) or {}) or rope
        default = self.defaults["rope_parameters"]
        for name in ("rope_theta", "partial_rotary_factor"):
            value = entries.pop(name, None)
            if value is not None and not any(isinstance(part, dict) for part in rope.values()):
                rope.setdefault(name, value)
        if "type" in rope:
            rope.setdefault("rope_type", rope["type"])
        nested = any(isinstance(part, dict) for part in default.values())
        if rope and not nested:
            rope = {**{name: value for name, value in default.items() if name not in rope}, **rope}
        entries["rope_parameters"] = rope or copy.deepcopy(default)

    def _complete(self) -> None:
        """Fill in sizes that follow from others."""
        entries = vars(self)
        if entries.get("num_key_value_heads", 0) is None:
            self.num_key_value_heads = self.num_attention_heads
        if "head_dim" in self.defaults and entries.get("head_dim") is None and self.model_type in ("llama", "mistral"):
            self.head_dim = self.hidden_size // self.num_attention_heads
        if "qk_rope_head_dim" in self.defaults:  # whatever the file says
            self.head_dim = self.qk_rope_head_dim
            self.qk_head_dim = self.qk_nope_head_dim + self.qk_rope_head_dim
        if self.model_type == "blip":  # whatever the file says
            self.text_config.encoder_hidden_size = self.vision_config.hidden_size
        if "num_feat_extract_layers" in self.defaults:
            self.num_feat_extract_layers = len(self.conv_dim)
        alikes = {"num_decoder_layers": "num_layers", "decoder_vocab_size": "vocab_size"}
        for alike, name in (alikes | {"output_hidden_size": "hidden_size"}).items():
            if entries.get(alike, 0) is None:
                setattr(self, alike, getattr(self, name))

    # ----------------------------------------------------------------------------------------------------- attributes

    def __setattr__(self, name: str, value: Any) -> None:
        name = self.attribute_map.get(name, name)
        if name == "id2label" and isinstance(value, Mapping):
            value = {int(key): label for key, label in value.items()}
        if name == "dtype" and value is not None:
            value = dtype_of(value)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """Return what the config of `tallow.models` has under another name, or computes."""
        if name.startswith("__") or name in ("own", "_own"):
            raise AttributeError(name)
        if (mapped := self.attribute_map.get(name)) is not None:
            return getattr(self, mapped)
        own = vars(self).get("_own")
        if own is not None and hasattr(own, name):
            return getattr(own, name)
        raise MissingNameError(
            f"{type(self).__name__} has no attribute {name!r}", hint="see config.to_dict() for what it has"
        )

    @property
    def num_labels(self) -> int:
        """The number of labels of a classifier."""
        return len(self.id2label)

    @num_labels.setter
    def num_labels(self, count: int) -> None:
        if isinstance(count, float) or not 0 <= count < MAX_LABELS:
            raise ArgumentError(f"num_labels={count!s:.80}", hint=f"it is a whole number below {MAX_LABELS}")
        if vars(self).get("id2label") is None or len(self.id2label) != count:
            self.id2label = {i: f"LABEL_{i}" for i in range(count)}
            self.label2id = {label: i for i, label in self.id2label.items()}

    @property
    def rope_scaling(self) -> Any:
        """The rotary settings, under their older name."""
        return self.rope_parameters

    @rope_scaling.setter
    def rope_scaling(self, value: Any) -> None:
        self.rope_parameters = value

    @property
    def name_or_path(self) -> str:
        """The folder or repository of the config."""
        return self._name_or_path

    @property
    def torch_dtype(self) -> Any:
        """The dtype, under its older name."""
        return self.dtype

    @property
    def use_return_dict(self) -> bool:
        """True if results are objects, not tuples."""
        return bool(self.return_dict)

    def get_text_config(self, decoder: bool = False, encoder: bool | None = None) -> PreTrainedConfig:
        """Return the config of the part for texts: this one, or that of a model for texts and images."""
        return getattr(self, "text_config", self) if "text_config" in self.sub_configs else self

    # ---------------------------------------------------------------------------------------------------------- files

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | Path, return_unused_kwargs: bool = False, **kwargs: Any
    ) -> Any:
        """Read the `config.json` of a folder, a Hub repository, or a file.

        Args:
            return_unused_kwargs: return also the arguments that are no entries of the config.
            kwargs: `revision` and `token` of a repository, `subfolder`; other entries override those of the file.

        Raises:  CheckpointError, HubError
        """
        entries, kwargs = cls.get_config_dict(pretrained_model_name_or_path, **kwargs)
        kind = cls if cls is not PreTrainedConfig else config_class_of(entries)
        if kind.model_type.startswith("clip_"):
            entries = _part_of_clip(entries, kind.model_type)
        return kind.from_dict(entries, return_unused_kwargs=return_unused_kwargs, **kwargs)

    @classmethod
    def get_config_dict(cls, name: str | Path, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the entries of a `config.json`, and the arguments that are not about finding it."""
        folder, kwargs = find_folder(name, kwargs, local_settings)  # the weights are not needed
        path = folder if folder.is_file() else folder / CONFIG
        return {**read_entries(path), "_name_or_path": str(name)}, kwargs

    @classmethod
    def from_dict(cls, config_dict: Mapping[str, Any], return_unused_kwargs: bool = False, **kwargs: Any) -> Any:
        """Return the config of entries; `kwargs` override them.

        Args:    return_unused_kwargs: return also the arguments that are no entries of the config
        Raises:  CheckpointError for entries that are no settings, or of another type than theirs
        """
        try:
            config = cls(**config_dict)
        except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
            source = config_dict.get("_name_or_path") or cls.__name__
            hint = None if isinstance(error, TallowError) else "see its config.json"
            raise CheckpointError(f"config of {source!s:.200}: {error!s:.200}", hint) from error
        unused = {}
        for name, value in kwargs.items():
            if hasattr(config, name) or name in ("num_labels", "torch_dtype"):
                setattr(config, "dtype" if name == "torch_dtype" else name, value)
            else:
                unused[name] = value
        return (config, unused) if return_unused_kwargs else config

    @classmethod
    def from_json_file(cls, json_file: str | Path) -> Self:
        """Read a file.  Raises: CheckpointError"""
        made: Self = cls.from_dict(read_entries(json_file))
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return all settings, as values of JSON."""
        entries = {name: copy.deepcopy(value) for name, value in vars(self).items() if not name.startswith("_")}
        for name, value in entries.items():
            if isinstance(value, PreTrainedConfig):
                entries[name] = value.to_dict()
        if entries.get("dtype") is not None:
            entries["dtype"] = dtype_of(entries["dtype"]).name
        return entries | ({"model_type": self.model_type} if self.model_type else {})

    def to_diff_dict(self) -> dict[str, Any]:
        """Return the settings that a file needs: all but those of every model at their defaults."""
        return {name: value for name, value in self.to_dict().items() if name not in BASE or value != BASE[name]}

    def to_json_string(self, use_diff: bool = True) -> str:
        """Return the text of a `config.json`."""
        return json.dumps(self.to_diff_dict() if use_diff else self.to_dict(), indent=2, sort_keys=True) + "\n"

    def to_json_file(self, json_file_path: str | Path, use_diff: bool = True) -> None:
        """Write a file."""
        write_entries(json.loads(self.to_json_string(use_diff)), json_file_path)

    def save_pretrained(self, save_directory: str | Path, push_to_hub: bool = False, **kwargs: Any) -> None:
        """Write `config.json` to a folder.

        Args:
            push_to_hub: upload it too, to the repository of the folder's name, or `repo_id`.
            kwargs: `repo_id`, `private`, `token`, `revision` and others for the upload.
        """
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        self.to_json_file(folder / CONFIG)
        if push_to_hub:
            self.push_to_hub(kwargs.pop("repo_id", folder.name), **kwargs)

    def push_to_hub(self, repo_id: str, commit_message: str = "Upload config", **kwargs: Any) -> Any:
        """Upload `config.json`.

        Args:    kwargs: private, token, revision, create_pr
        Raises:  MissingPackageError without `huggingface_hub`
        """
        return upload(self.save_pretrained, repo_id, commit_message=commit_message, **kwargs)

    def update(self, config_dict: Mapping[str, Any]) -> None:
        """Set several attributes."""
        for name, value in config_dict.items():
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PreTrainedConfig) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.to_json_string()}"

    # ---------------------------------------------------------------------------------------------------------- tallow

    def own(self, kind: Any) -> Any:
        """Return the config that a class of `tallow.models` takes, made of these settings.

        Raises:  CheckpointError for settings that it does not have
        """
        entries = self.to_dict()
        made = kind.from_entries(entries, type(self).__name__)
        vars(self)["_own"] = made
        return made


def dtype_of(value: Any) -> dtypes.dtype:
    """Return a dtype, given as such or by its name, such as "bfloat16" or "torch.bfloat16".

    Raises:  ArgumentTypeError for a name that no dtype has
    """
    if isinstance(value, str):
        value = getattr(dtypes, value.removeprefix("torch."), value)
    return dtypes.as_dtype(value)


def _part_of_clip(entries: dict[str, Any], model_type: str) -> dict[str, Any]:
    """Return the entries of one encoder, from a file of a CLIP or of the encoder."""
    if entries.get("model_type") != "clip":
        return entries
    own = dict(entries.get({"clip_text_model": "text_config"}.get(model_type, "vision_config")) or {})
    return own | ({"projection_dim": entries["projection_dim"]} if "projection_dim" in entries else {})


def _backbone(entries: Mapping[str, Any], default: Mapping[str, Any] | None) -> Any:
    """Return the config of the backbone that the entries of a config describe; of timm's, the entries themselves.

    Args:    default: the backbone of entries that describe none; None means one of timm
    """
    own = entries.get("backbone_config")
    own = copy.deepcopy(default) if own is None else own
    if own is None:
        named = {"backbone": entries.get("backbone") or "resnet50", "num_channels": entries.get("num_channels", 3)}
        fixed = {"features_only": True, "use_pretrained_backbone": False, "out_indices": [1, 2, 3, 4]}
        return {"model_type": "timm_backbone", **named, **fixed}
    kind = own.get("model_type") if isinstance(own, dict) else None
    return config_class(kind)(**own) if kind in DEFAULTS else own


PretrainedConfig = PreTrainedConfig  # the name of older versions

_classes: dict[str, type[PreTrainedConfig]] = {}


def config_class(model_type: str) -> type[PreTrainedConfig]:
    """Return the class of the configs of a model type, such as BertConfig for "bert"."""
    if model_type not in _classes:
        defaults, attribute_map = DEFAULTS[model_type]
        towers = {"text_config": "_text_model", "vision_config": "_vision_model"}
        parts = {whole: {name: whole + end for name, end in towers.items()} for whole in ("blip", "clip")}
        _classes[model_type] = type(
            NAMES[model_type],
            (BackboneConfigMixin, PreTrainedConfig) if model_type in STAGED else (PreTrainedConfig,),
            {
                "__module__": __name__,
                "__doc__": f"The settings of a model of type {model_type!r}; as PreTrainedConfig.",
                "model_type": model_type,
                "defaults": defaults,
                "attribute_map": attribute_map,
                "sub_configs": parts.get(model_type, {}),
            },
        )
    return _classes[model_type]


def config_class_of(entries: Mapping[str, Any]) -> type[PreTrainedConfig]:
    """Return the class for the entries of a `config.json`.

    Raises:  CheckpointError for a model that tallow does not have
    """
    kind = entries.get("model_type")
    if isinstance(kind, str) and kind in _classes:
        return _classes[kind]
    if not isinstance(kind, str) or kind not in DEFAULTS:
        raise unsupported(f"model_type {kind!r:.80}", entries.get("_name_or_path", ""))
    return config_class(kind)


def unsupported(what: str, source: object = "") -> CheckpointError:
    """Return the error for an architecture that tallow has no file for."""
    return CheckpointError(
        f"{source}: tallow has no {what}" if source else f"tallow has no {what}",
        hint="install transformers, and run the script with python -m tallow.compat: it runs on tallow's torch",
    )


class AutoConfig:
    """Reads the config of a folder with the class of its `model_type`."""

    @staticmethod
    def from_pretrained(pretrained_model_name_or_path: str | Path, **kwargs: Any) -> Any:
        """Read a `config.json`.  Args, raises: as `PreTrainedConfig.from_pretrained`"""
        return PreTrainedConfig.from_pretrained(pretrained_model_name_or_path, **kwargs)

    @staticmethod
    def register(model_type: str, config: type[PreTrainedConfig], exist_ok: bool = False) -> None:
        """Let a class that a program wrote read the configs of its `model_type`.

        Raises:  ArgumentError for a model type that is there
        """
        if model_type in DEFAULTS or (model_type in _classes and not exist_ok):
            raise ArgumentError(f"there is a config for {model_type!r}", hint="choose another model_type")
        _classes[model_type] = config

    @staticmethod
    def for_model(model_type: str, **kwargs: Any) -> PreTrainedConfig:
        """Return a config of a model type.  Raises: CheckpointError for a model that tallow does not have"""
        return config_class_of({"model_type": model_type})(**kwargs)


def __getattr__(name: str) -> Any:
    for model_type, own in NAMES.items():
        if own == name:
            return config_class(model_type)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
