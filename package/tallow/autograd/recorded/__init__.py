"""Backward passes that are recorded themselves: gradients of gradients.

Here are the rules of the ops that have none under them yet (tallow.ops.second_order), for tallow.autograd.second_order.
They read the variables of closures by name (saved.py).
"""

from collections.abc import Sequence
from typing import Any

from tallow.autograd.recorded.rules import RULES as RULES
from tallow.autograd.recorded.saved import Gradients, Saved
from tallow.autograd.second_order import OTHERS, NodeRule
from tallow.autograd.second_order import run_derived as run_derived
from tallow.autograd.variables import no_rule
from tallow.ops.table import OPS
from tallow.tape.graph import Node, check_saved


def _find(node: Node) -> NodeRule | None:
    saved, op = Saved(node), OPS.get(node.op_name.removesuffix("_"))
    rule = RULES.get(node.op_name.removesuffix("_"))
    if rule is None or (op is not None and op.rule is not None):
        return None

    def gradients(node: Node, gs: Sequence[Any]) -> Gradients:
        found = rule(saved, *gs)
        if unused := saved.unused():
            raise no_rule(node, f"the rule does not know {', '.join(unused)}")
        check_saved(node, saved.unread())
        return found

    return gradients


OTHERS.append(_find)
