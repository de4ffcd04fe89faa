"""Recurrent layers: the steps of one layer in one direction, all of its sequences at once.

Sequences are packed: the rows of the first step, then those of the second, and so on, `batch_sizes` for each step.
They are sorted by decreasing length, so a step's rows belong to the first sequences; if all have equal length, all
steps have N rows. `reverse` goes from the last step to the first: a shorter sequence then starts later, from its
initial state.

The input's contribution to the gates is one matrix product before the steps, passed in as `gates`; a step multiplies
the state only. σ(x) is computed as (1 + tanh(x / 2)) / 2, so that one tanh over a step's rows serves all gates.

Letters: R rows, N sequences, H hidden features, P features of the state: H, or those that `weight_hr` projects to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels import kernel, run
from tallow.kernels.table import PLANS
from tallow.ops.joining import cat
from tallow.ops.maps import with_value
from tallow.ops.second_order import Derived, Unread
from tallow.ops.table import Result, op

Sizes = tuple[int, ...]
Steps = tuple[tuple[slice, int], ...]

# The gates as tanh(x · scale) · scale + shift: both are ½ for σ, 1 and 0 for tanh.
LSTM_GATES = (0.5, 0.5, 1.0, 0.5)
GRU_GATES = (0.5, 0.5, 1.0)


@lru_cache(PLANS)
def _steps(batch_sizes: Sizes, reverse: bool) -> Steps:
    """Return the rows of each step, and its number of sequences."""
    steps = tuple([(slice(end - n, end), n) for n, end in zip(batch_sizes, accumulate(batch_sizes), strict=True)])
    return steps[::-1] if reverse else steps


def _check(name: str, gates: Array, states: dict[str, Array], weight_hh: Array, batch_sizes: Sizes, count: int) -> None:
    """Raise ShapeError unless the operands of a layer with `count` gates fit each other."""
    if not batch_sizes or min(batch_sizes) < 1 <= max(batch_sizes):
        raise ShapeError(f"{name}: expected sequences of one step at least, got batch sizes {batch_sizes}")
    rows, N = sum(batch_sizes), max(batch_sizes)
    if gates.shape != (rows, weight_hh.shape[0]) or weight_hh.shape[0] % count:
        raise ShapeError(
            f"{name}: gates {tuple(gates.shape)} and weight_hh {tuple(weight_hh.shape)} do not fit {rows} rows of "
            f"{count} gates"
        )
    widths = {"h0": weight_hh.shape[1], "c0": weight_hh.shape[0] // count}
    for key, state in states.items():
        if state.shape != (N, widths[key]):
            raise ShapeError(f"{name}: {key} {tuple(state.shape)} should be {(N, widths[key])}")


def _per_gate(values: tuple[float, ...], like: Array) -> Array:
    """Return one number per gate, as a column that multiplies gates (..., gates, H)."""
    column = array_module(like).empty((len(values), 1), like.dtype)
    for row, value in zip(column, values, strict=True):  # filled on the device: copying them would wait
        row.fill(value)
    return column


@op("", reads_per_operand=False)
def lstm_steps(
    gates: Array,
    h0: Array,
    c0: Array,
    weight_hh: Array,
    weight_hr: Array | None = None,
    batch_sizes: Sizes = (),
    reverse: bool = False,
    recorded: bool = True,
) -> Result:
    """Run the steps of an LSTM.

    i, f, o = σ(...), g = tanh(...) of gates + weight_hh h;  c' = f c + i g,  h' = weight_hr (o tanh c')

    Args:    recorded: False if there will be no backward pass, for which most of the memory is written
    Returns: h of all rows, and the last h and c of each sequence.
    Shapes:  gates (R, 4 H) in the order i, f, g, o; h0 (N, P), c0 (N, H), weight_hh (4 H, P), weight_hr (P, H)
             -> (R, P), (N, P), (N, H)
    Source:  Hochreiter & Schmidhuber 1997; the projection Sak et al. 2014, arXiv:1402.1128
    """
    _check("lstm", gates, {"h0": h0, "c0": c0}, weight_hh, batch_sizes, 4)
    steps = _steps(batch_sizes, reverse)
    y, h, c, *saved = run("lstm", gates, h0, c0, weight_hh, weight_hr, steps, recorded)
    if not recorded:
        return (y, h, c), None
    gates, last_h, last_c, tanh_c = saved

    def backward(g_y: Array, g_h: Array, g_c: Array) -> tuple[object, ...]:
        d_gates, d_h, d_c, d_y = run("lstm_backward", g_y, g_h, g_c, gates, last_c, tanh_c, weight_hh, weight_hr, steps)
        return (
            d_gates,
            d_h,
            d_c,
            lambda: run("matmul", d_gates.T, last_h),
            None if weight_hr is None else lambda: run("matmul", d_y.T, gates[:, 3] * tanh_c),
        )

    return (y, h, c), backward


@lstm_steps.definition(x="gates")
def _(
    *, x: Unread, h0: Unread, c0: Unread, weight_hh: Derived, weight_hr: Derived, gates: Array, last_h: Array,
    last_c: Array, tanh_c: Array, steps: Steps,
) -> tuple[Derived, Derived, Derived]:  # fmt: skip
    ys, N = [], max(n for _, n in steps)
    x = _or_zeros(x, weight_hh, len(gates), len(weight_hh))
    h, c = _or_zeros(h0, weight_hh, N, last_h.shape[1]), _or_zeros(c0, weight_hh, N, last_c.shape[1])
    for rows, n in steps:
        before, cell = with_value.call(h[:n], last_h[rows]), with_value.call(c[:n], last_c[rows])
        sums = (x[rows] + before @ weight_hh.t()).reshape(n, 4, -1)
        slopes = (_of_sigmoid, _of_sigmoid, _of_tanh, _of_sigmoid)
        i, f, g, o = (with_value.call(sums[:, k], gates[rows, k], slope) for k, slope in enumerate(slopes))
        cell = f * cell + i * g
        state = o * with_value.call(cell, tanh_c[rows], _of_tanh)
        ys.append(state if weight_hr is None else state @ weight_hr.t())
        h, c = _first(ys[-1], h), _first(cell, c)
    return _by_rows(ys, steps), h, c


def _or_zeros(x: Unread, like: Derived, *shape: int) -> Derived:
    """Return zeros in place of an operand that is a constant: no element of it is read."""
    return like.new_zeros(shape) if x is None else x


def _first(new: Derived, states: Derived) -> Derived:
    """Return the states with new ones for the first sequences; the others have ended, or not begun."""
    return new if len(new) == len(states) else cat.call([new, states[len(new) :]], 0)


def _by_rows(ys: Sequence[Derived], steps: Steps) -> Derived:
    """Return the results of the steps in the order of their rows."""
    is_reverse = steps[0][0].start > steps[-1][0].start
    return cat.call(ys[::-1] if is_reverse else ys, 0)


def _of_sigmoid(y: Any) -> Any:
    """Return the slope of the sigmoid that is y."""
    return y * (1 - y)


def _of_tanh(y: Any) -> Any:
    return 1 - y * y


def _of_relu(y: Any) -> Any:
    return y > 0


@kernel("lstm", "array")
def lstm_array(
    gates: Array, h0: Array, c0: Array, weight_hh: Array, weight_hr: Array | None, steps: Steps, recorded: bool = True
) -> tuple[Array, ...]:
    """Return the values of `lstm_steps`; if `recorded`, also the gates, the state before each row, and tanh c after it.

    Shapes:  gates (R, 4 H), h0 (N, P), c0 (N, H), weight_hh (4 H, P), weight_hr (P, H)
             -> y (R, P), h (N, P), c (N, H), gates (R, 4, H), last_h (R, P), last_c (R, H), tanh_c (R, H)
    """
    xp = array_module(gates)
    R, H, P = len(gates), weight_hh.shape[0] // 4, weight_hh.shape[1]
    scale = _per_gate(LSTM_GATES, gates)
    shift = 1 - scale  # ½ for σ, 0 for tanh
    weight = (weight_hh.reshape(4, H, P) * scale[..., None]).reshape(4 * H, P)
    gates = gates.reshape(R, 4, H) * scale
    h, c = h0.copy(), c0.copy()
    y, last_h = xp.empty((R, P), gates.dtype), xp.empty((R, P), gates.dtype)
    tanh_c, last_c = xp.empty((R, H), gates.dtype), xp.empty((R, H), gates.dtype)
    for rows, n in steps:
        last_h[rows], last_c[rows] = h[:n], c[:n]
        now = gates[rows]
        now += run("linear", h[:n], weight, None).reshape(n, 4, H)
        xp.tanh(now, out=now)
        now *= scale
        now += shift
        c[:n] *= now[:, 1]
        c[:n] += now[:, 0] * now[:, 2]
        tanh_c[rows] = xp.tanh(c[:n])
        out = now[:, 3] * tanh_c[rows]
        h[:n] = out if weight_hr is None else run("linear", out, weight_hr, None)
        y[rows] = h[:n]
    return (y, h, c, gates, last_h, last_c, tanh_c) if recorded else (y, h, c)


@kernel("lstm_backward", "array")
def lstm_backward_array(
    g_y: Array, g_h: Array, g_c: Array, gates: Array, last_c: Array, tanh_c: Array, weight_hh: Array,
    weight_hr: Array | None, steps: Steps,
) -> tuple[Array, Array, Array, Array | None]:  # fmt: skip
    """Return the gradients of the input gates, h0, c0, and with a projection that of the state at each row.

    Shapes:  g_y (R, P), g_h (N, P), g_c (N, H); the others as from `lstm_array` -> (R, 4 H), (N, P), (N, H), (R, P)
    """
    xp = array_module(gates)
    R, _, H = gates.shape
    i, f, g, o = gates[:, 0], gates[:, 1], gates[:, 2], gates[:, 3]
    by_c = xp.empty_like(gates[:, :3])  # multiplied by the gradient of c they are the gates' gradients
    by_c[:, 0] = i * (1 - i) * g
    by_c[:, 1] = f * (1 - f) * last_c
    by_c[:, 2] = i * (1 - g * g)
    o_by_out = o * (1 - o) * tanh_c
    c_by_out = o * (1 - tanh_c * tanh_c)
    d_gates = xp.empty_like(gates)
    d_state = xp.empty_like(g_y)
    d_h, d_c = g_h.copy(), g_c.copy()
    for rows, n in reversed(steps):
        d_state[rows] = d_out = d_h[:n] + g_y[rows]
        if weight_hr is not None:
            d_out = run("matmul", d_out, weight_hr)
        d_c[:n] += d_out * c_by_out[rows]
        xp.multiply(d_c[:n, None], by_c[rows], out=d_gates[rows, :3])
        xp.multiply(d_out, o_by_out[rows], out=d_gates[rows, 3])
        d_c[:n] *= f[rows]
        d_h[:n] = run("matmul", d_gates[rows].reshape(n, 4 * H), weight_hh)
    return d_gates.reshape(R, 4 * H), d_h, d_c, None if weight_hr is None else d_state


@op("", reads_per_operand=False)
def gru_steps(
    gates: Array,
    h0: Array,
    weight_hh: Array,
    bias_hh: Array | None = None,
    batch_sizes: Sizes = (),
    reverse: bool = False,
    recorded: bool = True,
) -> Result:
    """Run the steps of a GRU.

    With s = weight_hh h + bias_hh:  r, z = σ(gates + s),  n = tanh(gates + r s),  h' = n + z (h - n)

    Args:    recorded: as for `lstm_steps`
    Returns: h of all rows, and the last h of each sequence.
    Shapes:  gates (R, 3 H) in the order r, z, n; h0 (N, H), weight_hh (3 H, H), bias_hh (3 H) -> (R, H), (N, H)
    Source:  Cho et al. 2014, arXiv:1406.1078; the reset after the product as in cuDNN and PyTorch
    """
    _check("gru", gates, {"h0": h0}, weight_hh, batch_sizes, 3)
    steps = _steps(batch_sizes, reverse)
    y, h, *saved = run("gru", gates, h0, weight_hh, bias_hh, steps, recorded)
    if not recorded:
        return (y, h), None
    gates, last_h, s_n = saved
    xp = array_module(gates)
    R, _, H = gates.shape
    has_bias = bias_hh is not None

    def backward(g_y: Array, g_h: Array) -> tuple[object, ...]:
        r, z, new = gates[:, 0], gates[:, 1], gates[:, 2]
        by_h = xp.empty((R, 4, H), gates.dtype)  # times the gradient of h: the gradients of r, z, s_n, n
        by_h[:, 3] = (1 - z) * (1 - new * new)
        by_h[:, 2] = by_h[:, 3] * r
        by_h[:, 1] = (last_h - new) * z * (1 - z)
        by_h[:, 0] = by_h[:, 2] * s_n * (1 - r)
        d = xp.empty_like(by_h)
        d_h = g_h.copy()
        for rows, n in reversed(steps):
            d_h[:n] += g_y[rows]
            xp.multiply(d_h[:n, None], by_h[rows], out=d[rows])
            d_h[:n] *= z[rows]
            d_h[:n] += run("matmul", d[rows, :3].reshape(n, 3 * H), weight_hh)
        d_s = d[:, :3].reshape(R, 3 * H)
        return (
            lambda: xp.concatenate((d[:, :2], d[:, 3:]), axis=1).reshape(R, 3 * H),
            d_h,
            lambda: run("matmul", d_s.T, last_h),
            (lambda: d_s.sum(axis=0)) if has_bias else None,
        )

    return (y, h), backward


@gru_steps.definition(x="gates", unneeded="has_bias R H")
def _(
    *, x: Unread, h0: Unread, weight_hh: Derived, bias_hh: Unread, gates: Array, last_h: Array, s_n: Array, steps: Steps
) -> tuple[Derived, Derived]:
    ys = []
    x = _or_zeros(x, weight_hh, len(gates), len(weight_hh))
    h = _or_zeros(h0, weight_hh, max(n for _, n in steps), last_h.shape[1])
    for rows, n in steps:
        before, own = with_value.call(h[:n], last_h[rows]), x[rows].reshape(n, 3, -1)
        product = before @ weight_hh.t()
        sums = (product if bias_hh is None else product + bias_hh).reshape(n, 3, -1)
        r, z = (with_value.call(own[:, k] + sums[:, k], gates[rows, k], _of_sigmoid) for k in (0, 1))
        of_new = own[:, 2] + r * with_value.call(sums[:, 2], s_n[rows])
        new = with_value.call(of_new, gates[rows, 2], _of_tanh)
        ys.append(new + z * (before - new))
        h = _first(ys[-1], h)
    return _by_rows(ys, steps), h


@kernel("gru", "array")
def gru_array(
    gates: Array, h0: Array, weight_hh: Array, bias_hh: Array | None, steps: Steps, recorded: bool = True
) -> tuple[Array, ...]:
    """Return the values of `gru_steps`; if `recorded`, also the gates, the state before each row, and the s of n.

    Shapes:  gates (R, 3 H), h0 (N, H), weight_hh (3 H, H), bias_hh (3 H)
             -> y (R, H), h (N, H), gates (R, 3, H), last_h (R, H), s_n (R, H)
    """
    xp = array_module(gates)
    R, H = len(gates), weight_hh.shape[1]
    scale = _per_gate(GRU_GATES, gates)
    weight = (weight_hh.reshape(3, H, H) * scale[..., None]).reshape(3 * H, H)
    bias = None if bias_hh is None else (bias_hh.reshape(3, H) * scale).reshape(3 * H)
    gates = gates.reshape(R, 3, H) * scale
    h = h0.copy()
    y, last_h, s_n = (xp.empty((R, H), gates.dtype) for _ in range(3))
    for rows, n in steps:
        last_h[rows] = h[:n]
        s = run("linear", h[:n], weight, bias).reshape(n, 3, H)
        s_n[rows] = s[:, 2]
        sigmoids = gates[rows, :2]
        sigmoids += s[:, :2]
        xp.tanh(sigmoids, out=sigmoids)
        sigmoids *= 0.5
        sigmoids += 0.5
        new = gates[rows, 2]
        new += sigmoids[:, 0] * s[:, 2]
        xp.tanh(new, out=new)
        h[:n] -= new
        h[:n] *= sigmoids[:, 1]
        h[:n] += new
        y[rows] = h[:n]
    return (y, h, gates, last_h, s_n) if recorded else (y, h)


@op("")
def rnn_steps(
    gates: Array,
    h0: Array,
    weight_hh: Array,
    nonlinearity: str = "tanh",
    batch_sizes: Sizes = (),
    reverse: bool = False,
) -> Result:
    """Run the steps of an Elman RNN: h' = tanh(gates + weight_hh h), or relu of it.

    Returns: h of all rows, and the last h of each sequence.
    Shapes:  gates (R, H), h0 (N, H), weight_hh (H, H) -> (R, H), (N, H)
    Source:  Elman 1990, "Finding Structure in Time"
    """
    _check("rnn", gates, {"h0": h0}, weight_hh, batch_sizes, 1)
    xp = array_module(gates)
    steps = _steps(batch_sizes, reverse)
    is_tanh = nonlinearity == "tanh"
    h = h0.copy()
    y, last_h = xp.empty_like(gates), xp.empty_like(gates)
    for rows, n in steps:
        last_h[rows] = h[:n]
        now = run("linear", h[:n], weight_hh, None) + gates[rows]
        h[:n] = xp.tanh(now) if is_tanh else xp.maximum(now, 0)
        y[rows] = h[:n]

    def backward(g_y: Array, g_h: Array) -> tuple[object, ...]:
        slope = 1 - y * y if is_tanh else y > 0
        d = xp.empty_like(gates)
        d_h = g_h.copy()
        for rows, n in reversed(steps):
            xp.multiply(d_h[:n] + g_y[rows], slope[rows], out=d[rows])
            d_h[:n] = run("matmul", d[rows], weight_hh)
        return d, d_h, lambda: run("matmul", d.T, last_h)

    return (y, h), backward


@rnn_steps.definition(x="gates", unneeded="gates")
def _(
    *, x: Unread, h0: Unread, weight_hh: Derived, y: Array, last_h: Array, is_tanh: bool, steps: Steps
) -> tuple[Derived, Derived]:
    ys = []
    x = _or_zeros(x, weight_hh, *y.shape)
    h = _or_zeros(h0, weight_hh, max(n for _, n in steps), y.shape[1])
    for rows, n in steps:
        sums = x[rows] + with_value.call(h[:n], last_h[rows]) @ weight_hh.t()
        ys.append(with_value.call(sums, y[rows], _of_tanh if is_tanh else _of_relu))
        h = _first(ys[-1], h)
    return _by_rows(ys, steps), h
