"""`VarBuilder`: get variables by name, as candle_nn::VarBuilder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tallow import devices, dtypes
from tallow.core.creation import zeros
from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.io import safetensors
from tallow.io.files import load
from tallow.io.model_folder import load_folder, load_index
from tallow.io.named import named_tensors
from tallow.io.source import Path
from tallow.nn.candle.init import Filler, Init
from tallow.nn.candle.var_map import VarMap

SHOWN = 8  # names in an error message


class Backend(Protocol):
    """The source of a VarBuilder's variables, such as a VarMap."""

    def get(
        self, shape: tuple[int, ...], path: str, init: Filler, dtype: Any, device: Any, *, trainable: bool = True
    ) -> Tensor:
        """Return the variable at a path, checked to have this shape; create it if the backend creates variables."""
        ...

    def __contains__(self, path: object) -> bool: ...


class VarBuilder:
    """Gives layers their variables: by name, below a prefix, from a VarMap, files or tensors.

    Variables of a VarMap are Parameters, created on the first request. Those of files and tensors do not require grad,
    as in candle; `requires_grad_()` on the finished model makes them trainable. Files are memory-mapped and not copied,
    unless another dtype or device is requested.

    Args:
        dtype: dtype of the variables; None means the dtype of the file, or the default dtype for new variables.
        device: device of the variables; None means the default device.

    Example:
        >>> import tallow as tl
        >>> vb = tl.nn.VarBuilder.from_tensors({"encoder.0.weight": tl.ones(2, 3)})
        >>> vb.pp("encoder").pp(0).get((2, 3), "weight")
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """

    def __init__(self, backend: Backend, dtype: Any = None, device: Any = None, prefix: str = "") -> None:
        self._backend = backend
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._device = devices.chosen(device)
        self._prefix = prefix

    # -------------------------------------------------------------------------------------------------------- sources

    @classmethod
    def from_varmap(cls, varmap: VarMap, dtype: Any = None, device: Any = None) -> VarBuilder:
        """Create a builder on a VarMap, which creates variables on the first request."""
        return cls(varmap, dtype, device)

    @classmethod
    def zeros(cls, dtype: Any = None, device: Any = None) -> VarBuilder:
        """Zeros under every name: a model to look at, or to measure."""
        return cls(_Zeros(), dtype, device)

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], dtype: Any = None, device: Any = None) -> VarBuilder:
        """Create a builder on a state dict, or on any mapping that creates its tensors lazily."""
        return cls(_Tensors(tensors, "the state dict"), dtype, device)

    @classmethod
    def from_safetensors(cls, paths: Path | Sequence[Path], dtype: Any = None, device: Any = None) -> VarBuilder:
        """Create a builder on one or more files: shards, indexes (`.json`) of shards, or model folders.

        Raises:  CheckpointError if a file is malformed, or if two files have a tensor of the same name
        """
        tensors: dict[str, Tensor] = {}
        files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        for path in files:
            loaded = _load_safetensors(path)
            if duplicates := sorted(loaded.keys() & tensors.keys()):
                raise CheckpointError(f"{os.fspath(path)}: also in another of these files: {', '.join(duplicates)}")
            tensors |= loaded
        return cls(_Tensors(tensors, ", ".join(os.fspath(path) for path in files)), dtype, device)

    from_mmaped_safetensors = from_safetensors  # candle's name

    @classmethod
    def from_file(cls, path: Path, dtype: Any = None, device: Any = None, *, key: str | None = None) -> VarBuilder:
        """Create a builder on a file of any format that `tl.load` reads: PyTorch, NumPy `.npz`, GGUF or safetensors.

        Args:
            key: entry of the file that holds the state dict, such as "model" or "state_dict".

        Raises:  CheckpointError if the file is malformed or does not hold named tensors
        """
        return cls(_Tensors(named_tensors(load(path), os.fspath(path), key), os.fspath(path)), dtype, device)

    from_pth = from_npz = from_gguf = from_file  # candle's names

    # --------------------------------------------------------------------------------------------------------- places

    def prefix(self) -> str:
        """Return the prefix of this builder; "" at the root."""
        return self._prefix

    def push_prefix(self, name: Any) -> VarBuilder:
        """Return a builder whose prefix is extended by `name`: the name of a layer, or its number."""
        return self.set_prefix(self._path(str(name)))

    pp = push_prefix

    def set_prefix(self, prefix: Any) -> VarBuilder:
        """Return a builder with another prefix."""
        return VarBuilder(self._backend, self._dtype, self._device, str(prefix))

    def root(self) -> VarBuilder:
        """Return a builder without prefix."""
        return self.set_prefix("")

    def _path(self, name: str) -> str:
        return f"{self._prefix}.{name}" if self._prefix else name

    # ------------------------------------------------------------------------------------------------------ variables

    @property
    def dtype(self) -> dtypes.dtype | None:
        """The dtype of the variables; None means that of the file."""
        return self._dtype

    @property
    def device(self) -> devices.device:
        """The device of the variables."""
        return self._device

    def to_dtype(self, dtype: Any) -> VarBuilder:
        """Return a builder with the same prefix and another dtype."""
        return VarBuilder(self._backend, dtype, self._device, self._prefix)

    def contains_tensor(self, name: str) -> bool:
        """Return whether a variable of this name exists below the prefix; in a VarMap, whether it was created."""
        return self._path(name) in self._backend

    __contains__ = contains = contains_tensor

    def get(self, shape: int | Sequence[int], name: str) -> Tensor:
        """Return the variable `name` below the prefix; zeros if it is new in a VarMap."""
        return self.get_with_hints(shape, name, Init.ZERO)

    def get_with_hints(self, shape: int | Sequence[int], name: str, init: Filler, *, trainable: bool = True) -> Tensor:
        """Return the variable `name` below the prefix, initialized by `init` if it is new in a VarMap.

        Args:
            trainable: create a new variable as a Parameter.

        Raises:  CheckpointError if the file lacks the tensor or has it with another shape; ShapeError if a VarMap has
                 it with another shape
        """
        size = (shape,) if isinstance(shape, int) else tuple(shape)
        return self._backend.get(size, self._path(name), init, self._dtype, self._device, trainable=trainable)

    def __repr__(self) -> str:
        return f"VarBuilder(prefix={self._prefix!r}, dtype={self._dtype}, device={self._device})"


