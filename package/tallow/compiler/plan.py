"""A plan: one Python function that repeats a recorded run on arrays.

Its source is written from the recording, see `tl.compile(f).explain()`. It begins with the conditions under which the
plan is right, and returns NO if one does not hold. Then come the calls of array functions and closures in the order of
the recording, and at the end gradients and results become tensors again.
"""

from __future__ import annotations

import linecache
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.compiler.fusion import Fused, fuse
from tallow.compiler.guards import Compared, Guards
from tallow.compiler.recording import UNREAD, Line, NodeRecord, OpCall, Recorder, Source, Unknown
from tallow.core.size import Size
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.kernels.library import IN_BROWSER
from tallow.ops.float_warnings import restore_warnings, suppress_warnings
from tallow.tape.graph import Node, Output, edge_to
from tallow.tape.modes import mode

WORTH_RELEASING = 1 << 20  # bytes of all values
LARGEST_BLOCK = (1 << 25) - (1 << 16)  # bytes; glibc adapts its thresholds to blocks of up to 32 MiB, heads included
LOCALS = re.compile(r"\b[bgrv]\d+\b")
NAMES = re.compile(r"\b[agpv]\d+\b")
NO = object()  # returned by a plan whose conditions do not hold
_numbers = count(1)


class Plan:
    """A recorded run that can be repeated.

    Attributes:
        run: takes (args, kwargs) of the compiled function; returns its result, or NO.
        source: the source of `run`.
        first_effect: the line from which a failed run cannot simply be done again.
        calls: the number of array functions that the run called.
        nbytes: the size of all values that the run computed, gradients too; most live for a few lines only.
    """

    def __init__(self, recorder: Recorder, guards: Guards, arguments: list[tuple[str, Any]], result: Any) -> None:
        writer = _Writer(recorder, guards, arguments)
        self.source = writer.source(result)
        self.first_effect = writer.first_effect
        self.guards = writer.compared
        self.calls = sum(isinstance(line, OpCall) for line in recorder.lines)
        self.nbytes = sum(array.nbytes for name, array in recorder.arrays.items() if name[0] not in "ap")
        if self.nbytes >= WORTH_RELEASING:
            keep_freed_memory()
        filename = f"<tallow plan {next(_numbers)}>"
        linecache.cache[filename] = len(self.source), None, self.source.splitlines(keepends=True), filename
        made: dict[str, Callable[..., Any]] = {}
        weakref.finalize(self, linecache.cache.pop, filename, None)
        exec(compile(self.source, filename, "exec"), writer.namespace, made)
        self.run = made["run"]
        self.filename = filename


def keep_freed_memory() -> None:
    """Let glibc keep freed memory of up to 64 MiB for the next run, in place of returning it to the system.

    It adapts: after a large block is freed, smaller ones come from the heap, and the end of the heap is returned only
    beyond twice that size. Without this each run gets its arrays page by page from the system again, which takes a
    sixth of the step of an LSTM. The block is never written, so that it takes no memory.
    """
    if not IN_BROWSER:
        np.empty(LARGEST_BLOCK, np.uint8)


def same_layout(a: Any, b: Array) -> bool:
    """Return whether an array can stand for another: the same shape, dtype and strides."""
    return type(a) is np.ndarray and a.shape == b.shape and a.dtype == b.dtype and a.strides == b.strides


