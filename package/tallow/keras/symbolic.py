"""Tensors without values: what `keras.Input` returns and layers are called with to describe a model.

Calling a layer with one makes a Node, which says what was called with what, and KerasTensors for its results. A model
is the nodes between its inputs and its outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from tallow import dtypes
from tallow.errors import ArgumentTypeError
from tallow.keras.naming import automatic_name
from tallow.keras.shapes import Shape
from tallow.keras.structure import flatten, map_structure


class History(NamedTuple):
    """Where a KerasTensor comes from: the output `tensor_index` of the call `node_index` of a layer."""

    layer: Any
    node_index: int
    tensor_index: int

    @property
    def node(self) -> Node:
        return self.layer.inbound_nodes[self.node_index]


class KerasTensor:
    """A shape and a dtype, and the call they come from. Operators on it make layers, as in `x + y`.

    Attributes:
        shape: with None where any size fits; the first is the batch's.
    """

    history: History

    __array_ufunc__ = None  # so that numpy_array * tensor asks the tensor

    def __init__(self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None) -> None:
        self.shape: Shape = tuple(shape)
        self.dtype = dtypes.as_dtype(dtype)
        self.name = name or automatic_name("keras_tensor")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<KerasTensor shape={self.shape}, dtype={self.dtype.name}, name={self.name}>"

    def _no_values(self, use: str) -> ArgumentTypeError:
        return ArgumentTypeError(
            f"{use}: {self.name} of shape {self.shape} is symbolic: it describes a model's input or a layer's output, "
            "and has no values",
            mend="call a layer with it; for a function of tensors, keras.layers.Lambda(function)(x)",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise self._no_values("as an array")

    def __bool__(self) -> bool:
        raise self._no_values("as a condition")

    def __iter__(self) -> NoReturn:
        raise self._no_values("iteration")

    def __float__(self) -> NoReturn:
        raise self._no_values("as a number")

    def __int__(self) -> NoReturn:
        raise self._no_values("as a number")


class Node:
    """One call of a layer with KerasTensors. It takes its place among the layer's calls, and the results theirs in it.

    Attributes:
        args, kwargs: what the layer was called with; KerasTensors stand among other values.
        outputs: the structure of KerasTensors it returned.
    """

    def __init__(self, layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        self.layer = layer
        self.args = args
        self.kwargs = kwargs
        self.outputs = outputs
        self.inputs: list[KerasTensor] = symbolic_leaves((args, kwargs))
        index = len(layer.inbound_nodes)
        layer.inbound_nodes.append(self)
        for position, tensor in enumerate(flatten(outputs)):
            tensor.history = History(layer, index, position)

    @property
    def is_input(self) -> bool:
        return not self.inputs

    def fill(self, values: dict[KerasTensor, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with values in place of the KerasTensors."""

        def value(leaf: Any) -> Any:
            return values[leaf] if isinstance(leaf, KerasTensor) else leaf

        return map_structure(value, self.args), map_structure(value, self.kwargs)


def symbolic_leaves(structure: Any) -> list[KerasTensor]:
    return [leaf for leaf in flatten(structure) if isinstance(leaf, KerasTensor)]


def is_symbolic(structure: Any) -> bool:
    return any(isinstance(leaf, KerasTensor) for leaf in flatten(structure))
