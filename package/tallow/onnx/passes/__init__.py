"""Clean-up of the graph of a loaded file, one pass per file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tallow.fx.graph import at_path
from tallow.fx.graph_module import GraphModule
from tallow.nn.module import Module
from tallow.onnx.passes.activations import activations
from tallow.onnx.passes.attention import attention
from tallow.onnx.passes.convolution import convolution
from tallow.onnx.passes.indexing import indexing
from tallow.onnx.passes.linear import linear
from tallow.onnx.passes.matching import SHARED
from tallow.onnx.passes.normalization import normalization
from tallow.onnx.passes.quantized import dynamic, quantized
from tallow.onnx.passes.scalars import scalars
from tallow.onnx.passes.weights import weights

# In the order in which they run: later ones match what earlier ones make.
PASSES: tuple[Callable[[GraphModule], int], ...] = (
    quantized,
    scalars,
    indexing,
    convolution,
    weights,
    linear,
    normalization,
    activations,
    attention,
)


def clean(module: GraphModule, approximate: bool = False) -> dict[str, int]:
    """Run the passes over a graph and the graphs of its nodes.

    Args:     approximate: also those that change how quantized products round
    Returns:  name of a pass -> what it changed
    """
    passes = (dynamic, *PASSES) if approximate else PASSES
    counts: dict[str, int] = {}
    graphs = [each for each in module.modules() if isinstance(each, GraphModule)]
    readers = Counter(id(tensor) for each in graphs for tensor in _read_by(each))
    for each in graphs:
        each.meta[SHARED] = {tensor for tensor, count in readers.items() if count > 1}
        for run in passes:
            counts[run.__name__] = counts.get(run.__name__, 0) + run(each)
        del each.meta[SHARED]
        _drop_unused(each)
        each.recompile()
    return counts


def _read_by(module: GraphModule) -> list[object]:
    """Return what the nodes of a graph read."""
    paths = {str(node.target) for node in module.graph.nodes if node.op == "get_attr"}
    return [at_path(module, path) for path in paths]


def _drop_unused(module: GraphModule) -> None:
    """Remove the tensors that no node reads any more."""
    used = {str(node.target) for node in module.graph.nodes if node.op in ("get_attr", "call_module")}
    graphs = tuple(f"{path}." for path in used if isinstance(at_path(module, path), Module))
    for path, _ in [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]:
        if path not in used and not path.startswith(graphs):
            owner, _, name = path.rpartition(".")
            delattr(module.get_submodule(owner), name)
    module.delete_all_unused_submodules()
