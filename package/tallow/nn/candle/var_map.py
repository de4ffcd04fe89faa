"""`VarMap`: variables by name, as candle_nn::VarMap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tallow.creation import empty
from tallow.errors import MissingNameError, ShapeError
from tallow.io import safetensors
from tallow.io.source import Path
from tallow.nn.candle.init import Filler, Init
from tallow.nn.parameter import Parameter
from tallow.nn.state import IncompatibleKeys, load_state
from tallow.tensor import Tensor


class VarMap:
    """The variables of a model, made when a layer first asks for them by name; it trains, saves and loads them.

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
        """Every variable, in the order in which they were made."""
        return list(self._data.values())

    def data(self) -> dict[str, Tensor]:
        """The variables themselves, by name."""
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
        """The variable at `path`; a new one, with these initial values, if there is none.

        Args:
            trainable: make a Parameter of a new one; if not, a Tensor, such as a running mean.

        Raises:  ShapeError when it is there with another shape
        """
        known = self._data.get(path)
        if known is None:
            made = init.fill_(empty(shape, dtype=dtype, device=device))
            known = self._data[path] = Parameter(made) if trainable else made
        if tuple(known.shape) != tuple(shape):
            raise ShapeError(
                f"VarMap: {path!r} has shape {tuple(known.shape)}, and is asked for as {tuple(shape)}",
                mend="give the layers prefixes of their own: vb.pp(...)",
            )
        return known

    def set_one(self, name: str, value: Tensor) -> None:
        """Give a variable these values, in its own dtype and on its own device.

        Raises:  MissingNameError, CheckpointError for another shape
        """
        self.set({name: value})

    def set(self, values: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]) -> None:
        """Give several variables these values; all or, on an error, none.

        Raises:  MissingNameError for names that are not here; CheckpointError with all that have another shape
        """
        given = dict(values)
        absent = [name for name in given if name not in self._data]
        if absent:
            raise MissingNameError(f"VarMap has no {', '.join(map(repr, absent))}", mend=f"it has {list(self._data)}")
        load_state({name: self._data[name] for name in given}, given, source="values", target="VarMap")

    def save(self, path: Path) -> None:
        """Write all variables to a safetensors file, which is replaced in one step at the end."""
        safetensors.save(self._data, path)

    def load(self, path: Path, strict: bool = True) -> IncompatibleKeys:
        """Give all variables the values of a safetensors file; all or, on an error, none.

        Args:
            strict: candle needs every variable to be in the file, and passes over what else is there. Here that is an
                error too; with `strict=False` neither is, and both are returned.

        Raises:  CheckpointError with every name that is missing, unexpected or of another shape
        """
        return load_state(
            self._data, safetensors.load(path), strict=strict, source=str(path), target=f"VarMap({len(self._data)})"
        )
