"""`VarBuilder`: asks for variables by name, as candle_nn::VarBuilder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tallow import devices, dtypes
from tallow.creation import zeros
from tallow.errors import CheckpointError
from tallow.io import safetensors
from tallow.io.files import load
from tallow.io.model_folder import load_folder, load_index
from tallow.io.named import named_tensors
from tallow.io.source import Path
from tallow.nn.candle.init import Filler, Init
from tallow.nn.candle.var_map import VarMap
from tallow.tensor import Tensor

SHOWN = 8  # names in an error message


class Backend(Protocol):
    """What is behind a VarBuilder. A VarMap is one."""

    def get(
        self, shape: tuple[int, ...], path: str, init: Filler, dtype: Any, device: Any, *, trainable: bool = True
    ) -> Tensor: ...

    def __contains__(self, path: object) -> bool: ...


class VarBuilder:
    """Where layers get their variables: by name, below a prefix, from whatever is behind it.

    Variables of a VarMap are Parameters, made when they are first asked for. Those of files and of tensors are fixed,
    as in candle; `requires_grad_()` on the finished model makes them trainable. A file's memory is mapped and used as
    it is, where no other dtype or device is asked for.

    Args:
        dtype: of what is returned; None means that of the file, or the default dtype for new variables.
        device: where it is; the default device if None.

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
        return cls(varmap, dtype, device)

    @classmethod
    def zeros(cls, dtype: Any = None, device: Any = None) -> VarBuilder:
        """Zeros under every name: a model to look at, or to measure."""
        return cls(_Zeros(), dtype, device)

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], dtype: Any = None, device: Any = None) -> VarBuilder:
        """A state dict, or any mapping that makes its tensors when they are asked for."""
        return cls(_Tensors(tensors, "the state dict"), dtype, device)

    @classmethod
    def from_safetensors(cls, paths: Path | Sequence[Path], dtype: Any = None, device: Any = None) -> VarBuilder:
        """One file or several, each a shard, an index (`.json`) of the shards beside it, or the folder of a model.

        Raises:  CheckpointError when one is malformed, or two have tensors of the same name
        """
        tensors: dict[str, Tensor] = {}
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        for path in given:
            found = _load_safetensors(path)
            if twice := sorted(found.keys() & tensors.keys()):
                raise CheckpointError(f"{os.fspath(path)}: in another of these files already: {', '.join(twice)}")
            tensors |= found
        return cls(_Tensors(tensors, ", ".join(os.fspath(path) for path in given)), dtype, device)

    from_mmaped_safetensors = from_safetensors  # candle's name

    @classmethod
    def from_file(cls, path: Path, dtype: Any = None, device: Any = None, *, key: str | None = None) -> VarBuilder:
        """A file of any format that `tl.load` reads: PyTorch's, NumPy's `.npz`, GGUF, one safetensors file.

        Args:
            key: the entry of the file's dict that is the state dict, such as "model" or "state_dict".

        Raises:  CheckpointError when the file is malformed, or does not hold tensors by name
        """
        return cls(_Tensors(named_tensors(load(path), os.fspath(path), key), os.fspath(path)), dtype, device)

    from_pth = from_npz = from_gguf = from_file  # candle's names

    # --------------------------------------------------------------------------------------------------------- places

    def prefix(self) -> str:
        """The path that this builder is at; "" at the root."""
        return self._prefix

    def push_prefix(self, name: Any) -> VarBuilder:
        """A builder one step further: for a layer, or for number `name` of several."""
        return self.set_prefix(self._path(str(name)))

    pp = push_prefix

    def set_prefix(self, prefix: Any) -> VarBuilder:
        """A builder at another path from the root."""
        return VarBuilder(self._backend, self._dtype, self._device, str(prefix))

    def root(self) -> VarBuilder:
        return self.set_prefix("")

    def _path(self, name: str) -> str:
        return f"{self._prefix}.{name}" if self._prefix else name

    # ------------------------------------------------------------------------------------------------------ variables

    @property
    def dtype(self) -> dtypes.dtype | None:
        return self._dtype

    @property
    def device(self) -> devices.device:
        return self._device

    def to_dtype(self, dtype: Any) -> VarBuilder:
        """A builder at the same place that returns another dtype."""
        return VarBuilder(self._backend, dtype, self._device, self._prefix)

    def contains_tensor(self, name: str) -> bool:
        """Whether there is a variable of this name below the prefix. In a VarMap, only what was made is there."""
        return self._path(name) in self._backend

    __contains__ = contains = contains_tensor

    def get(self, shape: int | Sequence[int], name: str) -> Tensor:
        """The variable `name` below the prefix; zeros if it is new in a VarMap."""
        return self.get_with_hints(shape, name, Init.ZERO)

    def get_with_hints(self, shape: int | Sequence[int], name: str, init: Filler, *, trainable: bool = True) -> Tensor:
        """The variable `name` below the prefix, which starts as `init` if it is new in a VarMap.

        Args:
            trainable: make a Parameter of a new one.

        Raises:  CheckpointError when the file has no such tensor, or one of another shape; ShapeError if a VarMap has
        """
        size = (shape,) if isinstance(shape, int) else tuple(shape)
        return self._backend.get(size, self._path(name), init, self._dtype, self._device, trainable=trainable)

    def __repr__(self) -> str:
        return f"VarBuilder(prefix={self._prefix!r}, dtype={self._dtype}, device={self._device})"


class _Tensors:
    """Tensors that are there already."""

    def __init__(self, tensors: Mapping[str, Tensor], source: str) -> None:
        self._tensors = tensors
        self._source = source

    def __contains__(self, path: object) -> bool:
        return path in self._tensors

    def get(
        self, shape: tuple[int, ...], path: str, init: Filler, dtype: Any, device: Any, *, trainable: bool = True
    ) -> Tensor:
        if path not in self._tensors:
            raise CheckpointError(f"{self._source} has no tensor {path!r}{self._beside(path)}")
        tensor = self._tensors[path]
        if not isinstance(tensor, Tensor):
            raise CheckpointError(f"{self._source}: {path!r} is {type(tensor).__name__}, not a Tensor")
        if tuple(tensor.shape) != shape:
            raise CheckpointError(
                f"{self._source}: {path!r} has shape {tuple(tensor.shape)}, and is asked for as {shape}",
                mend="make the model with the sizes the weights were saved with",
            )
        return tensor.detach().to(device, dtype or tensor.dtype)

    def _beside(self, path: str) -> str:
        """What there is in the nearest place above that has anything."""
        place = path
        while place:
            place = place.rpartition(".")[0]
            found = [name for name in self._tensors if not place or name.startswith(f"{place}.")]
            if found:
                more = "" if len(found) <= SHOWN else f" and {len(found) - SHOWN} more"
                return f"; {f'below {place!r}' if place else 'in all'} it has {', '.join(found[:SHOWN])}{more}"
        return "; it is empty"


class _Zeros:
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
