"""The compiled libraries, and behaviour without them."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paths import ROOT
from support.quantized_blocks import COMPILED, random_matrix

from tallow import kernels
from tallow.errors import KernelUnavailable
from tallow.kernels import library
from tallow.kernels.quantized.gguf_blocks import FORMATS

KNOWN = platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64") or library.IN_BROWSER
ALL = [
    *(
        "adam_step",
        "add",
        "add_along",
        "add_rows",
        "arrange_blocks",
        "clamp",
        "clamp_backward",
        "clamp_min",
        "clamp_max",
        "attention",
        "attention_backward",
        "attention_decode",
        "leaky_relu_backward",
    ),
    *("cast_half", "chain", "channel_norm", "channel_norm_backward"),
    *("convolution", "convolution_dw", "convolution_dx"),
    *("csr_matmul", "csr_matmul_transposed", "csr_sampled"),
    *("cross_decode_block", "cross_entropy", "cross_entropy_backward", "decode_block", "decode_blocks"),
    *("image_convolution", "image_max_pool", "integer_convolution", "integer_product", "quantize_u8"),
    *("div", "encoder_blocks", "fft_complex", "fft_of_real", "fft_to_real", "formula", "gelu", "gelu_backward", "gru"),
    *("hardswish", "hardswish_backward", "huber_error", "lerp"),
    *("layer_norm", "layer_norm_backward", "linear", "log_softmax", "log_softmax_backward"),
    *("log_softmax_columns", "log_softmax_columns_backward"),
    *(
        "lstm",
        "lstm_backward",
        "matmul",
        "max_pool",
        "max_pool_backward",
        "mul",
        "quantized_linear",
        "relu",
        "relu_backward",
    ),
    *(
        "rms_norm",
        "rotary",
        "row_squares",
        "row_sums",
        "running_sum",
        "scaled_exp",
        "select",
        "sgd_step",
        "sgd_steps",
        "sigmoid",
    ),
    *(
        "silu",
        "silu_mul",
        "softmax",
        "softmax_backward",
        "softmax_columns",
        "softmax_columns_backward",
        "spectra_of_frames",
    ),
    *("sub",),
    *("sum_exp", "take_along", "take_rows"),
    *("delta_rule", "selective_scan", "short_convolution", "state_block"),
]
ALL = sorted(ALL if library.IN_BROWSER else [*ALL, "erf", "experts"])

# Run every elementwise kernel on arrays whose last byte is the last of its memory page, before a protected page: a
# kernel that reads or writes one element too many crashes.
AT_THE_EDGE = """
import ctypes, json, math, mmap
import numpy as np
from tallow import kernels
from tallow.kernels import library

kernels.info()
libc = ctypes.CDLL(None, use_errno=True)
keep = []

