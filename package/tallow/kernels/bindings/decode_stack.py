"""decode_blocks; see tallow.kernels.blocks.decode_stack and src/blocks/decode_blocks_f32.c."""

from __future__ import annotations

import ctypes

import numpy as np

from tallow.dtypes import Array
from tallow.errors import KernelUnavailable
from tallow.kernels.bindings import stages
from tallow.kernels.bindings.arrays import FLOAT32, address, optional_address
from tallow.kernels.bindings.matrices import DTYPES, Part, format_number, is_plain, work
from tallow.kernels.bindings.short_convolution import MOST_TAPS
from tallow.kernels.blocks.affine import Matrix, memory
from tallow.kernels.blocks.decode_block import Block, DecodeBlock
from tallow.kernels.blocks.decode_stack import DecodeStack, check_rows
from tallow.kernels.blocks.state_block import GatedConvolution, GatedDeltaRule, StateBlock
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.quantized.int8_rows import INT8, Int8Rows
from tallow.kernels.table import kernel

_decode_blocks = function("tl_decode_blocks_f32", None, POINTER, POINTER, POINTER)
_shared = function("tl_decode_shared", SIZE, POINTER, SIZE)
_private = function("tl_decode_private", SIZE, POINTER, SIZE)
STAGES = 10  # of a block
_CACHE_FORMATS = DTYPES | {INT8: -1}
_NORM, _OUTPUT, _OUTPUT_BIAS = 0, 4, 16  # of the arrays of a block


class _Mixer(ctypes.Structure):
    """`state_mixer` of state_mixer.h."""

    _fields_ = [
        ("inputs", Part * 4), ("widths", SIZE * 4), ("weight", POINTER), ("bias", POINTER), ("past", POINTER),
        ("channels", SIZE), ("taps", SIZE), ("log_rate", POINTER), ("size_bias", POINTER), ("norm", POINTER),
        ("state", POINTER), ("heads", SIZE), ("key_heads", SIZE), ("key_width", SIZE), ("value_width", SIZE),
        ("tiled", ctypes.c_int32),
    ]  # fmt: skip

    @classmethod
    def of(cls, mixer: GatedConvolution | GatedDeltaRule) -> _Mixer:
        """Return the addresses of the arrays, which are valid as long as those."""
        parts, widths = zip(*mixer.inputs.values(), strict=True)
        names = ("weight", "bias", "past", "log_rate", "size_bias", "norm", "state")
        made = cls((Part * 4)(*map(Part.of, parts)), (SIZE * 4)(*widths))
        for name in names:
            setattr(made, name, optional_address(getattr(mixer, name, None)))
        made.channels, made.taps = mixer.weight.shape
        if isinstance(mixer, GatedDeltaRule):
            _, made.heads, made.key_width, made.value_width = mixer.state.shape
            made.key_heads, made.tiled = mixer.key_heads, mixer.tiled
        return made


class _Block(ctypes.Structure):
    """`decode_block` of decode_blocks_f32.c: first the arrays in the order of DecodeBlock.weights."""

    _fields_ = [
        ("weights", POINTER * 17), ("caches", POINTER * 4), ("mixer", ctypes.POINTER(_Mixer)),
        ("width", SIZE), ("heads", SIZE), ("kv_heads", SIZE), ("head_width", SIZE), ("hidden", SIZE),
        ("positions", SIZE), ("rotated", SIZE),
        ("formats", ctypes.c_int32 * 7), ("interleaved", ctypes.c_int32), ("norms_all", ctypes.c_int32),
        ("gated", ctypes.c_int32), ("cache_format", ctypes.c_int32),
        ("eps", ctypes.c_float),
    ]  # fmt: skip


class _Stack(ctypes.Structure):
    """`decode_stack` of decode_blocks_f32.c."""

    _fields_ = [("blocks", POINTER), ("norm", POINTER), ("count", SIZE), ("eps", ctypes.c_float)]


class _Call(ctypes.Structure):
    """`decode_call` of decode_blocks_f32.c."""

    _fields_ = [
        ("x", POINTER), ("places", POINTER), ("scratch", POINTER), ("rows", SIZE), ("stages", stages.Stages),
    ]  # fmt: skip


class PackedStack:
    """The C structs of a stack. Their addresses are valid as long as the stack, which owns the arrays."""

    def __init__(self, stack: DecodeStack) -> None:
        if not _can_be_packed(stack):
            raise KernelUnavailable(
                "decode_blocks: the arrays of a block do not meet the kernel's requirements; see kernels.explain"
            )
        self.blocks = (_Block * len(stack.blocks))(*map(_packed_block, stack.blocks))
        norm = optional_address(stack.norm)
        self.stack = _Stack(ctypes.addressof(self.blocks), norm, len(stack.blocks), stack.eps)
        self.pointer = ctypes.addressof(self.stack)
        self.place = np.zeros((1, 3), np.int64)
        self.place_address = address(self.place)
        self.call = _Call()
        self.call_pointer = ctypes.addressof(self.call)
        self.work = sum(work(matrix) for block in stack.blocks for matrix in block.matrices)
        self.end = len(stack.blocks) * STAGES + 1
        self.reserve(1)

    def reserve(self, rows: int) -> None:
        """Allocate scratch for this many rows."""
        self.rows = rows
        self.scratch = np.empty(_shared(self.pointer, rows), FLOAT32)
        self.call.scratch = address(self.scratch)
        self.private_size = _private(self.pointer, rows)

    def run(self, y: Array, places: Array | None, rows: int) -> None:
        """Compute in place the rows of y, at `places`; one row at `self.place` if None."""
        if rows > self.rows:
            self.reserve(rows)
        call = self.call
        call.x, call.places, call.rows = address(y), self.place_address if places is None else address(places), rows
        work, addresses = rows * self.work, (self.pointer, self.call_pointer)
        stages.run(call.stages, self.end, work, _decode_blocks, *addresses, self.private_size)


