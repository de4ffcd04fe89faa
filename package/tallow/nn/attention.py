"""What decoder models share: heads, causal attention, and the cache of keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.autograd.modes import mode
from tallow.dtypes import Array
from tallow.errors import ArgumentError, GraphError, ShapeError
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
) -> Tensor:
    """Each of the last T of S positions attends to itself and to all before it. G divides H; T may be less than S.

    softmax(scale q kᵀ, masked) v

    Args:
        scale: None means 1 / √K.
        window: how many positions a query sees at most, itself included; None means all.

    Shapes:  -> (B, H, T, K)
    """
    queries, keys = q_BHTK.shape[2], k_BGSK.shape[2]
    if window is not None and keys > queries + window - 1:  # keys that no query sees
        keys = queries + window - 1
        k_BGSK, v_BGSK = k_BGSK[:, :, -keys:], v_BGSK[:, :, -keys:]
    if window is not None and keys <= window:
        window = None
    allowed_TS = None
    if window or 1 < queries < keys:  # PyTorch's is_causal counts from the first key; the queries are the last ones
        seen = np.tri(queries, keys, keys - queries, dtype=np.bool_)
        if window:
            seen &= ~np.tri(queries, keys, keys - queries - window, dtype=np.bool_)
        allowed_TS = wrap(devices.move(seen, q_BHTK.device))
    return F.scaled_dot_product_attention(
        q_BHTK,
        k_BGSK,
        v_BGSK,
        allowed_TS,
        dropout_p,
        is_causal=allowed_TS is None and queries > 1,
        scale=scale,
        enable_gqa=q_BHTK.shape[1] != k_BGSK.shape[1],
    )


class KVCache:
    """The keys and values of the positions seen so far, for all layers, in memory taken once.

    A forward appends each layer's keys and values, and then `advance`s past them.

    Args:
        length: the most positions it can hold.
        dtype: what to keep them in. On a CPU that is float32 whatever the model's dtype, because sixteen-bit floats are
            widened there before each use.

    Shapes:  keys, values (layers, B, G, length, K)
    """

    def __init__(
        self,
        layers: int,
        batch: int,
        kv_heads: int,
        length: int,
        head_dim: int,
        *,
        dtype: Any = None,
        device: Any = "cpu",
    ) -> None:
        target = devices.device(device)
        storage = dtypes.as_dtype(dtypes.float32 if dtype is None else dtype).storage
        zeros = devices.get_backend(target.type).module.zeros
        shape = (layers, batch, kv_heads, length, head_dim)
        self.keys: Array = devices.move(zeros(shape, storage), target)
        self.values: Array = devices.move(zeros(shape, storage), target)
        self.batch = batch
        self.capacity = length
        self.length = 0

    def append(self, layer: int, k_BGTK: Tensor, v_BGTK: Tensor) -> tuple[Tensor, Tensor]:
        """Write a layer's keys and values after the positions seen; all of them so far, (B, G, S, K), in k's dtype.

        Raises:  ArgumentError when the cache is full, ShapeError for another batch, GraphError while autograd records
        """
        if mode.recording and k_BGTK.requires_grad:
            raise GraphError(
                "a KVCache cannot be part of a graph: it is written in place",
                mend="generate under no_grad(), or train without a cache",
            )
        end = self.length + k_BGTK.shape[2]
        if end > self.capacity:
            raise ArgumentError(
                f"position {end - 1} does not fit a KVCache of {self.capacity}", mend="make a longer one"
            )
        if k_BGTK.shape[0] != self.batch:
            raise ShapeError(f"a batch of {k_BGTK.shape[0]} does not fit a KVCache for a batch of {self.batch}")
        return self._write(self.keys[layer], k_BGTK, end), self._write(self.values[layer], v_BGTK, end)

    def _write(self, kept_BGSK: Array, new_BGTK: Tensor, end: int) -> Tensor:
        kept_BGSK[:, :, self.length : end] = dtypes.cast(new_BGTK.array, dtypes.dtype_of(kept_BGSK))
        return wrap(dtypes.cast(kept_BGSK[:, :, :end], new_BGTK.dtype))

    def advance(self, positions: int) -> None:
        """Count the positions that every layer has appended."""
        self.length += positions
