"""Walk the nodes of an ONNX graph, and build the graph of a module from what their operators call."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError, TallowError, TraceError
from tallow.fx.graph import Graph
from tallow.fx.graph_module import GraphModule
from tallow.fx.proxy import Proxy
from tallow.onnx import operators as _operators  # noqa: F401 - fills the table
from tallow.onnx.attributes import attribute_value, constant_value
from tallow.onnx.dims import Dims, shape_arithmetic
from tallow.onnx.examples import FAILURES
from tallow.onnx.folding import folded
from tallow.onnx.operators.registry import Operator
from tallow.onnx.protobuf import AttributeProto, FunctionProto, GraphProto, NodeProto, ValueInfoProto
from tallow.onnx.scopes import Opsets, Program, is_constant, operator_of
from tallow.onnx.signature import value_info
from tallow.onnx.tensors import NARROW
from tallow.onnx.values import Known, OnnxTracer, Root, Value

PRODUCTS = ("Conv", "Gemm", "MatMul")


class Builder:
    """Builds one graph: that of the file, or one of a node.

    Args:
        program: the file.
        outer: the builder of the graph around, whose values this one may read.
        kind: of the module.

    Attributes:
        root: has the weights and the graphs of nodes.
        narrow: the element types of inputs and initializers that are narrower than a byte.
        captured: values of the graph around that nodes here read; they are the first inputs.
    """

    def __init__(self, program: Program, outer: Builder | None = None, kind: type[GraphModule] = GraphModule) -> None:
        self.program, self.outer, self.kind = program, outer, kind
        self.opsets: Opsets = program.opsets if outer is None else outer.opsets
        self.graph = Graph()
        self.root = Root(kind)
        self.tracer = OnnxTracer(self.graph, self.root, program.examples)
        self.values: ChainMap[str, Value] = ChainMap({"": Known(None)})
        self.captured: dict[str, Proxy] = {}
        self._uses: Counter[str] = Counter()
        self._codes: set[str] = set()  # values of DequantizeLinear that are not computed when the file is loaded
        self._given: Mapping[str, AttributeProto] = {} if outer is None else outer._given  # to the function around
        self.narrow: dict[str, int] = {} if outer is None else dict(outer.narrow)
        self._calls: tuple[str, ...] = () if outer is None else outer._calls  # of functions that are being built

    def build(self, proto: GraphProto) -> None:
        """Add the inputs, the nodes and the outputs of a graph.

        Raises:  CheckpointError that names the node for names that are missing or defined twice, and for operands and
                 attributes that an operator lacks
        """
        for info in inputs_of(proto):
            if info.type is not None and info.type.tensor_type is not None:
                self._note_narrow(info.name, info.type.tensor_type.elem_type)
            example = None if self.outer else self.program.examples.of_input(value_info(info))
            self.define(info.name, self.tracer.placeholder(info.name, example))
        results = [self.operand(value) for value in self._contents(proto)]
        self.graph.output(self.tracer.create_arg(results[0] if len(results) == 1 else tuple(results)))
        self.graph.eliminate_dead_code()

    def module(self, name: str) -> GraphModule:
        """Return the graph as a module."""
        return self.kind(self.root.members, self.graph, name)

    def _contents(self, proto: GraphProto) -> list[Value]:
        """Add the initializers and the nodes of a graph, whose inputs are there; return its outputs."""
        for sparse in proto.sparse_initializer:
            name = sparse.values.name if sparse.values is not None else ""
            raise CheckpointError(f"the initializer {name!r:.80} is a sparse tensor", hint="save it as a dense one")
        self._uses.update(name for node in proto.node for name in node.input)
        self._codes |= _weights_of_codes(proto.node)
        for tensor in proto.initializer:
            value = self.program.tensor(tensor)
            self._note_narrow(tensor.name, tensor.data_type)
            self.define(tensor.name, Known(value, tensor.name, _is_weight(value)))
        for number, node in enumerate(proto.node):
            self._add(node, number)
        return [self.read(info.name, "the output of the graph") for info in proto.output]

    # ------------------------------------------------------------------------------------------------------- values

    def _note_narrow(self, name: str, element_type: int) -> None:
        if element_type in map(int, NARROW):
            self.narrow[name] = element_type

    def define(self, name: str, value: Value, where: str = "the graph") -> None:
        """Give a value its name.  Raises: CheckpointError if the name is taken"""
        if not name:
            return
        if name in self.values.maps[0]:
            raise CheckpointError(f"{where}: the name {name!r:.80} is defined twice")
        self.values[name] = value

    def read(self, name: str, where: str) -> Value:
        """Return the value with a name.  Raises: CheckpointError if there is none yet"""
        found = self.find(name)
        if found is None:
            raise CheckpointError(
                f"{where}: the value {name!r:.80} is not defined before it",
                hint="an initializer or a node is missing, or the nodes form a cycle or are not sorted",
            )
        return found

    def find(self, name: str) -> Value | None:
        """Return the value with a name, here or in the graphs around; or None."""
        if (found := self.values.get(name)) is not None or self.outer is None:
            return found
        found = self.outer.find(name)
        if isinstance(found, Dims):
            found = self.outer.values[name] = self.outer.operand(found)
        if not isinstance(found, Proxy):
            return found
        if name not in self.captured:
            last = next(reversed(self.captured.values())).node if self.captured else self.graph._root
            proxy = self.tracer.placeholder(name, found.node.meta.get("example"))
            last.append(proxy.node)
            self.captured[name] = proxy
        return self.captured[name]

    # ----------------------------------------------------------------------------------------------------- one node

    def _add(self, node: NodeProto, number: int) -> None:
        where = _where(node, number)
        self.program.nodes_left -= 1
        if self.program.nodes_left < 0:
            raise CheckpointError(f"{where}: the functions of the file make too many nodes")
        operands = [self.read(name, where) for name in node.input]
        function = self.program.function(node)
        if function is not None:
            self._define_outputs(node, self._call(function, node, operands, where), where)
            return
        given = self._attribute_protos(node)
        if is_constant(node):
            value = constant_value(given, self.program.files, where)
            name = node.output[0] if node.output else ""
            self._define_outputs(node, [Known(value, name, self.program.constants_train and _is_weight(value))], where)
            return
        operator = operator_of(node, self.opsets)
        assert operator is not None  # `Program.refuse_unsupported` has listed all that are missing
        _check_operands(operator, operands, where)
        for name, value in zip(operator.operands, operands, strict=False):
            if name in operator.states and isinstance(value, Known):
                value.trains = False
        outer_origin = self.tracer.origin
        self.tracer.origin = {"onnx": (node.op_type, node.name or (node.output[0] if node.output else ""))}
        try:
            results = self._run(operator, node, operands, given, where)
        except FAILURES as error:
            if isinstance(error, TallowError) and str(error).startswith("node "):
                raise
            raise CheckpointError(f"{where}: {error}") from error
        finally:
            self.tracer.origin = outer_origin
        self._define_outputs(node, results, where)

    def _run(
        self, operator: Operator, node: NodeProto, operands: list[Value], given: list[AttributeProto], where: str
    ) -> list[Value]:
        """Return the outputs of an operator: known ones, values of functions that it calls, or parts of one call."""
        graphs = {attribute.name: attribute.g for attribute in given if attribute.g is not None}
        if node.op_type == "If" and len(operands) == 1 and isinstance(condition := operands[0], Known):
            chosen = graphs.get("then_branch" if bool(condition.value) else "else_branch")
            if chosen is not None:
                return self._inlined(chosen)
        attributes = self._attributes(node, operator, given, where)
        names = list(node.output)
        if operator.domain == "" and (operator.name == "Shape" or any(isinstance(each, Dims) for each in operands)):
            sizes = shape_arithmetic(operator.name, operands, attributes)
            if sizes is not None:
                return [sizes]
        if not graphs and operator.folds and self._codes.isdisjoint(names):
            uses = [self._uses[name] for name in node.input]
            known = folded(operator, operands, attributes, uses, self.program.elements_left)
            if known is not None:
                self.program.elements_left -= sum(value.numel() for value in known.values if value is not None)
                made_of = next((each.name for each in operands if isinstance(each, Known) and each.trains), None)
                pairs = zip(known.values, names, strict=False)
                return [Known(value, made_of or name, known.trains) for value, name in pairs]
        attributes |= {
            name: self._graph(graph, f"{node.name or node.op_type}.{name}") for name, graph in graphs.items()
        }
        results: Any = self._results(operator, operands, attributes)
        if isinstance(results, Proxy) and (len(names) > 1 or operator.returns_tuple):
            whole: Any = results
            results = [whole[i] for i in range(len(names))]
        elif not isinstance(results, tuple):  # a list is a sequence, one value
            results = [results]
        return [
            value if isinstance(value, Proxy) else Known(value, name)
            for value, name in zip(results, names, strict=False)
        ]

    def _results(self, operator: Operator, operands: list[Value], attributes: dict[str, Any]) -> Any:
        """Return what an operator gives: the values of functions that it calls on proxies, or of one call of it."""
        arguments = [self._operand(operator, i, value) for i, value in enumerate(operands)]
        are_known = all(
            not isinstance(argument, Proxy)
            for name, argument in zip(operator.operands, arguments, strict=False)
            if name in operator.ints
        )
        if not operator.whole and are_known:
            before = self.graph._root.prev
            try:
                return operator.function(*arguments, **attributes)
            except (TraceError, TypeError):  # it asks for a value or a shape, which is not known before it runs
                self.tracer.forget(before)
                arguments = [self._operand(operator, i, value) for i, value in enumerate(operands)]
        return self.tracer.create_proxy("call_function", operator.function, tuple(arguments), attributes)

    def _operand(self, operator: Operator, number: int, value: Value) -> Any:
        name = operator.operands[number] if number < len(operator.operands) else ""
        if name in operator.ints:
            if isinstance(value, Dims):
                return value.as_argument()
            if isinstance(value, Known) and (known := value.as_ints()) is not None:
                return known
        return self.operand(value)

    def operand(self, value: Value) -> Any:
        """Return a value as an operand that is a tensor."""
        return value.as_tensor(self.tracer) if isinstance(value, Dims) else self.tracer.of(value)

    def _define_outputs(self, node: NodeProto, results: Sequence[Value], where: str) -> None:
        if len(results) < len(node.output):
            raise CheckpointError(f"{where} has {len(node.output)} outputs, but the operator {len(results)}")
        for name, result in zip(node.output, results, strict=False):
            self.define(name, result, where)

    # --------------------------------------------------------------------------------------------------- attributes

    def _attribute_protos(self, node: NodeProto) -> list[AttributeProto]:
        """Return the attributes of a node; those of a function's node may stand for those the function was given."""
        found: list[AttributeProto] = []
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                found.append(attribute)
            elif (given := self._given.get(attribute.ref_attr_name)) is not None:
                found.append(_renamed(given, attribute.name))
        return found

    def _attributes(
        self, node: NodeProto, operator: Operator, given: list[AttributeProto], where: str
    ) -> dict[str, Any]:
        """Return the attributes of a node as keyword arguments of its operator, except for graphs."""
        attributes: dict[str, Any] = {}
        seen: set[str] = set()
        for attribute in given:
            if attribute.name not in operator.attributes:
                raise CheckpointError(f"{where} has the attribute {attribute.name!r:.80}, which the operator lacks")
            if attribute.name in seen:
                raise CheckpointError(f"{where} has the attribute {attribute.name!r:.80} twice")
            seen.add(attribute.name)
            if attribute.g is None:
                attributes[attribute.name] = attribute_value(attribute, self.program.files, where)
        if missing := operator.required_attributes - seen:
            raise CheckpointError(f"{where} lacks the attribute {', '.join(sorted(missing))}")
        if operator.takes_outputs:
            attributes["outputs"] = len(node.output)
        if operator.takes_narrow_type:
            attributes["narrow_type"] = self.narrow.get(node.input[-1], 0)
        if operator.takes_max_trips and self.program.max_trips is not None:
            attributes["max_trips"] = self.program.max_trips
        return attributes

    # --------------------------------------------------------------------------------------- graphs within the graph

    def _graph(self, proto: GraphProto, name: str) -> Proxy:
        """Return a graph of a node as a callable: a module, with the values that it reads from this graph bound."""
        inner = Builder(self.program, self)
        inner.build(proto)
        module = inner.module("Graph")
        module.meta["outputs"] = [info.type for info in proto.output]
        called = self.tracer.read(self.root.add(name, module))
        if not inner.captured:
            return called
        outside = [self.operand(self.read(each, name)) for each in inner.captured]
        return self.tracer.create_proxy("call_function", partial, (called, *outside), {}, name="bound")

    def _inlined(self, proto: GraphProto) -> list[Value]:
        """Add the nodes of a branch that is known to be taken to this graph."""
        self.values = self.values.new_child()
        try:
            return self._contents(proto)
        finally:
            self.values = self.values.parents

    def _call(self, function: FunctionProto, node: NodeProto, operands: Sequence[Value], where: str) -> list[Value]:
        """Add the nodes of a function to this graph."""
        if function.name in self._calls:
            raise CheckpointError(f"{where}: the function calls itself")
        if len(operands) > len(function.input):
            raise CheckpointError(f"{where} has {len(operands)} inputs, but the function {len(function.input)}")
        given = {attribute.name: attribute for attribute in function.attribute_proto}
        given |= {attribute.name: attribute for attribute in self._attribute_protos(node)}
        before = self.values, self.opsets, self._given, self._calls, self._uses
        self.values, self.opsets = ChainMap({"": Known(None)}), self.program.opsets_in(function)
        self._given, self._calls = given, (*self._calls, function.name)
        self._uses = Counter(name for each in function.node for name in each.input)
        try:
            for i, name in enumerate(function.input):
                self.define(name, operands[i] if i < len(operands) else Known(None), where)
            for number, each in enumerate(function.node):
                self._add(each, number)
            return [self.read(name, where) for name in function.output]
        finally:
            self.values, self.opsets, self._given, self._calls, self._uses = before


