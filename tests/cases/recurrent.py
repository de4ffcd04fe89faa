"""Single steps of recurrent layers. PyTorch has no such op, so its side is written out row by row."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from cases import case, normal
from cases.internal import is_tallow
from tallow.core.apply import apply
from tallow.ops import OPS

EVEN, FALLING = (3, 3, 3), (3, 2, 2, 1)
H, P = 4, 2


def walk(m: Any, gates: Any, states: list[Any], step: Any, batch_sizes: tuple[int, ...], reverse: bool) -> Any:
    """Return all outputs and the final states; `step` takes the rows of one time step and the states of their
    sequences.
    """
    outputs = [None] * len(batch_sizes)
    order = list(enumerate(zip(batch_sizes, accumulate(batch_sizes), strict=True)))
    for t, (n, end) in reversed(order) if reverse else order:
        new = step(gates[end - n : end], *(s[:n] for s in states))
        states = [m.cat([a, s[n:]]) for a, s in zip(new, states, strict=True)]
        outputs[t] = new[0]
    return m.cat(outputs), *states


def lstm(batch_sizes: tuple[int, ...], reverse: bool) -> Any:
    def call(m: Any, gates: Any, h0: Any, c0: Any, w: Any, projection: Any = None) -> Any:
        if is_tallow(m):
            return apply(OPS["lstm_steps"], gates, h0, c0, w, projection, batch_sizes, reverse)

        def step(x: Any, h: Any, c: Any) -> list[Any]:
            i, f, g, o = (x + h @ w.T).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            return [h if projection is None else h @ projection.T, c]

        return walk(m, gates, [h0, c0], step, batch_sizes, reverse)

    return call


def gru(batch_sizes: tuple[int, ...], reverse: bool) -> Any:
    def call(m: Any, gates: Any, h0: Any, w: Any, bias: Any = None) -> Any:
        if is_tallow(m):
            return apply(OPS["gru_steps"], gates, h0, w, bias, batch_sizes, reverse)

        def step(x: Any, h: Any) -> list[Any]:
            s_r, s_z, s_n = m.nn.functional.linear(h, w, bias).chunk(3, 1)
            x_r, x_z, x_n = x.chunk(3, 1)
            z = (x_z + s_z).sigmoid()
            return [(1 - z) * (x_n + (x_r + s_r).sigmoid() * s_n).tanh() + z * h]

        return walk(m, gates, [h0], step, batch_sizes, reverse)

    return call


def rnn(nonlinearity: str, batch_sizes: tuple[int, ...], reverse: bool) -> Any:
    def call(m: Any, gates: Any, h0: Any, w: Any) -> Any:
        if is_tallow(m):
            return apply(OPS["rnn_steps"], gates, h0, w, nonlinearity, batch_sizes, reverse)
        return walk(m, gates, [h0], lambda x, h: [getattr(x + h @ w.T, nonlinearity)()], batch_sizes, reverse)

    return call


for sizes in (EVEN, FALLING):
    R, N = sum(sizes), sizes[0]
    for backwards in (False, True):
        case("lstm_steps", lstm(sizes, backwards), normal(R, 4 * H), normal(N, H), normal(N, H), normal(4 * H, H))
        case("gru_steps", gru(sizes, backwards), normal(R, 3 * H), normal(N, H), normal(3 * H, H), normal(3 * H))
        case("rnn_steps", rnn("tanh", sizes, backwards), normal(R, H), normal(N, H), normal(H, H))
    case(
        "lstm_steps", lstm(sizes, False),
        normal(R, 4 * H), normal(N, P), normal(N, H), normal(4 * H, P), normal(P, H),
    )  # fmt: skip
    case("gru_steps", gru(sizes, False), normal(R, 3 * H), normal(N, H), normal(3 * H, H))
    case("rnn_steps", rnn("relu", sizes, False), normal(R, H), normal(N, H), normal(H, H))
