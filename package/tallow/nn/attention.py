"""What decoder models share: heads and causal attention."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tallow import devices
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
    window: int | None = None,
    lengths: npt.NDArray[np.int64] | None = None,
) -> Tensor:
    """Each of the last T of S positions attends to itself and to all before it. G divides H; T may be less than S.

    softmax(scale q kᵀ, masked) v

    Args:
        scale: None means 1 / √K.
        window: how many positions a query sees at most, itself included; None means all.
        lengths: how many of the last positions of each row are text, (B,); those before them are padding, which no
            query sees. None means all.

    Shapes:  -> (B, H, T, K); zeros for the queries of paddings
    """
    queries, keys = q_BHTK.shape[2], k_BGSK.shape[2]
    if window is not None and keys > queries + window - 1:  # keys that no query sees
        keys = queries + window - 1
        k_BGSK, v_BGSK = k_BGSK[:, :, -keys:], v_BGSK[:, :, -keys:]
    if window is not None and keys <= window:
        window = None
    allowed = None
    if window or lengths is not None or 1 < queries < keys:
        # PyTorch's is_causal counts from the first key; the queries are the last ones.
        allowed = wrap(devices.move(_seen(queries, keys, window, lengths), q_BHTK.device))
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


def _seen(queries: int, keys: int, window: int | None, lengths: npt.NDArray[np.int64] | None) -> npt.NDArray[np.bool_]:
    """Which keys the last `queries` positions see, (T, S), or (B, 1, T, S) where rows have lengths of their own."""
    seen = np.tri(queries, keys, keys - queries, dtype=np.bool_)
    if window:
        seen &= ~np.tri(queries, keys, keys - queries - window, dtype=np.bool_)
    if lengths is None:
        return seen
    return seen & (np.arange(keys) >= keys - lengths[:, None])[:, None, None]
