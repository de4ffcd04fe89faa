"""A plan: a function that repeats a recorded run, with the conditions under which it may."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.size import Size
from tallow.core.tensor import Tensor
from tallow.fx import code
from tallow.fx.compile.chains import fuse
from tallow.fx.compile.guards import OF_TENSORS, Check, Compared, are_equal
from tallow.fx.compile.joint import join
from tallow.fx.compile.recorder import CallRecorder, switch_modes
from tallow.fx.compile.reuse import fold, reuse
from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.tape.modes import mode

NO = object()  # returned by a plan whose conditions do not hold
_numbers = count(1)


class Plan:
    """A recorded run that can be repeated.

    Its source begins with the conditions, and returns NO if one does not hold: modes, arguments, tensors that the
    program reaches, and the guards. Then it calls what the graph calls.

    Attributes:
        run: takes (args, kwargs) of the compiled function; returns its result, or NO.
        source: the source of `run`.
        graph: the recorded graph.
        guards: the conditions of the program's own state.
        has_effects: a run changes what outlives it, so that a failed one cannot be done again.
    """

    def __init__(self, recorder: CallRecorder, checks: list[Check], arguments: list[tuple[str, Any]]) -> None:
        self.graph = recorder.graph
        tensors = {node: x for node, x in recorder.inputs.items() if isinstance(x, Tensor)}
        leaves = {node for node, x in tensors.items() if x._node is None and x._base is None}
        constants = fold(recorder)
        join(self.graph, recorder.calls, leaves)
        fuse(self.graph, recorder.made)
        reuse(recorder)
        self.guards = Compared(checks)
        self.has_effects = recorder.has_effects
        written = _Writer(self.graph).write()
        namespace = written.globals | NAMES | {"compared": self.guards.hold}
        conditions = _Conditions(recorder, arguments, namespace)
        self.source = conditions.source(written, constants)
        self.calls = sum(node.op == "call_function" for node in self.graph.nodes)
        filename = f"<tallow plan {next(_numbers)}>"
        linecache.cache[filename] = len(self.source), None, self.source.splitlines(keepends=True), filename
        weakref.finalize(self, linecache.cache.pop, filename, None)
        made: dict[str, Callable[..., Any]] = {}
        exec(compile(self.source, filename, "exec"), namespace, made)
        self.run = made["run"]


class _Writer(code.Writer):
    """Writes the calls, with each function under a short name, which is quicker to find than a dotted one."""

    def __init__(self, graph: Graph) -> None:
        for node in graph.nodes:
            if node.name in NAMES:
                node.name = graph._names.create_name(node.name)
                node.target = node.name if node.op == "placeholder" else node.target
        super().__init__(graph, "self")
        for name in NAMES:
            self.names.use(name)

    def function(self, function: Any) -> str:
        """Return the name of a function."""
        return self._global(getattr(function, "__name__", type(function).__name__), function)


class _Conditions:
    """Writes the conditions of one plan."""

    def __init__(self, recorder: CallRecorder, arguments: list[tuple[str, Any]], namespace: dict[str, Any]) -> None:
        self.recorder, self.arguments, self.namespace = recorder, arguments, namespace
        self.paths: dict[int, str] = {}  # id of an argument -> where it is passed

    def constant(self, value: Any) -> str:
        """Return the name of an object."""
        name = f"k{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def source(self, written: code.PythonCode, constants: dict[Node, Tensor]) -> str:
        """Return the source of the plan's function."""
        recording, inference, autocast, finds_nan = self.recorder.modes_before
        lowered = "is not None" if autocast is None else f"!= {self.constant(autocast)}"
        dtype = self.constant(dtypes.get_default_dtype())
        refused = [
            f"modes.recording is not {recording} or modes.inference is not {inference} or modes.autocast {lowered}",
            f"modes.finds_nan is not {finds_nan}",
            f"default_dtype() is not {dtype} or default.device != {self.constant(devices.default.device)}",
            *self._of_arguments(),
        ]
        lines = [f"if {condition}: return NO" for condition in refused]
        lines += list(self._of_inputs())
        lines.append("if not compared(): return NO")
        lines += [f"{node.name} = {self.constant(value)}" for node, value in constants.items()]
        body = written.src.splitlines()[1:]
        if self.recorder.switches:
            lowered = "None" if autocast is None else f"dict({self.constant(autocast)})"
            back = f"    switch_modes({recording}, {inference}, {lowered}, {finds_nan})"
            body = ["    try:", *(f"    {line}" for line in body), "    finally:", f"    {back}"]
        return "\n".join(["def run(args, kwargs):", *(f"    {line}" for line in lines), *body, ""])

    def _of_arguments(self) -> Iterator[str]:
        """Yield what refuses arguments: other containers, numbers and strings."""
        for text, value in self.arguments:
            if isinstance(value, Shape):
                yield value.condition(text, self.constant)
            elif isinstance(value, Tensor):
                if id(value) in self.paths:
                    yield f"{text} is not {self.paths[id(value)]}"
                if id(value) in self.recorder.reachable:
                    yield f"{text} is not {self.constant(value)}"
                self.paths.setdefault(id(value), text)
            else:
                known = self.constant(value)
                yield f"{text} is not {known} and not same({text}, {known})"

    def _of_inputs(self) -> Iterator[str]:
        """Yield the lines that load the inputs and check tensors."""
        tensors = (key for key, x in self.recorder.reachable.items() if isinstance(x, Tensor))
        captured = self.constant(frozenset(tensors) - self.paths.keys())
        for node, value in self.recorder.inputs.items():
            yield f"{node.name} = {self.paths.get(id(value)) or self.constant(value)}"
            if isinstance(value, Tensor):
                yield from (f"if {condition}: return NO" for condition in self._of_tensor(node.name, value))
        different = [node.name for node, value in self.recorder.inputs.items() if id(value) in self.paths]
        if different:
            yield f"if {' or '.join(f'id({name}) in {captured}' for name in different)}: return NO"
        if len(different) > 1:
            yield f"if len({{{', '.join(f'id({name})' for name in different)}}}) != {len(different)}: return NO"

    def _of_tensor(self, name: str, tensor: Tensor) -> Iterator[str]:
        """Yield what refuses another tensor in the place of one."""
        array = self.constant(tensor.array) if id(tensor) not in self.paths else ""
        if array:
            yield f"{name}.array is not {array} and not same_layout({name}.array, {array})"
        else:
            dtype, kind = self.constant(tensor.array.dtype), self.constant(type(tensor))
            yield f"type({name}) is not {kind} or type(_a := {name}.array) is not ndarray or _a.dtype != {dtype}"
            yield f"_a.shape != {tensor.array.shape}"
            yield from other_strides("_a", tensor.array)
            yield f"{name}._inference is not {tensor._inference}"
        if self.recorder.finds_attributes:
            yield f"not vars({name}).keys() <= {self.constant(OF_TENSORS | vars(tensor).keys())}"
        attribute = "_requires_grad" if tensor._base is None else "requires_grad"  # a view may have to look it up
        for of in ("_base", "_node"):
            yield f"{name}.{of} is {'not ' if getattr(tensor, of) is None else ''}None"
        yield f"{name}.{attribute} is not {tensor.requires_grad}"


