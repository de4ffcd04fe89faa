"""The selective scan of Mamba: a state for each channel, with decays that depend on the input.

Letters: B batch, T positions, C channels, N elements of a channel's state.

Where nothing is recorded, the table of kernels computes it; its array implementation is what else ops compute.

Source:  Gu & Dao 2023, arXiv:2312.00752, algorithm 2
"""

from __future__ import annotations

from tallow.core.apply import apply
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import UnsupportedError
from tallow.kernels.table import ARRAY, kernel, run
from tallow.ops.joining import stack
from tallow.tape.modes import computes_values_only, is_exporting, no_grad

CHUNK = 64  # positions whose decays are computed at once


def selective_scan(
    x_BTC: Tensor, step_BTC: Tensor, a_CN: Tensor, b_BTN: Tensor, c_BTN: Tensor, state_BCN: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the outputs (B, T, C) and the state after the last position.

    h ← exp(step a) h + step x b;  output = h c

    Args:
        step_BTC: the sizes of steps, positive.
        a_CN: rates of decay, negative.

    Raises:  UnsupportedError in `tl.export`
    """
    operands = x_BTC, step_BTC, a_CN, b_BTN, c_BTN, state_BCN
    if not computes_values_only():
        return _step_by_step(*operands)
    y_BTC, state = run("selective_scan", *[each.array for each in operands])
    return wrap(y_BTC), wrap(state)


@kernel("selective_scan", ARRAY)
def selective_scan_array(
    x_BTC: Array, step_BTC: Array, a_CN: Array, b_BTN: Array, c_BTN: Array, state_BCN: Array
) -> tuple[Array, Array]:
    """Compute `selective_scan` of arrays; the state is not changed."""
    with no_grad():
        y, state = _step_by_step(*map(wrap, (x_BTC, step_BTC, a_CN, b_BTN, c_BTN, state_BCN)))
    return y.array, state.array


def _step_by_step(
    x_BTC: Tensor, step_BTC: Tensor, a_CN: Tensor, b_BTN: Tensor, c_BTN: Tensor, state_BCN: Tensor
) -> tuple[Tensor, Tensor]:
    if is_exporting():
        raise UnsupportedError("export of a recurrence: the number of its steps depends on the text")
    outputs = []
    for start in range(0, x_BTC.shape[1], CHUNK):
        part = slice(start, start + CHUNK)
        step_BtC = step_BTC[:, part]
        decay_BtCN = (step_BtC.unsqueeze(-1) * a_CN).exp()
        new_BtCN = (step_BtC * x_BTC[:, part]).unsqueeze(-1) * b_BTN[:, part].unsqueeze(2)
        for i in range(step_BtC.shape[1]):
            state_BCN = decay_BtCN[:, i] * state_BCN + new_BtCN[:, i]
            outputs.append((state_BCN @ c_BTN[:, start + i].unsqueeze(-1)).squeeze(-1))
    return apply(stack, outputs, 1), state_BCN
