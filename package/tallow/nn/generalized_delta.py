"""Attention whose memory is one matrix for each head, with a decay of each row and a change of rank one, as in RWKV-7.

Letters: B batch, T positions, H heads, K key width, V value width, C positions of a chunk.

Source:  Peng et al. 2025, arXiv:2503.14456, equation 16; the chunks as in Yang et al. 2024, arXiv:2412.06464
"""

from __future__ import annotations

from tallow.core.apply import apply
from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.errors import UnsupportedError
from tallow.ops.joining import cat
from tallow.ops.linalg import linalg_solve_triangular
from tallow.tape.modes import is_exporting, is_grad_enabled

CHUNK = (
    16  # positions that are computed by products of matrices: their decays, of e^-0.61 or more each, may be inverted
)


def generalized_delta_rule(
    r_BHTK: Tensor,
    log_decay_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTV: Tensor,
    a_BHTK: Tensor,
    b_BHTK: Tensor,
    state_BHKV: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the outputs (B, H, T, V) and the state after the last position.

    S ← diag(exp(log_decay)) S + b (aᵀ S) + k vᵀ;  output = Sᵀ r, where the S on the right is that before

    Args:    log_decay_BHTK: from -1 to 0
    Raises:  UnsupportedError in `tl.export`
    """
    operands = r_BHTK, log_decay_BHTK, k_BHTK, v_BHTV, a_BHTK, b_BHTK
    length = r_BHTK.shape[2]
    if length == 1 and not is_grad_enabled():
        return _step(*operands, state_BHKV)
    if is_exporting():
        raise UnsupportedError("export of a recurrence: the number of its steps depends on the text")
    outputs = []
    for start in range(0, length, CHUNK):
        part = slice(start, start + CHUNK)
        r, log_decay, k, v, a, b = (each[:, :, part] for each in operands)
        output_BHCV, state_BHKV = _chunk(r, log_decay, k, v, a, b, state_BHKV)
        outputs.append(output_BHCV)
    return outputs[0] if len(outputs) == 1 else apply(cat, outputs, 2), state_BHKV


def _step(
    r_BH1K: Tensor,
    log_decay_BH1K: Tensor,
    k_BH1K: Tensor,
    v_BH1V: Tensor,
    a_BH1K: Tensor,
    b_BH1K: Tensor,
    state_BHKV: Tensor,
) -> tuple[Tensor, Tensor]:
    read_BH1V = a_BH1K @ state_BHKV
    state_BHKV = log_decay_BH1K.exp().mT * state_BHKV + b_BH1K.mT @ read_BH1V + k_BH1K.mT @ v_BH1V
    return r_BH1K @ state_BHKV, state_BHKV


def _chunk(
    r_BHCK: Tensor,
    log_decay_BHCK: Tensor,
    k_BHCK: Tensor,
    v_BHCV: Tensor,
    a_BHCK: Tensor,
    b_BHCK: Tensor,
    state_BHKV: Tensor,
) -> tuple[Tensor, Tensor]:
    """Compute the positions of a chunk at once: what each reads of those before solves a triangular system."""
    total_BHCK = log_decay_BHCK.cumsum(2)
    grown = (-total_BHCK).exp()  # of what positions write, so that products with decays give those between two
    k_BHCK, b_BHCK = k_BHCK * grown, b_BHCK * grown
    a_BHCK, r_BHCK = a_BHCK * (total_BHCK - log_decay_BHCK).exp(), r_BHCK * total_BHCK.exp()
    places_C = arange(r_BHCK.shape[2], device=r_BHCK.device)
    is_later = places_C > places_C[:, None]
    is_not_before = places_C >= places_C[:, None]
    system_BHCC = -(a_BHCK @ b_BHCK.mT).masked_fill(is_not_before, 0.0)
    sides_BHCV = a_BHCK @ state_BHKV + (a_BHCK @ k_BHCK.mT).masked_fill(is_not_before, 0.0) @ v_BHCV
    read_BHCV = apply(linalg_solve_triangular, system_BHCC, sides_BHCV, upper=False, unitriangular=True)
    written = apply(cat, [b_BHCK, k_BHCK], 2), apply(cat, [read_BHCV, v_BHCV], 2)
    scores = [(r_BHCK @ each.mT).masked_fill(is_later, 0.0) for each in (b_BHCK, k_BHCK)]
    output_BHCV = r_BHCK @ state_BHKV + apply(cat, scores, -1) @ written[1]
    state_BHKV = total_BHCK[:, :, -1:].exp().mT * (state_BHKV + written[0].mT @ written[1])
    return output_BHCV, state_BHKV