def _is_weight(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype.is_floating_point and value.ndim > 0


def _weights_of_codes(nodes: Sequence[NodeProto]) -> set[str]:
    """Return what DequantizeLinear makes of the weights of products whose input it makes, too: they stay codes."""
    made = {name for node in nodes if node.op_type == "DequantizeLinear" for name in node.output}
    products = [node.input for node in nodes if node.op_type in PRODUCTS and node.input and node.input[0] in made]
    return {name for names in products for name in names[1:] if name in made}


def inputs_of(proto: GraphProto) -> list[ValueInfoProto]:
    """Return the inputs of a graph that no initializer gives a value."""
    initialized = {tensor.name for tensor in proto.initializer}
    return [info for info in proto.input if info.name not in initialized]


def _check_operands(operator: Operator, operands: Sequence[Value], where: str) -> None:
    if len(operands) > len(operator.operands) and not operator.variadic:
        raise CheckpointError(f"{where} has {len(operands)} inputs, but the operator {len(operator.operands)}")
    for i, name in enumerate(operator.operands):
        value = operands[i] if i < len(operands) else Known(None)
        if name in operator.required and isinstance(value, Known) and value.value is None:
            raise CheckpointError(f"{where} lacks the input {name!r}")


def _renamed(attribute: AttributeProto, name: str) -> AttributeProto:
    return AttributeProto(**{each: getattr(attribute, each) for each in AttributeProto.__slots__} | {"name": name})


def _where(node: NodeProto, number: int) -> str:
    """Return how errors name a node."""
    name = f" {node.name!r:.80}" if node.name else f" that makes {node.output[0]!r:.80}" if node.output else ""
    return f"node {number}, {node.op_type:.80}{name}"