def edge(shape, dtype=np.float64):
    size = math.prod(shape if isinstance(shape, tuple) else (shape,)) * np.dtype(dtype).itemsize
    pages = -(-size // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    forbidden = ctypes.c_void_p(start + pages * mmap.PAGESIZE)
    assert libc.mprotect(forbidden, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    keep.append(memory)
    return np.frombuffer(memory, dtype, size // np.dtype(dtype).itemsize, pages * mmap.PAGESIZE - size).reshape(shape)

def normal(*shape, dtype=np.float32):
    x = edge(shape, dtype)
    x[...] = np.random.standard_normal(shape).astype(dtype)
    return x

np.empty = edge
fn = {name: kernels.KERNELS[name, library.BACKEND].fn for name, b in kernels.KERNELS if b == library.BACKEND}
from tallow.kernels.bindings.matmul import matmul
from tallow.kernels.blocks.affine import Affine
from tallow.kernels.blocks.encoder_block import EncoderBlock
from tallow.kernels.blocks.image_convolution import ImageConvolution
from tallow.kernels.quantized.integer_product import IntegerMatrix
from tallow.kernels.bindings.quantized_linear import FORMATS
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS as LAYOUTS
for name in FORMATS:
    layout = LAYOUTS[name]
    for k in (layout.weights, 3 * layout.weights):
        blocks = edge((7, k // layout.weights * layout.record.itemsize), np.uint8)
        blocks[...] = np.random.randint(0, 60, blocks.shape)
        for rows in range(1, 8):
            fn["quantized_linear"](normal(rows, k), BlockMatrix(blocks, name), normal(7))
for n in (*range(1, 20), 33, 100):
    x, w = normal(3, n), normal(n)
    fn["softmax"](x), fn["sigmoid"](x), fn["silu"](x), fn["silu_mul"](x, normal(3, n))
    fn["gelu"](x, "none"), fn["gelu"](x, "tanh")
    mask, places = edge((3, n), np.bool_), edge((3, n), np.int64)
    mask[...], places[...] = True, n - 1
    fn["clamp_min"](x, 0.5), fn["clamp_max"](x, 0.5), fn["leaky_relu_backward"](x, x, 0.5), fn["erf"](x)
    for length in (n,) if n in (2, 4, 6, 10, 12, 15, 18, 100) else ():
        spectrum = fn["fft_complex"](normal(9, 2 * length).view(np.complex64), (-1,), "backward", False)
        assert spectrum.shape == (9, length)
        fn["fft_to_real"](fn["fft_of_real"](normal(17, 2 * length), -1, "ortho"), 2 * length, -1, "ortho")
        fn["spectra_of_frames"](normal(2, 5 * length), normal(2 * length), 3, "ortho")
    fn["delta_rule"](*(normal(2, 1, 3, k) for k in (5, 5, n)), normal(2, 1, 3), normal(2, 1, 3), normal(2, 1, 5, n))
    fn["selective_scan"](*(normal(2, 3, n) for _ in range(2)), normal(n, 3), *normal(2, 2, 3, 3), normal(2, n, 3))
    fn["short_convolution"](normal(2, 3, n), normal(2, 3, n), normal(n, 4), normal(n))
    fn["running_sum"](x, 0, False), fn["running_sum"](x, 0, True), fn["running_sum"](x, 1, True)
    fn["select"](mask, x, x), fn["select"](mask, x, 1.0), fn["select"](mask, 0.0, x)
    for axis, index in ((1, places), (1, places[0]), (0, places // n), (0, places[0, :1] // n)):
        fn["add_along"](x, index, fn["take_along"](x, index, axis), axis)
    fn["scaled_exp"](x, *fn["sum_exp"](x)), fn["log_softmax"](x), fn["row_sums"](x)
    classes = np.arange(len(x)) % x.shape[1], None, -100, 0.0
    _, _, highest, total = fn["cross_entropy"](x, *classes)
    fn["cross_entropy_backward"](normal(3), x, *classes, highest, total, x.dtype)
    fn["softmax_backward"](x, x), fn["log_softmax_backward"](x, x)
    fn["gelu_backward"](x, x, "none"), fn["gelu_backward"](x, x, "tanh"), fn["layer_norm_backward"](x, x, w, 1e-5)
    fn["rms_norm"](x, w, 1e-5), fn["layer_norm"](x, w, normal(n), 1e-5)
    fn["rotary"](normal(2, 3, 2 * n), normal(3, n), normal(3, n), True)
    fn["rotary"](normal(2, 3, 2 * n), normal(3, n), normal(3, n), False)
    fn["attention_decode"](normal(1, 4, 1, n), normal(1, 2, 5, n), normal(1, 2, 5, n), 1.0)
    q, k, v = normal(1, 4, 3, n), normal(1, 2, 5, n), normal(1, 2, 5, n + 1)
    for causal, bias in [(True, None), (False, normal(1, 3, 5)), (False, normal(3, 1))]:
        y, stats = fn["attention"](q, k, v, bias, 1.0, causal, 2)
        fn["attention_backward"](y, q, k, v, bias, stats, 1.0, causal, 2)
    x, w, g, settings = normal(2, 2, 3, n), normal(3, 2, 2, 1), normal(2, 3, 4, n), ((1, 1), (1, 0), (1, 1), 1)
    fn["convolution"](x, w, normal(3), *settings, (4, n)), fn["convolution_dx"](g, w, *settings, (3, n))
    fn["convolution_dw"](x, g, *settings, (3, 2, 2, 1))
    for stride, out in [((1, 1), (4, n)), ((2, 3), (2, (n - 1) // 3 + 1))]:
        w, g, settings = normal(2, 1, 2, 1), normal(2, 2, *out), (stride, (1, 0), (1, 1), 2)
        fn["convolution"](x, w, normal(2), *settings, out), fn["convolution_dx"](g, w, *settings, (3, n))
        fn["convolution_dw"](x, g, *settings, w.shape)
    for groups, shape in ((1, (n, n, 2, 1)), (n, (n, 1, 2, 1))):
        given = normal(*shape), normal(n), (1, 2), (1, 0), (0, 0), (1, 1), groups, "silu"
        image = fn["image_convolution"](normal(1, n, 4, 3), ImageConvolution(*given), normal(1, n, 4, 2))
    fn["image_max_pool"](image, (2, 2), (2, 1), (0, 1), (1, 1), (2, 3))
    codes, matrix = edge((5, n), np.uint8), IntegerMatrix(edge((n, n), np.int16))
    codes[...], matrix.codes[...] = 255, -128
    fn["integer_product"](codes, matrix, 3), fn["integer_product"](codes, matrix, 3, normal(n), normal(n))
    fn["quantize_u8"](normal(3, n), np.float32(0.5), 7)
    y, mean, var = fn["channel_norm"](x, (2, 2), 0, normal(2), normal(2), 1e-5)
    fn["channel_norm_backward"](y, x, (2, 2), 0, mean, var, normal(2), 1e-5)
    windows = ((2, 2), (2, 1), (0, 1), (1, 1))
    y, places = fn["max_pool"](normal(2, 4, n), *windows, (2, n + 1))
    fn["max_pool_backward"](y, normal(2, 4, n), places, *windows)
    fn["adam_step"](*[normal(n) for _ in range(5)], 0.9, 0.999, 0.1, 1.0, 1e-8, 0.0, 1.0, False)
    fn["adam_step"](*[normal(n) for _ in range(4)], None, 0.9, 0.999, 0.1, 1.0, 1e-8, 0.0, 1.0, True)
    steps = [(slice(0, 2), 2), (slice(2, 3), 1)]
    y, h, c, gates, _, last_c, tanh_c = fn["lstm"](
        normal(3, 4 * n), normal(2, n), normal(2, n), normal(4 * n, n), None, steps
    )
    fn["lstm_backward"](y, h, c, gates, last_c, tanh_c, normal(4 * n, n), None, steps)
    fn["gru"](normal(3, 3 * n), normal(2, n), normal(3 * n, n), normal(3 * n), steps)
    square, norm = Affine(normal(n, n), normal(n)), Affine(normal(n), normal(n))
    up, down = Affine(normal(5, n), normal(5)), Affine(normal(n, 5), normal(n))
    block = EncoderBlock(square, square, square, square, norm, up, down, norm, 1, 1e-5)
    fn["encoder_blocks"](normal(20, n), [block], np.array([0, 17, 20]), None)
    fn["sgd_step"](normal(n), normal(n), normal(n), 0.1, 0.9, 0.0, 0.1, True, False)
    fn["sgd_step"](normal(n), normal(n), None, 0.1, 0.9, 0.0, 0.1, False, True)
    for dtype in (np.float32, np.float16):
        for rows in range(1, 6):
            fn["linear"](normal(rows, n), normal(7, n, dtype=dtype), normal(7))
    for m in (1, 2, 5, 9):
        for a in (normal(m, n), normal(n, m).T):
            for b in (normal(n, 9), normal(9, n).T, normal(n, 1)):
                matmul(a, b)
print(json.dumps("survived"))
"""


@pytest.mark.skipif(not KNOWN, reason=f"no compiled kernels for {platform.machine()}")
def test_the_library_is_built_and_loads() -> None:
    info = kernels.info()
    assert info.reason == ""
    assert list(info.kernels) == ALL
    assert info.library.split()[0] == library.BACKEND
    assert ", ".join(ALL) in str(info)


def test_info_says_that_kernels_are_switched_off() -> None:
    with kernels.off():
        assert str(kernels.info()).endswith("switched off")


def test_a_missing_library_is_reported_and_the_array_code_computes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(library, "FOLDER", str(tmp_path))
    monkeypatch.setattr(library, "_loaded", library.NOTHING)
    absent = library.provide()
    assert "python build_kernels.py" in absent[library.BACKEND]
    assert library._loaded.name == "none"
    assert "python build_kernels.py" in library._loaded.reason


@pytest.mark.native
@pytest.mark.skipif(not KNOWN, reason=f"no compiled kernels for {platform.machine()}")
def test_a_library_older_than_its_sources_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "_loaded", library.NOTHING)
    monkeypatch.setattr(library, "SOURCES", str(tmp_path))
    (tmp_path / "changed.c").write_text("// after the build")
    advice = "older than their sources; run `python build_kernels.py`"
    with pytest.warns(UserWarning, match=advice):
        assert advice in library.provide()["native"]


@pytest.mark.native
@pytest.mark.skipif(not KNOWN, reason=f"no compiled kernels for {platform.machine()}")
@pytest.mark.parametrize("whole", [0, 1])
@pytest.mark.parametrize("is_checkout", [True, False])
def test_a_library_that_does_not_load_is_not_used(
    whole: int, is_checkout: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first library, or another one, is damaged: a checkout warns, and an installed wheel computes in silence."""
    kernels.info()
    files = (path for path in Path(library.FOLDER).iterdir() if path.suffix in (".so", ".dylib", ".dll"))
    for i, path in enumerate(sorted(files, key=lambda path: len(path.stem))):  # the one for all processors first
        if i < whole and path.samefile(library.path()):
            pytest.skip("this processor loads no other")
        (tmp_path / path.name).write_bytes(path.read_bytes() if i < whole else b"damaged")
    monkeypatch.setattr(library, "FOLDER", str(tmp_path))
    monkeypatch.setattr(library, "_loaded", library.NOTHING)
    if not is_checkout:
        monkeypatch.setattr(library, "SOURCES", str(tmp_path / "src"))
    expectation = pytest.warns(UserWarning, match="build_kernels.py") if is_checkout else nullcontext()
    with expectation:
        assert "do not load" in library.provide()["native"]


def test_a_library_of_other_sources_is_reported() -> None:
    kernels.info()
    with pytest.raises(KernelUnavailable, match="has no tl_no_such_kernel; it was built from other sources"):
        library.function("tl_no_such_kernel", None)


@pytest.mark.native
def test_importing_loads_nothing() -> None:
    code = "import sys, tallow.kernels as k; print(k.library._loaded.name, 'tallow.kernels.bindings' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["none", "False"]


@pytest.mark.native
@pytest.mark.skipif(sys.platform != "linux" or not KNOWN, reason="needs mprotect and a compiled library")
def test_no_kernel_touches_memory_beyond_its_arrays() -> None:
    process = subprocess.run([sys.executable, "-c", AT_THE_EDGE], capture_output=True, text=True)
    assert process.returncode == 0, f"exit {process.returncode}: {process.stderr[-2000:]}"
    assert json.loads(process.stdout) == "survived"


@pytest.mark.native
@pytest.mark.skipif(sys.platform != "linux" or not KNOWN, reason="needs mprotect and a compiled library")
def test_an_access_beyond_an_array_crashes() -> None:
    set_up = AT_THE_EDGE.partition("np.empty = edge")[0]
    one_too_many = (
        "x = normal(8); silu = library.function('tl_silu_f32', None, *[ctypes.c_void_p] * 2, ctypes.c_size_t)\n"
    )
    one_too_many += "silu(x.ctypes.data, x.ctypes.data, 9)"
    process = subprocess.run([sys.executable, "-c", set_up + one_too_many], capture_output=True, text=True)
    assert process.returncode == -signal.SIGSEGV


@pytest.mark.native
def test_the_build_writes_the_file_the_loader_expects(tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="the compiler comes from the PyPI package ziglang")
    command = [sys.executable, str(ROOT / "build_kernels.py"), "--out", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert process.returncode == 0, process.stderr
    files = {path.name for path in tmp_path.iterdir()}
    assert {"tallow-wasm-simd128.wasm", "tallow-wasm-relaxed-simd.wasm"} <= files
    assert all((tmp_path / name).read_bytes()[:4] == b"\0asm" for name in files if "wasm" in name)
    if KNOWN:
        library_of_host = [name for name in files if "wasm" not in name]
        assert library_of_host
        assert all((tmp_path / name).stat().st_size < 352 * 2**10 for name in files)


X86_64 = [Path(library.FOLDER, f"tallow-x86-64{level}.so") for level in ("", "-v3", "-v4")]
TILES = Path(library.FOLDER, "tallow-x86-64-v4-amx.so")
ON_X86_64 = pytest.mark.skipif(not X86_64[0].exists(), reason="not on x86-64 Linux, or not built")


class OfLevel:
    """A library that takes this processor for another."""

    def __init__(self, path: str, level: int, **others: int) -> None:
        self.name, self.library = Path(path).stem, ctypes.CDLL(path)
        self.answers = {"tl_cpu_level": level, **others}

    def __getattr__(self, name: str) -> Any:
        return (lambda *_: self.answers[name]) if name in self.answers else getattr(self.library, name)


@pytest.mark.native
@ON_X86_64
@pytest.mark.parametrize(
    ("level", "files", "name", "loaded"),
    [
        (4, 3, "native x86-64-v4", ["tallow-x86-64-v4", "tallow-x86-64-v3"]),
        (4, 2, "native x86-64-v3", ["tallow-x86-64-v3"]),
        (3, 3, "native x86-64-v3", ["tallow-x86-64-v3"]),
        (1, 3, "native x86-64", ["tallow-x86-64"]),
        (4, 1, "native x86-64", ["tallow-x86-64"]),
    ],
)
def test_the_best_library_for_the_processor_is_loaded(
    level: int, files: int, name: str, loaded: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in X86_64[:files]:
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(library, "FOLDER", str(tmp_path))
    monkeypatch.setattr(library, "_open", lambda file: OfLevel(str(tmp_path / file), level))
    found = library._load_native()
    assert found.name == name
    assert [handle.name for handle in found.handles] == loaded  # type: ignore[attr-defined]


@pytest.mark.native
@pytest.mark.skipif(not TILES.exists(), reason="not on x86-64 Linux, or not built")
@pytest.mark.parametrize(
    ("tiles", "dots", "exact", "unit"),
    [(1, 1, 1, "-amx"), (0, 1, 1, "-bf16"), (1, 1, 0, ""), (0, 1, 0, ""), (0, 0, 1, "")],
)
def test_products_of_halves_are_used_where_they_are_allowed_and_exact(
    tiles: int, dots: int, exact: int, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"tl_allow_tiles": tiles, "tl_has_fast_dots": dots, "tl_tiles_are_exact": exact}
    answers |= {
        "tl_use_tiles": 0,
        "tl_use_products": 0,
    }  # or this process would go on with instructions that it may lack
    monkeypatch.setattr(library, "_open", lambda file: OfLevel(os.path.join(library.FOLDER, file), 4, **answers))
    found = library._load_native()
    first = [f"tallow-x86-64-v4{unit}"] if unit else []
    assert found.name == f"native x86-64-v4{unit}"
    assert [handle.name for handle in found.handles] == [*first, *(path.stem for path in X86_64[:0:-1])]  # type: ignore[attr-defined]


@pytest.mark.native
@ON_X86_64
@pytest.mark.parametrize(("capabilities", "name"), [(1 << 20, "native aarch64-dot"), (1 << 19, "native aarch64")])
def test_the_dot_product_of_aarch64_is_used_where_there_is_one(
    capabilities: int, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By Linux' bit for the instruction; the libraries are copies of one for this processor."""
    monkeypatch.syspath_prepend(ROOT)
    import build_kernels

    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    for variant in build_kernels.variants("native"):
        shutil.copy(X86_64[0], tmp_path / variant.file)
    monkeypatch.setattr(library, "FOLDER", str(tmp_path))
    monkeypatch.setattr(library, "_open", lambda file: OfLevel(str(tmp_path / file), 0))
    monkeypatch.setattr(library, "_capabilities", lambda: capabilities)
    assert library._load_native().name == name


@pytest.mark.native
@ON_X86_64
def test_the_level_is_that_of_the_flags_of_the_processor() -> None:
    """The kernel lists what it and the processor support."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    flags = set(next(line for line in lines if line.startswith("flags")).partition(":")[2].split())
    v3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"} <= flags
    v4 = v3 and {*(f"avx512{part}" for part in ("f", "bw", "cd", "dq", "vl")), "avx512_vnni"} <= flags
    library = ctypes.CDLL(str(X86_64[0]))
    assert library.tl_cpu_level() == (4 if v4 else 3 if v3 else 1)
    is_amd = any(line.startswith("vendor_id") and "AuthenticAMD" in line for line in lines)
    assert library.tl_has_fast_dots() == (v4 and is_amd and "avx512_bf16" in flags)
    if not {"amx_tile", "amx_bf16", "amx_int8"} <= flags:  # where they are, the kernel may refuse them
        assert not library.tl_allow_tiles()


@pytest.mark.native
@ON_X86_64
def test_libraries_agree_on_integer_products() -> None:
    """With scales that are powers of two, every library computes the same bits, also the ones that the processor's best
    is not: the sums are integers below 2^24."""
    kernels.info()
    level = ctypes.CDLL(str(X86_64[0])).tl_cpu_level()
    libraries = [ctypes.CDLL(str(path)) for path in X86_64[: max(level - 1, 1)]]
    rng = np.random.default_rng(3)
    x = rng.integers(-10, 11, (18, 768)).astype(np.float32)
    x[:, ::32] = 127
    for name in COMPILED:
        matrix = random_matrix(name, 21, 768, rng)
        records = matrix.blocks.reshape(21, -1, FORMATS[name].record.itemsize).view(FORMATS[name].record)
        for field in {"d", "dmin", "m"} & set(FORMATS[name].record.names or ()):
            records[field] = 0.25
        if name == "Q6_K":
            records["scales"] = rng.integers(-8, 8, records["scales"].shape)
        expected = x.astype(np.float64) @ matrix.widen().astype(np.float64).T
        for loaded in libraries:
            np.testing.assert_array_equal(product(loaded, libraries, name, x, matrix.blocks), expected)


def product(loaded: ctypes.CDLL, libraries: list[ctypes.CDLL], name: str, x: Any, blocks: Any) -> Any:
    rounding = loaded if hasattr(loaded, "tl_round_rows_f32") else libraries[1]
    (m, k), n = x.shape, len(blocks)
    rounding.tl_rounded_bytes.restype = ctypes.c_size_t
    rounded = np.empty((m, rounding.tl_rounded_bytes(ctypes.c_size_t(k))), np.uint8)
    rounding.tl_round_rows_f32(
        *map(ctypes.c_void_p, (rounded.ctypes.data, x.ctypes.data)), *map(ctypes.c_size_t, (m, k))
    )
    y = np.full((m, n), np.nan, np.float32)
    pointers = map(ctypes.c_void_p, (y.ctypes.data, rounded.ctypes.data, blocks.ctypes.data, None))
    getattr(loaded, f"tl_linear_{name.lower()}")(*pointers, *map(ctypes.c_size_t, (m, k, n, n)))
    return y


@pytest.mark.native
@ON_X86_64
def test_the_library_for_the_oldest_processors(tmp_path: Path) -> None:
    shutil.copy(X86_64[0], tmp_path)
    names = ("attention", "channel_norm", "compiled", "convolution", "pooling", "recurrent", "softmax")
    folder = Path(__file__).parent
    paths = (folder / "blocks", folder / "quantized", *(folder / f"test_{name}.py" for name in names))
    tests = [str(path) for path in paths]
    code = f"""
import sys, pytest
from pathlib import Path
from tallow import kernels
kernels.library.FOLDER = {str(tmp_path)!r}
assert kernels.info().library == "native {X86_64[0].stem.removeprefix("tallow-")}"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *{tests!r}]))
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-1000:]
