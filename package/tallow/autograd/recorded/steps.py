"""Slopes that are step functions of the operands: by them a network of ReLUs has second derivatives, which are zero."""

from __future__ import annotations

from tallow.autograd.recorded.rules import RULES
from tallow.autograd.recorded.saved import Gradients, Rule, Saved
from tallow.autograd.second_order import in_steps
from tallow.core.tensor import Tensor

OPS_WITH_STEPS = (
    "linalg_vector_norm",
)  # fmt: skip


def _in_steps(of_op: Rule) -> Rule:
    """Return a rule whose gradients are functions of the operands too, with derivatives of zero."""

    def depending(saved: Saved, *gs: Tensor) -> Gradients:
        edges = saved.node.edges
        return [None if gradient is None else in_steps(gradient, edges) for gradient in of_op(saved, *gs)]

    return depending


for _name in OPS_WITH_STEPS:
    RULES[_name] = _in_steps(RULES[_name])
