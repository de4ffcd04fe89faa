"""Record one run of a function: the array functions it calls, with what, in order.

A `Recorder` gets each op that the general way of `tallow.core.apply` computes, each closure that the backward pass
calls, and from `tallow.compiler.watch` each call of a function that stands for itself, such as an optimizer's update.
It writes each as a line of Python, over names that it gives to arrays: `a0` is an argument, `p0` a tensor that the
function reaches through its variables, `v0` a value, `b0` a closure.

An array that it has not named was made in a way that it did not see. Its value may depend on anything, so an op that
takes one ends the recording, with the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from types import FrameType
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.compiler.backward import RecordedSweep
from tallow.core.apply import compute
from tallow.core.arguments import Prepared
from tallow.core.autocast import prepare
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.ops.table import Op
from tallow.tape.engine import Plan
from tallow.tape.graph import Node, Output, note_write
from tallow.tape.modes import mode
from tallow.tape.writes import writes

LITERALS = (int, float, str, bool, bytes, type(None), type(...), np.dtype, dtypes.dtype, devices.device, type)

# Ops whose values have a shape that depends on the elements of their operands, which the program may then have read.
_DATA_SHAPED = "argwhere bincount masked_select nonzero_tuple unique unique_consecutive"
DATA_SHAPED = frozenset(_DATA_SHAPED.split())


class Name(str):
    """A variable of the plan's function."""

    __slots__ = ()


@dataclass
class Line:
    """A statement of the plan.

    Attributes:
        text: its source.
        reads, makes: the names it uses and assigns.
        has_effect: it changes what outlives the run: a parameter, a buffer, the random numbers, an optimizer.
    """

    text: str
    reads: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    has_effect: bool = False


@dataclass
class OpCall:
    """A call of an op's array function.

    Attributes:
        args, kwargs: names and literals.
        outputs: the names of its values.
        closure: the name of its closure, if the op was recorded by autograd.
        after: lines that make NumPy's scalars arrays, and returned operands views.
    """

    op: Op
    args: list[Any]
    kwargs: dict[str, Any]
    outputs: list[Name]
    closure: Name | None
    after: list[str]
    general: str | None = None  # the source of a call that prepares tensors, in place of arrays
    is_several: bool = False  # the array function returns a tuple of values
    has_effect: bool = False


@dataclass
class NodeRecord:
    """A node of the graph, and how the plan makes it.

    Attributes:
        line: index of the line after which it can be made.
        is_freed: the backward pass of the plan has freed it.
    """

    node: Node
    name: Name
    closure: Name
    line: int
    is_freed: bool = False


@dataclass
class Leaf:
    """The gradient of a tensor from outside, as the recording goes on.

    Attributes:
        initial: whether the gradient was None at the start, or the name it is loaded to; UNREAD until it matters.
        grad: its name now, or None.
        is_changed: the plan has to set it at the end.
    """

    initial: Any
    grad: Any
    is_changed: bool = False


UNREAD = object()


@dataclass
class Source:
    """A tensor from outside.

    Attributes:
        name: of its array.
        tensor: the source of the tensor itself: a constant, or a variable for an argument.
    """

    name: Name
    object: Tensor
    tensor: Name


