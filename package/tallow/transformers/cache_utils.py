"""Caches of keys and values under transformers' names, over `tallow.nn.cache`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import tallow
from tallow import dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError
from tallow.nn.cache import KVCache


class CacheLayer:
    """The keys and values of a layer."""

    def __init__(self, cache: Cache, index: int) -> None:
        self._cache = cache
        self._index = index

    @property
    def keys(self) -> Tensor:
        """The keys, (B, G, T, K)."""
        return self._cache[self._index][0]

    @property
    def values(self) -> Tensor:
        """The values, (B, G, T, K)."""
        return self._cache[self._index][1]

    def get_seq_length(self) -> int:
        """Return the number of tokens."""
        return self._cache.get_seq_length(self._index)

    @property
    def is_initialized(self) -> bool:
        """True if there are tokens."""
        return self.get_seq_length() > 0


class Cache:
    """The base of caches: a model makes the memory at its first call, of its own sizes.

    Attributes:
        memory: a `tallow.nn.cache.KVCache`; None before the first call.
        shift: how far the positions of each row were from their places in the cache, (B or 1,); None if not known.
    """

    is_compileable = False
    is_recorded = False  # whether autograd recorded the calls that filled it
    dtype: Any = None  # of keys and values in memory; None leaves it to the model

    def __init__(self) -> None:
        self.memory: KVCache | None = None
        self.shift: npt.NDArray[np.int64] | None = None
        self._layers: list[tuple[Tensor, Tensor]] = []  # what `update` was called with, by those who use it themselves

    def memory_for(self, core: Any, batch: int, padding: Sequence[int] | None = None) -> KVCache:
        """Return the memory for a model of `tallow.models`.

        Args:    padding: how many tokens on the left of each row are padding; for the first call
        Raises:  ArgumentError for another batch size than before
        """
        if self.memory is None:
            self.memory = self._new(core, batch, padding)
            if self._layers:
                self._move_layers(self.memory)
        if self.memory.batch != batch:
            raise ArgumentError(f"a cache of {self.memory.batch} texts for a batch of {batch}", hint="make a new one")
        return self.memory

    def _new(self, core: Any, batch: int, padding: Sequence[int] | None) -> KVCache:
        options = {} if self.dtype is None else {"dtype": self.dtype}
        return core.new_cache(
            length=core.context_length, batch=batch, padding=padding, growing=True, sliding=False, **options
        )

    def _move_layers(self, memory: KVCache) -> None:
        count = self._layers[0][0].shape[2]
        for index, (keys, values) in enumerate(self._layers):
            memory.append(index, keys, values)
        memory.advance(count)
        self._layers = []

    # ------------------------------------------------------------------------------------------------------- contents

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any) -> tuple[Tensor, Tensor]:
        """Append a layer's keys and values (B, G, T, K); return those of all tokens."""
        if self.memory is not None:
            keys, values = self.memory.append(layer_idx, key_states, value_states)
            if layer_idx == len(self.memory.layers) - 1:
                self.memory.advance(key_states.shape[2])
            return keys, values
        if layer_idx < len(self._layers):
            old_keys, old_values = self._layers[layer_idx]
            self._layers[layer_idx] = tallow.cat([old_keys, key_states], 2), tallow.cat([old_values, value_states], 2)
        elif layer_idx == len(self._layers):
            self._layers.append((key_states, value_states))
        else:
            raise ArgumentError(f"layer {layer_idx} of {len(self._layers)}", hint="update the layers in order")
        return self._layers[layer_idx]

    def __getitem__(self, layer_idx: int) -> tuple[Tensor, Tensor]:
        if self.memory is None:
            return self._layers[layer_idx]
        keys, values = self.memory.layers[layer_idx].read(self.memory.length)
        return wrap(dtypes.widen(keys)), wrap(dtypes.widen(values))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return (self[index] for index in range(len(self)))

    def __len__(self) -> int:
        return len(self._layers) if self.memory is None else len(self.memory.layers)

    @property
    def layers(self) -> list[CacheLayer]:
        """The layers, with `keys` and `values`."""
        return [CacheLayer(self, index) for index in range(len(self))]

    @property
    def is_initialized(self) -> bool:
        """True if there are tokens."""
        return self.get_seq_length() > 0

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of tokens."""
        if self.memory is not None:
            return self.memory.length
        return self._layers[layer_idx][0].shape[2] if layer_idx < len(self._layers) else 0

    def get_max_length(self, layer_idx: int = 0) -> int:
        """Return the most tokens; -1 means any number."""
        return -1

    def get_max_cache_shape(self, layer_idx: int = 0) -> int:
        """Return the most tokens, as `get_max_length`, by the name of transformers 4."""
        return self.get_max_length(layer_idx)

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
        """Return the number of tokens with `query_length` more, and the place of the first."""
        return self.get_seq_length(layer_idx) + query_length, 0

    @property
    def is_sliding(self) -> list[bool]:
        """False for each layer: all tokens are kept, also those before a layer's window."""
        return [False] * len(self)

    @property
    def max_batch_size(self) -> int | None:
        """The number of texts; None before the first call."""
        return None if self.memory is None else self.memory.batch

    # ----------------------------------------------------------------------------------------------------------- rows

    def crop(self, tokens_to_remove: int) -> None:
        """Remove tokens from the end, a negative number; a positive one keeps the first, as in transformers 4."""
        length, count = self.get_seq_length(), tokens_to_remove
        kept = length + count if count < 0 else min(count, length)
        if self.memory is not None:
            self.memory.truncate(max(kept, 0))
        self._layers = [(keys[:, :, :kept], values[:, :, :kept]) for keys, values in self._layers]

    def reorder_cache(self, beam_idx: Any) -> None:
        """Keep these rows, in this order."""
        self.batch_select_indices(beam_idx)

    def batch_select_indices(self, indices: Any) -> None:
        """Keep these rows, in this order; a row may occur several times."""
        rows = indices.tolist() if hasattr(indices, "tolist") else list(indices)
        if self.memory is not None:
            self.memory.select(rows)
        if self.shift is not None and len(self.shift) > 1:
            self.shift = self.shift[rows]
        self._layers = [(keys[rows], values[rows]) for keys, values in self._layers]

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat each row."""
        held = [self.memory.batch] if self.memory is not None else [keys.shape[0] for keys, _ in self._layers]
        batch = held[0] if held else 0
        self.batch_select_indices([row for row in range(batch) for _ in range(repeats)])

    def reset(self) -> None:
        """Forget all tokens."""
        self.crop(0)


class DynamicCache(Cache):
    """A cache that grows with the text.

    Args:
        ddp_cache_data: keys and values of each layer, to begin with.
        config: has no effect: the model knows its sizes.
        offloading: has no effect on a CPU.
    """

    def __init__(self, ddp_cache_data: Any = None, config: Any = None, offloading: bool = False, **kwargs: Any) -> None:
        super().__init__()
        for index, (keys, values, *_) in enumerate(ddp_cache_data or ()):
            self.update(keys, values, index)


class QuantizedCache(DynamicCache):
    """A cache in int8, with a scale for each head and token: a quarter of the memory.

    Args:
        backend, config, nbits, q_group_size, residual_length, axis_key, axis_value: of transformers' formats; there is
            one format here, of 8 bits.

    Raises:  ArgumentError for fewer bits
    """

    dtype = dtypes.int8

    def __init__(self, backend: str = "quanto", config: Any = None, nbits: int = 8, **kwargs: Any) -> None:
        if nbits != 8:
            raise ArgumentError(
                f"QuantizedCache: nbits={nbits}", hint="pass nbits=8, the one format of tallow's caches"
            )
        super().__init__(config=config)


class StaticCache(Cache):
    """A cache whose memory for `max_cache_len` tokens is allocated at once.

    Args:    config, offloading: have no effect: the model knows its sizes
    """

    is_compileable = True

    def __init__(self, config: Any = None, max_cache_len: int | None = None, offloading: bool = False, **kwargs: Any):
        super().__init__()
        if not isinstance(max_cache_len, int) or max_cache_len < 1:
            raise ArgumentError(f"StaticCache: max_cache_len={max_cache_len!r}", hint="pass the most tokens it holds")
        self.max_cache_len = max_cache_len

    def _new(self, core: Any, batch: int, padding: Sequence[int] | None) -> KVCache:
        return core.new_cache(length=min(self.max_cache_len, core.context_length), batch=batch, padding=padding)

    def get_max_length(self, layer_idx: int = 0) -> int:
        """Return the most tokens."""
        return self.max_cache_len


class EncoderDecoderCache:
    """The caches of a decoder that reads an encoder's output.

    Args:    caches: of the decoder's own tokens, and of the source
    """

    def __init__(self, *caches: Any) -> None:
        if len(caches) == 1:
            caches = tuple(caches[0])
        self.self_attention_cache, self.cross_attention_cache = caches
        self._source: Any = None

    @property
    def source(self) -> Any:
        """The encoder's output in the form that the model's decoder reads; None before a call."""
        return getattr(getattr(self.self_attention_cache, "memory", None), "sources", self._source)

    @source.setter
    def source(self, value: Any) -> None:
        self._source = value

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of the decoder's tokens."""
        return int(self.self_attention_cache.get_seq_length(layer_idx))

    def __len__(self) -> int:
        return len(self.self_attention_cache)

    def crop(self, tokens_to_remove: int) -> None:
        """Remove tokens of the decoder from the end, as `Cache.crop`."""
        self.self_attention_cache.crop(tokens_to_remove)

    def reorder_cache(self, beam_idx: Any) -> None:
        """Keep these rows, in this order."""
        self.self_attention_cache.reorder_cache(beam_idx)
        self.cross_attention_cache.reorder_cache(beam_idx)
        if self._source is not None:
            rows = beam_idx.tolist() if hasattr(beam_idx, "tolist") else beam_idx
            self._source = self._source.select(rows)

    def batch_select_indices(self, indices: Any) -> None:
        """Keep these rows, in this order."""
        self.reorder_cache(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat each row."""
        self.self_attention_cache.batch_repeat_interleave(repeats)
        self.cross_attention_cache.batch_repeat_interleave(repeats)
        if self._source is not None:
            rows = range(self._source.layers[0].keys.shape[0])
            self._source = self._source.select([row for row in rows for _ in range(repeats)])

    def reset(self) -> None:
        """Forget all tokens."""
        self.self_attention_cache.reset()
        self.cross_attention_cache.reset()
