"""Attention whose memory is one matrix for each head, which each position decays and adds to: linear attention with
decays, as in Mamba-2, and the gated delta rule, which corrects what the memory has for a key.

Letters: B batch, T positions, H heads, K key width, V value width, C positions of a chunk.

Where nothing is recorded, the table of kernels computes both; its array implementation is what else ops compute.

Source:  Dao & Gu 2024, arXiv:2405.21060; Yang, Kautz & Hatamizadeh 2024, arXiv:2412.06464; the chunks of the delta rule
         as in Yang et al. 2024, arXiv:2406.06484
"""

from __future__ import annotations

import math

from tallow.core.apply import apply
from tallow.core.creation import arange
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import UnsupportedError
from tallow.kernels.table import ARRAY, kernel, run
from tallow.ops.joining import cat
from tallow.ops.linalg import linalg_solve_triangular
from tallow.tape.modes import computes_values_only, is_exporting, is_grad_enabled, no_grad

CHUNK = 64  # positions that are computed by products of matrices


def gated_delta_rule(
    q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, log_decay_BHT: Tensor, beta_BHT: Tensor, state_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the outputs (B, H, T, V) and the state after the last position.

    S ← exp(log_decay) S;  S ← S + k (beta (v - Sᵀ k))ᵀ;  output = Sᵀ q

    Args:
        k_BHTK: of length 1 or 0.
        log_decay_BHT: at most 0.
        beta_BHT: how much of what the state has for a key is replaced, from 0 to 1.

    Raises:  UnsupportedError in `tl.export`
    """
    return _computed(q_BHTK, k_BHTK, v_BHTV, log_decay_BHT, beta_BHT, state_BHKV)


def decayed_attention(
    q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, log_decay_BHT: Tensor, state_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the outputs (B, H, T, V) and the state after the last position.

    S ← exp(log_decay) S + k vᵀ;  output = Sᵀ q

    Args:    log_decay_BHT: at most 0
    Raises:  UnsupportedError in `tl.export`
    """
    return _computed(q_BHTK, k_BHTK, v_BHTV, log_decay_BHT, None, state_BHKV)


def _computed(
    q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, log_decay_BHT: Tensor, beta_BHT: Tensor | None, state_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    if not computes_values_only():
        return _in_chunks(q_BHTK, k_BHTK, v_BHTV, log_decay_BHT, beta_BHT, state_BHKV)
    beta = None if beta_BHT is None else beta_BHT.array
    arrays = q_BHTK.array, k_BHTK.array, v_BHTV.array, log_decay_BHT.array, beta, state_BHKV.array
    y_BHTV, state = run("delta_rule", *arrays)
    return wrap(y_BHTV), wrap(state)


@kernel("delta_rule", ARRAY)
def delta_rule(
    q_BHTK: Array, k_BHTK: Array, v_BHTV: Array, log_decay_BHT: Array, beta_BHT: Array | None, state_BHKV: Array
) -> tuple[Array, Array]:
    """Compute `gated_delta_rule` of arrays, or `decayed_attention` without beta; the state is not changed."""
    beta = None if beta_BHT is None else wrap(beta_BHT)
    q, k, v, log_decay = map(wrap, (q_BHTK, k_BHTK, v_BHTV, log_decay_BHT))
    with no_grad():
        y, state = _in_chunks(q, k, v, log_decay, beta, wrap(state_BHKV))
    return y.array, state.array


def _in_chunks(
    q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, log_decay_BHT: Tensor, beta_BHT: Tensor | None, state_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    length = q_BHTK.shape[2]
    if length == 1 and not is_grad_enabled():
        return _step(q_BHTK, k_BHTK, v_BHTV, log_decay_BHT, beta_BHT, state_BHKV)
    if is_exporting():
        raise UnsupportedError("export of a recurrence: the number of its steps depends on the text")
    outputs = []
    for start in range(0, length, CHUNK):
        part = slice(start, start + CHUNK)
        q_BHCK, k_BHCK, v_BHCV, log_decay_BHC = (x[:, :, part] for x in (q_BHTK, k_BHTK, v_BHTV, log_decay_BHT))
        beta_BHC = None if beta_BHT is None else beta_BHT[:, :, part]
        output_BHCV, state_BHKV = _chunk(q_BHCK, k_BHCK, v_BHCV, log_decay_BHC, beta_BHC, state_BHKV)
        outputs.append(output_BHCV)
    return outputs[0] if len(outputs) == 1 else apply(cat, outputs, 2), state_BHKV


def _step(
    q_BH1K: Tensor, k_BH1K: Tensor, v_BH1V: Tensor, log_decay_BH1: Tensor, beta_BH1: Tensor | None, state_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    state_BHKV = state_BHKV * log_decay_BH1.exp().unsqueeze(-1)
    if beta_BH1 is not None:
        v_BH1V = (v_BH1V - k_BH1K @ state_BHKV) * beta_BH1.unsqueeze(-1)
    state_BHKV = state_BHKV + k_BH1K.mT * v_BH1V
    return q_BH1K @ state_BHKV, state_BHKV


def _chunk(
    q_BHCK: Tensor, k_BHCK: Tensor, v_BHCV: Tensor, log_decay_BHC: Tensor, beta_BHC: Tensor | None, state_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the positions of a chunk at once: the corrections of all of them solve a triangular system."""
    total_BHC = log_decay_BHC.cumsum(-1)
    between_BHCC = _between(total_BHC)
    if beta_BHC is None:
        return _attend(q_BHCK, k_BHCK, v_BHCV, total_BHC, between_BHCC, state_BHKV)
    weighted_BHCK = k_BHCK * beta_BHC.unsqueeze(-1)
    from_start_BHC1 = total_BHC.exp().unsqueeze(-1)
    system_BHCC = (weighted_BHCK @ k_BHCK.mT) * between_BHCC
    sides = apply(cat, [v_BHCV * beta_BHC.unsqueeze(-1), weighted_BHCK * from_start_BHC1], -1)
    solved = apply(linalg_solve_triangular, system_BHCC, sides, upper=False, unitriangular=True)
    values_BHCV, read_BHCK = solved.split([v_BHCV.shape[-1], k_BHCK.shape[-1]], -1)
    written_BHCV = values_BHCV - read_BHCK @ state_BHKV
    return _attend(q_BHCK, k_BHCK, written_BHCV, total_BHC, between_BHCC, state_BHKV)


def _between(total_BHC: Tensor) -> Tensor:
    """Return the decay from each position of a chunk to each later one, (B, H, C, C), and zeros above the diagonal."""
    places_C = arange(total_BHC.shape[-1], device=total_BHC.device)
    is_later = places_C > places_C[:, None]
    return (total_BHC.unsqueeze(-1) - total_BHC.unsqueeze(-2)).masked_fill(is_later, -math.inf).exp()


def _attend(
    q_BHCK: Tensor, k_BHCK: Tensor, written_BHCV: Tensor, total_BHC: Tensor, between_BHCC: Tensor, state_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the outputs of a chunk and the state after it, given what its positions write for their keys."""
    scores_BHCC = (q_BHCK @ k_BHCK.mT) * between_BHCC
    output_BHCV = (q_BHCK * total_BHC.exp().unsqueeze(-1)) @ state_BHKV + scores_BHCC @ written_BHCV
    last_BH1 = total_BHC[:, :, -1:]
    to_end_BHC1 = (last_BH1 - total_BHC).exp().unsqueeze(-1)
    state_BHKV = state_BHKV * last_BH1.exp().unsqueeze(-1) + (k_BHCK * to_end_BHC1).mT @ written_BHCV
    return output_BHCV, state_BHKV
