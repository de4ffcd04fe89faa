"""The builder of an ONNX graph: values, nodes and constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.errors import UnsupportedError
from tallow.fx.node import Node

Array = np.ndarray[Any, Any]
BOOLEAN = frozenset(
    ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf"]
)
INTEGER = frozenset(["Shape", "Size", "ArgMax", "ArgMin", "NonZero"])


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of the ONNX graph.

    Attributes:
        name: unique in the graph.
        dtype: its dtype.
        shape: its sizes, None for one that varies; None as a whole if the builder was not told.
        array: the elements of a constant or of a parameter; None if the graph computes it.
        is_constant: `array` never changes: it is no parameter.
        source: the name of the parameter that `array` holds in another arrangement.
    """

    name: str
    dtype: dtypes.dtype
    shape: tuple[int | None, ...] | None = None
    array: Array | None = None
    is_constant: bool = False
    source: str | None = None

    @property
    def ndim(self) -> int:
        """The number of dims."""
        if self.shape is None:
            raise UnsupportedError(f"the number of dims of {self.name} is not known")
        return len(self.shape)

    @property
    def number(self) -> Any:
        """The number that a constant without dims holds; None for any other value."""
        return self.array.item() if self.is_constant and self.array is not None and self.array.ndim == 0 else None


@dataclass(eq=False)
class Call:
    """A node of the ONNX graph."""

    op_type: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    domain: str = ""
    name: str = ""