@dataclass
class Recorder:
    """The recording of one run. `mode.tracer` while it lasts.

    Attributes:
        arrays: the arrays by their names; none dies while the recording lasts, so that no other gets its id.
        reason: why the recording has ended before the run did; None if it has not.
        reachable: id of an array -> the tensor outside of the run that has it; the guards add to it.
        writes_seen: the number of the latest write that is recorded.
        starts_from_one: the backward pass that runs now starts from ones, as no gradient was passed.
    """

    lines: list[Line | OpCall] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    names: dict[int, Name] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)
    sources: dict[int, Source] = field(default_factory=dict)
    nodes: dict[int, NodeRecord] = field(default_factory=dict)
    leaves: dict[int, Leaf] = field(default_factory=dict)
    reachable: dict[int, Tensor] = field(default_factory=dict)
    reason: str | None = None
    on_stop: Callable[[], None] | None = None
    is_functional = False  # a plan may write to tensors without an op
    writes_seen: int = 0
    starts_from_one: bool = False
    _alive: list[Any] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)
    _constant_names: dict[tuple[str, int], Name] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------------------- names

    def fresh(self, letter: str) -> Name:
        """Return a new name."""
        count = self._counts[letter] = self._counts.get(letter, -1) + 1
        return Name(f"{letter}{count}")

    def constant(self, value: Any, letter: str = "k") -> Name:
        """Return the name of an object that is the same in every run."""
        key = letter, id(value)
        if key not in self._constant_names:
            name = self._constant_names[key] = self.fresh(letter)
            self.constants[name] = value
        return self._constant_names[key]

    def call(self, value: Any) -> Name:
        """Return the name of a function or an object under its own name."""
        base = getattr(value, "__name__", None) or type(value).__name__.lower()
        base = base if base.isidentifier() else "call"
        name, count = base, 1
        while name in self.constants and self.constants[name] is not value:
            count += 1
            name = f"{base}_{count}"
        self.constants[name] = value
        return Name(name)

    def bind(self, array: Any, name: Name) -> Name:
        """Give an array a name."""
        self.names[id(array)] = name
        self.arrays[name] = array
        return name

    def add_argument(self, tensor: Tensor, variable: Name) -> None:
        """Name the array of a tensor among the arguments, which the plan holds in `variable`."""
        self._add_source(tensor, self.fresh("a"), variable)

    def _add_source(self, tensor: Tensor, name: Name, variable: Name) -> None:
        self.sources[id(tensor)] = Source(name, tensor, variable)
        self._alive.append(tensor)
        self.bind(tensor.array, name)

    def source_of(self, tensor: Any) -> Source | None:
        """Return a tensor from outside the run, by the tensor itself; None for any other."""
        if id(tensor) not in self.sources and self.reachable.get(id(tensor.array)) is tensor:
            known: Any = tensor
            self._add_source(known, self.fresh("p"), self.constant(known, "P"))
        return self.sources.get(id(tensor))

    def name_of(self, array: Any) -> Name | None:
        """Return the name of an array; None if nothing tells where it comes from."""
        name = self.names.get(id(array))
        if name is None and (tensor := self.reachable.get(id(array))) is not None and tensor.array is array:
            source = self.source_of(tensor)
            name = None if source is None else source.name
        return name

    # ------------------------------------------------------------------------------------------------------ running

    def stop(self, reason: str) -> None:
        """End the recording; the run goes on eagerly."""
        if self.reason is None:
            self.reason = f"{reason}{_place()}"
            mode.tracer = None
            if self.on_stop is not None:
                self.on_stop()

    def add(self, text: str, reads: Iterable[str] = (), makes: Iterable[str] = (), has_effect: bool = False) -> None:
        """Add a line."""
        self.lines.append(Line(text, tuple(reads), tuple(makes), has_effect))

    def check_writes(self) -> bool:
        """Return whether every write so far was recorded; otherwise end the recording."""
        if writes.last != self.writes_seen:
            self.stop("writes to a tensor without an op")
            return False
        return True

    def saw_writes(self) -> None:
        """Take note that all writes so far are recorded."""
        self.writes_seen = writes.last

    # ---------------------------------------------------------------------------------------------------- arguments

    def value(self, x: Any) -> Any:
        """Return an argument as names and literals. Raises: Unknown."""
        if isinstance(x, Tensor):
            if (name := self.name_of(x.array)) is None:
                raise Unknown(f"a tensor of shape {tuple(x.shape)} that no recorded op made")
            return Wrapped(name)
        if devices.is_array(x):
            if (name := self.name_of(x)) is None:
                raise Unknown(f"an array of shape {tuple(x.shape)} that no recorded op made")
            return name
        if isinstance(x, np.generic):
            return self.names[id(x)] if id(x) in self.names else self._unknown_scalar()
        if type(x) is list or isinstance(x, tuple):
            parts = [self.value(part) for part in x]
            if type(x) is tuple or type(x) is list:
                return type(x)(parts)
            if not any(isinstance(part, Name | Wrapped | list) for part in parts):
                return x  # a size, or a named tuple of numbers
            raise Unknown(f"a {type(x).__name__}")
        if type(x) is slice:
            return slice(self.value(x.start), self.value(x.stop), self.value(x.step))
        if isinstance(x, LITERALS) or type(x).__module__.startswith("tallow.") or callable(x):
            return x
        raise Unknown(f"an argument of type {type(x).__name__}")

    @staticmethod
    def _unknown_scalar() -> Any:
        raise Unknown("a NumPy scalar")

    def source(self, x: Any) -> str:
        """Return the source of an argument that `value` has returned."""
        if isinstance(x, Name):
            return x
        if isinstance(x, Wrapped):
            return f"{self.call(wrap)}({x.name})"
        if type(x) is list:
            return f"[{', '.join(map(self.source, x))}]"
        if type(x) is tuple:
            return f"({', '.join(map(self.source, x))}{',' if len(x) == 1 else ''})"
        if type(x) is slice:
            return f"slice({self.source(x.start)}, {self.source(x.stop)}, {self.source(x.step)})"
        is_text = type(x) in (int, str, bool, type(None), type(...)) or (type(x) is float and isfinite(x))
        return repr(x) if is_text else self.constant(x)

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """Return the source of the arguments of a call."""
        return ", ".join([*map(self.source, args), *(f"{key}={self.source(v)}" for key, v in kwargs.items())])

    # ---------------------------------------------------------------------------------------------------------- ops

    def op(
        self, op: Op, given: tuple[Any, dict[str, Any]], ready: Prepared, value: Any, backward: Any, result: Any
    ) -> None:
        """Record an op that is not in place."""
        if not self.check_writes():
            return
        outputs = [result] if isinstance(result, Tensor) else list(result)
        if any(type(output.array) is not np.ndarray for output in outputs):
            return self.stop("computes on a device that plans do not support")
        if op.name in DATA_SHAPED or (
            op.name == "take_at" and any(x is not None and x.dtype == bool for x in ready.call[1])
        ):
            return self.stop(f"calls {op.name}, whose shape depends on values")
        is_recorded = backward is not None and any(y._node is not None for y in outputs)
        try:
            call = self._op_call(op, given, ready)
        except Unknown as error:
            return self.stop(f"{op.name} takes {error}")
        parts = list(value) if isinstance(value, tuple | list) else [value]
        call.is_several = isinstance(value, tuple | list)
        for part, output in zip(parts, outputs, strict=True):
            name = self.bind(output.array, self.fresh("v"))
            call.outputs.append(name)
            if isinstance(part, np.generic):
                call.after.append(f"{name} = {self.call(np.asarray)}({name})")
            elif output.array is not part:
                call.after.append(f"{name} = {name}[...]")
        self.lines.append(call)
        if is_recorded:
            call.closure = self.fresh("b")
            edge = next(y._node for y in outputs if y._node is not None)
            self.add_node(edge.node if isinstance(edge, Output) else edge, call.closure)

    def _op_call(self, op: Op, given: tuple[Any, dict[str, Any]], ready: Prepared) -> OpCall:
        """Return the call of an op, by arrays if they are the operands' own, else by tensors. Raises: Unknown."""
        if ready.half is None:
            try:
                args = [self.value(x) for x in ready.call]
                return OpCall(op, args, {k: self.value(v) for k, v in ready.kwargs.items()}, [], None, [])
            except Unknown:
                pass
        args, kwargs = [self.value(x) for x in given[0]], {k: self.value(v) for k, v in given[1].items()}
        keywords = ", ".join(f"{name!r}: {self.source(x)}" for name, x in kwargs.items())
        autocast = None if mode.autocast is None else dict(mode.autocast)
        general = (
            f"{self.call(prepared)}({self.call(op)}, {self.source(autocast)}, {self.source(tuple(args))}, "
            f"{{{keywords}}})"
        )
        return OpCall(op, args, kwargs, [], None, [], general)

    def inplace(
        self, op: Op, target: Tensor, given: tuple[Any, dict[str, Any]], ready: Prepared, value: Any, backward: Any
    ) -> None:
        """Record an op that has written to its first operand.

        Args:
            backward: the closure, if autograd has recorded the write.
        """
        if self.reason is not None:
            return
        self.saw_writes()
        if backward is not None and target._base is not None:
            return self.stop(f"{op.name}_ writes to a view whose gradient is recorded")
        if backward is not None and self.source_of(target) is not None:
            return self.stop(f"{op.name}_ gives an argument or a captured tensor a gradient")
        copies = False
        for x, t in zip(ready.call, ready.tensors, strict=False):  # copies that protect saved values
            if t is not None and x is not t.array and devices.is_array(x) and x.dtype == t.array.dtype:
                known = self.name_of(t.array)
                if known is not None and x.shape == t.array.shape:
                    copies = True
                    copy = self.bind(x, self.fresh("v"))
                    self.add(f"{copy} = {known}.copy()", [known], [copy])
        name = self.name_of(target.array)
        try:
            if name is None:
                raise Unknown("a tensor that no recorded op made")
            call = self._op_call(op, ((target, *given[0]), given[1]), ready)
        except Unknown as error:
            return self.stop(f"{op.name}_ takes {error}")
        if copies and call.general is not None:  # which would save the operand itself
            return self.stop(f"{op.name}_ saves what it overwrites, with operands of several dtypes")
        written = self.fresh("v")
        call.outputs.append(written)
        if backward is not None:
            call.closure = self.fresh("b")
        call.after = [f"{self.call(write)}({name}, {written})"]
        call.has_effect = True
        self.lines.append(call)
        self._note(target, name)
        if backward is not None and isinstance(target._node, Node):
            self.add_node(target._node, call.closure)

    def _note(self, target: Tensor, name: Name) -> None:
        """Add the line that notes a write, for closures that hold the array."""
        source = self.source_of(target)
        tensor = source.tensor if source is not None else f"{self.call(wrap)}({name})"
        self.add(f"{self.call(note_write)}({tensor})", [name], has_effect=True)

    def add_node(self, node: Node, closure: Name | None) -> None:
        """Take note of a node of the graph and its closure."""
        assert closure is not None
        self._alive.append(node)
        self.nodes[id(node)] = NodeRecord(node, self.fresh("n"), closure, len(self.lines))

    # ----------------------------------------------------------------------------------------------------- gradients

    def sweep(self, plan: Plan, retain_graph: bool) -> RecordedSweep:
        """Return the sweep of a backward pass."""
        return RecordedSweep(self, plan, retain_graph)

    def leaf(self, tensor: Tensor) -> Leaf | None:
        """Return what is known of the gradient of a tensor from outside."""
        if (source := self.source_of(tensor)) is None:
            return None
        return self.leaves.setdefault(id(source.object), Leaf(UNREAD, UNREAD))

    def read_grad(self, tensor: Tensor) -> Any:
        """Return the name of a gradient, or None; the first read makes its state at the start a condition."""
        leaf = self.leaf(tensor)
        if leaf is None:
            return UNREAD
        if leaf.grad is UNREAD:
            grad = tensor._grad
            leaf.initial = leaf.grad = None if grad is None else self.bind(grad.array, self.fresh("g"))
        return leaf.grad

    def set_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Record `tensor.grad = grad`."""
        leaf = self.leaf(tensor)
        name = None if grad is None else self.name_of(grad.array)
        if leaf is None or (grad is not None and name is None):
            return self.stop("sets the gradient of a tensor that it has made")
        leaf.grad, leaf.is_changed = name, True

    def accumulate(self, tensor: Tensor, g: Any, owned: bool) -> None:
        """Record that a backward pass adds a gradient, before it does."""
        name = self.names.get(id(g))
        if name is None or tensor._hooks or tensor._post_hooks or (self.leaf(tensor)) is None:
            return self.stop("runs hooks of gradients" if name else "has a gradient that no recorded op made")
        leaf = self.leaf(tensor)
        assert leaf is not None
        before = self.read_grad(tensor)
        leaf.is_changed = True
        if before is None:
            cast = "" if dtypes.dtype_of(tensor.array) is dtypes.dtype_of(np.asarray(g)) else self.source(tensor.dtype)
            made = f"{self.call(np.asarray)}({name})" if isinstance(g, np.generic) else name
            made = f"{self.call(dtypes.cast)}({made}, {cast})" if cast else f"{made}.copy()" if not owned else made
            leaf.grad = name if made == name else self.fresh("g")
            if leaf.grad is not name:
                self.add(f"{leaf.grad} = {made}", [name], [leaf.grad])
        elif tensor.array.dtype in dtypes.HALVES:
            self.stop("adds up gradients in half precision")
        else:
            self.add(f"{before} += {name}", [name, before], has_effect=True)

    def accumulated(self, tensor: Tensor) -> None:
        """Name the gradient's array, after `accumulate`."""
        leaf = self.leaves.get(id(tensor))
        if leaf is not None and isinstance(leaf.grad, Name) and tensor._grad is not None:
            self.bind(tensor._grad.array, leaf.grad)


class Unknown(Exception):
    """Nothing tells where an argument comes from."""


@dataclass(frozen=True)
class Wrapped:
    """An array that is passed as a tensor."""

    name: Name


def prepared(op: Op, autocast: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Return an op's value and closure for tensors, whose dtypes are converted first."""
    ready = Prepared(op, args, kwargs) if autocast is None else prepare(autocast, op, args, kwargs)
    return compute(op, ready)


def write(target: Array, value: Any) -> None:
    """Write an op's value to the memory of its first operand, as in `tallow.core.apply`."""
    target[...] = value if value.dtype == target.dtype else dtypes.cast(value, dtypes.dtype_of(target))


def _place() -> str:
    """Return the place in the caller's program, for a message."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(("tallow.", "contextlib", "functools")):
        frame = frame.f_back
    if frame is None:
        return ""
    return f" ({frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno})"