def _packed_block(block: Block) -> _Block:
    if isinstance(block, StateBlock):
        return _packed_states(block)
    assert isinstance(block, DecodeBlock)
    sizes = (block.width, block.heads, block.kv_heads, block.head_width, block.hidden, block.positions, block.rotated)
    weights = (POINTER * 17)(*[optional_address(a if a is None else memory(a)) for a in block.weights])
    caches = (POINTER * 4)(*[optional_address(a) for cache in block.caches for a in _codes_and_scales(cache)])
    formats = (ctypes.c_int32 * 7)(*[number for m in block.matrices if (number := format_number(m)) is not None])
    cache_format = _CACHE_FORMATS[block.key_cache.dtype]
    settings = block.interleaved, block.norms_all, block.gated, cache_format, block.eps
    return _Block(weights, caches, None, *sizes, formats, *settings)


def _packed_states(block: StateBlock) -> _Block:
    """Return the block with the number of mixed values as the width of one head, and no cache."""
    ends: tuple[Matrix | None, ...] = (block.output.weight, None, block.gate, block.up, block.down)
    weights, formats = (POINTER * 17)(), (ctypes.c_int32 * 7)()
    weights[_NORM], weights[_OUTPUT + 1] = address(block.norm), address(block.mlp_norm)
    for i, matrix in enumerate(ends):
        if matrix is not None:
            weights[_OUTPUT + i] = address(memory(matrix))
            formats[3 + max(0, i - 1)] = format_number(matrix) or 0
    weights[_OUTPUT_BIAS] = optional_address(block.output.bias)
    made = _Block(weights, (POINTER * 4)(), ctypes.pointer(_Mixer.of(block.mixer)), block.width)
    made.heads, made.kv_heads, made.head_width, made.hidden = 1, 1, block.mixer.mixed, block.hidden
    made.formats, made.eps = formats, block.eps
    return made


def _codes_and_scales(cache: Array | Int8Rows) -> tuple[Array, Array | None]:
    return (cache.codes, cache.scales) if cache.dtype == INT8 else (cache, None)


def float32_rows(x: Array, stack: DecodeStack, places: int | Array) -> bool:
    """Contiguous float32 rows, and blocks of contiguous, aligned NumPy arrays, with writable caches and without mlp."""
    if any(block.mlp is not None for block in stack.blocks) or not are_integers(places):
        return False
    return x.dtype == FLOAT32 and (stack.packed is not None or _can_be_packed(stack))


def are_integers(places: int | Array) -> bool:
    """Return whether places may be those of rows."""
    return isinstance(places, int) or (places.ndim == 2 and places.dtype.kind == "i")


def _can_be_packed(stack: DecodeStack) -> bool:
    return all(map(block_can_be_packed, stack.blocks)) and (stack.norm is None or is_plain(stack.norm))


def block_can_be_packed(block: Block) -> bool:
    """Return whether the kernels read all arrays of a block."""
    if isinstance(block, StateBlock):
        writable = all(state.flags.writeable for state in block.mixer.states)
        few = block.mixer.weight.shape[1] <= MOST_TAPS
        known = all(format_number(matrix) is not None and is_plain(memory(matrix)) for matrix in block.matrices)
        return few and writable and known and all(map(is_plain, block.arrays()))
    assert isinstance(block, DecodeBlock)
    caches = [array for cache in block.caches for array in _codes_and_scales(cache) if array is not None]
    if not all(is_plain(array) and array.flags.writeable for array in caches):
        return False
    if any(format_number(matrix) is None for matrix in block.matrices):
        return False
    return all(array is None or is_plain(memory(array)) for array in block.weights)


@kernel("decode_blocks", BACKEND, accepts=float32_rows)
def decode_blocks(x: Array, stack: DecodeStack, places: int | Array) -> Array:
    """Compute tallow.kernels.blocks.decode_stack.decode_blocks.

    A stack serves one caller at a time: it owns the scratch.
    """
    check_rows(x, stack, places)
    if stack.packed is None:
        stack.packed = PackedStack(stack)
    return computed(x, stack.packed, places)  # type: ignore[arg-type]


def computed(x: Array, packed: PackedStack, places: int | Array) -> Array:
    """Return the rows after the blocks."""
    y = np.array(x, FLOAT32, order="C")
    if isinstance(places, int):
        packed.place[0, 1] = places
        packed.run(y, None, 1)
    else:
        packed.run(y, np.ascontiguousarray(places, np.int64), len(y))
    return y