class _Tensors:
    """A backend of existing tensors."""

    def __init__(self, tensors: Mapping[str, Tensor], source: str) -> None:
        self._tensors = tensors
        self._source = source

    def __contains__(self, path: object) -> bool:
        return path in self._tensors

    def get(
        self, shape: tuple[int, ...], path: str, init: Filler, dtype: Any, device: Any, *, trainable: bool = True
    ) -> Tensor:
        if path not in self._tensors:
            raise CheckpointError(f"{self._source} has no tensor {path!r}{self._describe_siblings(path)}")
        tensor = self._tensors[path]
        if not isinstance(tensor, Tensor):
            raise CheckpointError(f"{self._source}: {path!r} is {type(tensor).__name__}, not a Tensor")
        if tuple(tensor.shape) != shape:
            raise CheckpointError(
                f"{self._source}: {path!r} has shape {tuple(tensor.shape)}, but {shape} is requested",
                hint="create the model with the sizes that the weights were saved with",
            )
        return tensor.detach().to(device, dtype or tensor.dtype)

    def _describe_siblings(self, path: str) -> str:
        """List tensors below the nearest ancestor of `path` that has any."""
        ancestor = path
        while ancestor:
            ancestor = ancestor.rpartition(".")[0]
            names = [name for name in self._tensors if not ancestor or name.startswith(f"{ancestor}.")]
            if names:
                more = "" if len(names) <= SHOWN else f" and {len(names) - SHOWN} more"
                where = f"below {ancestor!r}" if ancestor else "in all"
                return f"; {where} it has {', '.join(names[:SHOWN])}{more}"
        return "; it is empty"


class _Zeros:
    """A backend that has every variable, as zeros."""

    def __contains__(self, path: object) -> bool:
        return True

    def get(
        self, shape: tuple[int, ...], path: str, init: Filler, dtype: Any, device: Any, *, trainable: bool = True
    ) -> Tensor:
        return zeros(shape, dtype=dtype, device=device)


def _load_safetensors(path: Path) -> dict[str, Tensor]:
    if os.path.isdir(path):
        return load_folder(path)
    return (load_index if os.fspath(path).endswith(".json") else safetensors.load)(path)
