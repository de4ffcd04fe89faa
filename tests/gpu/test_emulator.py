"""The emulator detects what a GPU leaves undefined: races, divergent barriers, unfinished asynchronous copies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from support import cuda_emulator, cupy_like, nvrtc
from support.card import reverse_threads

import tallow as tl
from tallow.errors import KernelCompileError

HEADERS = '#include "memory.cuh"\n#include "reduce.cuh"\n'


def kernel(body: str, block: int = 64, shared: int = 0) -> Callable[[], list[float]]:
    """Compile a kernel of one block that writes one float per thread into `y`. Calling it returns these."""
    source = f'{HEADERS}extern "C" __global__ void test(const float* x, float* y) {{ int i = threadIdx.x; {body} }}'
    run = cuda_emulator.compile_kernel(source, "test")

    def launch() -> list[float]:
        x, y = (cupy_like.Array(tl.arange(1024.0).numpy().copy()) for _ in range(2))
        run((1,), (block,), (x, y), shared)
        return y.host[:block].tolist()

    return launch


def both_ways(launch: Callable[[], Any]) -> tuple[Any, Any]:
    forward = launch()
    with reverse_threads():
        return forward, launch()


def test_a_missing_barrier_makes_the_order_of_threads_matter() -> None:
    reverse = "__shared__ float s[64]; s[i] = x[i]; BARRIER y[i] = s[63 - i];"
    right = both_ways(kernel(reverse.replace("BARRIER", "__syncthreads();")))
    assert right[0] == right[1] == [float(63 - i) for i in range(64)]
    wrong = both_ways(kernel(reverse.replace("BARRIER", "")))
    assert wrong[0] != wrong[1]


def test_subnormal_numbers_are_flushed_to_zero() -> None:
    """CuPy compiles with -ftz=true."""
    tiny = "float of = x[1] * (i ? 1.0f : 0.25f); y[i] = of * __int_as_float(i ? 1 << 22 : 1 << 23);"
    assert kernel(tiny, block=2)() == [0, 0]


def test_a_warp_that_writes_before_others_have_read_is_detected() -> None:
    reverse = (
        "__shared__ float s[64]; s[i] = x[i]; __syncthreads(); "
        "float other = __shfl_xor_sync(0xffffffffu, s[63 - i], 1); __syncwarp(); BARRIER s[i] = -1; y[i] = other;"
    )
    right = both_ways(kernel(reverse.replace("BARRIER", "__syncthreads();")))
    assert right[0] == right[1] == [float(63 - (i ^ 1)) for i in range(64)]
    wrong = both_ways(kernel(reverse.replace("BARRIER", "")))
    assert wrong[0] != wrong[1]


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
@pytest.mark.parametrize("card", nvrtc.CARDS)
def test_a_kernel_that_one_architecture_does_not_support_is_refused(card: str) -> None:
    """A kernel must compile for every GPU architecture; this one does for all but one."""
    level = card.removeprefix("sm_") + "0"
    lacking = f"#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == {level}\n#error not on this one\n#endif\n"
    with pytest.raises(KernelCompileError, match=f"does not compile for {card}"):
        cuda_emulator.compile_kernel(lacking + 'extern "C" __global__ void test(float* y) { y[0] = 1; }', "test")


@pytest.mark.parametrize(
    ("body", "shared", "message"),
    [
        ("if (i < 7) __syncthreads(); else __syncwarp();", 0, "deadlock: threads wait at a barrier"),
        ("DYNAMIC_SHARED(s); s[16 + i] = 1;", 64, "written beyond its end"),
        ("", 2**20, "more shared memory than a block can have"),
        (
            "DYNAMIC_SHARED(s); copy_async_16(s + 16 * i, x + 4 * i); copy_async_commit();",
            1024,
            "ends before its async",
        ),
        ("DYNAMIC_SHARED(s); copy_async_16(s + 16 * i, x + i + 1);", 1024, "misaligned"),
        ("y[i] = __shfl_sync(0xffffffffu, x[i], 31);", 0, "a lane that does not exist"),
    ],
)
def test_errors_are_reported_and_the_next_launch_works(body: str, shared: int, message: str) -> None:
    block = 40 if "__shfl" in body else 64
    launch = kernel(body, block, shared)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"test: .*{message}"):
            launch()
    assert kernel("y[i] = block_reduce<Add>(x[i]);")() == [2016.0] * 64


def test_shared_memory_is_not_zero_and_copies_arrive_late() -> None:
    copied = "DYNAMIC_SHARED(s); float* f = (float*)s; copy_async_16(f + 4 * i, x + 4 * i); copy_async_commit();"
    first, *_ = kernel(copied + "y[i] = f[i]; copy_async_wait<0>();", 64, 1024)()
    assert math.isnan(first)
    assert kernel(copied + "copy_async_wait<0>(); __syncthreads(); y[i] = f[i];", 64, 1024)() == [
        float(i) for i in range(64)
    ]


def test_shared_memory_of_a_fixed_size_is_reset_between_launches() -> None:
    launch = kernel("__shared__ float s[64]; y[i] = s[i]; s[i] = 1.0f;")
    assert all(map(math.isnan, launch() + launch()))
