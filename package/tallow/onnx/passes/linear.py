"""Turn products with a weight into linear layers, whose kernels want the weight as PyTorch stores it.

x @ W + b    becomes    F.linear(x, W transposed, b)
"""

from __future__ import annotations

from tallow.fx.graph import at_path
from tallow.fx.graph_module import GraphModule, _assign_attr
from tallow.fx.node import Node
from tallow.nn import functional as F
from tallow.nn.parameter import Parameter
from tallow.onnx.passes.matching import Bound, Var, arguments, call, is_own, name_of, rewrite, shape_of


def _reads_matrix(value: object) -> bool:
    return isinstance(value, Node) and value.op == "get_attr" and len(shape_of(value) or ()) == 2


x, weight, bias = Var("x"), Var("weight", _reads_matrix), Var("bias")
transposed = call("transpose", weight)
GEMM_TRANSPOSED = call("addmm", bias, x, transposed)
PRODUCT = call("matmul", x, weight)
GEMM = call("addmm", bias, x, weight)


def linear(module: GraphModule) -> int:
    """Replace the products; return how many there were."""
    turning = _Turning()
    return rewrite(module, GEMM_TRANSPOSED, _of_gemm) + sum(
        rewrite(module, pattern, turning) for pattern in (GEMM | PRODUCT + bias, PRODUCT)
    )


def _of_gemm(module: GraphModule, node: Node, found: Bound) -> Node | None:
    return _linear(module, found) if _is_bias(found["bias"], found["weight"], 0) else None


class _Turning:
    """Builds linear layers of products, and transposes each weight once."""

    def __init__(self) -> None:
        self.done: set[str] = set()  # paths of weights

    def __call__(self, module: GraphModule, _node: Node, found: Bound) -> Node | None:
        reader: Node = found["weight"]
        if "bias" in found and not _is_bias(found["bias"], reader):
            return None
        path = str(reader.target)
        if path not in self.done:
            held = at_path(module, path)
            if not is_own(module, held):
                return None
            if not all(_converts(user, reader) for user in reader.users):
                return None
            _assign_attr(Parameter(held.detach().transpose(0, 1).contiguous()), module, path)
            self.done.add(path)
        return _linear(module, found)


def _converts(user: Node, weight: Node) -> bool:
    """Return whether a use of a weight is a product that becomes a linear layer."""
    args = arguments(user)
    if name_of(user) == "matmul":
        return len(args) == 2 and args[1] is weight and args[0] is not weight
    return name_of(user) == "addmm" and len(args) == 3 and args[2] is weight and _is_bias(args[0], weight)


def _linear(module: GraphModule, found: Bound) -> Node:
    return module.graph.call_function(F.linear, (found["x"], found["weight"], found.get("bias")))


def _is_bias(value: Node, weight: Node, dim: int = 1) -> bool:
    """Return whether a node reads a vector with an element for each index of a dim of a weight."""
    sizes = shape_of(weight)
    return value.op == "get_attr" and sizes is not None and shape_of(value) == (sizes[dim],)
