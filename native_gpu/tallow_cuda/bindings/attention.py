"""attention, attention_backward and attention_decode; see src/flash_attention*.cu and src/attention_decode.cu.

Letters: B batch, H query heads, G key/value heads, T query positions, S key positions, K head width, E value width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tallow.devices import array_module, get_backend
from tallow.dtypes import HALVES, Array
from tallow.errors import ShapeError
from tallow.kernels import kernel
from tallow_cuda.launching import FLOAT32, FLOATS, WARP, contiguous, is_float, launch, optional_contiguous
from tallow_cuda.sources import element, hopper_compiles, load

WARPS = 4  # per block of attention_decode
WIDEST = 128
CHUNK = 16  # bytes that a thread copies at once
MOST = 65535  # maximum blocks in a grid's y and z
FEWEST = 64  # rows per block


class Blocks(NamedTuple):
    """The division of a kernel's work."""

    warps: int  # per block
    tiles: int  # of 16 rows per warp
    step: int  # the rows that they are multiplied with at once
    resident: int = 1  # minimum number of blocks per multiprocessor, which limits the registers

    @property
    def rows(self) -> int:
        """Rows per block, at least FEWEST."""
        return self.warps * self.tiles * 16

    def defines(self, step: str) -> dict[str, int]:
        """Return the definitions for a kernel, given the name of its step."""
        return {"WARPS": self.warps, "TILES": self.tiles, step: self.step, "RESIDENT": self.resident}


# By whether the products are those of src/wgmma.cuh, the padded width, and whether there is a mask. With those of
# src/mma.cuh, more tiles need fewer reads of shared memory; these fit in registers, but for a few bytes. With those of
# src/wgmma.cuh, the divisions without a mask are the fastest of about ten that were timed on an H200; for two of them
# a block more per multiprocessor is worth some registers in local memory.
FORWARD = {
    (0, 64, 0): Blocks(4, 2, 64), (0, 64, 1): Blocks(4, 2, 64),
    (0, 128, 0): Blocks(4, 2, 32), (0, 128, 1): Blocks(4, 1, 64),
    (1, 64, 0): Blocks(8, 1, 64, 2), (1, 64, 1): Blocks(8, 1, 64, 2),
    (1, 128, 0): Blocks(8, 1, 64, 2), (1, 128, 1): Blocks(12, 1, 64),
}  # fmt: skip
BACKWARD_Q = {
    (0, 64, 0): Blocks(4, 2, 32), (0, 64, 1): Blocks(4, 2, 32),
    (0, 128, 0): Blocks(4, 2, 32), (0, 128, 1): Blocks(4, 1, 64),
    (1, 64, 0): Blocks(4, 1, 64, 4), (1, 64, 1): Blocks(4, 1, 64, 3),
    (1, 128, 0): Blocks(4, 1, 64, 2), (1, 128, 1): Blocks(8, 1, 64),
}  # fmt: skip
BACKWARD_KV = {
    (0, 64, 0): Blocks(4, 2, 32), (0, 64, 1): Blocks(4, 1, 64),
    (0, 128, 0): Blocks(4, 1, 32), (0, 128, 1): Blocks(4, 1, 32),
    (1, 64, 0): Blocks(4, 1, 64, 3), (1, 64, 1): Blocks(4, 1, 64, 2),
    (1, 128, 0): Blocks(4, 1, 64, 2), (1, 128, 1): Blocks(8, 1, 64),
}  # fmt: skip


