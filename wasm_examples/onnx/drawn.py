"""The graph of a model as the page draws it: a node for each operator of the file, inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node
from tallow.onnx.loading import OnnxModule
from tallow.onnx.operators.registry import find_operator
from tallow.onnx.protobuf import GraphProto, ModelProto
from tallow.onnx.summary import operator_name

LONGEST = 200  # characters of a line
BUILT = ("Constant", "If", "Loop", "Scan")  # which need no entry in the table of operators


@dataclass
class DrawnNode:
    """An operator, an input or the output.

    Attributes:
        kind: "input", "operator" or "output".
        inputs: the indices of the nodes that it reads.
        members: the nodes of the module's graph that compute it.
        weights: lines with the weights that it reads.
    """

    label: str
    name: str
    kind: str
    inputs: list[int] = field(default_factory=list)
    members: list[Node] = field(default_factory=list)
    weights: list[list[str]] = field(default_factory=list)
    unsupported: bool = False

    def entry(self) -> dict[str, Any]:
        """Return what graph-view.js draws."""
        entry = {"label": self.label, "detail": self.name if self.kind == "operator" else "", "kind": self.kind}
        return {**entry, "inputs": self.inputs, "unsupported": self.unsupported}

    def lines(self) -> list[list[str]]:
        """Return what a click on the node shows: names and texts."""
        lines = [["name", self.name]] if self.name and self.name != self.label else []
        calls = [node.format_node() or "" for node in self.members if node.op.startswith("call")]
        lines += [["runs as", call[:LONGEST]] for call in calls]
        return [*lines, *self.weights]


@dataclass
class Drawing:
    """A graph.

    Attributes:
        nodes: each after those that it reads.
        places: the index of the drawn node that each node of the module's graph belongs to.
    """

    nodes: list[DrawnNode]
    places: dict[Node, int]


def drawing_of(model: OnnxModule) -> Drawing:
    """Return the graph of a module: consecutive nodes that come from one operator of the file are one node."""
    drawing = Drawing([], {})
    last: Any = None
    for node in model.graph.nodes:
        if node.op == "get_attr":
            continue
        origin = node.meta.get("onnx")
        if origin is None or origin != last:
            drawing.nodes.append(_begun(node, origin, model))
        last = origin
        _join(drawing, node, model)
    return drawing


def _begun(node: Node, origin: Any, model: OnnxModule) -> DrawnNode:
    if node.op == "placeholder":
        return DrawnNode(str(node.target), str(node.target), "input")
    if node.op == "output":
        return DrawnNode("output", ", ".join(model.output_names), "output")
    label, name = origin or (getattr(node.target, "__name__", str(node.target)), node.name)
    return DrawnNode(str(label), str(name), "operator")


def _join(drawing: Drawing, node: Node, model: GraphModule) -> None:
    """Add a node of the module's graph to the drawn node that was begun last."""
    index = len(drawing.nodes) - 1
    drawn = drawing.nodes[index]
    drawing.places[node] = index
    drawn.members.append(node)
    for read in node.all_input_nodes:
        if read.op == "get_attr":
            drawn.weights.append(_weight(str(read.target), model))
        elif (place := drawing.places[read]) != index and place not in drawn.inputs:
            drawn.inputs.append(place)


def _weight(path: str, model: GraphModule) -> list[str]:
    value: Any = model
    for part in path.split("."):
        value = getattr(value, part)
    if not hasattr(value, "shape"):
        return ["reads", path]
    dims = " × ".join(map(str, value.shape)) or "scalar"
    return ["weight", f"{path}  {dims} {str(value.dtype).rpartition('.')[2]}"]


def file_drawing(model: ModelProto) -> Drawing:
    """Return the graph of a file that cannot be loaded, with the operators that are missing marked."""
    graph = model.graph or GraphProto()
    opsets = {entry.domain if entry.domain != "ai.onnx" else "": entry.version for entry in model.opset_import}
    weights = {tensor.name for tensor in graph.initializer}
    nodes = [DrawnNode(info.name, info.name, "input") for info in graph.input if info.name not in weights]
    makers = {node.name: i for i, node in enumerate(nodes)}
    functions = {(function.domain, function.name) for function in model.functions}
    for proto in graph.node:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        known = proto.op_type in BUILT or (proto.domain, proto.op_type) in functions
        missing = not known and find_operator(domain, proto.op_type, opsets.get(domain, 1)) is None
        inputs = list(dict.fromkeys(makers[name] for name in proto.input if name in makers))
        name = proto.name or (proto.output[0] if proto.output else "")
        nodes.append(DrawnNode(operator_name(proto), name, "operator", inputs, unsupported=missing))
        makers |= {output: len(nodes) - 1 for output in proto.output if output}
    outputs = [info.name for info in graph.output]
    inputs = list(dict.fromkeys(makers[name] for name in outputs if name in makers))
    nodes.append(DrawnNode("output", ", ".join(outputs), "output", inputs))
    return Drawing(nodes, {})
