"""The steps that make the quick form of a graph, one per file; see `tallow.onnx.inference`.

A step changes a copy of the graph. It may bind what it makes of the values of tensors, as it notes them.
"""

from __future__ import annotations

from collections.abc import Callable

from tallow.fx.graph import Graph
from tallow.onnx.quick.choices import choices
from tallow.onnx.quick.codes import codes
from tallow.onnx.quick.constants import Constants as Constants
from tallow.onnx.quick.folding import folding
from tallow.onnx.quick.images import images
from tallow.onnx.quick.integers import integers
from tallow.onnx.quick.pads import pads
from tallow.onnx.quick.recurrence import recurrence

# In the order in which they run.
QUICK: tuple[Callable[[Graph, Constants], None], ...] = (pads, codes, folding, choices, images, integers, recurrence)
