"""delta_rule; see src/recurrent/delta_rule_f32.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous
from tallow.kernels.bindings.threads import by_rows
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

_delta_rule = function("tl_delta_rule_f32", None, *[POINTER] * 7, *[SIZE] * 4)


def float32_heads(q: Array, k: Array, v: Array, log_decay: Array, beta: Array | None, state: Array) -> bool:
    """float32 arrays that are not empty."""
    return v.size > 0 and all(x is None or x.dtype == FLOAT32 for x in (q, k, v, log_decay, beta, state))


@kernel("delta_rule", BACKEND, accepts=float32_heads)
def delta_rule(q: Array, k: Array, v: Array, log_decay: Array, beta: Array | None, state: Array) -> tuple[Array, Array]:
    """Compute tallow.nn.decayed_attention.delta_rule."""
    batch, heads, t, width = q.shape
    lead, rates = (batch, heads, t), [rate for rate in (log_decay, beta) if rate is not None]
    fits = k.shape == q.shape and v.shape[:3] == lead and all(rate.shape == lead for rate in rates)
    if not fits or state.shape != (batch, heads, width, v.shape[-1]):
        raise ShapeError(f"delta_rule: v {v.shape} and a state {state.shape} do not fit queries {q.shape}")
    y, after = np.empty(v.shape, FLOAT32), np.array(state, FLOAT32, order="C")
    arrays = (y, *map(contiguous, (q, k, v, log_decay)), None if beta is None else contiguous(beta), after)
    work = v.size * width * (2.0 if beta is None else 3.0)
    by_rows(_delta_rule, arrays, batch * heads, work, t, width, v.shape[-1])
    return y, after
