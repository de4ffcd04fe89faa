"""lstm, lstm_backward, gru; see src/recurrent/lstm_f32.c and src/recurrent/gru_f32.c."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous
from tallow.kernels.bindings.threads import by_steps
from tallow.kernels.library import BACKEND, POINTER, SIZE, CFunction, function
from tallow.kernels.table import PLANS, kernel

Steps = Sequence[tuple[slice, int]]

_lstm = function("tl_lstm_f32", None, *[POINTER] * 11, *[SIZE] * 4, POINTER)
_lstm_backward = function("tl_lstm_backward_f32", None, *[POINTER] * 10, *[SIZE] * 4, POINTER)
_lstm_scratch = function("tl_lstm_scratch", SIZE, SIZE, SIZE)
_gru = function("tl_gru_f32", None, *[POINTER] * 10, *[SIZE] * 4, POINTER)
_gru_scratch = function("tl_gru_scratch", SIZE, SIZE, SIZE)


def float32_lstm(
    gates: Array, h0: Array, c0: Array, weight_hh: Array, weight_hr: Array | None, steps: Steps, recorded: bool = True
) -> bool:
    """float32 arrays of one row at least, and no projection of the state."""
    return weight_hr is None and len(gates) > 0 and all(x.dtype == FLOAT32 for x in (gates, h0, c0, weight_hh))


def float32_lstm_backward(
    g_y: Array, g_h: Array, g_c: Array, gates: Array, last_c: Array, tanh_c: Array, weight_hh: Array,
    weight_hr: Array | None, steps: Steps,
) -> bool:  # fmt: skip
    """float32 arrays of one row at least, and no projection of the state."""
    arrays = (g_y, g_h, g_c, gates, last_c, tanh_c, weight_hh)
    return weight_hr is None and len(gates) > 0 and all(x.dtype == FLOAT32 for x in arrays)


def float32_gru(
    gates: Array, h0: Array, weight_hh: Array, bias_hh: Array | None, steps: Steps, recorded: bool = True
) -> bool:
    """float32 arrays of one row at least."""
    return len(gates) > 0 and all(x is None or x.dtype == FLOAT32 for x in (gates, h0, weight_hh, bias_hh))


@lru_cache(PLANS)
def _layout(steps: tuple[tuple[int, int, int], ...]) -> tuple[int, int, Array, Array]:
    """Return the numbers of rows and sequences, and the first row and the number of rows of each step, for C.

    Args:   steps: first row, row after the last one, and number of rows
    Raises: ShapeError for a step that has no rows, or others than those
    """
    starts, _, counts = zip(*steps, strict=True)
    rows = sum(counts)
    if not all(0 <= start < stop <= rows and stop - start == n for start, stop, n in steps):
        raise ShapeError(f"steps {steps} of a recurrent layer do not fit {rows} rows")
    return rows, max(counts), np.array(starts, np.uintp), np.array(counts, np.uintp)


class _Call:
    """The steps of one layer for C, after checking that all sizes fit them."""

    def __init__(
        self, gate_count: int, gates: Array, weight_hh: Array, steps: Steps, by_row: list[Array],
        by_sequence: list[Array],
    ) -> None:  # fmt: skip
        layout = _layout(tuple([(rows.start, rows.stop, n) for rows, n in steps]))
        self.rows, self.sequences, self.starts, self.counts = layout
        self.n = weight_hh.shape[1]
        width = gate_count * self.n
        fit = (
            weight_hh.shape == (width, self.n)
            and gates.size == self.rows * width
            and all(x.shape == (self.rows, self.n) for x in by_row)
            and all(x.shape == (self.sequences, self.n) for x in by_sequence)
        )
        if not fit:
            raise ShapeError(
                f"gates {gates.shape} and weight {weight_hh.shape} of a recurrent layer do not fit {self.rows} rows"
            )
        self.steps, self.work = len(steps), float(self.rows * width * self.n)

    def run(self, function: CFunction, scratch: CFunction, *arrays: Array | None) -> None:
        """Call a C function for parts of the sequences."""
        if not self.n:
            return
        shared = (*arrays, self.starts, self.counts, self.steps)
        i = len(shared)
        by_steps(
            function, (*shared, 0, self.sequences, self.n), self.work, self.sequences, (i, 1, 0), (i + 1, 0, -1),
            scratch=scratch(self.sequences, self.n),
        )  # fmt: skip

    def empty(self, *shape: int) -> Array:
        """Return an array of some numbers for each row."""
        return np.empty((self.rows, *shape), FLOAT32)


@kernel("lstm", BACKEND, accepts=float32_lstm)
def lstm(
    gates: Array, h0: Array, c0: Array, weight_hh: Array, weight_hr: Array | None, steps: Steps, recorded: bool = True
) -> tuple[Array, ...]:
    """Compute tallow.ops.recurrent.lstm_array."""
    call = _Call(4, gates, weight_hh, steps, [], [h0, c0])
    h, c = np.array(h0, FLOAT32, order="C"), np.array(c0, FLOAT32, order="C")
    y, n = call.empty(call.n), call.n
    saved = (call.empty(4, n), call.empty(n), call.empty(n), call.empty(n)) if recorded else ()
    active, last_h, last_c, tanh_c = saved or (None,) * 4
    arrays = active, contiguous(gates), y, last_h, last_c, tanh_c, h, c, contiguous(weight_hh)
    call.run(_lstm, _lstm_scratch, *arrays)
    return y, h, c, *saved


@kernel("lstm_backward", BACKEND, accepts=float32_lstm_backward)
def lstm_backward(
    g_y: Array, g_h: Array, g_c: Array, gates: Array, last_c: Array, tanh_c: Array, weight_hh: Array,
    weight_hr: Array | None, steps: Steps,
) -> tuple[Array, Array, Array, None]:  # fmt: skip
    """Compute tallow.ops.recurrent.lstm_backward_array."""
    call = _Call(4, gates, weight_hh, steps, [g_y, last_c, tanh_c], [g_h, g_c])
    d_gates = call.empty(4 * call.n)
    d_h, d_c = np.array(g_h, FLOAT32, order="C"), np.array(g_c, FLOAT32, order="C")
    read = [contiguous(x) for x in (g_y, gates, last_c, tanh_c, weight_hh)]
    call.run(_lstm_backward, _lstm_scratch, d_gates, d_h, d_c, *read)
    return d_gates, d_h, d_c, None


@kernel("gru", BACKEND, accepts=float32_gru)
def gru(
    gates: Array, h0: Array, weight_hh: Array, bias_hh: Array | None, steps: Steps, recorded: bool = True
) -> tuple[Array, ...]:
    """Compute tallow.ops.recurrent.gru_array."""
    call = _Call(3, gates, weight_hh, steps, [], [h0])
    if bias_hh is not None and bias_hh.shape != weight_hh.shape[:1]:
        raise ShapeError(f"gru: a bias of shape {bias_hh.shape} does not fit the weight {weight_hh.shape}")
    h, n = np.array(h0, FLOAT32, order="C"), call.n
    y, saved = call.empty(n), (call.empty(3, n), call.empty(n), call.empty(n)) if recorded else ()
    active, last_h, s_n = saved or (None,) * 3
    weight, bias = contiguous(weight_hh), None if bias_hh is None else contiguous(bias_hh)
    call.run(_gru, _gru_scratch, active, contiguous(gates), y, last_h, s_n, h, weight, bias)
    return y, h, *saved