def half_attention(
    q: Array, k: Array, v: Array, bias: Array | None, scale: float, is_causal: bool, groups: int
) -> bool:
    """Half q (B, H, T, K), k (B, G, S, K), v (B, G, S, E), H = G · groups; K, E multiples of 8, ≤ 128; capability 8.0.

    No axis is empty; `bias` is None or floats that broadcast to the scores.
    """
    if not (q.dtype == k.dtype == v.dtype and q.dtype in HALVES and q.ndim == k.ndim == v.ndim == 4):
        return False
    (batch, heads, queries, width), (_, kv_heads, keys, _) = q.shape, k.shape
    fits = k.shape == (batch, kv_heads, keys, width) and v.shape[:3] == k.shape[:3] and heads == kv_heads * groups
    fits = fits and min(*q.shape, *k.shape, v.shape[3]) > 0 and max(batch, -(-max(queries, keys) // FEWEST)) <= MOST
    fits = fits and all(w % 8 == 0 and w <= WIDEST for w in (width, v.shape[3]))
    return fits and _is_mask(bias, (*q.shape[:3], keys)) and _capability() >= (8, 0)


def _capability() -> tuple[int, int]:
    """Return the compute capability of the current device; src/mma.cuh requires 8.0 or later."""
    backend: Any = get_backend("cuda")
    found: tuple[int, int] = backend.compute_capability()
    return found


def has_wgmma() -> bool:
    """Return whether the kernels can use src/wgmma.cuh: on compute capability 9.0, but not on later ones."""
    return _capability() == (9, 0) and hopper_compiles()


def _is_mask(bias: Array | None, scores: tuple[int, ...]) -> bool:
    """Return whether the bias is None, or floats that broadcast to the scores."""
    if bias is None:
        return True
    sizes = zip(bias.shape[::-1], scores[::-1], strict=False)
    reach = sum((n - 1) * abs(stride) for n, stride in zip(bias.shape[-2:], bias.strides[-2:], strict=True))
    fits = bias.dtype in FLOATS and bias.ndim <= 4 and reach < 2**31 * bias.itemsize
    return fits and all(n in (1, of_all) for n, of_all in sizes)


def half_attention_backward(
    g: Array, q: Array, k: Array, v: Array, bias: Array | None, stats: Any, scale: float, is_causal: bool, groups: int
) -> bool:
    """As attention, with g (B, H, T, E) in float32 or the dtype of q, and `stats` of the CUDA forward pass."""
    fits = isinstance(stats, tuple) and half_attention(q, k, v, bias, scale, is_causal, groups)
    return fits and g.shape == (*q.shape[:3], v.shape[3]) and g.dtype in (FLOAT32, q.dtype)


class _Call:
    """The arguments that all these kernels share."""

    def __init__(
        self, q: Array, k: Array, v: Array, bias: Array | None, scale: float, is_causal: bool, groups: int
    ) -> None:
        self.q, self.k, self.v, self.bias = _rows(q), _rows(k), _rows(v), bias
        self.batch, self.heads, self.queries, self.width = q.shape
        self.kv_heads, self.keys, self.value_width = v.shape[1:]
        self.sizes = (groups, self.queries, self.keys, self.width, self.value_width)
        self.strides = (*_strides(self.q), *_strides(self.k), *_strides(self.v))
        self.by_mask = (0, 0, 0, 0)
        if bias is not None:
            of_all = array_module(bias).broadcast_to(bias, (*q.shape[:3], self.keys))
            self.by_mask = tuple(stride // bias.itemsize for stride in of_all.strides)
        self.last = (int(is_causal), float(scale))
        self.padded = 64 if max(self.width, self.value_width) <= 64 else WIDEST
        # A scale ≤ 0 cannot be factored out of the maximum of a row.
        self.added = int(bias is not None or scale <= 0)
        self.wgmma = int(has_wgmma())
        self.defines: dict[str, Any] = {
            "X": element(q), "M": element(bias), "WIDTH": self.padded, "ADDED": self.added, "WGMMA": self.wgmma,
        }  # fmt: skip

    def blocks(self, table: dict[tuple[int, int, int], Blocks]) -> Blocks:
        """Return how a kernel divides its work."""
        return table[self.wgmma, self.padded, self.added]

    def shared(self, rows: int) -> int:
        """Return the bytes of `rows` rows of tiles."""
        return rows * self.padded * self.q.itemsize


@kernel("attention", "cuda", accepts=half_attention)
def attention(
    q: Array, k: Array, v: Array, bias: Array | None, scale: float, is_causal: bool, groups: int
) -> tuple[Array, tuple[Array, Array]]:
    """Return softmax(q kᵀ · scale + bias) v, and for backward the output and two numbers for each query.

    Shapes:  q (B, H, T, K), k (B, G, S, K), v (B, G, S, E), bias to broadcast -> (B, H, T, E), in memory (B, T, H, E)
    """
    call = _Call(q, k, v, bias, scale, is_causal, groups)
    blocks = call.blocks(FORWARD)
    if call.queries <= FEWEST:  # with more rows, warps would have none
        blocks = blocks._replace(warps=4, tiles=1)
    y = _heads_last((*q.shape[:3], call.value_width), q, q.dtype)
    stats = array_module(q).empty((*q.shape[:3], 2), FLOAT32)
    kernel = load("flash_attention.cu", "flash_attention", **call.defines, **blocks.defines("KEYS"))
    launch(
        kernel, (call.heads, -(-call.queries // blocks.rows), call.batch), (blocks.warps * WARP,),
        call.q, call.k, call.v, bias, y, stats, *call.sizes, *call.strides, *_strides(y), *call.by_mask, *call.last,
        shared=call.shared(blocks.rows + 4 * blocks.step),
    )  # fmt: skip
    return y, (y, stats)


@kernel("attention_backward", "cuda", accepts=half_attention_backward)
def attention_backward(
    g: Array, q: Array, k: Array, v: Array, bias: Array | None, stats: Any, scale: float, is_causal: bool, groups: int
) -> tuple[Array, Array, Array]:
    """Return the gradients of q, k and v, in the dtype of g, from that of the output and the stats of the forward pass.

    In memory they are (B, T, H, K) and (B, S, G, K). They have the same bits in every run.
    """
    call = _Call(q, k, v, bias, scale, is_causal, groups)
    call.defines["G"] = element(g)
    rounded, records = _prepare(call, g, *stats)
    operands = (rounded, call.q, call.k, call.v, bias, records)
    dq, dk, dv = (_heads_last(x.shape, x, g.dtype) for x in (q, k, v))

    blocks = call.blocks(BACKWARD_Q)
    defines = call.defines | blocks.defines("KEYS")
    kernel = load("flash_attention_backward_q.cu", "flash_attention_backward_q", **defines)
    launch(
        kernel, (call.heads, -(-call.queries // blocks.rows), call.batch), (blocks.warps * WARP,),
        *operands, dq, *call.sizes, *call.strides, *_strides(dq), *call.by_mask, *call.last,
        shared=call.shared(2 * blocks.rows + 4 * blocks.step),
    )  # fmt: skip

    blocks = call.blocks(BACKWARD_KV)
    defines = call.defines | blocks.defines("QUERIES")
    kernel = load("flash_attention_backward_kv.cu", "flash_attention_backward_kv", **defines)
    launch(
        kernel, (call.kv_heads, -(-call.keys // blocks.rows), call.batch), (blocks.warps * WARP,),
        *operands, dk, dv, *call.sizes, *call.strides, *_strides(dk), *_strides(dv), *call.by_mask, *call.last,
        shared=call.shared(2 * blocks.rows + 4 * blocks.step) + 2 * blocks.step * CHUNK,
    )  # fmt: skip
    return dq, dk, dv


def _prepare(call: _Call, g: Array, y: Array, stats: Array) -> tuple[Array, Array]:
    """Return g in the dtype of y, contiguous, and a record per query to recompute the weights and their gradients."""
    xp, g = array_module(g), _rows(g)
    rounded = xp.empty(g.shape, y.dtype)
    records = xp.empty((*g.shape[:3], 4), FLOAT32)
    rows, warps = g.size // call.value_width, 8
    kernel = load("flash_attention_rows.cu", "flash_attention_rows", G=element(g), X=element(y))
    launch(
        kernel, (-(-rows // warps),), (warps * WARP,),
        g, y, stats, rounded, records, call.heads, call.queries, call.value_width, rows, *_strides(g), *_strides(y),
    )  # fmt: skip
    return rounded, records


def _rows(x: Array) -> Array:
    """Return an array whose rows can be read 16 bytes at a time: x itself, if its strides allow that."""
    aligned = x.data.ptr % CHUNK == 0 and all(stride % CHUNK == 0 for stride in x.strides[:-1])
    return x if aligned and x.strides[-1] == x.itemsize else x.copy()


def _strides(x: Array) -> tuple[int, ...]:
    """Return the strides of batch, head and row, in elements."""
    return tuple(stride // x.itemsize for stride in x.strides[:-1])


def _heads_last(shape: tuple[int, ...], like: Array, dtype: Any) -> Array:
    """Return an empty array (B, H, T, K) that is (B, T, H, K) in memory, so that merging the heads is a view."""
    batch, heads, length, width = shape
    return array_module(like).empty((batch, length, heads, width), dtype).transpose(0, 2, 1, 3)


def float_one_query(q: Array, k: Array, v: Array, scale: float) -> bool:
    """Float arrays q (B, H, 1, K), k and v (B, G, S, K), G dividing H; rows of k multiples of 16 bytes, at most 512.

    float32, float16 or bfloat16, with no empty axis.
    """
    if not (is_float(q, k, v) and k.dtype == v.dtype and q.ndim == k.ndim == v.ndim == 4 and k.shape == v.shape):
        return False
    fits = q.shape[2] == 1 and k.size > 0 and q.size > 0 and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
    row = k.shape[3] * k.itemsize
    fits = fits and q.shape[1] % k.shape[1] == 0 and row % CHUNK == 0 and row <= WARP * CHUNK
    return fits and max(q.shape[0], q.shape[1]) <= MOST


@kernel("attention_decode", "cuda", accepts=float_one_query)
def attention_decode(q: Array, k: Array, v: Array, scale: float) -> Array:
    """Return softmax(q kᵀ · scale) v for one query position; k and v may be views of a longer cache.

    Shapes:  q (B, H, 1, K), k and v (B, G, S, K), G divides H -> (B, H, 1, K), in the dtype of q
    """
    return attend_to_cache(q, k, v, scale)


BLOCKS = 512  # enough to keep a large card busy
FEWEST_KEYS = 128  # minimum keys per block
MOST_SPLITS = 64
MOST_HEADS = 8  # per block, limited by registers


def attend_to_cache(q: Array, k: Array, v: Array, scale: float, places: Array | None = None) -> Array:
    """Return softmax(q kᵀ · scale) v for one query position of each text.

    Args:  places: for each query its text of the cache, and the last and the first key that it sees; int64 (B, 3) on
           the device, read when the kernel runs, so that a captured graph uses its current values. None means all keys
           of its own text.

    Shapes:  q (B, H, 1, K), k and v (B, G, S, K), or (N, G, S, K) with `places`; G divides H -> (B, H, 1, K), in the
             dtype of q; see float_one_query
    """
    fits = float_one_query(*((q, k, v) if places is None else (q[:1], k[:1], v[:1])), scale)
    if not fits or (places is not None and (places.dtype != "int64" or places.shape != (q.shape[0], 3))):
        raise ShapeError(f"attention_decode: q {q.shape}, k {k.shape} and v {v.shape} do not fit each other")
    xp, q, k, v = array_module(q), contiguous(q), _rows(k), _rows(v)
    batch, heads, _, width = q.shape
    kv_heads, keys = k.shape[1:3]
    groups = heads // kv_heads
    heads_per_block = min(groups, MOST_HEADS)
    blocks = kv_heads * -(-groups // heads_per_block)
    splits = max(1, min(MOST_SPLITS, BLOCKS // (batch * blocks), -(-keys // FEWEST_KEYS)))
    y, parts, tops = xp.empty(q.shape, q.dtype), None, None
    if splits > 1:
        parts, tops = xp.empty((batch, heads, splits, width), FLOAT32), xp.empty((batch, heads, splits, 2), FLOAT32)

    padded = CHUNK // k.itemsize << (width * k.itemsize // CHUNK - 1).bit_length()
    defines: dict[str, Any] = {"Q": element(q), "X": element(k), "WIDTH": padded, "HEADS": heads_per_block}
    kernel = load("attention_decode.cu", "attention_decode", **defines)
    launch(
        kernel, (splits, blocks, batch), (WARPS * WARP,),
        q, k, v, optional_contiguous(places), y, parts, tops, heads, groups, keys, width,
        *_strides(k), *_strides(v), float(scale), waits=True,
    )  # fmt: skip
    if splits > 1:
        combine = load("attention_decode.cu", "attention_combine", **defines)
        threads = min(WIDEST, -(-width // WARP) * WARP)
        launch(combine, (batch * heads,), (threads,), parts, tops, y, splits, width, waits=True)
    return y
