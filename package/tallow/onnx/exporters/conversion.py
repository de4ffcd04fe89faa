"""The conversion of an exported program: each node by its exporter."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.errors import UnsupportedError
from tallow.export.program import ExportedProgram
from tallow.export.signature import ConstantArgument, InputKind, InputSpec
from tallow.export.targets import op_target
from tallow.fx.node import Node, map_aggregate
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.paths import PATH
from tallow.onnx.exporters.probe import Known, probe
from tallow.onnx.exporters.registry import EXPORTERS, Exporter, accepted, bound, name_of, op_of
from tallow.ops.table import Op

MOST_PLACES = 6  # in an error, for each function


class Conversion:
    """One export: the graph so far, and the value of each node.

    Attributes:
        g: the builder.
        arguments: the tensors of the example.
        inputs: the arguments that are tensors, in order.
        outputs: the results that are tensors, in order.
    """

    def __init__(
        self, program: ExportedProgram, arguments: list[Any], opset: int, own: dict[Any, Exporter] | None = None
    ) -> None:
        self.program = program
        self.arguments = [x for x in arguments if isinstance(x, Tensor)]
        self.g = Builder(opset)
        self.known: dict[str, Known] = probe(program, arguments)
        self.dims = self._dims()
        self._own = own or {}
        self.inputs: list[Value] = []
        self.outputs: list[Any] = []
        self._specs: dict[str, InputSpec] = {s.arg.name: s for s in program.graph_signature.input_specs}
        self._tensors: dict[int, Value] = {}  # id of an array -> the initializer, which tied parameters share
        self._failures: Counter[str] = Counter()
        self._places: dict[str, list[str]] = {}  # paths of modules, and lines of the program

    def _dims(self) -> dict[tuple[int, int], str]:
        """Return sizes in the first and in the other run -> the name of the Dim that had them."""
        specs = [s for s in self.program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
        tensors = [s.arg.name for s in specs if not isinstance(s.arg, ConstantArgument)]
        found: dict[tuple[int, int], str] = {}
        for name, (_, _, shape) in zip(tensors, self.program._checks, strict=True):
            for place, size in enumerate(shape):
                if isinstance(size, str):
                    found[self.known[name].sizes[0][place]] = size
        return found

    def run(self) -> None:
        """Convert every node.  Raises: UnsupportedError that lists all nodes which cannot be converted"""
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self._add_input(node)
            elif node.op == "call_function":
                self._add_call(node)
        if self._failures:
            lines = [f"{count} x {name}{self._shown(name)}" for name, count in self._failures.most_common()]
            raise UnsupportedError(
                "onnx.export: ONNX has no form for these calls:\n  " + "\n  ".join(lines),
                hint="write an exporter, and pass it in custom_translation_table",
            )
        (results,) = self.program.graph.output_node().args
        self.outputs = [self._value(x) if isinstance(x, Node) else x for x in results]

    def _shown(self, name: str) -> str:
        places = self._places[name]
        rest = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
        return f" ({', '.join(places[:MOST_PLACES])}{rest})" if places else ""

    def _add_input(self, node: Node) -> None:
        spec = self._specs[node.name]
        if spec.kind is not InputKind.USER_INPUT:
            return  # an initializer, once it is used
        if isinstance(spec.arg, ConstantArgument):
            self.g.values[node] = spec.arg.value
            return
        ((dtype, shape),) = self.known[node.name].tensors
        value = Value(self.g.unique(node.name), dtype, tuple(shape))
        self.g.values[node] = value
        self.inputs.append(value)

    def _value(self, node: Node) -> Any:
        """Return the value of a node; constants and parameters become part of the graph when they are asked for."""
        if node not in self.g.values:
            spec = self._specs.get(node.name) if node.op == "placeholder" else None
            if spec is not None:
                self.g.values[node] = self._initializer(spec)
            else:
                self.g.values[node] = map_aggregate(self.known[node.name].value, self._constant)
        return self.g.values[node]

    def _constant(self, x: Any) -> Any:
        return self.g.constant(np.asarray(x.cpu().array), x.dtype) if isinstance(x, Tensor) else x

    def _initializer(self, spec: InputSpec) -> Value:
        tensor = self.program.tensor(str(spec.target)).detach()
        key = id(tensor.array)
        if key not in self._tensors:
            array = np.asarray(tensor.cpu().array)
            self._tensors[key] = self.g.initializer(str(spec.target), array, tensor.dtype)
        return self._tensors[key]

    # -------------------------------------------------------------------------------------------------------- calls

    def _add_call(self, node: Node) -> None:
        known = self.known[node.name]
        if known.value is not None:
            return  # a constant, once it is used
        results = [Value("", dtype, tuple(shape)) for dtype, shape in known.tensors]
        name = name_of(node.target)
        self.g.begin(node, results)
        try:
            made = self._converted(node, name)
        except UnsupportedError as error:
            self._fail(node, f"{name}: {error}" if name in EXPORTERS else name)
            made = tuple(results) if known.is_tuple else next(iter(results), None)
        if isinstance(made, Value) and results and not known.is_tuple:
            made = self._described(made, results[0])
        elif isinstance(made, tuple) and results:
            made = tuple(self._described(x, y) for x, y in zip(made, results, strict=False))
        self.g.values[node] = made

    def _fail(self, node: Node, what: str) -> None:
        self._failures[what] += 1
        places = self._places.setdefault(what, [])
        places += [x for x in (node.meta.get(PATH), node.meta.get("stack_trace")) if x and x not in places]

    def _described(self, made: Value, known: Value) -> Value:
        """Return a result with the dtype and the shape that it has in the program."""
        made = self.g.cast(made, known.dtype)
        if made.shape == known.shape:
            return made
        described = Value(made.name, known.dtype, known.shape, made.array, made.is_constant)
        return described

    def _converted(self, node: Node, name: str) -> Any:
        exporter = self._own.get(node.target) or EXPORTERS.get(name)
        if exporter is None:
            raise UnsupportedError("no exporter")
        args, kwargs = (map_aggregate(x, self._argument) for x in (node.args, node.kwargs))
        arguments = accepted(exporter, node.target, bound(node.target, args, dict(kwargs)))
        op = op_of(node.target)
        if op is not None and op_target(op) is node.target:
            arguments = self._promoted(op, arguments)
        return exporter(self.g, **arguments)

    def _argument(self, x: Any) -> Any:
        return self._value(x) if isinstance(x, Node) else x

    def _promoted(self, op: Op, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with the operands in the dtype that the op computes in; numbers become constants."""
        if op.name == "getitem":
            return arguments
        names = [op.names[i] for i, _ in op.operands if op.names[i] in arguments]
        flat = [x for name in names for x in (arguments[name] if _is_list(arguments[name]) else [arguments[name]])]
        values = [x for x in flat if isinstance(x, Value)]
        common = values[0].dtype if values else self.g.result.dtype
        converts = op.dtypes in ("promote", "divide", "float", "first")
        if values and op.dtypes in ("promote", "divide", "float"):
            common = dtypes.result_type([_stand_in(x) for x in flat])
            if op.dtypes == "float" and common.category < 2:
                common = dtypes.get_default_dtype()

        def convert(x: Any) -> Any:
            if isinstance(x, Value):
                return self.g.cast(x, common) if converts else x
            return self.g.scalar(x, Value("", common)) if isinstance(x, int | float) else x

        converted = {
            name: [convert(x) for x in arguments[name]] if _is_list(arguments[name]) else convert(arguments[name])
            for name in names
        }
        return arguments | converted


def _is_list(x: Any) -> bool:
    return isinstance(x, list | tuple)


def _stand_in(x: Any) -> Any:
    """Return an array of the dtype and the rank that decide the common dtype."""
    if not isinstance(x, Value):
        return x
    return np.empty((0,) if x.ndim else (), x.dtype.storage)
