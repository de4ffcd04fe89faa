"""Symbolic tensors: results of `keras.Input` and of layers called with them, which describe a model.

A symbolic call creates a Node, which records the layer and its arguments, and KerasTensors for the outputs. A model
consists of the nodes between its inputs and its outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from tallow.errors import ArgumentTypeError
from tallow.keras.dtype_names import as_dtype
from tallow.keras.naming import automatic_name
from tallow.keras.shapes import Shape
from tallow.keras.structure import flatten, map_structure


class History(NamedTuple):
    """The origin of a KerasTensor: output `tensor_index` of call `node_index` of a layer."""

    layer: Any
    node_index: int
    tensor_index: int

    @property
    def node(self) -> Node:
        """The call that returned the tensor."""
        return self.layer.inbound_nodes[self.node_index]


class KerasTensor:
    """A shape and a dtype, and the call that returned them. Operators such as `x + y` create layers.

    Attributes:
        shape: the shape, with None for any size; the first is the batch's.
    """

    history: History

    __array_ufunc__ = None  # makes numpy_array * tensor call the tensor's operator

    def __init__(self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None) -> None:
        self.shape: Shape = tuple(shape)
        self.dtype = as_dtype(dtype)
        self.name = name or automatic_name("keras_tensor")

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<KerasTensor shape={self.shape}, dtype={self.dtype.name}, name={self.name}>"

    def _no_values_error(self, use: str) -> ArgumentTypeError:
        return ArgumentTypeError(
            f"{use}: {self.name} of shape {self.shape} is symbolic: it describes a model's input or a layer's output "
            "and has no values",
            hint="call a layer with it; for a function of tensors, use keras.layers.Lambda(function)(x)",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise self._no_values_error("as an array")

    def __bool__(self) -> bool:
        raise self._no_values_error("as a condition")

    def __iter__(self) -> NoReturn:
        raise self._no_values_error("iteration")

    def __float__(self) -> NoReturn:
        raise self._no_values_error("as a number")

    def __int__(self) -> NoReturn:
        raise self._no_values_error("as a number")


class Node:
    """One symbolic call of a layer; it registers itself in the layer, and sets the history of its outputs.

    Attributes:
        args, kwargs: the arguments of the call, which contain KerasTensors.
        outputs: the structure of KerasTensors that the call returned.
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
        """True if the node is an input of a model."""
        return not self.inputs

    def fill(self, values: dict[KerasTensor, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with KerasTensors replaced by their values."""

        def value(leaf: Any) -> Any:
            return values[leaf] if isinstance(leaf, KerasTensor) else leaf

        return map_structure(value, self.args), map_structure(value, self.kwargs)


def symbolic_leaves(structure: Any) -> list[KerasTensor]:
    """Return the KerasTensors in a structure."""
    return [leaf for leaf in flatten(structure) if isinstance(leaf, KerasTensor)]


def is_symbolic(structure: Any) -> bool:
    """Return whether a structure contains a KerasTensor."""
    return any(isinstance(leaf, KerasTensor) for leaf in flatten(structure))
