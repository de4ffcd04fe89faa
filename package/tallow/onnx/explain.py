"""Say what became of the nodes of an ONNX file."""

from __future__ import annotations

from collections import Counter

from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node

WORDS = {
    "scalars": "constants that are numbers in the code",
    "convolution": "batch normalizations folded into convolutions",
    "dynamic": "products of quantized inputs on the kernels for quantized weights, which round by blocks",
    "quantized": "products on the kernels for quantized weights",
    "indexing": "slices at known indices",
    "weights": "weights computed from others",
    "linear": "linear layers",
    "normalization": "layer and RMS normalizations",
    "activations": "activations: gelu, silu, hard-swish, mish",
    "attention": "attentions",
}
OPERATORS = "tallow.onnx.operators."


def explanation(module: GraphModule) -> str:
    """Return lines of text: what the passes recognized, and the operators that are not public functions."""
    nodes = [node for each in module.modules() if isinstance(each, GraphModule) for node in each.graph.nodes]
    calls = [node for node in nodes if node.op in ("call_function", "call_method")]
    whole = Counter(str(node.meta.get("onnx", ("?",))[0]) for node in calls if is_whole(node))
    lines = [f"{len(calls)} calls"]
    lines += [f"  {count} {WORDS[name]}" for name, count in module.meta.get("passes", {}).items() if count]
    if whole:
        lines.append(f"{whole.total()} nodes call an ONNX operator, which decides by shapes or values when it runs:")
        lines += [f"  {count} {name}" for name, count in whole.most_common()]
    return "\n".join(lines)


def is_whole(node: Node) -> bool:
    """Return whether a node calls the function of an ONNX operator, and not a public one."""
    return callable(node.target) and str(getattr(node.target, "__module__", "")).startswith(OPERATORS)
