"""Rules of recurrent layers: their steps by ops, with the values that the closures have saved."""

from __future__ import annotations

from collections.abc import Sequence

from tallow.autograd.recorded.definitions import activated, defined, unread, with_value
from tallow.autograd.recorded.rules import rule
from tallow.autograd.recorded.saved import Gradients, Saved, connected
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.ops.joining import cat


@rule("lstm_steps")
def _lstm(saved: Saved, g_y: Tensor, g_h: Tensor, g_c: Tensor) -> Gradients:
    gates, last_h, last_c, tanh_c, steps = map(saved.constant, ("gates", "last_h", "last_c", "tanh_c", "steps"))
    weight_hh, weight_hr = saved.operand("weight_hh", 3), saved.constant("weight_hr")
    edges, dtype = saved.node.edges, gates.dtype
    operands = [
        unread(edges[0], dtype, (len(gates), weight_hh.shape[0])),
        unread(edges[1], dtype, g_h.shape),
        unread(edges[2], dtype, g_c.shape),
        weight_hh,
        *([] if weight_hr is None else [connected(weight_hr, edges[4])]),
    ]

    def unrolled(x: Tensor, h: Tensor, c: Tensor, w: Tensor, *projection: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ys = []
        for rows, n in steps:
            before, cell = with_value(last_h[rows], h[:n]), with_value(last_c[rows], c[:n])
            sums = (x[rows] + before @ w.t()).reshape(n, 4, -1)
            i, f, g, o = (
                activated(name, gates[rows, k], sums[:, k])
                for k, name in enumerate(("sigmoid", "sigmoid", "tanh", "sigmoid"))
            )
            cell = f * cell + i * g
            state = o * activated("tanh", tanh_c[rows], cell)
            for weight in projection:
                state = state @ weight.t()
            ys.append(state)
            h, c = _first(state, h), _first(cell, c)
        return _by_rows(ys, steps), h, c

    return defined(unrolled, operands, g_y, g_h, g_c)


@rule("gru_steps")
def _gru(saved: Saved, g_y: Tensor, g_h: Tensor) -> Gradients:
    gates, last_h, s_n, steps = map(saved.constant, ("gates", "last_h", "s_n", "steps"))
    weight_hh, has_bias = saved.operand("weight_hh", 2), saved.constant("has_bias")
    saved.ignore("R", "H")
    edges, dtype = saved.node.edges, gates.dtype
    operands = [
        unread(edges[0], dtype, (len(gates), weight_hh.shape[0])),
        unread(edges[1], dtype, g_h.shape),
        weight_hh,
        *([unread(edges[3], dtype, weight_hh.shape[:1])] if has_bias else []),
    ]

    def unrolled(x: Tensor, h: Tensor, w: Tensor, *bias: Tensor) -> tuple[Tensor, Tensor]:
        ys = []
        for rows, n in steps:
            before, own = with_value(last_h[rows], h[:n]), x[rows].reshape(n, 3, -1)
            sums = sum(bias, before @ w.t()).reshape(n, 3, -1)
            r, z = (activated("sigmoid", gates[rows, k], own[:, k] + sums[:, k]) for k in (0, 1))
            new = activated("tanh", gates[rows, 2], own[:, 2] + r * with_value(s_n[rows], sums[:, 2]))
            ys.append(new + z * (before - new))
            h = _first(ys[-1], h)
        return _by_rows(ys, steps), h

    return defined(unrolled, operands, g_y, g_h)


@rule("rnn_steps")
def _rnn(saved: Saved, g_y: Tensor, g_h: Tensor) -> Gradients:
    y, last_h, steps = map(saved.constant, ("y", "last_h", "steps"))
    activation, weight_hh = "tanh" if saved.constant("is_tanh") else "relu", saved.operand("weight_hh", 2)
    saved.ignore("gates")
    edges = saved.node.edges
    operands = [unread(edges[0], y.dtype, y.shape), unread(edges[1], y.dtype, g_h.shape), weight_hh]

    def unrolled(x: Tensor, h: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        ys = []
        for rows, n in steps:
            ys.append(activated(activation, y[rows], x[rows] + with_value(last_h[rows], h[:n]) @ w.t()))
            h = _first(ys[-1], h)
        return _by_rows(ys, steps), h

    return defined(unrolled, operands, g_y, g_h)


def _first(new: Tensor, states: Tensor) -> Tensor:
    """Return the states with new ones for the first sequences; the others have ended, or not begun."""
    return new if len(new) == len(states) else apply(cat, [new, states[len(new) :]], 0)


def _by_rows(ys: Sequence[Tensor], steps: Sequence[tuple[slice, int]]) -> Tensor:
    """Return the results of the steps in the order of their rows."""
    is_reverse = steps[0][0].start > steps[-1][0].start
    return apply(cat, list(reversed(ys) if is_reverse else ys), 0)
