"""Compile package/tallow/kernels/src/*/*.c with the Zig compiler from the PyPI package `ziglang`.

    python build_kernels.py [--out DIR] [--target wasm] [--target native] [--target aarch64-linux]

Builds one library per variant: two WASM side modules for Pyodide, and native libraries for the instruction sets that
the loader, package/tallow/kernels/library.py, chooses from. The sources are freestanding, so a library has no
dependencies, not even libc. Run by the wheel build (hatch_build.py), and by hand during development.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

SOURCES = Path(__file__).parent / "package/tallow/kernels/src"
DEFAULT_OUT = Path(__file__).parent / "package/tallow/kernels/lib"
FLAGS = (
    *("-O3", "-g0", "-std=c11", "-fPIC", "-ffreestanding", "-fvisibility=hidden", f"-I{SOURCES}"),
    *("-fno-math-errno", "-ffp-contract=fast-honor-pragmas", "-Wall", "-Wextra", "-Werror"),
    *("-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),  # no exception passes through a kernel
)
# What x86-64-v4 is worth a library of its own for: products of quantised weights, by VNNI, which multiplies bytes; and
# kernels of floats that spend their time on vectors in registers or in a cache, which are twice as long.
PRODUCTS = ("library.c", "products.c", "interleave*.c", "linear_q*.c", "integer_product.c")
LONG_VECTORS = (
    *("product.c", "matmul_f32.c", "linear_panels.c", "widen.c", "convolution_f32.c", "depthwise_f32.c"),
    *("softmax*_f32.c", "exp_rows_f32.c", "gelu_f32.c", "silu_f32.c", "arithmetic_f32.c", "*_norm_f32.c"),
    *("attention_f32.c", "encoder_block_f32.c", "round_rows_f32.c", "chain_f32.c", "gru_f32.c", "lstm_f32.c"),
    *("channels_last_f32.c", "fft_f32.c", "narrow_f32.c", "bounded_f32.c", "row_sums_f32.c"),
)
# Products by AMX, which only Linux lets be used, or by AVX512-BF16; the rest of those libraries is x86-64-v4's.
TILES = ("library.c", "*tiles*.c")
DOTS = ("library.c", "check_tiles.c", "linear_tiles_bf16.c")
# Loops that are unrolled by hand, or do not matter: unrolled further, they take more memory and no less time.
UNROLLED = (
    *("convolution_f32.c", "cross_decode_block_f32.c", "decode_blocks_f32.c", "depthwise_f32.c", "int8_rows.c"),
    *("csr_f32.c", "csr_f64.c", "fft_f32.c", "max_pool_f32.c", "narrow_f32.c", "on_arrays.c", "parts.c"),
    *("channels_last_f32.c", "integer_product.c", "select_f32.c"),
    *("delta_rule_f32.c", "selective_scan_f32.c", "short_convolution_f32.c"),
)
TARGETS = ("wasm", "native", "aarch64-linux")
MACOS = "11.0"  # the oldest macOS that the libraries run on, and in the tag of their wheel: the first with arm64


@dataclass(frozen=True)
class Variant:
    """One library: its file name, the arguments of the compiler and the linker, and the patterns of its sources."""

    file: str
    compile: tuple[str, ...]
    link: tuple[str, ...]
    sources: tuple[str, ...] = ("*.c",)


def _wasm(name: str, cpu: str) -> Variant:
    link = "wasm-ld -shared --experimental-pic --no-entry --import-memory --export-dynamic --strip-all"
    return Variant(f"tallow-{name}.wasm", ("-target", "wasm32-emscripten", f"-mcpu={cpu}"), tuple(link.split()))


def _native(
    name: str, architecture: str, cpu: str, sources: tuple[str, ...] = ("*.c",), optimize: tuple[str, ...] = ()
) -> Variant:
    system = platform.system()
    suffix = {"Darwin": "dylib", "Windows": "dll"}.get(system, "so")
    target = ("-target", f"{architecture}-macos.{MACOS}") if system == "Darwin" else ()
    flags = (*target, f"-mcpu={cpu}")
    return Variant(
        f"tallow-{name}.{suffix}", (*flags, *optimize), ("cc", "-shared", "-s", "-nostdlib", *flags), sources
    )


def variants(target: str) -> list[Variant]:
    """Return the libraries to build for `target`, one of TARGETS; none natively on an unknown architecture."""
    if target == "wasm":
        simd = "generic+simd128+bulk_memory+atomics"
        return [_wasm("wasm-simd128", simd), _wasm("wasm-relaxed-simd", f"{simd}+relaxed_simd")]
    if target == "aarch64-linux":  # to test them elsewhere
        flags = ("-target", "aarch64-linux")
        return [
            replace(v, compile=(*flags, *v.compile), link=(*v.link, *flags)) for v in _aarch64(has_dot_library=True)
        ]
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        tiles = [_native("x86-64-v4-amx", "x86_64", "sapphirerapids", TILES)] if platform.system() == "Linux" else []
        return [
            _native("x86-64", "x86_64", "x86_64", optimize=("-Os",)),  # for processors before 2013: small first
            _native("x86-64-v3", "x86_64", "x86_64_v3"),
            _native("x86-64-v4", "x86_64", "x86_64_v4+avx512vnni", PRODUCTS + LONG_VECTORS),
            _native("x86-64-v4-bf16", "x86_64", "x86_64_v4+avx512vnni+avx512bf16", DOTS),
            *tiles,
        ]
    if machine in ("aarch64", "arm64"):
        if platform.system() == "Darwin":  # all of Apple's processors have the dot product of int8
            return [_native("aarch64", "aarch64", "apple_m1")]
        return _aarch64(has_dot_library=platform.system() == "Linux")
    return []


def _aarch64(has_dot_library: bool) -> list[Variant]:
    dot = [_native("aarch64-dot", "aarch64", "generic+dotprod")] if has_dot_library else []
    return [_native("aarch64", "aarch64", "generic"), *dot]


def build(out_dir: Path, targets: Sequence[str] = ("wasm", "native")) -> list[Path]:
    """Compile and link every variant of `targets` into `out_dir`, and return the files, in a fixed order.

    Raises:
        subprocess.CalledProcessError: the compiler failed; its messages are on stderr.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        wanted = [variant for target in targets for variant in variants(target)]
        objects = {v.file: Path(scratch, v.file) for v in wanted}
        for folder in objects.values():
            folder.mkdir()
        jobs = [(v, source) for v in wanted for pattern in v.sources for source in sorted(SOURCES.rglob(pattern))]
        list(pool.map(lambda job: _compile(job[0], job[1], objects[job[0].file]), jobs))
        return list(pool.map(lambda v: _link(v, objects[v.file], out_dir), wanted))


