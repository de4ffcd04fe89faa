"""Attention of decoder models, causal or to both sides, masks, and splitting into heads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.core.apply import apply
from tallow.core.creation import arange
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor, wrap
from tallow.functions.attention import record_attention, record_weights
from tallow.nn import functional as F
from tallow.ops.joining import cat
from tallow.tape.modes import is_exporting

where = PUBLIC["tl"]["where"]


def split_heads(x_BTD: Tensor, heads: int) -> Tensor:
    """Split the last dimension into attention heads: (B, T, heads · K) -> (B, heads, T, K)."""
    batch, length, width = x_BTD.shape
    return x_BTD.reshape(batch, length, heads, width // heads).transpose(1, 2)


def merge_heads(x_BHTK: Tensor) -> Tensor:
    """Concatenate attention heads: (B, H, T, K) -> (B, T, H · K)."""
    batch, heads, length, width = x_BHTK.shape
    return x_BHTK.transpose(1, 2).reshape(batch, length, heads * width)


def key_mask(attention_mask_BS: Tensor) -> Tensor:
    """Turn a padding mask (nonzero at tokens, 0 at padding) into a mask of the keys that every query may attend to.

    A mask of the keys of each query, (B, 1, T, S), stays.

    Shapes:  (B, S) -> (B, 1, 1, S), bool
    """
    return attention_mask_BS.bool() if attention_mask_BS.ndim == 4 else attention_mask_BS.bool()[:, None, None, :]


def local_mask(tokens_BT: Tensor, keys: Tensor | None, distance: int) -> Tensor | None:
    """Return the mask of the keys that are not further than `distance` from their query; None if it hides none.

    Args:    keys: the mask of keys that any query may see; a query sees itself in any case, so that padding far from
                   text has a result; one of the keys of each query, (B, 1, T, T), stays as it is
    Shapes:  keys (B, 1, 1, T) -> (B, 1, T, T) or (T, T), bool
    """
    length = tokens_BT.shape[1]
    if length <= distance + 1 or (keys is not None and keys.shape[2] > 1):
        return keys
    positions_T = arange(length, device=tokens_BT.device)
    apart_TT = (positions_T[:, None] - positions_T).abs()
    near_TT = apart_TT <= distance
    return near_TT if keys is None else near_TT & (keys | (apart_TT == 0))


def cross_attention(
    q_BHTK: Tensor,
    k_AHSK: Tensor,
    v_AHSK: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Attend from B texts to A sources; B is a multiple of A, and adjacent texts share a source.

    Args:
        mask: as `scaled_dot_product_attention` takes it, the same for all queries of a source.
        scale: factor of the scores; None means 1 / √K.

    Returns: (B, H, T, K)
    """
    batch, heads, length, width = q_BHTK.shape
    sources = k_AHSK.shape[0]
    if sources == batch:
        return F.scaled_dot_product_attention(q_BHTK, k_AHSK, v_AHSK, mask, dropout_p, scale=scale)
    # Adjacent texts of one source become one long text.
    q_AHNK = q_BHTK.reshape(sources, batch // sources, heads, length, width).transpose(1, 2)
    q_AHNK = q_AHNK.reshape(sources, heads, -1, width)
    mixed_AHNK = F.scaled_dot_product_attention(q_AHNK, k_AHSK, v_AHSK, mask, dropout_p, scale=scale)
    mixed = mixed_AHNK.reshape(sources, heads, batch // sources, length, width).transpose(1, 2)
    return mixed.reshape(batch, heads, length, width)


def causal_attention(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSK: Tensor,
    *,
    scale: float | None = None,
    dropout_p: float = 0.0,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    window: int | None = None,
    lengths: npt.NDArray[np.int64] | None = None,
    masks: dict[Any, Tensor] | None = None,
) -> Tensor:
    """Attend from each of the last T of S positions to itself and every earlier position.

    softmax(soft_cap(scale q kᵀ), masked) v. The number of key heads, G, divides the number of query heads, H. T may be
    less than S: the first S - T keys come from a cache.

    Args:
        scale: factor of the scores; None means 1 / √K.
        softcap: bound of the scores, see `soft_cap`; None means unbounded.
        sinks: (H,), for each head a score of nothing, which takes a share of the weights; None means none.
        window: sliding window: the number of positions a query attends to, itself included; None means all.
        lengths: (B,), the number of tokens in each row. Rows are padded on the left, and padding is never attended to.
            None means no padding.
        masks: cache of masks, shared by calls with the same lengths (the layers of one model); this call reads and
            fills it.

    Returns: (B, H, T, K); zeros for queries at padding
    """
    queries, keys = q_BHTK.shape[2], k_BGSK.shape[2]
    if window is not None and keys > queries + window - 1:  # the first keys are outside every query's window
        keys = queries + window - 1
        k_BGSK, v_BGSK = k_BGSK[:, :, -keys:], v_BGSK[:, :, -keys:]
    if window is not None and keys <= window:
        window = None
    allowed, in_steps = None, softcap is not None or sinks is not None
    if window or lengths is not None or 1 < queries < keys or (in_steps and queries > 1):
        # PyTorch's is_causal aligns the first query with the first key; here the last query aligns with the last key.
        cached_masks = {} if masks is None else masks
        # The attention kernels read an additive float32 mask without converting it.
        additive = not in_steps and q_BHTK.dtype is dtypes.float32
        key = (queries, keys, window, additive)
        allowed = cached_masks.get(key)
        if allowed is None and is_exporting() and lengths is None:
            allowed = cached_masks[key] = _computed_mask(queries, keys, window, additive, q_BHTK.device)
        elif allowed is None:
            visible = _visible_keys(queries, keys, window, lengths, q_BHTK.device)
            xp = devices.array_module(visible)
            mask = xp.where(visible, np.float32(0), np.float32(-np.inf)) if additive else visible
            allowed = cached_masks[key] = wrap(devices.move(mask, q_BHTK.device))
    if in_steps:
        return _attention_in_steps(q_BHTK, k_BGSK, v_BGSK, allowed, scale, softcap, sinks, dropout_p)
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


def two_sided_attention(
    q_BHTK: Tensor,
    k_BGTK: Tensor,
    v_BGTK: Tensor,
    mask: Tensor | None,
    *,
    scale: float | None = None,
    dropout_p: float = 0.0,
    softcap: float | None = None,
) -> Tensor:
    """Attend from each position to those before and after it.

    Args:
        mask: bool, as `scaled_dot_product_attention` takes it; None means all positions.
        scale, dropout_p, softcap: as `causal_attention`.

    Returns: (B, H, T, K)
    """
    if softcap is not None:
        return _attention_in_steps(q_BHTK, k_BGTK, v_BGTK, mask, scale, softcap, None, dropout_p)
    grouped = q_BHTK.shape[1] != k_BGTK.shape[1]
    return F.scaled_dot_product_attention(q_BHTK, k_BGTK, v_BGTK, mask, dropout_p, scale=scale, enable_gqa=grouped)


def soft_cap(x: Tensor, cap: float | None) -> Tensor:
    """Return cap · tanh(x / cap): close to x for small x, and bounded by ± cap. `cap` None returns x.

    Source:  Bello et al. 2016, arXiv:1611.09940, section 4.1
    """
    return x if cap is None else F.tanh(x / cap) * cap


def _attention_in_steps(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSK: Tensor,
    allowed: Tensor | None,
    scale: float | None,
    softcap: float | None,
    sinks_H: Tensor | None,
    dropout_p: float,
) -> Tensor:
    """Compute `causal_attention` with soft caps or sinks; holds the scores of all queries in memory at once."""
    scale = q_BHTK.shape[-1] ** -0.5 if scale is None else scale
    grouped_BGnTK = q_BHTK.unflatten(1, (k_BGSK.shape[1], -1))
    scores_BHTS = soft_cap((grouped_BGnTK @ k_BGSK.unsqueeze(2).mT).flatten(1, 2) * scale, softcap)
    if allowed is not None:
        scores_BHTS = scores_BHTS.masked_fill(~allowed, dtypes.finfo(scores_BHTS.dtype).min)
    if sinks_H is None:
        record_attention(scores_BHTS, None)
        weights_BHTS = F.softmax(scores_BHTS, -1)
    else:
        sinks_BHT1 = sinks_H.to(scores_BHTS.dtype)[:, None, None].expand(*scores_BHTS.shape[:-1], 1)
        weights_BHTS = F.softmax(apply(cat, [scores_BHTS, sinks_BHT1], -1), -1)[..., :-1]
        record_weights(weights_BHTS)
    if allowed is not None:
        weights_BHTS = weights_BHTS.masked_fill(~allowed, 0.0)  # softmax is uniform where every key is masked
    if dropout_p:
        weights_BHTS = F.dropout(weights_BHTS, dropout_p)
    weights_BGnTS = weights_BHTS.unflatten(1, (k_BGSK.shape[1], -1))
    return (weights_BGnTS @ v_BGSK.unsqueeze(2)).flatten(1, 2)


def _computed_mask(queries: int, keys: int, window: int | None, additive: bool, device: devices.device) -> Tensor:
    """Return the mask (T, S), computed by ops, for an exported graph: it has to know no length."""
    places_S = arange(keys, device=device)
    own_T1 = arange(keys - queries, keys, device=device)[:, None]
    visible = places_S <= own_T1
    if window:
        visible = visible & (places_S > own_T1 - window)
    return where(visible, 0.0, -math.inf).to(dtypes.float32) if additive else visible


def _visible_keys(
    queries: int, keys: int, window: int | None, lengths: npt.NDArray[np.int64] | None, device: devices.device
) -> dtypes.Array:
    """Return the bool mask of keys visible to the last `queries` positions: (T, S), or (B, 1, T, S) with `lengths`."""
    xp = devices.get_backend(device.type).module
    visible = xp.tri(queries, keys, keys - queries, dtype=np.bool_)
    if window:
        visible &= ~xp.tri(queries, keys, keys - queries - window, dtype=np.bool_)
    if lengths is None:
        return visible
    return visible & (xp.arange(keys) >= keys - devices.move(lengths, device)[:, None])[:, None, None]
