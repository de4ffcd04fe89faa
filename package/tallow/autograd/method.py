"""The method `Tensor.backward`."""

from __future__ import annotations

from typing import Any

from tallow.autograd import api
from tallow.core.public_api import public
from tallow.core.tensor import Tensor


@public("Tensor")
def backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> api.GradStore:
    """Add gradients to `.grad` of the leaves this tensor depends on; see `tallow.autograd.backward`."""
    return api.backward(self, gradient, retain_graph, create_graph, inputs)