class _Writer:
    """Writes the source of one plan."""

    def __init__(self, recorder: Recorder, guards: Guards, arguments: list[tuple[str, Any]]) -> None:
        self.recorder = recorder
        self.arguments = arguments
        self.compared = Compared(guards.relevant())
        self.first_effect = 0
        self.namespace: dict[str, Any] = {
            "NO": NO, "Node": Node, "Output": Output, "Tensor": Tensor, "compared": self.compared.hold,
            "default_dtype": dtypes.get_default_dtype, "edge_to": edge_to, "modes": mode, "ndarray": np.ndarray,
            "new": object.__new__, "restore_warnings": restore_warnings, "same": same, "same_layout": same_layout,
            "suppress_warnings": suppress_warnings, "wrap": wrap,
        }  # fmt: skip
        self.outputs: dict[int, str] = {}
        self.returned: set[int] = set()  # and what several results are views of
        self.epilogue: list[str] = []
        self.live: dict[int, NodeRecord] = {}

    def constant(self, value: Any) -> str:
        return self.recorder.source(value)

    def source(self, result: Any) -> str:
        """Return the source. Raises: Unknown for a result that cannot be made again."""
        bases = Counter(id(t._base) for t in _tensors(result) if t._base is not None)
        shared = {base for base, views in bases.items() if views > 1}
        self.returned = {id(t) for t in _tensors(result)} | shared
        returned = self._returned(result)
        body = self._body()
        conditions = list(self._conditions())
        gradients = list(self._gradients())
        lines = ["def run(args, kwargs):"]
        lines += [f"    {line}" for line in conditions]
        lines += ["    _token = suppress_warnings()", "    try:"]
        for text, has_effect in self._released(body, [*gradients, *self.epilogue]):
            if has_effect and not self.first_effect:
                self.first_effect = len(lines) + 1
            lines.append(f"        {text}")
        self.first_effect = self.first_effect or len(lines) + 1
        lines += ["        pass", "    finally:", "        restore_warnings(_token)"]
        lines += [f"    {line}" for line in [*gradients, *self.epilogue]]
        lines.append(f"    return {returned}")
        self.namespace.update(self.recorder.constants)
        return "\n".join(lines) + "\n"

    # -------------------------------------------------------------------------------------------------- conditions

    def _conditions(self) -> Any:
        """Yield the lines that return NO unless the plan fits, and that load arrays."""
        r = self.recorder
        autocast = None if mode.autocast is None else r.constant(dict(mode.autocast))
        yield f"if modes.recording is not {mode.recording} or modes.inference is not {mode.inference}: return NO"
        yield f"if modes.autocast {'is not None' if autocast is None else f'!= {autocast}'}: return NO"
        yield f"if default_dtype() is not {r.constant(dtypes.get_default_dtype())}: return NO"
        tensors: list[str] = []
        for text, value in self.arguments:
            if isinstance(value, Tensor):
                yield from self._tensor(r.sources[id(value)], text)
                tensors.append(r.sources[id(value)].tensor)
            elif isinstance(value, Shape):
                yield f"if {value.condition(text, r)}: return NO"
            else:
                yield f"if {text} is not {r.constant(value)} and not same({text}, {r.constant(value)}): return NO"
        if len(tensors) > 1:
            yield f"if len({{{', '.join(f'id({t})' for t in tensors)}}}) != {len(tensors)}: return NO"
        outside = [s for s in r.sources.values() if s.tensor.startswith("P")]
        if outside and tensors:
            known = r.constant(frozenset(id(s.object) for s in outside))
            yield f"if {' or '.join(f'id({t}) in {known}' for t in tensors)}: return NO"
        for source in outside:
            yield f"{source.name} = {source.tensor}.array"
            array = r.constant(source.object.array)
            yield f"if {source.name} is not {array} and not same_layout({source.name}, {array}): return NO"
            yield from self._grad_conditions(source)
        yield "if not compared(): return NO"

    def _tensor(self, source: Source, text: str) -> Any:
        """Yield the conditions of a tensor among the arguments."""
        r, t, a = self.recorder, source.tensor, source.name
        array = source.object.array
        yield f"{t} = {text}"
        yield f"if type({t}) is not {r.call(type(source.object))}: return NO"
        yield f"{a} = {t}.array"
        yield (
            f"if type({a}) is not ndarray or {a}.dtype != {r.constant(array.dtype)} or {a}.shape != {array.shape} "
            f"or {a}.strides != {array.strides}: return NO"
        )
        yield f"if {t}._inference is not {source.object._inference}: return NO"
        yield from self._grad_conditions(source)

    def _grad_conditions(self, source: Source) -> Any:
        tensor, t = source.object, source.tensor
        attribute = "_requires_grad" if tensor._base is None else "requires_grad"  # a view may have to look it up
        yield f"if {t}.{attribute} is not {tensor.requires_grad}: return NO"
        yield f"if {t}._base is {'not ' if tensor._base is None else ''}None: return NO"
        leaf = self.recorder.leaves.get(id(tensor))
        if leaf is not None and leaf.is_changed:
            yield f"if {t}._hooks or {t}._post_hooks or {t}._node is not None: return NO"
        if leaf is not None and leaf.initial is not UNREAD:
            if leaf.initial is None:
                yield f"if {t}._grad is not None: return NO"
            else:
                array = self.recorder.constant(tensor.array)
                yield f"if {t}._grad is None or not same_layout({t}._grad.array, {array}): return NO"
                yield f"{leaf.initial} = {t}._grad.array"

    # -------------------------------------------------------------------------------------------------------- body

    def _body(self) -> list[tuple[str, bool]]:
        """Return the statements, each with whether it has an effect."""
        r = self.recorder
        nodes: dict[int, list[NodeRecord]] = {}
        for record in self.live.values():
            nodes.setdefault(record.line, []).append(record)
        body: list[tuple[str, bool]] = []
        live = {record.closure for record in self.live.values()}
        used = live | {name for line in r.lines if isinstance(line, Line) for name in line.reads}
        closing = " ".join([*self.epilogue, *self._gradients()])
        chains = {first: (last, line) for first, last, line in self._chains(used, closing)}
        i = 0
        while i < len(r.lines):
            body += [(text, False) for record in nodes.get(i, ()) for text in self._node(record)]
            line = r.lines[i]
            if i in chains:
                i, fused = chains[i]
                body.append((fused.text, False))
                continue
            i += 1
            if isinstance(line, Line):
                body.append((line.text, line.has_effect))
            else:
                body += [(text, line.has_effect) for text in self._op_call(line, used)]
        body += [(text, False) for record in nodes.get(len(r.lines), ()) for text in self._node(record)]
        return body

    def _released(self, body: list[tuple[str, bool]], closing: list[str]) -> list[tuple[str, bool]]:
        """Return the statements with those that let go of values and closures, so that no more live than in a run.

        A value is kept for one statement longer than it is needed: the C allocator would return freed memory to the
        system, only to take it again page by page for the next value.
        """
        if sum(array.nbytes for array in self.recorder.arrays.values()) < WORTH_RELEASING:
            return body
        kept = set(LOCALS.findall(" ".join(closing)))
        last: dict[str, int] = {}
        for i, (text, _) in enumerate(body):
            last |= dict.fromkeys(LOCALS.findall(text), i)
        released: dict[int, list[str]] = {}
        for name, i in last.items():
            if name not in kept and name not in self.recorder.constants:
                released.setdefault(i + 1, []).append(name)
        statements = []
        for i, statement in enumerate(body):
            statements.append(statement)
            if i in released:
                statements.append((f"del {', '.join(released[i])}", False))
        return statements

    def _chains(self, used: set[str], closing: str) -> list[tuple[int, int, Fused]]:
        """Return the elementwise chains.

        Args:
            used: the closures that the plan reads.
            closing: the lines after the body.
        """
        r = self.recorder
        readers: dict[str, list[int]] = {}  # name -> indices of the lines that read it
        texts = [line.text if isinstance(line, Line) else " ".join(self._op_call(line, used)) for line in r.lines]
        for i, text in enumerate([*texts, closing]):
            for name in set(NAMES.findall(text)):
                readers.setdefault(name, []).append(i)

        def is_used(name: str, first: int, last: int) -> bool:
            return any(not first <= i < last for i in readers.get(name, ()))

        return fuse(r.lines, r.arrays, is_used, r.constant, used)

    def _op_call(self, line: OpCall, used: set[str]) -> list[str]:
        r = self.recorder
        call = line.general or f"{r.call(line.op.function)}({r.arguments(line.args, line.kwargs)})"
        names = line.outputs
        value = "_values" if line.is_several else names[0]
        closure = line.closure if line.closure in used else "_"
        lines = [f"{value}, {closure} = {call}"]
        if line.is_several and names:
            lines.append(f"{', '.join(names)}, = _values")
        return lines + line.after

    def _node(self, record: NodeRecord) -> list[str]:
        """Return the lines that make a node which outlives the run."""
        r, node, name = self.recorder, record.node, record.name
        if record.is_freed:
            return [f"{name} = Node({node.op_name!r}, None, (), {node.shape}, {r.constant(node.dtype)})"]
        edges = ", ".join(self._edge(edge) for edge in node.edges)
        arguments = f"{node.op_name!r}, {record.closure}, ({edges}{',' if edges else ''}), {node.shape}"
        lines = [f"{name} = Node({arguments}, {r.constant(node.dtype)}, {node.reads_per_operand})"]
        if node.outputs is not None:
            lines.append(f"{name}.outputs = {r.constant(node.outputs)}")
        return lines

    def _edge(self, edge: Any) -> str:
        """Return the source of an edge."""
        if edge is None:
            return "None"
        r = self.recorder
        node = edge.node if isinstance(edge, Output) else edge
        if id(node) in r.nodes:
            name = r.nodes[id(node)].name
            return name if node is edge else f"Output({name}, {edge.index}, {edge.shape}, {r.constant(edge.dtype)})"
        if isinstance(node, Node):
            for source in r.sources.values():
                if source.object._node is edge:
                    return f"edge_to({source.tensor})"
            raise Unknown("a node that no recorded op made")
        if (leaf := r.source_of(edge)) is None:
            raise Unknown("the gradient of a tensor that it has made")
        return leaf.tensor

    def _keep(self, edge: Any) -> None:
        """Let the nodes that can be reached from an edge outlive the run."""
        stack = [edge]
        while stack:
            edge = stack.pop()
            node = edge.node if isinstance(edge, Output) else edge
            if isinstance(node, Node) and id(node) in self.recorder.nodes and id(node) not in self.live:
                self.live[id(node)] = self.recorder.nodes[id(node)]
                stack += [e for e in node.edges if e is not None]

    # ----------------------------------------------------------------------------------------------------- results

    def _gradients(self) -> Any:
        """Yield the lines that set gradients."""
        for key, leaf in self.recorder.leaves.items():
            if leaf.is_changed:
                grad = "None" if leaf.grad is None else f"wrap({leaf.grad})"
                yield f"{self.recorder.sources[key].tensor}._grad = {grad}"

    def _returned(self, result: Any) -> str:
        """Return the source of a result. Raises: Unknown."""
        if isinstance(result, Tensor):
            return self._tensor_result(result)
        if type(result) in (list, tuple):
            parts = ", ".join(self._returned(part) for part in result)
            return f"[{parts}]" if type(result) is list else f"({parts}{',' if len(result) == 1 else ''})"
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return f"{self.recorder.call(type(result))}({', '.join(self._returned(part) for part in result)})"
        if type(result) is dict:
            return f"{{{', '.join(f'{self.constant(key)}: {self._returned(part)}' for key, part in result.items())}}}"
        if isinstance(result, int | float | str | bool | Size | type(None)):
            return self.constant(result)
        raise Unknown(f"returns a {type(result).__name__}")

    def _tensor_result(self, t: Tensor) -> str:
        r = self.recorder
        if id(t) in self.outputs:
            return self.outputs[id(t)]
        if (source := r.source_of(t)) is not None:
            if t._node is not None and id(t._node) in r.nodes:
                raise Unknown("returns an argument that it has written to")
            return source.tensor
        if t._view is not None and t._base is not None and t._base._node is not t._base_node:
            raise Unknown("returns a view of a tensor that it has written to since")
        name = r.name_of(t.array)
        if name is None:
            raise Unknown("returns a tensor that no recorded op made")
        variable = self.outputs[id(t)] = r.fresh("t")
        lines = [f"{variable} = new(Tensor)", f"{variable}.array = {name}"]
        if t._inference:
            lines.append(f"{variable}._inference = True")
        if t._requires_grad:
            if t._node is None:
                raise Unknown("returns a leaf that it has made")
            self._keep(t._node)
            lines += [f"{variable}._node = {self._edge(t._node)}", f"{variable}._requires_grad = True"]
        if t._base is not None and (of := self._base(t._base)) is not None:
            lines += [f"{variable}._base = {of}", f"{variable}._base_node = {of}._node"]
            if t._view is not None:
                lines.append(f"{variable}._view = {self._view(t._view)}")
        if type(t) is not Tensor:
            raise Unknown(f"returns a {type(t).__name__}")
        self.epilogue += lines
        return variable

    def _base(self, base: Tensor) -> str | None:
        """Return the source of the tensor that a result is a view of; None for one that nothing else can reach."""
        if id(base) in self.returned or self.recorder.source_of(base) is not None:
            return self._tensor_result(base)
        for source in self.recorder.sources.values():
            if source.object._base is base:
                return f"{source.tensor}._base"
        return None

    def _view(self, view: Any) -> str:
        """Return the source of the description of a view, which ends in that of an argument. Raises: Unknown."""
        if view is None:
            return "None"
        for source in self.recorder.sources.values():
            if view is source.object._view:
                return f"{source.tensor}._view"
        *own, before = view
        if _has_arrays(own):
            raise Unknown("returns a view that depends on an array")
        function, rest, kwargs, index = map(self.recorder.constant, own)
        return f"({function}, {rest}, {kwargs}, {index}, {self._view(before)})"


