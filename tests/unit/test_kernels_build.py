"""The compiled libraries, and what happens where there are none."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tallow import kernels
from tallow.errors import KernelUnavailable
from tallow.kernels import library

KNOWN = platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64") or library.IN_BROWSER
ALL = [
    *("adam_step", "attention", "attention_backward", "attention_decode", "channel_norm", "channel_norm_backward"),
    *("convolution", "convolution_dw", "convolution_dx", "cross_decode_block", "decode_block", "encoder_blocks"),
    *("gelu", "gelu_backward", "layer_norm", "layer_norm_backward", "linear", "log_softmax", "log_softmax_backward"),
    *("lstm", "lstm_backward"),
    *("max_pool", "max_pool_backward", "rms_norm", "rotary", "scaled_exp", "sgd_step"),
    *("silu", "silu_mul", "softmax", "softmax_backward", "sum_exp"),
]

# Every element kernel on arrays whose last byte is the last of its page, the next page being forbidden: a kernel that
# reads or writes one element too many dies of it.
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
from tallow.kernels.encoder_blocks import Affine, EncoderBlock
for n in (*range(1, 20), 33, 100):
    x, w = normal(3, n), normal(n)
    fn["softmax"](x), fn["silu"](x), fn["silu_mul"](x, normal(3, n)), fn["gelu"](x, "none"), fn["gelu"](x, "tanh")
    fn["scaled_exp"](x, *fn["sum_exp"](x)), fn["log_softmax"](x)
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
    expected = sorted([*ALL, "matmul"]) if library.IN_BROWSER else ALL  # natively NumPy's BLAS multiplies
    assert list(info.kernels) == expected
    assert info.library.split()[0] == library.BACKEND
    assert ", ".join(expected) in str(info)


def test_info_says_that_kernels_are_switched_off() -> None:
    with kernels.off():
        assert str(kernels.info()).endswith("switched off")


def test_a_missing_library_is_told_and_the_array_code_computes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    assert "older than their sources; run `python build_kernels.py`" in library.provide()["native"]


def test_a_library_of_other_sources_is_told() -> None:
    kernels.info()
    with pytest.raises(KernelUnavailable, match="has no tl_no_such_kernel; it was built from other sources"):
        library.function("tl_no_such_kernel", None)


@pytest.mark.native
def test_importing_loads_nothing() -> None:
    code = "import sys, tallow.kernels as k; print(k.library._loaded.name, 'tallow.kernels.bindings' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["none", "False"]


@pytest.mark.native
@pytest.mark.skipif(sys.platform != "linux" or not KNOWN, reason="needs mprotect and a compiled library")
def test_no_kernel_touches_memory_beyond_its_arrays() -> None:
    done = subprocess.run([sys.executable, "-c", AT_THE_EDGE], capture_output=True, text=True)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    assert json.loads(done.stdout) == "survived"


@pytest.mark.native
@pytest.mark.skipif(sys.platform != "linux" or not KNOWN, reason="needs mprotect and a compiled library")
def test_that_the_test_above_would_notice() -> None:
    set_up = AT_THE_EDGE.partition("np.empty = edge")[0]
    one_too_many = (
        "x = normal(8); silu = library.function('tl_silu_f32', None, *[ctypes.c_void_p] * 2, ctypes.c_size_t)\n"
    )
    one_too_many += "silu(x.ctypes.data, x.ctypes.data, 9)"
    done = subprocess.run([sys.executable, "-c", set_up + one_too_many], capture_output=True, text=True)
    assert done.returncode == -signal.SIGSEGV


@pytest.mark.native
def test_the_build_makes_what_the_loader_looks_for(tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="the compiler comes from the PyPI package ziglang")
    root = Path(__file__).parents[2]
    command = [sys.executable, str(root / "build_kernels.py"), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    made = {path.name for path in tmp_path.iterdir()}
    assert {"tallow-wasm-simd128.wasm", "tallow-wasm-relaxed-simd.wasm"} <= made
    assert all((tmp_path / name).read_bytes()[:4] == b"\0asm" for name in made if "wasm" in name)
    if KNOWN:
        library_of_host = [name for name in made if "wasm" not in name]
        assert library_of_host
        assert all((tmp_path / name).stat().st_size < 2**18 for name in made)


@pytest.mark.native
@pytest.mark.skipif(not Path(library.FOLDER, "tallow-x86-64.so").exists(), reason="not on x86-64 Linux, or not built")
def test_the_library_for_older_processors_keeps_the_contracts_too(tmp_path: Path) -> None:
    shutil.copy(Path(library.FOLDER, "tallow-x86-64.so"), tmp_path)
    names = (
        *("attention", "channel_norm", "compiled", "convolution", "cross_decode_block", "decode_block"),
        *("encoder_blocks", "pooling"),
        *("recurrent", "softmax"),
    )
    tests = [str(Path(__file__).with_name(f"test_kernels_{name}.py")) for name in names]
    code = f"""
import sys, pytest
from pathlib import Path
from tallow import kernels
kernels.library.FOLDER = {str(tmp_path)!r}
assert kernels.info().library == "native x86-64"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *{tests!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
