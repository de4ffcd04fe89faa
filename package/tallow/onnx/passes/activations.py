"""Recognize activations that exporters write as several operators: gelu, its approximation, silu, hard-swish, mish.

Source:  Hendrycks and Gimpel, arXiv:1606.08415; PyTorch's exporter, symbolic_opset9.py
"""

from __future__ import annotations

import math
from typing import Any

from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node
from tallow.nn import functional as F
from tallow.onnx.passes.matching import Bound, Build, Var, call, number, rewrite

x = Var("x")
_half, _one = number(0.5), number(1)
_erf = call("erf", x / number(math.sqrt(2)) | x * number(math.sqrt(0.5))) + _one
_cube = x ** number(3) | x * x * x | x * (x * x)
_tanh = call("tanh", (x + _cube * number(0.044715)) * number(math.sqrt(2 / math.pi))) + _one


def _halved(inner: Any) -> Any:
    """Return x · inner / 2 in the orders in which it is written."""
    return x * inner * _half | x * (inner * _half) | (x * _half) * inner


GELU, TANH_GELU = _halved(_erf), _halved(_tanh)
SILU = x * call("sigmoid", x)
_relu6 = call("clamp", x + number(3), number(0), number(6))
HARD_SIGMOID = _relu6 / number(6) | _relu6 * number(1 / 6)
HARD_SWISH = x * HARD_SIGMOID | (x * _relu6) / number(6) | x * call("hardsigmoid", x)
MISH = x * call("tanh", call("softplus", x))


def _calls(function: Any, **kwargs: Any) -> Build:
    def build(module: GraphModule, _node: Node, found: Bound) -> Node:
        return module.graph.call_function(function, (found["x"],), kwargs)

    return build


def activations(module: GraphModule) -> int:
    """Replace the patterns; return how many there were."""
    return (
        rewrite(module, GELU, _calls(F.gelu))
        + rewrite(module, TANH_GELU, _calls(F.gelu, approximate="tanh"))
        + rewrite(module, SILU, _calls(F.silu))
        + rewrite(module, HARD_SWISH, _calls(F.hardswish))
        + rewrite(module, HARD_SIGMOID, _calls(F.hardsigmoid))
        + rewrite(module, MISH, _calls(F.mish))
    )