def _tensors(result: Any) -> Iterator[Tensor]:
    """Yield the tensors in a result."""
    if isinstance(result, Tensor):
        yield result
    elif isinstance(result, list | tuple | dict):
        for part in result.values() if isinstance(result, dict) else result:
            yield from _tensors(part)


def _has_arrays(fields: Any) -> bool:
    """Return whether the description of a view holds an array."""
    if isinstance(fields, dict):
        return _has_arrays(tuple(fields.values()))
    is_sequence = isinstance(fields, list | tuple)
    return any(map(_has_arrays, fields)) if is_sequence else isinstance(fields, np.ndarray | Tensor)


class Shape:
    """The type and the length of a container among the arguments."""

    def __init__(self, kind: type, keys: Any) -> None:
        self.kind, self.keys = kind, keys

    def condition(self, text: str, recorder: Recorder) -> str:
        """Return the condition that an argument is another."""
        if self.kind is dict:
            return f"type({text}) is not dict or tuple({text}) != {recorder.source(self.keys)}"
        return f"type({text}) is not {recorder.call(self.kind)} or len({text}) != {self.keys}"


def same(a: Any, b: Any) -> bool:
    """Return whether two arguments are equal numbers or strings of one type."""
    return type(a) is type(b) and isinstance(a, int | float | str | bytes) and a == b
