"""Record the calls of one run: a node for each op, and for each function of tallow that is repeated as a whole.

The graph is that of `tallow.export`, recorded by its recorder, with two differences. Nothing is made functional: a node
may write to a tensor, draw random numbers, or run a backward pass, and a node for each of these is called again, in
order. And tensors are recognised by themselves, not by their arrays, so that a repeated call makes the same history.

A run is a call of the program like any other. What cannot be recorded ends the recording, and the run goes on.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import GeneratorType
from typing import Any

import numpy as np

from tallow import devices
from tallow.autograd.function import Function
from tallow.core.apply import apply_generally, inplace_generally
from tallow.core.arguments import Prepared
from tallow.core.size import Size
from tallow.core.tensor import Tensor
from tallow.errors import TraceError
from tallow.export.patches import READS, recorded_tensors
from tallow.export.recorder import DATA_SHAPED, Recorder, repeats_by_values
from tallow.export.targets import DRAWS, FROM_DATA
from tallow.fx.compile.guards import OF_TENSORS, Guards, disable
from tallow.fx.compile.joint import OpCall, op_call
from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.fx.patching import Patcher
from tallow.nn.module import Module
from tallow.ops.table import Op
from tallow.optim.lr_scheduler import LRScheduler
from tallow.optim.optimizer import Optimizer
from tallow.random import Generator
from tallow.tape.modes import mode
from tallow.tape.writes import writes

# Methods whose results may decide what the program does, or that change a tensor without an op.
_STOPS = (
    "__repr__ __deepcopy__ __copy__ __reduce_ex__ __array_wrap__ _host data_ptr storage_offset detach_ register_hook "
    "register_post_accumulate_grad_hook requires_grad_ retain_grad"
)
STOPS: dict[type, str] = {
    Tensor: _STOPS,
    Generator: "manual_seed seed initial_seed set_state get_state",
    LRScheduler: "get_last_lr",
    Function: "apply",
}
PROPERTIES = {Tensor: "data _version grad_fn", Generator: "numpy"}
WHOLE = "__getitem__ __setitem__ index_put_ backward"  # methods of Tensor
_READERS = "amp autograd core devices dtypes export func functions fused fx kernels linalg models nn ops optim random"
READERS = tuple(f"tallow.{name}" for name in (*_READERS.split(), "special", "tape"))
LITERALS = (int, float, str, bool, type(None))
_SIZES = frozenset(("size", "start", "end", "step", "steps", "n", "m"))  # arguments that decide about a shape


class CallRecorder(Recorder):
    """Records one run.

    Attributes:
        inputs: placeholder -> the tensor or object that it stands for.
        reason: why the run cannot be repeated; None if it can.
        switches: the program changes modes, such as by `no_grad`.
        has_effects: it changes what outlives it: tensors, gradients, random numbers.
    """

    runs, readers = "tallow.fx.compile.compiled", READERS
    is_functional = False

    def __init__(self, guards: Guards) -> None:
        super().__init__(Graph(), False, _refused)
        self.reachable, self.finds_attributes = guards.seen, guards.finds_attributes()
        self.known: dict[int, tuple[Any, Node]] = {}
        self.inputs: dict[Node, Any] = {}
        self.reason: str | None = None
        self.modes = self.modes_before = _modes()
        self.switches = self.has_effects = False
        self._filled: dict[int, Tensor] = {}  # tensors to which a recorded backward pass gave their gradient
        self._arrays: dict[int, Tensor] = {}
        self.calls: dict[Node, OpCall] = {}
        self.pure: set[Node] = set()  # without an effect, and the same for the same operands
        self.made: dict[Node, tuple[Any, bool]] = {}  # array, and whether it has no history

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the calls in the block."""
        self._arrays = {id(x.array): x for x in self.reachable.values() if isinstance(x, Tensor)}
        self.writes_seen = writes.last
        with recorded_tensors(self), _reporting_methods():
            mode.tracer = self
            try:
                yield
            finally:
                mode.tracer = None

    def finish(self, result: Any) -> None:
        """End the graph: what the program returned is its output."""
        self._unless_failed("what is no op", self.check_writes)
        if mode.tracer is self and _modes() != self.modes_before:
            self.give_up("changes whether gradients are recorded, or another mode")
        self._unless_failed("", lambda: self.graph.output(self.returned(result)))

    def give_up(self, reason: str) -> None:
        """End the recording; the run goes on."""
        if self.reason is None:
            self.reason = reason + self.place()
            mode.tracer = None

    def stop(self, reason: str) -> None:
        """End the recording."""
        self.give_up(f"calls for {reason}")

    def reads(self, array: Any, how: str) -> None:
        """End the recording: the program asks for values."""
        self.give_up(f"reads a value with {how.removesuffix('()')}")

    def touches(self, tensor: Tensor) -> None:
        """Let a tensor of which only the shape, the dtype or the like is asked for be an input, too."""
        if id(tensor) not in self.known and self.reachable.get(id(tensor)) is tensor:
            self._node_of(tensor, "")

    def sets(self, tensor: Tensor, array: Any) -> None:
        """End the recording if the memory of a tensor that exists is replaced."""
        if mode.tracer is self and (id(tensor) in self.known or self.reachable.get(id(tensor)) is tensor):
            self.give_up("replaces the memory of a tensor")

    def shape_of(self, tensor: Tensor) -> Size:
        """Return the shape of a tensor, which the guards fix."""
        return Size(tensor.array.shape)

    # ---------------------------------------------------------------------------------------------------- arguments

    def add_input(self, name: str, value: Any) -> Node:
        """Make a tensor or an object an input of the graph."""
        node = self.graph.placeholder(name)
        node.target = node.name
        self.inputs[node] = value
        self._know(value, node)
        if isinstance(value, Tensor):
            self.made[node] = value.array, not value._requires_grad and value._base is None
        return node

    def _know(self, value: Any, node: Node) -> None:
        self.known[id(value)] = value, node
        if isinstance(value, Tensor):
            self._arrays[id(value.array)] = value

    def _node_of(self, value: Any, what: str) -> Node:
        """Return the node of a tensor or an object.  Raises: TraceError for one that the program has made unseen"""
        if (known := self.known.get(id(value))) is not None:
            return known[1]
        if self.reachable.get(id(value)) is not value:
            raise TraceError(f"{what} that no recorded call made")
        before = next(iter(self.graph.nodes), None)
        with self.graph.inserting_before(before):
            return self.add_input("p" if isinstance(value, Tensor) else type(value).__name__.lower(), value)

    def argument(self, x: Any) -> Any:
        """Return an argument of a call as that of a node.  Raises: TraceError"""
        if isinstance(x, Tensor):
            return self._node_of(x, f"a tensor of shape {tuple(x.array.shape)}")
        if devices.is_array(x):
            what = f"an array of shape {tuple(x.shape)}"
            tensor = self._arrays.get(id(x))
            if tensor is None or tensor.array is not x:
                raise TraceError(f"{what} that no recorded call made")
            return self.graph.call_function(getattr, (self._node_of(tensor, what), "array"))
        if isinstance(x, Optimizer | LRScheduler | Module):
            return self._node_of(x, f"a {type(x).__name__}")
        return super().argument(x)

    # -------------------------------------------------------------------------------------------------------- calls

    def op(
        self, op: Op, given: tuple[Any, dict[str, Any]], ready: Prepared, value: Any, backward: Any, result: Any
    ) -> None:
        """Record an op that is not in place."""
        has_mask = op.name == "take_at" and any(x is not None and x.dtype == bool for x in ready.call[1])
        if op.name in DATA_SHAPED or has_mask:
            return self.give_up(f"calls {op.name}, whose shape depends on values")
        self._unless_failed(op.name, self.check_writes)
        self._add(op.name, op.call or apply_generally.__get__(op), *given, result, op.name not in DRAWS)
        known = self.known.get(id(result))
        call = None if known is None else op_call(op, given, ready, value, result, self.known)
        if known is not None and call is not None:
            self.calls[known[1]] = call

    def inplace(
        self, op: Op, target: Tensor, given: tuple[Any, dict[str, Any]], ready: Prepared, value: Any, backward: Any
    ) -> None:
        """Record an op that has written to its first operand."""
        self.writes_seen, self.has_effects = writes.last, True
        self._add(f"{op.name}_", op.inplace or inplace_generally.__get__(op), (target, *given[0]), given[1], target)

    def whole(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function and record the call as one node."""
        name = function.__name__
        args = tuple(list(x) if isinstance(x, GeneratorType) else x for x in args)
        if name == "backward":
            if len(args) > 3 or kwargs.get("create_graph"):
                self.stop("a gradient with create_graph=True")
                return function(*args, **kwargs)
            return self._backward(function, args, kwargs)
        if name == "__getitem__" and any(_is_mask(x) for x in (args[1] if isinstance(args[1], tuple) else args[1:])):
            self.give_up("indexes by a mask, so that a shape depends on values")
            return function(*args, **kwargs)
        if _sizes_by_values(function, args, kwargs):
            self.give_up(f"calls {name}, whose shape depends on values")
            return function(*args, **kwargs)
        self._unless_failed(name, self.check_writes)
        written = writes.last
        with self.paused():
            result = function(*args, **kwargs)
        is_given = any(result is x for x in args) and result is not None
        has_effect = result is None or writes.last != written or (name in DRAWS and not is_given)
        if has_effect or not is_given:
            self.has_effects = self.has_effects or has_effect
            self._add(name, function, args, kwargs, result, not has_effect)
        return result

    def _backward(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a backward pass, record it, and take note of the leaves that have a gradient by it."""
        leaves = [x for x in (*self.reachable.values(), *self.inputs.values()) if isinstance(x, Tensor)]
        without = [x for x in leaves if x._grad is None]
        with self.paused():
            result = function(*args, **kwargs)
        self.has_effects = True
        self._filled |= {id(x): x for x in without if x._grad is not None}
        self._add("backward", function, args, kwargs, None)
        return result

    def gradient(self, tensor: Tensor) -> Tensor | None:
        """Return the gradient of a tensor for a program that reads it."""
        grad = tensor._grad
        if grad is None or id(tensor) not in self._filled:
            self.give_up("reads a gradient that no recorded backward pass has made")
        elif id(grad) not in self.known:
            self._add("grad", getattr, (tensor, "grad"), {}, grad)
        return grad

    def set_gradient(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Set the gradient of a tensor."""
        with self.paused():
            tensor.grad = grad
        self._filled.pop(id(tensor), None)
        self.has_effects = True
        self._add("grad", setattr, (tensor, "grad", grad), {}, None)

    def detached(self, tensor: Tensor, result: Tensor) -> None:
        """Record `tensor.detach()`."""
        if result is not tensor:
            self._add("detach", Tensor.detach, (tensor,), {}, result)

    def _add(
        self,
        name: str,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
        is_pure: bool = False,
    ) -> None:
        """Add the node of a call, and take note of what it returned."""
        if mode.tracer is not self:
            return

        def add() -> None:
            node_args, node_kwargs = self.argument(tuple(args)), {key: self.argument(x) for key, x in kwargs.items()}
            if (modes := _modes()) != self.modes:
                self.modes, self.switches = modes, True
                self.graph.call_function(switch_modes, modes)
            node = self.graph.create_node("call_function", function, node_args, node_kwargs, name)
            if is_pure:
                self.pure.add(node)
            self._take_note(node, result)

        self._unless_failed(name, add)

    def _take_note(self, node: Node, result: Any) -> None:
        if isinstance(result, Tensor):
            if type(result.array) is not np.ndarray:
                raise TraceError("computes on a device that plans do not support")
            if id(result) not in self.known:
                self._know(result, node)
                self.made[node] = result.array, not result._requires_grad and result._base is None
        elif isinstance(result, list | tuple):
            for i, part in enumerate(result):
                taken = self.graph.call_function(operator.getitem, (node, i))
                self.pure |= {taken} if node in self.pure else set()
                self._take_note(taken, part)
        elif result is not None:
            raise TraceError(f"a result of type {type(result).__name__}")

    def _unless_failed(self, name: str, act: Callable[[], Any]) -> None:
        """Do something, and end the recording if that raises TraceError."""
        if mode.tracer is self:
            try:
                act()
            except TraceError as error:
                reason = str(error).partition("\n")[0].removeprefix("export: ").removesuffix(self.place())
                self.give_up(f"calls {name}: {reason}" if name else reason)

    def returned(self, result: Any) -> Any:
        """Return the result of the program as an argument of the output.  Raises: TraceError"""
        if isinstance(result, Size):
            return self.graph.call_function(Size, (tuple(result),))
        if isinstance(result, list | dict) and self.reachable.get(id(result)) is result:
            raise TraceError("returns a container that it does not make")
        if isinstance(result, tuple | list):
            parts = [self.returned(part) for part in result]
            return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
        if type(result) is dict:
            return {key: self.returned(part) for key, part in result.items()}
        if isinstance(result, Tensor) or type(result) in LITERALS:
            return self.argument(result)
        raise TraceError(f"returns a {type(result).__name__}")


def _modes() -> tuple[bool, bool, Any, bool]:
    autocast = None if mode.autocast is None else dict(mode.autocast)
    return mode.recording, mode.inference, autocast, mode.finds_nan


def switch_modes(recording: bool, inference: bool, autocast: Any, finds_nan: bool) -> None:
    """Set whether ops are recorded, and their results may be; what autocast lowers to; whether NaN is looked for."""
    mode.autocast, mode.finds_nan = autocast, finds_nan
    mode.switch(recording, inference)


def _is_mask(x: Any) -> bool:
    return isinstance(x, Tensor) and x.array.dtype in (np.bool_, np.uint8)


def _sizes_by_values(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a tensor among the arguments may decide about the shape of the result."""
    name = function.__name__
    if name == "__getitem__":
        slices = [x for x in (args[1] if isinstance(args[1], tuple) else args[1:]) if isinstance(x, slice)]
        return any(isinstance(x, Tensor) for part in slices for x in (part.start, part.stop, part.step))
    if name == "repeat_interleave":
        return repeats_by_values(args, kwargs)
    if name in FROM_DATA or not hasattr(function, "takes_out"):
        return False
    given: list[Any] = [*(args[:1] if name == "full" else args), *(x for key, x in kwargs.items() if key in _SIZES)]
    flat = [part for x in given for part in (x if isinstance(x, list | tuple) else (x,))]
    return any(isinstance(x, Tensor) and (name in ("arange", "range") or x.array.dtype.kind in "iu") for x in flat)


def _refused(tensor: Tensor) -> Node:
    raise TraceError(f"a tensor of shape {tuple(tensor.array.shape)} that no recorded call made")


# --------------------------------------------------------------------------------------------- methods while recording


@contextmanager
def _reporting_methods() -> Iterator[None]:
    """Let methods report to the recorder in the block. In other threads they do what they always do."""
    with Patcher() as patcher:
        for cls, names in STOPS.items():
            for name in names.split():
                patcher.method(cls, name, _stopping(cls, name))
        for cls, names in PROPERTIES.items():
            for name in names.split():
                before = vars(cls)[name]
                patcher.method(cls, name, property(_stopping_call(name, before.fget), before.fset))
        for name in ("requires_grad", "is_leaf"):
            before = vars(Tensor)[name]
            patcher.method(Tensor, name, property(_touching(before.fget), before.fset))
        patcher.method(Tensor, "__hash__", _hashed)
        patcher.method(Tensor, "__setattr__", _set_attribute)
        for name in WHOLE.split():
            patcher.method(Tensor, name, _as_whole(vars(Tensor)[name]))
        patcher.method(Tensor, "grad", property(*_gradients(vars(Tensor)["grad"])))
        yield


def _stopping(cls: type, name: str) -> Any:
    method = vars(cls)[name]
    if isinstance(method, classmethod):
        return classmethod(_stopping_call(name, method.__func__))
    return _stopping_call(name, method)


def _stopping_call(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if isinstance(recorder := mode.tracer, CallRecorder):
            recorder.give_up(f"calls {name}")
        return function(*args, **kwargs)

    return call


def _touching(getter: Callable[[Tensor], bool]) -> Callable[[Tensor], bool]:
    def get(self: Tensor) -> bool:
        if isinstance(recorder := mode.tracer, CallRecorder):
            recorder.touches(self)
        return getter(self)

    return get


def _hashed(tensor: Tensor) -> int:
    recorder = mode.tracer
    if isinstance(recorder, CallRecorder) and recorder.reachable.get(id(tensor)) is not tensor:
        recorder.give_up("uses a tensor as a key")
    return object.__hash__(tensor)


def _set_attribute(tensor: Tensor, name: str, value: Any) -> None:
    if isinstance(recorder := mode.tracer, CallRecorder) and name not in OF_TENSORS:
        recorder.give_up(f"sets {name} of a tensor")
    object.__setattr__(tensor, name, value)


def _as_whole(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if isinstance(recorder := mode.tracer, CallRecorder):
            return recorder.whole(function, args, kwargs)
        return function(*args, **kwargs)

    return call


def _gradients(grad: property) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the getter and the setter of `Tensor.grad`."""
    getter: Any = grad.fget
    setter: Any = grad.fset

    def read(self: Tensor) -> Any:
        return recorder.gradient(self) if isinstance(recorder := mode.tracer, CallRecorder) else getter(self)

    def write(self: Tensor, value: Any) -> None:
        if isinstance(recorder := mode.tracer, CallRecorder):
            recorder.set_gradient(self, value)
        else:
            setter(self, value)

    return read, write


# A program that holds such a method, as `read = x.item`, would call it unseen.
for _name in (*READS, *_STOPS.split(), *WHOLE.split(), "detach"):
    disable(vars(Tensor)[_name], "would not be seen")
for _cls, _names in STOPS.items():
    if _cls is not Tensor:
        for _name in _names.split():
            disable(vars(_cls)[_name], "would not be seen")
