"""Facts that all graphs of an ONNX file share: opsets, functions, external files, and which operators are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError, UnsupportedError
from tallow.onnx.examples import Examples
from tallow.onnx.operators.registry import Operator, find_operator
from tallow.onnx.protobuf import FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto
from tallow.onnx.tensors import ExternalFiles, Strings, tensor_of

NEWEST_OPSET = 28  # of ai.onnx that is known
CONSTANT = "Constant"  # which the builder reads itself
FEWEST_NODES = 1 << 16  # that a file may grow to by its functions, however small it is
FEWEST_ELEMENTS = 1 << 20  # that are computed when a file is loaded, however small it is
ELEMENTS_FOR_EACH = 8  # that are computed for each element of the file

FunctionKey = tuple[str, str, str]
Opsets = Mapping[str, int]


@dataclass
class Program:
    """A file.

    Attributes:
        max_trips: the most iterations of a Loop.
        opsets: domain -> version, for the graph; functions have their own.
        examples: of the values of nodes, which tell dtypes and numbers of dims.
        constants_train: whether nodes Constant hold the weights: some exporters write no initializers.
        nodes_left: how many nodes may still be built; functions that call functions grow beyond any bound.
        elements_left: how many elements may still be computed; values that are joined with themselves do so too.
    """

    model: ModelProto
    files: ExternalFiles
    name: str
    max_trips: int | None = None
    opsets: Opsets = field(init=False)
    functions: dict[FunctionKey, FunctionProto] = field(init=False)
    constants_train: bool = field(init=False)
    nodes_left: int = field(init=False)
    elements_left: int = field(init=False, default=FEWEST_ELEMENTS)
    examples: Examples = field(default_factory=Examples)

    def __post_init__(self) -> None:
        self.opsets = self._opsets(self.model.opset_import)
        self.functions = {}
        for function in self.model.functions:
            key = _domain(function.domain), function.name, function.overload
            if key in self.functions:
                raise CheckpointError(f"{self.name}: the function {function.name!r:.80} is defined twice")
            self.functions[key] = function
        graph = self.model.graph
        self.constants_train = graph is not None and not any(tensor.dims for tensor in graph.initializer)
        count = sum(len(function.node) for function in self.model.functions) + (len(graph.node) if graph else 0)
        self.nodes_left = max(FEWEST_NODES, 16 * count)

    def tensor(self, proto: TensorProto) -> Tensor | Strings:
        """Return an initializer.  Raises: as `tensor_of`"""
        value = tensor_of(proto, self.files)
        self.elements_left += ELEMENTS_FOR_EACH * prod(value.shape)
        return value

    def _opsets(self, imports: Sequence[OperatorSetIdProto]) -> Opsets:
        """Return domain -> version.  Raises: UnsupportedError for operators of ai.onnx that are newer than known"""
        opsets = {_domain(entry.domain): entry.version for entry in imports}
        if (version := opsets.get("", 1)) > NEWEST_OPSET:
            raise UnsupportedError(
                f"{self.name} uses opset {version} of ONNX; the newest supported is {NEWEST_OPSET}",
                hint="export it again with an older opset, or convert it with onnx.version_converter",
            )
        return opsets

    def opsets_in(self, function: FunctionProto) -> Opsets:
        """Return the opsets of a function's nodes."""
        return {**self.opsets, **self._opsets(function.opset_import)}

    def function(self, node: NodeProto) -> FunctionProto | None:
        """Return the function of the file that a node calls, or None."""
        return self.functions.get((_domain(node.domain), node.op_type, node.overload))

    def unsupported(self) -> Counter[str]:
        """Return the operators that are missing, with counts."""
        missing: Counter[str] = Counter()
        assert self.model.graph is not None
        seen: set[int] = set()
        left: list[tuple[Iterable[NodeProto], Opsets]] = [(self.model.graph.node, self.opsets)]
        while left:
            nodes, opsets = left.pop()
            for node in nodes:
                left += [(attribute.g.node, opsets) for attribute in node.attribute if attribute.g is not None]
                if (function := self.function(node)) is not None:
                    if id(function) not in seen:
                        seen.add(id(function))
                        left.append((function.node, self.opsets_in(function)))
                elif not is_constant(node) and operator_of(node, opsets) is None:
                    missing[_shown(node)] += 1
        return missing

    def refuse_unsupported(self) -> None:
        """Raise UnsupportedError that lists all operators that are missing, with counts."""
        if missing := self.unsupported():
            listed = ", ".join(f"{name} ({count})" for name, count in missing.most_common())
            raise UnsupportedError(f"{self.name} uses operators that are not supported: {listed:.2000}")


def operator_of(node: NodeProto, opsets: Opsets) -> Operator | None:
    """Return the operator of a node, or None."""
    domain = _domain(node.domain)
    return find_operator(domain, node.op_type, opsets.get(domain, 1))


def is_constant(node: NodeProto) -> bool:
    """Return whether a node is a Constant, which the builder makes itself."""
    return node.op_type == CONSTANT and not _domain(node.domain)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _shown(node: NodeProto) -> str:
    return f"{node.domain}.{node.op_type}"[:80] if node.domain else node.op_type[:80]
