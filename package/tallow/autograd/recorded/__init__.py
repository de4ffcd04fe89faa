"""Backward passes that are recorded themselves: gradients of gradients.

The engine runs closures, which compute with arrays. Here its plan is followed with tensors (sweep.py): for each node a
rule (rules.py) computes what the closure computes, by ops, from the variables that the closure has saved (saved.py).
There the saved arrays are connected with the graph again: an operand with the edge of the node, the result with the
node itself. A rule must account for each variable of the closure, so that none is taken for a constant by mistake.
"""

from tallow.autograd.recorded import decompositions as decompositions
from tallow.autograd.recorded import elementwise as elementwise
from tallow.autograd.recorded import grid_sample as grid_sample
from tallow.autograd.recorded import layers as layers
from tallow.autograd.recorded import losses as losses
from tallow.autograd.recorded import piecewise as piecewise
from tallow.autograd.recorded import products as products
from tallow.autograd.recorded import rearranging as rearranging
from tallow.autograd.recorded import recurrent as recurrent
from tallow.autograd.recorded import reductions as reductions
from tallow.autograd.recorded import steps as steps
from tallow.autograd.recorded import writing as writing
from tallow.autograd.recorded.rules import RULES as RULES
from tallow.autograd.recorded.sweep import run_recorded as run_recorded
