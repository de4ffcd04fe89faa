"""What language models share: logits of the next token, and the cache of what they have read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.autograd.modes import no_grad
from tallow.errors import ArgumentError
from tallow.models.pretrained import PretrainedModel
from tallow.nn import functional as F
from tallow.nn.attention import KVCache
from tallow.tensor import Tensor, wrap


class CacheShape(NamedTuple):
    """What a KVCache of a model holds for each position: layers, G and K."""

    layers: int
    kv_heads: int
    head_dim: int


class CausalLM(PretrainedModel):
    """A language model: logits of the next token for each position. `tallow.generation` continues texts with it.

    Letters: B batch, T positions, D width, V vocabulary, G key/value heads, K head width.
    """

    cache_class: ClassVar[type[KVCache]] = KVCache

    @abstractmethod
    def hidden(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        """What the head reads, (B, T, D). With a cache, the tokens follow those it has seen, and are appended."""

    @property
    @abstractmethod
    def head_weight(self) -> Tensor:
        """(V, D): of a head of its own, or the embedding of tokens."""

    @property
    @abstractmethod
    def context_length(self) -> int:
        """The most positions the model can read."""

    @property
    @abstractmethod
    def cache_shape(self) -> CacheShape: ...

    @property
    def vocab_size(self) -> int:
        return self.config.vocab_size

    def forward(self, tokens_BT: Tensor, cache: KVCache | None = None) -> Tensor:
        """Logits (B, T, V) for tokens (B, T). With a cache, the tokens follow those it has seen."""
        return F.linear(self.hidden(tokens_BT, cache), self.head_weight)

    def new_cache(self, *, length: int | None = None, batch: int = 1) -> KVCache:
        """An empty cache, for `length` positions (the whole context if None) of `batch` sequences.

        Raises:  ArgumentError for more than the context
        """
        length = self.context_length if length is None else length
        if not 0 <= length <= self.context_length:
            raise ArgumentError(
                f"a cache of {length} positions; the model's context is {self.context_length}",
                mend="make it as long as the text at most, and no longer than the context",
            )
        layers, kv_heads, head_dim = self.cache_shape
        weight = self.head_weight
        widened = weight.device.type == "cpu" and weight.dtype is not dtypes.float64
        dtype = dtypes.float32 if widened else weight.dtype
        return self.cache_class(layers, batch, kv_heads, length, head_dim, dtype=dtype, device=weight.device)

    def next_logits(self, tokens: Sequence[int], cache: Any) -> npt.NDArray[np.float32]:
        """Append `tokens`, one sequence, to the cache; the logits (V,) of what follows, on the host."""
        tokens_BT = wrap(devices.move(np.array([tokens], dtype=np.int64), self.head_weight.device))
        with no_grad():
            logits_V = F.linear(self.hidden(tokens_BT, cache)[:, -1], self.head_weight).array[0]
        return to_host(logits_V)


def to_host(logits_V: dtypes.Array) -> npt.NDArray[np.float32]:
    logits_V = dtypes.cast(logits_V, dtypes.float32)
    return devices.backend_of(logits_V).to_host(logits_V)
