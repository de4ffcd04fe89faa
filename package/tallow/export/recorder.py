"""The recorder of one run: a node for each op of the table, in-place writes and views made functional.

`mode.tracer` is a `Recorder` while the run lasts. The general way of `tallow.core.apply` reports each op to it, and
`tallow.core.whole_calls` the functions that are one node although they are more than ops.

Tensors are recognised by their arrays. A tensor that the recorder does not know, but that got its array before the run,
is a constant. Any other was made in a way that the recorder did not see, so that its values may depend on anything; it
is an error to use it.
"""

from __future__ import annotations

import inspect
import operator
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.apply import apply_generally, inplace_generally
from tallow.core.arguments import Prepared
from tallow.core.size import Size
from tallow.core.tensor import Tensor, wrap
from tallow.errors import TallowError, TraceError
from tallow.export.places import line_of_program
from tallow.export.sizes import Symbolic, caller_of_sizes, check_size, second_of, sym_size, symbolic
from tallow.export.targets import DETACH, DRAWS, FROM_DATA, op_target, whole_target
from tallow.export.views import View, scatter
from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.fx.passes.shape_prop import TensorMetadata
from tallow.ops.memory_format import layout, memory_format
from tallow.ops.table import OPS, Op
from tallow.random import default_generator
from tallow.tape.modes import mode, no_grad
from tallow.tape.writes import owner_of, writes

MOST_NUMBERS = 16  # in a node; a longer list becomes a constant
LITERALS = (int, float, str, bool, bytes, type(None), type(...), dtypes.dtype, devices.device, memory_format, layout)
# Ops whose values have a shape that depends on the elements of their operands.
_DATA_SHAPED = "argwhere bincount masked_select nonzero_tuple unique unique_consecutive"
RUNS = "tallow.export.capture"  # the module that calls the program
DATA_SHAPED = frozenset(_DATA_SHAPED.split())


@dataclass(eq=False)
class Value:
    """A tensor of the run.

    Attributes:
        array: its array, which stays alive, so that no other gets its id.
        node: computes it. After a write to the memory, the node of the value that it has then.
        second: the tensor at the other sizes; None if no size varies.
        is_constant: it does not depend on arguments, parameters, buffers and random numbers.
        parent, view: of a view: the tensor that it is made from, and how.
        version: of a base: the number of writes to its memory. Of a view: the version that its node is of.
        input: the name of the input that it is, or None.
        is_tracked: of a base: gradients may flow through its node.
    """

    array: Any
    node: Node
    second: Tensor | None
    is_constant: bool = False
    parent: Value | None = None
    view: View | None = None
    version: int = 0
    input: str | None = None
    is_tracked: bool = False

    @property
    def base(self) -> Value:
        """The tensor that owns the memory."""
        value = self
        while value.parent is not None:
            value = value.parent
        return value


