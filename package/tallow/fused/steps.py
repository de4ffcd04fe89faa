"""One token of each row of a cache through a decoder's fused blocks, to the logits of the next token.

Letters: B rows, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter, is_
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes, kernels
from tallow.dtypes import Array
from tallow.errors import DimensionError
from tallow.kernels.blocks.affine import Affine, Matrix, memory, product, rows
from tallow.kernels.blocks.cross_decode_block import CrossDecodeBlock
from tallow.kernels.blocks.decode_block import Block
from tallow.kernels.blocks.decode_stack import DecodeStack
from tallow.kernels.table import ARRAY
from tallow.nn.cache import KVCache

MOST_ROWS = 256  # that a step reads at once: the modules read more rows as fast
# A step attends for one row after the other, the modules for a whole prompt, which is faster with many rows that see
# many positions. With up to FEW_ROWS, or this many pairs of a row and a position, a step is faster: stories15M, Xeon.
# With AVX-512, modules multiply more than a few rows by floats twice as fast, as that library has no blocks: Zen 5.
FEW_ROWS, MOST_PAIRS = 16, 1 << 16


class Runner(Protocol):
    """Another way to run a DecodeStep."""

    @property
    def most_rows(self) -> int:
        """The number of tokens that `read` appends at once."""

    def __call__(self, token: int, position: int) -> Array:
        """Return the logits (V,) that follow a token at a position of the first text."""

    def read(self, tokens_N: npt.NDArray[np.int64], places_N3: npt.NDArray[np.int64]) -> Array:
        """Return the logits (N, V) that follow tokens at places as `decode_blocks` takes them."""


class Step(Protocol):
    """Interface of the objects that `FusedDecoder` calls for each token."""

    def reads(self, cache: KVCache) -> bool:
        """Return whether the step can use this cache, whose memory may have been replaced since it was built."""

    def __call__(self, tokens: Sequence[int], cache: KVCache) -> Array:
        """Append one token to each row of the cache; return the logits of the next token, (V,) or (B, V)."""


class DecodeStep:
    """A step through blocks of a `tallow.kernels.blocks.decode_stack`.

    A backend may run the step in another way, such as a CUDA graph: its `decode_runner`, if it has one, returns a
    `Runner` for a step.

    Args:
        embedding: (V, D).
        blocks: they read and write the memory of `cache`.
        norm_scale: of the last RMS norm, (D,) in float32.
        head: (V, D).

    Attributes:
        most_rows: how many tokens, of all texts together, `read` appends at once.
    """

    def __init__(
        self,
        embedding: Matrix,
        blocks: Sequence[Block],
        cache: KVCache,
        norm_scale: Array,
        eps: float,
        head: Matrix,
    ) -> None:
        self.embedding = embedding
        self._stack = DecodeStack(blocks, norm_scale, eps)
        self._memory = list(_memory(cache))
        self._head = head
        self.device = devices.device_of(memory(head))
        runner = getattr(devices.get_backend(self.device.type), "decode_runner", None)
        # Not self._on_host: a step that refers to itself keeps the cache's memory until a garbage collection.
        self._runner: Runner | None = None if runner is None else runner(self)
        self.most_rows = MOST_ROWS if runner is None else 1

    @property
    def most_places(self) -> int:
        """The number of tokens that `read_at` appends at once."""
        return MOST_ROWS if self._runner is None else self._runner.most_rows

    def reads(self, cache: KVCache) -> bool:
        """Return whether the cache still has the memory that the blocks use."""
        return all(map(is_, _memory(cache), self._memory))

    def __call__(self, tokens: Sequence[int], cache: KVCache) -> Array:
        (token,) = tokens
        if not 0 <= token < self.embedding.shape[0]:
            raise self._outside(token)
        logits_V = (self._runner or self._on_host)(token, cache.length)
        cache.advance(1)
        return logits_V

    def read(self, tokens: Sequence[Sequence[int]], cache: KVCache, last: int) -> Array:
        """Append tokens (B, T) to the cache; return the logits that follow the last ones, (B, last, V)."""
        tokens_BT = np.array(tokens, np.int64)
        batch, count = tokens_BT.shape
        places_BT3 = np.zeros((batch, count, 3), np.int64)
        places_BT3[:, :, 0] = np.arange(batch)[:, None]
        places_BT3[:, :, 1] = np.arange(cache.length, cache.length + count)
        if cache.padding is not None:  # a token of padding sees itself only, and nothing sees it
            places_BT3[:, :, 2] = np.minimum(cache.padding[:, None], places_BT3[:, :, 1])
        hidden = self._hidden(self._checked(tokens_BT.reshape(-1)), places_BT3.reshape(-1, 3))
        cache.advance(count)
        return product(hidden.reshape(batch, count, -1)[:, -last:], self._head)

    def read_at(self, tokens: Sequence[int], places: Sequence[tuple[int, int]], wanted: Sequence[int]) -> Array:
        """Store each token at its place, a row of the cache and a position in it; return logits (len(wanted), V).

        The length of the cache is left as it is: the rows are texts of different lengths that begin at position 0.

        Args:
            places: those of one row in the order of their positions, which follow the positions it has read.
            wanted: the indices of the tokens whose following logits to return.
        """
        places_N3 = np.zeros((len(tokens), 3), np.int64)
        places_N3[:, :2] = places
        tokens_N = self._checked(np.array(tokens, np.int64))
        if self._runner is not None:
            return self._runner.read(tokens_N, places_N3)[list(wanted)]
        return product(self._hidden(tokens_N, places_N3)[list(wanted)], self._head)

    def _checked(self, tokens_N: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        size = self.embedding.shape[0]
        if tokens_N.min() < 0 or tokens_N.max() >= size:
            raise self._outside(next(int(token) for token in tokens_N if not 0 <= token < size))
        return tokens_N

    def _hidden(self, tokens_N: npt.NDArray[np.int64], places_N3: npt.NDArray[np.int64]) -> Array:
        """Return the head's input (N, D) for tokens at places of the cache."""
        return kernels.run("decode_blocks", dtypes.widen(self.embedded(tokens_N)), self._stack, places_N3)

    def can_read(self, batch: int, count: int, cache: KVCache) -> bool:
        """Return whether `read` takes `count` new tokens of each text, and is not slower than the modules."""
        total = batch * count
        if total > self.most_rows or batch != cache.batch:
            return False
        if cache.has_states and cache.padding is not None and cache.length + count <= cache.padding.max():
            return False  # the modules, which read what follows, keep the states of padding zeros
        if count == 1 or total <= FEW_ROWS:
            return True
        if isinstance(self._head, np.ndarray) and kernels.library.has_long_vectors():
            return False
        return total * (cache.length + count) <= MOST_PAIRS

    def _outside(self, token: int) -> DimensionError:
        return DimensionError(f"token {token} is outside the vocabulary of {self.embedding.shape[0]}")

    def _on_host(self, token: int, position: int) -> Array:
        return self.logits(self.embedded(token), position)

    def embedded(self, tokens: int | slice | Array) -> Array:
        """Return the embeddings of tokens."""
        return rows(self.embedding, tokens)

    def logits(self, embedded: Array, places: int | Array) -> Array:
        """Return the logits that follow tokens; keys and values are stored at `places`, as `decode_blocks` takes them.

        Shapes:  embedded (D,) or (N, D) -> (V,) or (N, V)
        """
        return product(kernels.run("decode_blocks", dtypes.widen(embedded), self._stack, places), self._head)

    def backends(self, places: int | Array = 0) -> list[str]:
        """Return the backend that computes each block, and whether it calls a module."""
        x = dtypes.widen(self.embedded(slice(1) if isinstance(places, int) else places[:, 0] * 0))
        blocks = self._stack.blocks
        backend = kernels.pick("decode_blocks", self.device.type, x, self._stack, places).backend
        if backend != ARRAY:
            return [backend] * len(blocks)
        backends = [kernels.pick(block.kernel, self.device.type, x, block, places).backend for block in blocks]
        notes = ["" if block.mlp is None else ", and the module of the experts" for block in blocks]
        return [backend + note for backend, note in zip(backends, notes, strict=True)]

    @property
    def block_kernels(self) -> list[str]:
        """The name of the kernel of each block."""
        return [block.kernel for block in self._stack.blocks]


