"""Walk the nodes of an ONNX graph, and build the graph of a module from what their operators call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError, TallowError, TraceError, UnsupportedError
from tallow.fx.graph import Graph
from tallow.fx.proxy import Proxy
from tallow.onnx import operators as _operators  # noqa: F401 - fills the table
from tallow.onnx.attributes import attribute_value
from tallow.onnx.operators.registry import Operator, find_operator
from tallow.onnx.protobuf import GraphProto, ModelProto, NodeProto
from tallow.onnx.tensors import ExternalFiles, tensor_of
from tallow.onnx.values import Known, OnnxTracer, Root, Value

NEWEST_OPSET = 28  # of ai.onnx that is known


@dataclass
class Program:
    """What all graphs of a file share.

    Attributes:
        model: the file.
        files: those with external data.
        opsets: domain -> version.
    """

    model: ModelProto
    files: ExternalFiles
    opsets: dict[str, int] = field(default_factory=dict)


def opsets_of(model: ModelProto, name: str) -> dict[str, int]:
    """Return domain -> version of the operators of a file.

    Raises:  UnsupportedError if the operators of ai.onnx are newer than the newest known
    """
    opsets = {entry.domain if entry.domain != "ai.onnx" else "": entry.version for entry in model.opset_import}
    if (version := opsets.get("", 1)) > NEWEST_OPSET:
        raise UnsupportedError(
            f"{name} uses opset {version} of ONNX; the newest supported is {NEWEST_OPSET}",
            hint="export it again with an older opset, or convert it with onnx.version_converter",
        )
    return opsets


class Builder:
    """Builds one graph.

    Args:
        program: the file.
        root: gets the weights.
    """

    def __init__(self, program: Program, root: Root) -> None:
        self.program = program
        self.graph = Graph()
        self.tracer = OnnxTracer(self.graph, root)
        self.values: dict[str, Value] = {"": Known(None)}

    def build(self, proto: GraphProto) -> None:
        """Add the inputs, the nodes and the outputs of a graph.

        Raises:  CheckpointError that names the node for names that are missing or defined twice, and for operands and
                 attributes that an operator lacks
        """
        self._refuse_unsupported(proto.node)
        initialized = {tensor.name for tensor in proto.initializer}
        for info in proto.input:
            if info.name not in initialized:
                self.define(info.name, self.tracer.placeholder(info.name))
        for tensor in proto.initializer:
            value = tensor_of(tensor, self.program.files)
            trains = isinstance(value, Tensor) and value.dtype.is_floating_point and value.ndim > 0
            self.define(tensor.name, Known(value, tensor.name, trains))
        for number, node in enumerate(proto.node):
            self._add(node, _where(node, number))
        results = tuple(self.tracer.of(self.read(info.name, "the graph's output")) for info in proto.output)
        self.graph.output(self.tracer.create_arg(results[0] if len(results) == 1 else results))

    def define(self, name: str, value: Value, where: str = "the graph") -> None:
        """Give a value its name.  Raises: CheckpointError if the name is taken"""
        if not name:
            return
        if name in self.values:
            raise CheckpointError(f"{where}: the name {name!r:.80} is defined twice")
        self.values[name] = value

    def read(self, name: str, where: str) -> Value:
        """Return the value with a name.  Raises: CheckpointError if there is none yet"""
        if name not in self.values:
            raise CheckpointError(
                f"{where}: the value {name!r:.80} is not defined before it",
                hint="an initializer or a node is missing, or the nodes form a cycle or are not sorted",
            )
        return self.values[name]

    # ----------------------------------------------------------------------------------------------------- one node

    def _add(self, node: NodeProto, where: str) -> None:
        operator = self._operator(node)
        assert operator is not None  # `_refuse_unsupported` has listed all that are missing
        operands = [self.read(name, where) for name in node.input]
        attributes = self._attributes(node, operator, where)
        _check_operands(operator, operands, where)
        self.tracer.origin = {"onnx": (node.op_type, node.name or (node.output[0] if node.output else ""))}
        try:
            results = self._results(operator, operands, attributes)
        except TallowError as error:
            raise CheckpointError(f"{where}: {error}") from error
        finally:
            self.tracer.origin = {}
        self._define_outputs(node, results, where)

    def _results(self, operator: Operator, operands: list[Value], attributes: dict[str, Any]) -> Any:
        """Return what an operator gives: the values of functions that it calls on proxies, or of one call of it."""
        arguments = [self._operand(operator, i, value) for i, value in enumerate(operands)]
        if not operator.whole and all(
            not isinstance(argument, Proxy)
            for i, argument in enumerate(arguments)
            if i < len(operator.operands) and operator.operands[i] in operator.ints
        ):
            before = self.graph._root.prev
            try:
                return operator.function(*arguments, **attributes)
            except TraceError:  # it asks for a value or a shape, which is not known before it runs
                self.tracer.forget(before)
                arguments = [self._operand(operator, i, value) for i, value in enumerate(operands)]
        return self.tracer.create_proxy("call_function", operator.function, tuple(arguments), attributes)

    def _operand(self, operator: Operator, number: int, value: Value) -> Any:
        name = operator.operands[number] if number < len(operator.operands) else ""
        if name in operator.ints and isinstance(value, Known):
            known = value.as_ints()
            return self.tracer.of(value) if known is None else known
        return self.tracer.of(value)

    def _define_outputs(self, node: NodeProto, results: Any, where: str) -> None:
        if len(node.output) > 1 and isinstance(results, Proxy):
            results = tuple(results[i] for i in range(len(node.output)))
        elif not isinstance(results, tuple):
            results = (results,)
        if len(results) < len(node.output):
            raise CheckpointError(f"{where} has {len(node.output)} outputs, but the operator {len(results)}")
        for name, result in zip(node.output, results, strict=False):
            self.define(name, result if isinstance(result, Proxy) else Known(result, name), where)

    def _attributes(self, node: NodeProto, operator: Operator, where: str) -> dict[str, Any]:
        """Return the attributes of a node as keyword arguments of its operator."""
        attributes: dict[str, Any] = {}
        for attribute in node.attribute:
            if attribute.name not in operator.attributes:
                raise CheckpointError(f"{where} has the attribute {attribute.name!r:.80}, which the operator lacks")
            if attribute.name in attributes:
                raise CheckpointError(f"{where} has the attribute {attribute.name!r:.80} twice")
            attributes[attribute.name] = attribute_value(attribute, self.program.files, where)
        if missing := operator.required - attributes.keys():
            raise CheckpointError(f"{where} lacks the attribute {', '.join(sorted(missing))}")
        if operator.takes_outputs:
            attributes["outputs"] = len(node.output)
        return attributes

    # ---------------------------------------------------------------------------------------------------- operators

    def _operator(self, node: NodeProto) -> Operator | None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        return find_operator(domain, node.op_type, self.program.opsets.get(domain, 1))

    def _refuse_unsupported(self, nodes: Iterable[NodeProto]) -> None:
        """Raise UnsupportedError that lists all operators of a graph that are missing, with counts."""
        missing = Counter(
            f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            for node in nodes
            if self._operator(node) is None
        )
        if missing:
            listed = ", ".join(f"{name:.80} ({count})" for name, count in missing.most_common())
            raise UnsupportedError(f"the file uses operators that are not supported: {listed}")


def _check_operands(operator: Operator, operands: Sequence[Value], where: str) -> None:
    if len(operands) > len(operator.operands) and not operator.variadic:
        raise CheckpointError(f"{where} has {len(operands)} inputs, but the operator {len(operator.operands)}")


def _where(node: NodeProto, number: int) -> str:
    """Return how errors name a node."""
    name = f" {node.name!r:.80}" if node.name else f" that makes {node.output[0]!r:.80}" if node.output else ""
    return f"node {number}, {node.op_type:.80}{name}"
