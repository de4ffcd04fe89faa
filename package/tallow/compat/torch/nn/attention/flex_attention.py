"""torch.nn.attention.flex_attention: attention whose scores a Python function changes, and blocks of which it skips.

Here all scores are computed, and those that the mask leaves out are set to minus infinity. `score_mod` and `mask_mod`
get tensors that broadcast to (B, H, Q, K) in place of numbers, which is the same for what they may compute.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import tallow as tl
from tallow.compat.absent import absent
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "create_nested_block_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_score_mod_signature: TypeAlias = Callable[..., Tensor]
_mask_mod_signature: TypeAlias = Callable[..., Tensor]
FlexKernelOptions: TypeAlias = dict[str, Any]
create_nested_block_mask = absent(
    "torch.nn.attention.flex_attention.create_nested_block_mask", "pad the sequences, and use create_block_mask"
)


class AuxRequest(NamedTuple):
    """Results of `flex_attention` to return besides the values."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The logarithm of the sum of exponentials, and the largest score, of each row; None if not asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Return true: nothing is masked."""
    return tl.ones((), dtype=tl.bool)


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """Return the mask of what all of these masks keep."""

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = tl.ones((), dtype=tl.bool)
        for mask_mod in mask_mods:
            result = result & mask_mod(b, h, q, kv)
        return result

    return mask


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """Return the mask of what one of these masks keeps."""

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = tl.zeros((), dtype=tl.bool)
        for mask_mod in mask_mods:
            result = result | mask_mod(b, h, q, kv)
        return result

    return mask


def _places(size: tuple[int, int, int, int], device: Any) -> list[Tensor]:
    """Return the indices along each of four dims, which broadcast with each other."""
    shapes = ((-1, 1, 1, 1), (-1, 1, 1), (-1, 1), (-1,))
    return [tl.arange(n, device=device).reshape(shape) for n, shape in zip(size, shapes, strict=True)]


