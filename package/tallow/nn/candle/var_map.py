"""`VarMap`: variables by name, as candle_nn::VarMap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tallow.core.creation import empty
from tallow.core.tensor import Tensor
from tallow.errors import MissingNameError, ShapeError
from tallow.io import safetensors
from tallow.io.source import Path
from tallow.nn.candle.init import Filler, Init
from tallow.nn.parameter import Parameter
from tallow.nn.state import IncompatibleKeys, load_state


class VarMap:
    """The variables of a model by name, created on the first request of a layer; save and load them here.

    Example:
        >>> import tallow as tl
        >>> varmap = tl.nn.VarMap()
        >>> vb = tl.nn.VarBuilder.from_varmap(varmap)
        >>> layer = tl.nn.linear(3, 2, vb.pp("head"))
        >>> list(varmap.data())
        ['head.weight', 'head.bias']
        >>> optimizer = tl.optim.SGD(varmap.all_vars(), lr=0.1)
    """

    def __init__(self) -> None:
        self._data: dict[str, Tensor] = {}

    def all_vars(self) -> list[Tensor]:
        """Return every variable, in the order of creation."""
        return list(self._data.values())

    def data(self) -> dict[str, Tensor]:
        """Return the variables by name; not a copy."""
        return self._data

    def __contains__(self, path: object) -> bool:
        return path in self._data

    def get(
        self,
        shape: tuple[int, ...],
        path: str,
        init: Filler = Init.ZERO,
        dtype: Any = None,
        device: Any = None,
        *,
        trainable: bool = True,
    ) -> Tensor:
        """Return the variable at `path`, creating it with these initial values if it does not exist.

        Args:
            trainable: create a Parameter; otherwise a plain Tensor, such as a running mean.

        Raises:  ShapeError if it exists with another shape
        """
        variable = self._data.get(path)
        if variable is None:
            tensor = init.fill_(empty(shape, dtype=dtype, device=device))
            variable = self._data[path] = Parameter(tensor) if trainable else tensor
        if tuple(variable.shape) != tuple(shape):
            raise ShapeError(
                f"VarMap: {path!r} has shape {tuple(variable.shape)}, but {tuple(shape)} is requested",
                hint="give each layer its own prefix: vb.pp(...)",
            )
        return variable

    def set_one(self, name: str, value: Tensor) -> None:
        """Set the values of a variable, keeping its dtype and device.

        Raises:  MissingNameError, CheckpointError for another shape
        """
        self.set({name: value})

    def set(self, values: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]) -> None:
        """Set the values of several variables; on an error, none is changed.

        Raises:  MissingNameError for unknown names; CheckpointError with every variable of another shape
        """
        state = dict(values)
        missing = [name for name in state if name not in self._data]
        if missing:
            raise MissingNameError(f"VarMap has no {', '.join(map(repr, missing))}", hint=f"it has {list(self._data)}")
        load_state({name: self._data[name] for name in state}, state, source="values", target="VarMap")

    def save(self, path: Path) -> None:
        """Write all variables to a safetensors file, replacing an existing file atomically."""
        safetensors.save(self._data, path)

    def load(self, path: Path, strict: bool = True) -> IncompatibleKeys:
        """Load all variables from a safetensors file; on an error, none is changed.

        Args:
            strict: raise for variables that the file lacks and for tensors that are not variables; candle ignores the
                latter. With `strict=False`, both are returned instead.

        Raises:  CheckpointError with every name that is missing, unexpected or of another shape
        """
        return load_state(
            self._data, safetensors.load(path), strict=strict, source=str(path), target=f"VarMap({len(self._data)})"
        )