class Shape:
    """The type and the length or the keys of a container among the arguments."""

    def __init__(self, kind: type, keys: Any) -> None:
        self.kind, self.keys = kind, keys

    def condition(self, text: str, constant: Callable[[Any], str]) -> str:
        """Return the condition that an argument is another."""
        if self.kind is dict:
            return f"type({text}) is not dict or tuple({text}) != {constant(self.keys)}"
        return f"type({text}) is not {constant(self.kind)} or len({text}) != {self.keys}"


def flattened(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments with their sources: containers first, as a `Shape`, and then what they hold."""
    stack: list[tuple[str, Any]] = [("kwargs", kwargs), ("args", args)]
    while stack:
        text, value = stack.pop()
        if type(value) is dict:
            yield text, Shape(dict, tuple(value))
            plain = all(type(key) in (str, int, bool, type(None)) for key in value)
            names = [repr(key) if plain else f"(*{text},)[{i}]" for i, key in enumerate(value)]
            stack += [(f"{text}[{name}]", part) for name, part in reversed([*zip(names, value.values(), strict=True)])]
        elif type(value) in (list, tuple, Size):
            yield text, Shape(type(value), len(value))
            stack += [(f"{text}[{i}]", part) for i, part in reversed(list(enumerate(value)))]
        else:
            yield text, value


def are_same(before: list[tuple[str, Any]], now: list[tuple[str, Any]]) -> bool:
    """Return whether two lists of arguments with their sources have the same containers and the same objects."""
    return len(before) == len(now) and all(
        a == b and (x is y or (isinstance(x, Shape) and isinstance(y, Shape) and x.keys == y.keys))
        for (a, x), (b, y) in zip(before, now, strict=True)
    )


def same_layout(a: Any, b: Any) -> bool:
    """Return whether an array can stand for another: the same shape, dtype and strides."""
    return type(a) is np.ndarray and a.shape == b.shape and a.dtype == b.dtype and a.strides == b.strides


def other_strides(name: str, array: Any) -> Iterator[str]:
    """Yield the condition that an array of the same shape has other strides, if there are any that matter.

    Where a dimension has one entry, its stride leads nowhere: a view of the last tokens of a growing text has another
    at each call.
    """
    if array.size and (moving := [i for i, length in enumerate(array.shape) if length > 1]):
        is_whole = len(moving) == array.ndim
        parts = [f"{name}.strides[{i}] != {array.strides[i]}" for i in moving]
        yield f"{name}.strides != {array.strides}" if is_whole else " or ".join(parts)


NAMES: dict[str, Any] = {  # that a plan has, and no node
    "NO": NO, "args": None, "compared": None, "default": devices.default, "default_dtype": dtypes.get_default_dtype,
    "kwargs": None, "modes": mode, "ndarray": np.ndarray, "same": are_equal, "same_layout": same_layout,
    "switch_modes": switch_modes,
}  # fmt: skip