def create_mask(
    mod_fn: _mask_mod_signature, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """Return the mask of shape (B, H, Q_LEN, KV_LEN) that a function has; B and H are 1 for None."""
    size = (B or 1, H or 1, Q_LEN, KV_LEN)
    return mod_fn(*_places(size, device)).expand(*size)


class BlockMask:
    """A mask, by blocks: which blocks of keys each block of queries needs.

    Attributes:
        kv_num_blocks: (B, H, rows), how many blocks are needed in part.
        kv_indices: (B, H, rows, columns), which, and then the others.
        full_kv_num_blocks, full_kv_indices: the same for blocks of which nothing is masked.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the blocks of queries that each block of keys needs.
        seq_lengths: the lengths of queries and keys.
        mask_mod: the function that masks single places.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int],
        mask_mod: _mask_mod_signature,
    ) -> None:
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: _mask_mod_signature | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """Return a mask of given blocks. By default the sequences are as long as the blocks together."""
        if kv_indices.ndim < 2:
            raise ArgumentError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise ArgumentError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        block = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = kv_indices.shape[-2] * block[0], kv_indices.shape[-1] * block[1]
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, block, mask_mod or noop_mask
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the mask: (B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def __getitem__(self, index: Any) -> BlockMask:
        """Return the mask of a part of the batch, the heads or the blocks of queries; dims stay."""
        parts = index if isinstance(index, tuple) else (index,)
        kept = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in parts)
        full = self.full_kv_num_blocks, self.full_kv_indices
        counts, indices = self.kv_num_blocks[kept], self.kv_indices[kept]
        full_counts, full_indices = (None if t is None else t[kept] for t in full)
        return BlockMask(self.seq_lengths, counts, indices, full_counts, full_indices, self.BLOCK_SIZE, noop_mask)

    q_num_blocks = property(lambda self: self._by_columns(self.kv_num_blocks, self.kv_indices)[0])
    q_indices = property(lambda self: self._by_columns(self.kv_num_blocks, self.kv_indices)[1])
    full_q_num_blocks = property(lambda self: self._by_columns(self.full_kv_num_blocks, self.full_kv_indices)[0])
    full_q_indices = property(lambda self: self._by_columns(self.full_kv_num_blocks, self.full_kv_indices)[1])

    def _by_columns(self, counts: Tensor | None, indices: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Return how many blocks of queries each block of keys needs, and which."""
        if counts is None or indices is None:
            return None, None
        return _in_order(self._blocks(counts, indices).transpose(-2, -1))

    def _blocks(self, counts: Tensor, indices: Tensor) -> Tensor:
        """Return 1 for each block that is listed, in a tensor (B, H, rows, columns)."""
        columns = indices.shape[-1]
        is_listed = tl.arange(columns, device=indices.device) < counts.unsqueeze(-1)
        blocks = tl.zeros(indices.shape, dtype=tl.int32, device=indices.device)
        return blocks.scatter_add(-1, indices.long(), is_listed.to(tl.int32))

    def to_dense(self) -> Tensor:
        """Return 1 for each block that is needed, 0 for others, in a tensor (B, H, rows, columns)."""
        blocks = self._blocks(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            blocks = blocks + self._blocks(self.full_kv_num_blocks, self.full_kv_indices)
        return blocks

    def numel(self) -> int:
        """Return the number of places of the mask."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return the share of places in blocks that are skipped, in percent."""
        computed = int(self.to_dense().sum().item()) * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - computed / self.numel())

    def to(self, device: Any) -> BlockMask:
        """Return the mask on a device."""
        full = self.full_kv_num_blocks, self.full_kv_indices
        counts, indices = (None if t is None else t.to(device) for t in full)
        own = self.kv_num_blocks.to(device), self.kv_indices.to(device)
        return BlockMask(self.seq_lengths, *own, counts, indices, self.BLOCK_SIZE, self.mask_mod)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Return a drawing of which blocks are needed: all of a cell, a part of it, or none.

        Args:
            grid_size: the largest numbers of rows and columns of cells; -1 for a cell for each block.
            limit: the largest number of masks of the batch that are drawn.
        """
        grid = grid_size if isinstance(grid_size, tuple) else (grid_size, grid_size)
        blocks = self.to_dense()
        drawings = []
        for place in list(itertools.product(*map(range, blocks.shape[:-2])))[:limit]:
            rows = blocks[place].bool().tolist()
            down, across = (1 if most < 1 else -(-n // most) for n, most in zip(blocks.shape[-2:], grid, strict=True))
            lines = [str(place)]
            for top in range(0, len(rows), down):
                band = [*zip(*rows[top : top + down], strict=True)]
                cells = [[*itertools.chain(*band[i : i + across])] for i in range(0, len(band), across)]
                lines.append("".join("██" if all(cell) else "░░" if any(cell) else "  " for cell in cells))
            drawings.append("\n".join(lines) + "\n")
        return "\n".join(drawings)

    def __str__(self) -> str:
        return f"BlockMask(shape={tuple(self.shape)}, sparsity={self.sparsity():.2f}%, \n{self.to_string()})"

    def __repr__(self) -> str:
        names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
                 "full_q_num_blocks", "full_q_indices")  # fmt: skip
        lines = [f"{name}={None if (t := getattr(self, name)) is None else t.shape}" for name in names]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={tuple(self.shape)}", f"sparsity={self.sparsity():.2f}%"]
        lines += [f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}"]
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"


def create_block_mask(
    mask_mod: _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
) -> BlockMask:
    """Return the blocks of a mask.

    Args:
        mask_mod: returns whether a place is kept, from the indices of batch, head, query and key.
        B, H: 1 for None: the same for all.
    """
    rows, columns = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    padded = tl.nn.functional.pad(mask.to(tl.int32), (0, -KV_LEN % columns, 0, -Q_LEN % rows))
    kept = padded.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows)).sum(dim=(-3, -1))
    full = kept == rows * columns
    partial = (kept > 0) & ~full
    counts, order = _in_order(partial)
    full_counts, full_order = _in_order(full)
    block = rows, columns
    return BlockMask.from_kv_blocks(counts, order, full_counts, full_order, block, mask_mod, (Q_LEN, KV_LEN))


def _in_order(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many blocks of each row are true, and all columns of a row, those of true blocks first."""
    ones = blocks.to(tl.int32)
    return ones.sum(-1).to(tl.int32), ones.argsort(dim=-1, descending=True, stable=True).to(tl.int32)


def _block_mask_places(mask: BlockMask, size: tuple[int, int, int, int], places: list[Tensor]) -> Tensor:
    """Return which scores a mask keeps, in a tensor that broadcasts to `size`."""
    (rows, columns), (queries, keys) = mask.BLOCK_SIZE, size[2:]
    if mask.seq_lengths[0] < queries or mask.seq_lengths[1] < keys:
        raise ShapeError(f"flex_attention: a mask for {mask.seq_lengths} queries and keys, got {(queries, keys)}")

    def spread(blocks: Tensor) -> Tensor:
        wide = blocks.bool().repeat_interleave(rows, -2).repeat_interleave(columns, -1)
        return wide[..., :queries, :keys]

    kept = spread(mask._blocks(mask.kv_num_blocks, mask.kv_indices)) & mask.mask_mod(*places)
    if mask.full_kv_num_blocks is not None and mask.full_kv_indices is not None:
        kept = kept | spread(mask._blocks(mask.full_kv_num_blocks, mask.full_kv_indices))
    return kept


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _score_mod_signature | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return the attention of queries (B, H, Q, E) over keys (B, H, K, E) and values (B, H, K, F): (B, H, Q, F).

    A row of which everything is masked is 0.

    Args:
        score_mod: returns a score in the place of another, from it and the indices of batch, head, query and key.
        block_mask: which scores are kept; all for None.
        scale: factor of the scores, by default 1 / sqrt(E).
        enable_gqa: several heads of queries share one of keys and values.
        return_lse: return also the logarithm of the sum of exponentials of each row.
        return_aux: what else to return, as an AuxOutput.

    Raises: ShapeError for shapes that do not fit.
    """
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise ShapeError("Expected query, key, value to be 4D inputs")
    if query.shape[1] != key.shape[1]:
        if not enable_gqa or query.shape[1] % key.shape[1]:
            raise ShapeError(f"{query.shape[1]} heads of queries, {key.shape[1]} of keys", hint="pass enable_gqa=True")
        key, value = (t.repeat_interleave(query.shape[1] // key.shape[1], 1) for t in (key, value))
    work = tl.float64 if query.dtype is tl.float64 else tl.float32
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.to(work) @ key.to(work).transpose(-2, -1) * factor
    size = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    places = _places(size, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places).to(work)
    if block_mask is not None:
        scores = scores.masked_fill(~_block_mask_places(block_mask, size, places), -math.inf)
    peak = scores.detach().amax(-1, keepdim=True)
    peak = peak.masked_fill(peak == -math.inf, 0.0)
    exponentials = (scores - peak).exp()
    total = exponentials.sum(-1, keepdim=True)
    is_masked = total == 0
    output = (exponentials / total.masked_fill(is_masked, 1.0)).to(query.dtype) @ value
    if not return_lse and return_aux is None:
        return output
    lse = (total.log() + peak).squeeze(-1)
    if return_aux is None:
        return output, lse
    most = scores.amax(-1) if return_aux.max_scores else None
    return output, AuxOutput(lse if return_aux.lse else None, most)
