"""What decoder models share: heads and causal attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.nn import functional as F
from tallow.tensor import Tensor, wrap


def split_heads(x_BTD: Tensor, heads: int) -> Tensor:
    """(B, T, heads · K) -> (B, heads, T, K)"""
    batch, length, width = x_BTD.shape
    return x_BTD.reshape(batch, length, heads, width // heads).transpose(1, 2)


def merge_heads(x_BHTK: Tensor) -> Tensor:
    """(B, H, T, K) -> (B, T, H · K)"""
    batch, heads, length, width = x_BHTK.shape
    return x_BHTK.transpose(1, 2).reshape(batch, length, heads * width)


def key_mask(attention_mask_BS: Tensor) -> Tensor:
    """What every query may see, from a mask of texts and their padding, True or not 0 where there is text.

    Shapes:  (B, S) -> (B, 1, 1, S), bool
    """
    return attention_mask_BS.bool()[:, None, None, :]


def causal_attention(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSK: Tensor,
    *,
    scale: float | None = None,
    dropout_p: float = 0.0,
    softcap: float | None = None,
    window: int | None = None,
    lengths: npt.NDArray[np.int64] | None = None,
    masks: dict[Any, Tensor] | None = None,
) -> Tensor:
    """Each of the last T of S positions attends to itself and to all before it. G divides H; T may be less than S.

    softmax(soft_cap(scale q kᵀ), masked) v

    Args:
        scale: None means 1 / √K.
        softcap: what the scores stay within; None means that they are as they are.
        window: how many positions a query sees at most, itself included; None means all.
        lengths: how many of the last positions of each row are text, (B,); those before them are padding, which no
            query sees. None means all.
        masks: of calls with the same lengths, such as other layers': what they have made, and this one will.

    Shapes:  -> (B, H, T, K); zeros for the queries of paddings
    """
    queries, keys = q_BHTK.shape[2], k_BGSK.shape[2]
    if window is not None and keys > queries + window - 1:  # keys that no query sees
        keys = queries + window - 1
        k_BGSK, v_BGSK = k_BGSK[:, :, -keys:], v_BGSK[:, :, -keys:]
    if window is not None and keys <= window:
        window = None
    allowed = None
    if window or lengths is not None or 1 < queries < keys or (softcap and queries > 1):
        # PyTorch's is_causal counts from the first key; the queries are the last ones.
        made = {} if masks is None else masks
        added = (
            softcap is None and q_BHTK.dtype is dtypes.float32
        )  # a sum, which the kernels of attention take as it is
        key = (queries, keys, window, added)
        allowed = made.get(key)
        if allowed is None:
            seen = _seen(queries, keys, window, lengths, q_BHTK.device)
            xp = devices.array_module(seen)
            mask = xp.where(seen, np.float32(0), np.float32(-np.inf)) if added else seen
            allowed = made[key] = wrap(devices.move(mask, q_BHTK.device))
    if softcap is not None:
        return _capped_attention(q_BHTK, k_BGSK, v_BGSK, allowed, scale, softcap, dropout_p)
    return F.scaled_dot_product_attention(
        q_BHTK,
        k_BGSK,
        v_BGSK,
        allowed,
        dropout_p,
        is_causal=allowed is None and queries > 1,
        scale=scale,
        enable_gqa=q_BHTK.shape[1] != k_BGSK.shape[1],
    )


def soft_cap(x: Tensor, cap: float | None) -> Tensor:
    """cap tanh(x / cap), which is about x where that is small, and never beyond ± cap; None means x.

    Source:  Bello et al. 2016, arXiv:1611.09940, section 4.1
    """
    return x if cap is None else F.tanh(x / cap) * cap


def _capped_attention(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSK: Tensor,
    allowed: Tensor | None,
    scale: float | None,
    softcap: float,
    dropout_p: float,
) -> Tensor:
    """As `causal_attention`, with the scores of all queries at once."""
    scale = q_BHTK.shape[-1] ** -0.5 if scale is None else scale
    grouped_BGnTK = q_BHTK.unflatten(1, (k_BGSK.shape[1], -1))
    scores_BHTS = soft_cap((grouped_BGnTK @ k_BGSK.unsqueeze(2).mT).flatten(1, 2) * scale, softcap)
    if allowed is not None:
        scores_BHTS = scores_BHTS.masked_fill(~allowed, dtypes.finfo(scores_BHTS.dtype).min)
    weights_BHTS = F.softmax(scores_BHTS, -1)
    if allowed is not None:
        weights_BHTS = weights_BHTS.masked_fill(~allowed, 0.0)  # a padding's query sees nothing
    if dropout_p:
        weights_BHTS = F.dropout(weights_BHTS, dropout_p)
    weights_BGnTS = weights_BHTS.unflatten(1, (k_BGSK.shape[1], -1))
    return (weights_BGnTS @ v_BGSK.unsqueeze(2)).flatten(1, 2)


def _seen(
    queries: int, keys: int, window: int | None, lengths: npt.NDArray[np.int64] | None, device: devices.device
) -> dtypes.Array:
    """Which keys the last `queries` positions see, (T, S), or (B, 1, T, S) where rows have lengths of their own."""
    xp = devices.get_backend(device.type).module
    seen = xp.tri(queries, keys, keys - queries, dtype=np.bool_)
    if window:
        seen &= ~xp.tri(queries, keys, keys - queries - window, dtype=np.bool_)
    if lengths is None:
        return seen
    return seen & (xp.arange(keys) >= keys - devices.move(lengths, device)[:, None])[:, None, None]
