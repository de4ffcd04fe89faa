"""The common part of image processors and feature extractors: their settings, files and results.

Source:  transformers 5.23, `BatchFeature` and `ImageProcessingMixin`
"""

from __future__ import annotations

import json
from collections import UserDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError, InvalidKeyError, MissingNameError
from tallow.io.atomic import atomic_write
from tallow.text.tokenizer_files import read_object
from tallow.transformers.tensor_types import TensorType, converted
from tallow.transformers.tokenization_files import DOWNLOAD, folder_of
from tallow.transformers.uploads import upload
from tallow.transformers.without_effect import effective

FILE, NESTED, CONFIG = "preprocessor_config.json", "processor_config.json", "config.json"


class BatchFeature(UserDict[str, Any]):
    """Features of images or sound, as a dict: `pixel_values` or `input_features`, also as attributes.

    Args:
        data: arrays or tensors by name.
        tensor_type: "pt" for tensors, "np" for arrays; None leaves the values as they are.
        skip_tensor_conversion: names that stay as they are.

    Raises:  ArgumentError for features of unequal sizes that cannot become a tensor
    """

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        tensor_type: str | TensorType | None = None,
        skip_tensor_conversion: Any = None,
    ) -> None:
        super().__init__(data)
        self.skip_tensor_conversion = skip_tensor_conversion
        self.convert_to_tensors(tensor_type)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str):
            return self.data[item]
        raise InvalidKeyError(f"a key of type {type(item).__name__}", hint="pass a name such as 'pixel_values'")

    def __getattr__(self, name: str) -> Any:
        data = self.__dict__.get("data", {})  # absent while it is unpickled
        if name in data:
            return data[name]
        raise MissingNameError(f"BatchFeature has no {name!r}", hint=f"it has {', '.join(map(repr, data))}")

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def convert_to_tensors(
        self, tensor_type: str | TensorType | None = None, skip_tensor_conversion: Any = None
    ) -> Self:
        """Convert the values that are lists or arrays in place.  Raises: ArgumentError for unequal sizes"""
        if tensor_type is None:
            return self
        kind, skipped = TensorType(tensor_type), skip_tensor_conversion or self.skip_tensor_conversion or ()
        for name, value in self.data.items():
            if name in skipped or not isinstance(value, list | tuple | np.ndarray | Tensor):
                continue
            try:
                self.data[name] = converted(value, kind)
            except (TypeError, ValueError) as error:
                hint = "pass padding=True, or return_tensors=None"
                raise ArgumentError(f"{name} cannot become a tensor: {error}", hint=hint) from error
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move the tensors to a device, and convert those of floats to a dtype, in place."""
        device = kwargs.get("device", next((each for each in args if _is_device(each)), None))
        for name, value in self.data.items():
            if isinstance(value, Tensor) and value.is_floating_point():
                self.data[name] = value.to(*args, **kwargs)
            elif isinstance(value, Tensor) and device is not None:
                self.data[name] = value.to(device=device)
        return self


def _is_device(value: Any) -> bool:
    return isinstance(value, str | int) or (hasattr(value, "type") and not hasattr(value, "is_floating_point"))


class Preprocessor:
    """An image processor or a feature extractor: settings, read from a file and written to one.

    Attributes:
        defaults: the settings and their values.
        type_key: the entry of a file that names the class.
        nested: where the settings are in the file of a processor for several kinds of input.
        model_input_names: what a call returns.
    """

    defaults: ClassVar[Mapping[str, Any]]
    type_key: ClassVar[str]
    nested: ClassVar[str]
    model_input_names: ClassVar[list[str]]

    def __init__(self, **settings: Any) -> None:
        vars(self).update(self.normal(dict(self.defaults) | settings))

    @classmethod
    def normal(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return settings in the form that the attributes have."""
        for name in ("image_processor_type", "feature_extractor_type", "processor_class", "_valid_processor_keys"):
            settings.pop(name, None)
        return settings

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        subfolder: str = "",
        **kwargs: Any,
    ) -> Self:
        """Read the settings of a folder, or of a repository on the Hub.

        Args:
            pretrained_model_name_or_path: a path, or `owner/repository`.
            revision, token, subfolder: as for `AutoTokenizer.from_pretrained`.
            kwargs: settings that replace those of the file.

        Raises:  CheckpointError if there is no file with settings; HubError
        """
        folder = folder_of(pretrained_model_name_or_path, revision, token, subfolder, kwargs)
        return cls.from_dict(read_settings(folder, cls.nested), **only_settings(kwargs))

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], **kwargs: Any) -> Self:
        """Return an object with these settings."""
        return cls(**{**settings, **kwargs})

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, with the class."""
        settings = {name: value for name, value in vars(self).items() if not name.startswith("_") and value is not None}
        return settings | {self.type_key: type(self).__name__}

    def to_json_string(self) -> str:
        """Return the text of the file."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True, default=list) + "\n"

    def save_pretrained(self, save_directory: str | Path, push_to_hub: bool = False, **kwargs: Any) -> tuple[str, ...]:
        """Write the settings to a folder, and return the path.  Args: kwargs: arguments of `push_to_hub`"""
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / FILE) as file:
            file.write(self.to_json_string().encode())
        if push_to_hub:
            self.push_to_hub(kwargs.pop("repo_id", folder.name), **kwargs)
        return (str(folder / FILE),)

    def push_to_hub(self, repo_id: str, *, commit_message: str = "Upload processor", **kwargs: Any) -> Any:
        """Upload the settings to a repository on the Hub.

        Args:    kwargs: `private`, `token`, `revision` and `create_pr`, as for a tokenizer
        Raises:  MissingPackageError without `huggingface_hub`; the errors of that package
        """
        return upload(self.save_pretrained, repo_id, commit_message=commit_message, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.to_json_string()}"


def read_settings(folder: Path, nested: str) -> dict[str, Any]:
    """Return the entries of the file with settings, alone or in that of a processor.

    Args:    nested: the entry of the processor's file
    Raises:  CheckpointError if there is neither
    """
    if (folder / NESTED).is_file():
        entries = read_object(folder / NESTED).get(nested)
        if isinstance(entries, dict):
            return entries
    if not (folder / FILE).is_file():
        raise CheckpointError(f"{folder} has no {FILE}", hint="use a model of images or sound, or AutoTokenizer")
    return read_object(folder / FILE)


def only_settings(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `from_pretrained` that are settings."""
    settings = effective("from_pretrained", kwargs, {"use_fast": (None, True), "backend": (None,)})
    return {name: value for name, value in settings.items() if name not in DOWNLOAD}