def _compile(variant: Variant, source: Path, objects: Path) -> None:
    define = f"-DTALLOW_SOURCES={checksum()}u"
    unrolling = ("-fno-unroll-loops",) if source.name in UNROLLED else ()
    _zig("cc", *FLAGS, *unrolling, define, *variant.compile, "-c", str(source), "-o", str(objects / f"{source.stem}.o"))


def checksum() -> int:
    """Return the checksum of all sources, by which package/tallow/kernels/library.py detects an outdated library."""
    return zlib.crc32(b"".join(path.read_bytes() for path in sorted(SOURCES.rglob("*.[ch]"), key=Path.as_posix)))


def _link(variant: Variant, objects: Path, out_dir: Path) -> Path:
    made = objects / variant.file
    _zig(*variant.link, *map(str, sorted(objects.glob("*.o"))), "-o", str(made))
    target = out_dir / variant.file
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(
        made, partial
    )  # copied next to the target and renamed: a process that has mapped the old file keeps it
    os.replace(partial, target)
    return target


def _zig(*arguments: str) -> None:
    """Run the compiler itself: `python -m ziglang` starts Python for each file, longer than Zig's cache takes."""
    import ziglang

    subprocess.run([Path(ziglang.__file__).with_name("zig"), *arguments], check=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder of the libraries (default: %(default)s)")
    parser.add_argument("--target", action="append", choices=TARGETS, help="default: wasm, native")
    arguments = parser.parse_args()
    for path in build(arguments.out, arguments.target or ("wasm", "native")):
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
