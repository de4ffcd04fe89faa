"""The rule of `autograd.Function`: its backward, recorded."""

from __future__ import annotations

from tallow.autograd.recorded.saved import Gradients, Saved, no_rule
from tallow.core.tensor import Tensor


def of_function(saved: Saved, *gs: Tensor) -> Gradients:
    """Return what the backward of a Function returns, as tensors with a history by the inputs that it has saved."""
    cls, ctx = saved.constant("cls"), saved.constant("ctx")
    saved.ignore("like", "count")
    if getattr(cls.backward, "_is_once", False):
        raise no_rule(saved.node, "it is marked once_differentiable")
    if ctx._saves_results or not ctx._materialize:
        raise no_rule(saved.node, "save inputs only, and let gradients be materialized")
    result = cls.backward(ctx, *gs)
    return result if isinstance(result, tuple) else (result,)
