"""Backward passes that are recorded themselves: gradients of gradients.

The engine runs closures, which compute with arrays. Here its plan is followed with tensors (sweep.py): for each node a
rule (rules.py) computes what the closure computes, by ops, from the variables that the closure has saved (saved.py).
There the saved arrays are connected with the graph again: an operand with the edge of the node, the result with the
node itself. A rule must account for each variable of the closure, so that none is taken for a constant by mistake.
"""

from tallow.autograd.recorded import (
    decompositions,
    elementwise,
    grid_sample,
    layers,
    losses,
    piecewise,
    products,
    rearranging,
    recurrent,
    reductions,
    steps,
    writing,
)
from tallow.autograd.recorded.rules import RULES as RULES
from tallow.autograd.recorded.sweep import run_recorded as run_recorded