class Recorder:
    """Records a run as a graph.

    Args:
        graph: gets the nodes; it has the inputs already.
        varies: sizes are declared to vary, so that each op also runs at other sizes.
        add_constant: makes a tensor that existed before the run an input of the graph, and returns its node.
    """

    runs = RUNS  # the module that calls the program
    readers: tuple[str, ...] = ("tallow.",)  # whose code may read arrays
    is_functional = True  # writes have to be ops; see tallow.fx.compile.recorder for the other kind

    def __init__(self, graph: Graph, varies: bool, add_constant: Callable[[Tensor], Node]) -> None:
        self.graph, self.varies, self.add_constant = graph, varies, add_constant
        self.values: dict[int, Value] = {}
        self._before: dict[int, Tensor] = {}  # id of an array -> a tensor that existed before the run
        self._made: dict[int, weakref.ref[Any]] = {}  # id of an array -> the array, which a tensor got in the run
        self.writes_seen = writes.last
        self._generator_state: Any = None  # of the run at the other sizes
        self._autocast: Any = None
        self._decided: set[Any] = set()
        self._sizes: dict[tuple[Value, int], Node] = {}

    # ------------------------------------------------------------------------------------------------------- values

    def add(
        self, tensor: Tensor, node: Node, second: Tensor | None, is_constant: bool = False, is_tracked: bool = False
    ) -> Value:
        """Take note of a tensor and the node that computes it."""
        array = tensor.array
        value = self.values[id(array)] = Value(array, node, second, is_constant, is_tracked=is_tracked)
        value.input = node.name if node.op == "placeholder" else None
        if "tensor_meta" not in node.meta:
            strides = tuple(s // array.itemsize for s in array.strides)
            shape = Size(array.shape)
            node.meta["tensor_meta"] = TensorMetadata(shape, tensor.dtype, False, strides, None, False, {})
        return value

    def value_of(self, array: Any) -> Value:
        """Return what is known of an array.  Raises: TraceError for one that no recorded call made"""
        value = self.values.get(id(array))
        if value is not None and value.array is array:
            return value
        tensor = self._before.get(id(array))
        if tensor is None or tensor.array is not array:
            raise TraceError(
                f"export: an array of shape {tuple(array.shape)} was not made by an op{self.place()}",
                hint="make it with functions of tallow; or before the call, as a buffer or an attribute of the module",
            )
        constant = wrap(tensor.array)
        return self.add(constant, self.add_constant(constant), wrap(array.copy()) if self.varies else None, True)

    def read(self, value: Value) -> Node:
        """Return the node of a tensor's value now."""
        base = value.base
        if value.parent is not None and value.version != base.version:
            value.node = self._of_view(value, self.read(value.parent))
            value.version = base.version
        return value.node

    def _of_view(self, value: Value, parent: Node) -> Node:
        view: Any = value.view
        node = parent
        if view.op is not None:
            node = self.graph.call_function(op_target(view.op), (parent, *view.args), view.kwargs)
        if view.index is not None:
            node = self.graph.call_function(operator.getitem, (node, view.index))
        return self.graph.call_function(DETACH, (node,)) if view.is_detached else node

    def detached(self, tensor: Tensor, result: Tensor) -> None:
        """Take note of what `tensor.detach()` or `detach_()` returned: the same memory, without a gradient."""
        self.check_writes()
        value = self.value_of(tensor.array)
        if result is tensor:
            value.node = self._call(DETACH, (self.read(value),), {})
        elif value.base.is_tracked:
            result.array = result.array.view()  # tensors are recognised by their arrays
            node = self._call(DETACH, (self.read(value),), {})
            made = self.add(result, node, value.second, value.base.is_constant)
            made.parent, made.view = value, View(None, (), {}, None, True)
            made.version = value.base.version

    def write(self, value: Value, node: Node, is_tracked: bool = False) -> None:
        """Let a tensor, and all that share its memory, have a new value."""
        chain = [value]
        while (parent := chain[-1].parent) is not None:
            self.read(parent)
            chain.append(parent)
        nodes = [node]
        for child, parent in pairwise(chain):
            nodes.append(scatter(self, child, parent, nodes[-1]))
        base = chain[-1]
        base.version += 1
        for member, new in zip(chain, nodes, strict=True):
            member.node, member.version = new, base.version
        base.is_constant = False
        base.is_tracked = base.is_tracked or is_tracked

    # ---------------------------------------------------------------------------------------------------- arguments

    def argument(self, x: Any) -> Any:
        """Return an argument of a call as that of a node."""
        if isinstance(x, Tensor) or devices.is_array(x):
            return self.read(self.value_of(x.array if isinstance(x, Tensor) else x))
        if isinstance(x, Symbolic):
            return x.node()
        if isinstance(x, np.generic):
            return x.item()
        if isinstance(x, list | tuple):
            parts = [self.argument(part) for part in x]
            return parts if isinstance(x, list) else tuple(parts)
        if isinstance(x, slice):
            return slice(self.argument(x.start), self.argument(x.stop), self.argument(x.step))
        if isinstance(x, LITERALS):
            return x
        if isinstance(x, type | np.dtype):
            return dtypes.as_dtype(x)
        raise TraceError(f"export: an argument is a {type(x).__name__}, which a graph cannot hold{self.place()}")

    def second(self, x: Any) -> Any:
        """Return an argument of a call as it is at the other sizes."""
        if isinstance(x, Tensor):
            return self.value_of(x.array).second
        if devices.is_array(x):
            tensor = self.value_of(x).second
            return None if tensor is None else tensor.array
        if isinstance(x, list | tuple) and not isinstance(x, Symbolic):
            parts = [self.second(part) for part in x]
            return parts if isinstance(x, list) else tuple(parts)
        if isinstance(x, slice):
            return slice(self.second(x.start), self.second(x.stop), self.second(x.step))
        return second_of(x)

    def _depends(self, x: Any) -> bool:
        """Return whether there is a tensor among arguments that is not constant."""
        if isinstance(x, Tensor) or devices.is_array(x):
            return not self.value_of(x.array if isinstance(x, Tensor) else x).base.is_constant
        return isinstance(x, list | tuple) and any(map(self._depends, x))

    def _is_tracked(self, x: Any) -> bool:
        """Return whether gradients may flow to a tensor among arguments."""
        if isinstance(x, Tensor) or devices.is_array(x):
            return self.value_of(x.array if isinstance(x, Tensor) else x).base.is_tracked
        return isinstance(x, list | tuple) and any(map(self._is_tracked, x))

    def _at_other_sizes(self, name: str, call: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Return the result of a call at the other sizes; None if no size varies."""
        if not self.varies:
            return None
        args, kwargs = self.second(tuple(args)), {key: self.second(x) for key, x in kwargs.items()}
        try:
            with self.paused(), no_grad():
                return call(*args, **kwargs)
        except TallowError as error:
            reason = str(error).partition("\n")[0]  # its hint is for whoever chose that size
            raise TraceError(
                f"export: {name} works at the example's sizes only{self.place()}; at others: {reason}",
                hint="use sizes of the arguments, such as x.shape[0], in place of numbers; or do not declare the Dim",
            ) from error

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Record nothing in the block."""
        mode.tracer = None
        try:
            yield
        finally:
            mode.tracer = self
            self.writes_seen = writes.last

    # -------------------------------------------------------------------------------------------------------- calls

    def op(
        self, op: Op, given: tuple[Any, dict[str, Any]], ready: Prepared, value: Any, backward: Any, result: Any
    ) -> None:
        """Record an op that is not in place."""
        self.check_writes()
        args, kwargs = given
        if op.name in DATA_SHAPED or (op.name == "take_at" and any(_is_mask(x) for x in ready.call[1])):
            raise TraceError(
                f"export: the shape of {op.name}'s result depends on values{self.place()}",
                hint="use tl.where or a multiplication by the mask",
            )
        second = self._at_other_sizes(op.name, lambda *a, **k: apply_generally(op, *a, **k), args, kwargs)
        node_args, node_kwargs = self.arguments(op.packed(args), kwargs)
        node = self._call(op_target(op), node_args, node_kwargs)
        is_constant = not self._depends(args) and not self._depends(list(kwargs.values()))
        several = not isinstance(result, Tensor)
        is_tracked = self._is_tracked([*args, *kwargs.values()])
        made = self._results(op.name, node, result, second, is_constant, is_tracked)
        for index, (output, value_made) in enumerate(zip(result if several else (result,), made, strict=True)):
            source = next((t for t in ready.tensors if t is not None and _share(t.array, output.array)), None)
            if source is not None:
                value_made.parent = self.value_of(source.array)
                value_made.view = View(
                    op, node_args[1:], node_kwargs, index if several else None, is_tracked and not mode.recording
                )
                value_made.version = value_made.base.version

    def _results(
        self, name: str, node: Node, result: Any, second: Any, is_constant: bool, is_tracked: bool
    ) -> list[Value]:
        """Take note of what a call returned: a tensor, or several. Without a gradient, if gradients are off."""

        def added(tensor: Tensor, node: Node, second: Any) -> Value:
            has_gradient = is_tracked and tensor.dtype.is_floating_point
            if has_gradient and not mode.recording:
                node = self.graph.call_function(DETACH, (node,))
            return self.add(tensor, node, second, is_constant, has_gradient and mode.recording)

        if isinstance(result, Tensor):
            return [added(result, node, second)]
        if not isinstance(result, list | tuple) or not all(isinstance(x, Tensor) for x in result):
            raise TraceError(f"export: {name} returns a {type(result).__name__}{self.place()}")
        if self.varies and len(second) != len(result):
            raise TraceError(f"export: the number of {name}'s results depends on a size{self.place()}")
        parts = [self.graph.call_function(operator.getitem, (node, i)) for i in range(len(result))]
        seconds = second if self.varies else [None] * len(result)
        return [added(*each) for each in zip(result, parts, seconds, strict=True)]

    def arguments(self, args: Any, kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call as those of a node.  Raises: TraceError where the program turns autocast on"""
        if mode.autocast != self._autocast:
            raise TraceError(
                f"export: the program turns autocast on or off{self.place()}",
                hint="convert with x.to(dtype), or call the exported module within autocast",
            )
        return self.argument(tuple(args)), {key: self.argument(x) for key, x in kwargs.items()}

    def _call(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        node = self.graph.call_function(target, args, kwargs)
        node.meta["stack_trace"] = self.place().strip(" ()")
        return node

    def inplace(
        self, op: Op, target: Tensor, given: tuple[Any, dict[str, Any]], ready: Prepared, value: Any, backward: Any
    ) -> None:
        """Record an op that has written to its first operand."""
        self.writes_seen = writes.last
        args, kwargs = given
        self._at_other_sizes(f"{op.name}_", lambda *a, **k: inplace_generally(op, *a, **k), (target, *args), kwargs)
        node_args, node_kwargs = self.arguments((target, *args), kwargs)
        node = self._call(op_target(op), node_args, node_kwargs)
        if dtypes.dtype_of(value) is not target.dtype:
            node = self._call(op_target(OPS["to_dtype"]), (node, target.dtype), {})
        is_tracked = self._is_tracked([target, *args, *kwargs.values()]) and target.dtype.is_floating_point
        if is_tracked and not mode.recording:
            node = self._call(DETACH, (node,), {})
        self.write(self.value_of(target.array), node, is_tracked and mode.recording)

    def whole(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function and record the call as one node."""
        self.check_writes()
        if kwargs.get("out") is not None:
            raise TraceError(f"export: {function.__name__} writes to out={self.place()}", hint="use the result")
        if function.__name__ == "repeat_interleave" and repeats_by_values(args, kwargs):
            raise TraceError(f"export: the shape of repeat_interleave's result depends on values{self.place()}")
        if "inplace" in (signature := inspect.signature(function)).parameters:
            bound = signature.bind(*args, **kwargs)
            if bound.arguments.pop("inplace", False):
                target: Any = bound.args[0]
                value = self.whole(function, bound.args, bound.kwargs)
                return value if value is target else target.copy_(value)
        with self.paused():
            result = function(*args, **kwargs)
        if any(result is x for x in args):
            return result
        if function.__name__ in FROM_DATA and not _is_short(args):
            self.add(result, self.add_constant(result), wrap(result.array) if self.varies else None, True)
            return result
        second = self._at_other_sizes(function.__name__, self._drawing(function), args, kwargs)
        node = self._call(whole_target(function), *self.arguments(args, kwargs))
        is_constant = function.__name__ not in DRAWS and not self._depends([*args, *kwargs.values()])
        is_tracked = self._is_tracked([*args, *kwargs.values()])
        self._results(function.__name__, node, result, second, is_constant, is_tracked)
        return result

    def _drawing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with random numbers of its own: the run at other sizes repeats the seed."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if function.__name__ not in DRAWS:
                return function(*args, **kwargs)
            before = default_generator.get_state()
            default_generator.set_state(self._generator_state)
            try:
                return function(*args, **kwargs)
            finally:
                self._generator_state = default_generator.get_state()
                default_generator.set_state(before)

        return call

    def start(self) -> None:
        """Take note of the state of the random numbers, and of autocast."""
        self._generator_state = default_generator.get_state()
        self.writes_seen = writes.last
        self._autocast = mode.autocast

    def check_writes(self) -> None:
        """Raise TraceError if a tensor was written without an op."""
        if writes.last != self.writes_seen:
            raise TraceError(f"export: a tensor was written to without an op{self.place()}", hint="use x.copy_(...)")

    # -------------------------------------------------------------------------------------------- what is not an op

    def stop(self, reason: str) -> None:
        """Raise TraceError: the run does what a graph cannot hold."""
        raise TraceError(f"export: the program calls for {reason}{self.place()}")

    def reads(self, array: Any, how: str) -> None:
        """Raise TraceError if the values of an array are not the same in every run."""
        if not self.value_of(array).base.is_constant:
            raise TraceError(
                f"export: {how} asks for a value that is not known yet{self.place()}",
                hint="compute with tensors (tl.where, masks) instead of deciding by their values",
            )

    def touches(self, tensor: Tensor) -> None:
        """Take note of a tensor that the program uses, if it existed before the run."""
        array = vars(tensor)["array"]
        made = self._made.get(id(array))
        if made is None or made() is not array:
            self._before.setdefault(id(array), tensor)

    def sets(self, tensor: Tensor, array: Any) -> None:
        """Take note of an array that a tensor gets in the run, by an op or unseen."""
        if id(array) not in self._before:
            self._made[id(array)] = weakref.ref(array)

    def shape_of(self, tensor: Tensor) -> Size:
        """Return the shape of a tensor, with a SymInt for each size that varies."""
        value = self.values.get(id(tensor.array))
        if value is None or value.second is None or value.second.array.shape == tensor.array.shape:
            return Size(tensor.array.shape)
        return Size([self.size(value, dim) for dim in range(tensor.array.ndim)])

    def size(self, value: Value, dim: int) -> Any:
        """Return the size of one dim."""

        def make() -> Node:
            if (value, dim) not in self._sizes:
                self._sizes[value, dim] = self.graph.call_function(sym_size, (self.read(value), dim))
            return self._sizes[value, dim]

        first = value.array.shape[dim]
        second = first if value.second is None else value.second.array.shape[dim]
        return first if first == second else symbolic(self, first, second, make)

    def decide(self, function: Callable[..., Any], left: Any, right: Any, first: bool, second: bool) -> None:
        """Take note that a comparison of sizes decides. Raises: TraceError if it differs at other sizes."""
        if (caller := caller_of_sizes()) == "ops":
            return
        comparison = f"{_shown(left)} {function.__name__} {_shown(right)}"
        if first != second:
            raise TraceError(
                f"export: the program goes another way at other sizes ({comparison}){self.place()}",
                hint="do not declare the Dim, or narrow it by min and max so that it always goes the same way",
            )
        if caller == "functions":
            return
        nodes = tuple(x.node() if isinstance(x, Symbolic) else x for x in (left, right))
        if nodes[0] is nodes[1]:
            return  # a size and itself; two numbers may be equal at these sizes only
        if (function, nodes) not in self._decided:
            self._decided.add((function, nodes))
            condition = self.graph.call_function(function, nodes)
            self.graph.call_function(check_size, (condition, first, f"{comparison}{self.place()}"))

    def place(self) -> str:
        """Return the line of the program that runs, for a message."""
        return line_of_program(self.runs)


def repeats_by_values(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a tensor says how often `repeat_interleave` is to repeat."""
    return (
        any(isinstance(x, Tensor) for x in args[1:])
        or isinstance(kwargs.get("repeats"), Tensor)
        or (len(args) == 1 and "repeats" not in kwargs)
    )


def _is_mask(x: Any) -> bool:
    return x is not None and x.dtype == bool


def _share(a: Any, b: Any) -> bool:
    """Return whether two arrays are of one memory."""
    return type(a) is type(b) and owner_of(a) is owner_of(b)


def _is_short(data: Any) -> bool:
    """Return whether a node can hold the data of a tensor: nodes, and a few numbers."""
    if isinstance(data, list | tuple):
        return len(data) <= MOST_NUMBERS and all(map(_is_short, data))
    return isinstance(data, Tensor | int | float)


def _shown(x: Any) -> str:
    return f"a size ({x.first})" if isinstance(x, Symbolic) else repr(x)