class Builder:
    """Collects nodes and constants.

    Attributes:
        opset: the version of the operators.
        domains: version of each other domain of which an operator is used.
        calls: the nodes, in order.
        taken: the names of all values.
        initializers: name -> value of each constant and parameter.
        node: the node of the exported graph that is being converted.
        results: the dtype and the shape of each of its results.
        values: node of the exported graph -> its value.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.domains: dict[str, int] = {}
        self.calls: list[Call] = []
        self.initializers: dict[str, Value] = {}
        self.node: Node | None = None
        self.results: list[Value] = []
        self.values: dict[Node, Any] = {}
        self._prefix = ""
        self.taken: set[str] = set()
        self._constants: dict[Any, Value] = {}
        self._sizes: dict[tuple[str, int], Value] = {}

    # -------------------------------------------------------------------------------------------------------- names

    def unique(self, name: str) -> str:
        """Return a name that no value has yet, and take it."""
        candidate, number = name, 1
        while candidate in self.taken:
            candidate, number = f"{name}_{number}", number + 1
        self.taken.add(candidate)
        return candidate

    def begin(self, node: Node, results: list[Value]) -> None:
        """Name the values that follow after a node of the exported graph."""
        self.node, self.results, self._prefix = node, results, node.name

    @property
    def result(self) -> Value:
        """The dtype and the shape of the node's result."""
        return self.results[0]

    # ------------------------------------------------------------------------------------------------------- values

    def initializer(self, name: str, array: Array, dtype: dtypes.dtype) -> Value:
        """Return a parameter, or another tensor of the module."""
        value = Value(self.unique(name), dtype, tuple(array.shape), array)
        self.initializers[value.name] = value
        return value

    def rearranged(self, weight: Value, array: Array) -> Value:
        """Return a parameter in another arrangement; it gets the name of the first unless that is used as well.

        The same arrangement of one parameter is one value, and that of a constant is a constant.
        """
        if weight.is_constant:
            return self.constant(array, weight.dtype)
        for known in self.initializers.values():
            if known.source == weight.name and np.array_equal(known.array, array):  # type: ignore[arg-type]
                return known
        value = Value(self.unique(weight.name), weight.dtype, tuple(array.shape), array, source=weight.name)
        self.initializers[value.name] = value
        return value

    def constant(self, data: Any, dtype: dtypes.dtype | None = None) -> Value:
        """Return a constant: an array, a number, or integers, which are of int64. Equal ones are one."""
        if isinstance(data, Value):
            return data
        if dtype is None:
            array = np.asarray(data)
            dtype = dtypes.dtype_of(array)
            if not isinstance(data, np.ndarray) and array.dtype.kind in "if":
                dtype = dtypes.int64 if array.dtype.kind == "i" or not array.size else dtypes.get_default_dtype()
                array = array.astype(dtype.storage)
        elif isinstance(data, np.ndarray):
            array = data
        else:
            array = dtypes.cast(np.asarray(data, np.float64 if isinstance(data, float) else None), dtype)
        key = (dtype, array.shape, array.tobytes())
        if key not in self._constants:
            made = Value(self.unique(f"constant_{len(self._constants)}"), dtype, array.shape, array, True)
            self._constants[key] = self.initializers[made.name] = made
        return self._constants[key]

    def scalar(self, number: Any, like: Value) -> Value:
        """Return a number in the dtype of a value."""
        if isinstance(number, Value):
            return self.cast(number, like.dtype)
        return self.constant(np.asarray(dtypes.cast(np.asarray(number), like.dtype)), like.dtype)

    def op(
        self,
        op_type: str,
        *inputs: Any,
        outputs: int = 1,
        dtype: dtypes.dtype | None = None,
        shape: Sequence[int | None] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> Any:
        """Add a node, and return its output, or a tuple of them.

        Args:
            inputs: values; None for one that is absent; a number, in the dtype of the first value; a list of integers,
                which becomes a vector of int64.
            dtype, shape: of the outputs. Without them, the dtype is that of the first value, and the shape is found for
                operators that broadcast.
            attributes: those of the operator, by their names; None leaves one out.
        """
        first = next((x for x in inputs if isinstance(x, Value)), None)
        values = [self._input(x, first) for x in inputs]
        while values and values[-1] is None:
            values.pop()
        if dtype is None:
            dtype = dtypes.bool if op_type in BOOLEAN else dtypes.int64 if op_type in INTEGER else None
        if dtype is None:
            dtype = dtypes.float32 if first is None else first.dtype
        names = [self.unique(self._name(op_type)) for _ in range(outputs)]
        call = Call(op_type, ["" if x is None else x.name for x in values], names, domain=domain, name=names[0])
        call.attributes = {key: x for key, x in attributes.items() if x is not None}
        self.calls.append(call)
        if domain:
            self.domains.setdefault(domain, 1)
        made = tuple(Value(name, dtype, None if shape is None else tuple(shape)) for name in names)
        return made[0] if outputs == 1 else made

    def _name(self, op_type: str) -> str:
        return f"{self._prefix}/{op_type}" if self._prefix in self.taken else self._prefix or op_type

    def _input(self, x: Any, first: Value | None) -> Value | None:
        if x is None or isinstance(x, Value):
            return x
        if isinstance(x, list | tuple):
            return self.ints(x)
        if isinstance(x, int | float) and first is not None:
            return self.scalar(x, first)
        return self.constant(x)

    def cast(self, value: Value, dtype: dtypes.dtype) -> Value:
        """Return a value in a dtype."""
        if value.dtype is dtype:
            return value
        if value.is_constant and value.array is not None:
            return self.constant(np.asarray(dtypes.cast(value.array, dtype)), dtype)
        made: Value = self.op("Cast", value, dtype=dtype, shape=value.shape, to=dtype)
        return made

    # -------------------------------------------------------------------------------------------------------- sizes

    def ints(self, sizes: Any) -> Value:
        """Return integers, some of which may be values without dims, as a vector of int64."""
        if isinstance(sizes, Value):
            return sizes
        if not any(isinstance(n, Value) for n in sizes):
            return self.constant(np.array([int(n) for n in sizes], np.int64))
        parts = [self.op("Unsqueeze", n, [0]) if isinstance(n, Value) else self.constant([int(n)]) for n in sizes]
        made: Value = parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0, shape=(len(parts),))
        return made

    def size(self, value: Value, dim: int) -> Any:
        """Return the size of a dim: a number if it is fixed, else a value."""
        if value.shape is not None and (known := value.shape[dim]) is not None:
            return known
        dim = dim % value.ndim
        if (value.name, dim) not in self._sizes:
            whole = self.op("Shape", value, start=dim, end=dim + 1, shape=(1,))
            self._sizes[value.name, dim] = self.op("Squeeze", whole, [0], shape=())
        return self._sizes[value.name, dim]

    def sizes(self, value: Value) -> list[Any]:
        """Return the size of each dim."""
        return [self.size(value, dim) for dim in range(value.ndim)]

    def product(self, sizes: Sequence[Any]) -> Any:
        """Return the product of sizes."""
        number = math.prod(n for n in sizes if not isinstance(n, Value))
        made: Any = number
        for size in sizes:
            if isinstance(size, Value):
                made = size if made == 1 else self.op("Mul", size, made, shape=())
        return made

    def reshape(self, value: Value, sizes: Sequence[Any], shape: Sequence[int | None] | None = None) -> Value:
        """Return a value with other sizes; -1 stands for what is left, as does one size that varies."""
        if all(not isinstance(n, Value) for n in sizes) and value.shape == tuple(sizes):
            return value
        if shape is None:
            shape = [n if isinstance(n, int) and n >= 0 else None for n in sizes]
        varying = [i for i, n in enumerate(sizes) if isinstance(n, Value)]
        if len(varying) == 1 and -1 not in [n for n in sizes if isinstance(n, int)] and 0 not in sizes:
            sizes = [-1 if isinstance(n, Value) else n for n in sizes]
        allowzero = 1 if any(isinstance(n, int) and n == 0 for n in sizes) else None
        made: Value = self.op("Reshape", value, self.ints(sizes), shape=shape, allowzero=allowzero)
        return made

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Return a value with its dims in another order."""
        if list(order) == list(range(len(order))):
            return value
        shape = None if value.shape is None else [value.shape[i] for i in order]
        made: Value = self.op("Transpose", value, perm=list(order), shape=shape)
        return made