def _memory(cache: KVCache) -> Iterator[Array]:
    return chain.from_iterable(map(attrgetter("arrays"), cache.layers))


class CrossDecodeStep:
    """A step of several rows through blocks of `tallow.kernels.blocks.cross_decode_block`.

    Args:
        embedding: (V, D).
        positions: the embedding of positions, (S, D).
        cross: the keys and values of the encoded sounds, for each block.
        norm: the last layer norm.
        head: (V, D).
    """

    def __init__(
        self,
        embedding: Matrix,
        positions: Array,
        blocks: Sequence[CrossDecodeBlock],
        cross: Sequence[tuple[Array, Array]],
        norm: Affine,
        eps: float,
        head: Matrix,
    ) -> None:
        self._embedding = embedding
        self._positions = positions
        self._blocks = blocks
        self._cross = [(dtypes.widen(keys), dtypes.widen(values)) for keys, values in cross]
        self._norm = norm
        self._eps = eps
        self._head = head

    def reads(self, cache: KVCache) -> bool:
        """Return True: each call passes the memory of the cache."""
        return True

    def __call__(self, tokens: Sequence[int], cache: KVCache) -> Array:
        x_BD = dtypes.widen(rows(self._embedding, np.array(tokens))) + dtypes.widen(self._positions[cache.length])
        for block, layer, cross in zip(self._blocks, cache.layers, self._cross, strict=True):
            x_BD = kernels.run("cross_decode_block", x_BD, block, layer.keys, layer.values, *cross, cache.length)
        cache.advance(1)
        hidden_BD = kernels.run("layer_norm", x_BD, *self._norm, self._eps)
        return product(hidden_BD, self._head)


def cross_backend(block: CrossDecodeBlock) -> str:
    """Return the backend that computes a block, for contiguous float32 arrays on the CPU."""
    x = np.zeros((1, block.width), np.float32)
    keys = np.zeros((1, block.heads, 1, block.width // block.heads), np.float32)
    return kernels.pick("cross_decode_block", "cpu", x, block, keys, keys.copy(), keys, keys, 0).backend
