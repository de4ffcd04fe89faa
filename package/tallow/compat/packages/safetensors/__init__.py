"""The package `safetensors` where it is not installed: what others use of it, on tallow's reader and writer."""

from __future__ import annotations

import os
from typing import Any

from tallow.compat.packages import VERSIONS
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError
from tallow.io import safetensors as files

__all__ = ["SafetensorError", "safe_open"]
__version__ = VERSIONS["safetensors"]

SafetensorError = CheckpointError
FRAMEWORKS = ("pt", "torch", "pytorch", "np", "numpy")


class safe_open(files.safe_open):
    """A reader of a file, whose tensors are of PyTorch's stand-in or NumPy's.

    Args:    framework: "pt" or "np"; device: where tensors go
    Raises:  FileNotFoundError; SafetensorError for a damaged file
    """

    def __init__(
        self, filename: str | os.PathLike[str], framework: str, device: Any = "cpu", backend: Any = None
    ) -> None:
        if framework not in FRAMEWORKS:
            raise ArgumentError(f"safe_open: framework {framework!r}", hint=f"one of {', '.join(FRAMEWORKS)}")
        super().__init__(os.fspath(filename))
        self._is_numpy, self._device = framework.startswith("n"), device

    def metadata(self) -> Any:
        """Return the file's metadata; None if it has none."""
        return super().metadata() or None

    def offset_keys(self) -> list[str]:
        """Return the names in the order of their data."""
        return super().keys()

    def keys(self) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(super().keys())

    def get_tensor(self, name: str) -> Any:
        """Return a tensor. Raises: TypeError for a dtype that NumPy lacks, with framework "np"."""
        tensor = super().get_tensor(name)
        return tensor.numpy() if self._is_numpy else tensor.to(self._device)

    def get_slice(self, name: str) -> Slice:
        """Return a tensor that is read when it is indexed."""
        return Slice(self, name)


class Slice:
    """A tensor of an open file, read when it is indexed."""

    def __init__(self, file: safe_open, name: str) -> None:
        self._file, self._name = file, name

    def get_shape(self) -> list[int]:
        """Return its shape."""
        return list(self._file.info(self._name).shape)

    def get_dtype(self) -> str:
        """Return the format's name of its dtype, such as "F32"."""
        return self._file.info(self._name).dtype

    def __getitem__(self, index: Any) -> Any:
        tensor = self._file.get_tensor(self._name)
        found = tensor[index]
        return found.contiguous() if isinstance(found, Tensor) else found
