"""ShapeProp: run a graph once and note the shape and dtype of each value."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallow.core.tensor import Tensor
from tallow.fx.interpreter import Interpreter
from tallow.fx.node import Node, map_aggregate
from tallow.ops.memory_format import channels_last, channels_last_3d, contiguous_format

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """Properties of a tensor without its elements."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any  # the first format that it has, or None
    is_quantized: bool
    qparams: dict[str, Any]


def metadata_of(x: Tensor) -> TensorMetadata:
    """Return the properties of a tensor without its elements."""
    formats = (contiguous_format, channels_last, channels_last_3d)
    ranks = {channels_last: 4, channels_last_3d: 5}
    fitting = (f for f in formats if ranks.get(f, x.ndim) == x.ndim and x.is_contiguous(memory_format=f))
    return TensorMetadata(x.shape, x.dtype, x.requires_grad, x.stride(), next(fitting, None), False, {})


class ShapeProp(Interpreter):
    """Runs a graph and stores in `node.meta` what each value is.

    `meta["tensor_meta"]` is a TensorMetadata, in the containers that the value has; `meta["type"]` is its class. A
    value without tensors has no `tensor_meta`.

    Example:
        >>> import tallow as tl
        >>> from tallow.fx.passes.shape_prop import ShapeProp
        >>> traced = tl.fx.symbolic_trace(lambda x: x.reshape(2, 3).sum(0))
        >>> _ = ShapeProp(traced).propagate(tl.zeros(6))
        >>> [(node.name, tuple(node.meta["tensor_meta"].shape)) for node in traced.graph.nodes]
        [('x', (6,)), ('reshape', (2, 3)), ('sum_1', (3,)), ('output', (3,))]
    """

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, and note what it is."""
        value = super().run_node(n)
        found = False

        def note(x: Any) -> Any:
            nonlocal found
            if isinstance(x, Tensor):
                found = True
                return metadata_of(x)
            return x

        meta = map_aggregate(value, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(value)
        return value

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these arguments and return its output."""
        return super().run(*args)
