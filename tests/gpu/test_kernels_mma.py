"""Products of small matrices by tensor cores: the layouts documented in src/mma.cuh, for a single warp."""

from __future__ import annotations

import numpy as np
import pytest
from support.card import Card, round_to

from tallow import dtypes
from tallow.dtypes import dtype
from tallow_cuda.launching import launch
from tallow_cuda.sources import element, source_of

# c (16, 16) = a (16, 16) b (16, 16), each of a and b as it is or transposed in memory
PRODUCT = """
extern "C" __global__ void product(const X* a, const X* b, float* c, index_t a_transposed, index_t b_transposed) {
    alignas(16) __shared__ X left[16][16], right[16][16];
    int lane = threadIdx.x, first = lane % 8 + lane / 16 * 8, second = lane / 8 % 2 * 8;
    for (int i = lane; i < 256; i += 32) left[i / 16][i % 16] = a[i], right[i / 16][i % 16] = b[i];
    __syncwarp();
    unsigned l[4], r[4];
    if (a_transposed)
        load_matrices_transposed(l, &left[first][second]);
    else
        load_matrices(l, &left[lane % 16][lane / 16 * 8]);
    if (b_transposed)
        load_matrices(r, &right[first][second]);
    else
        load_matrices_transposed(r, &right[lane % 16][lane / 16 * 8]);
    for (int n = 0; n < 2; n++) {
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        multiply_add<X>(sum, l, r[n * 2], r[n * 2 + 1]);
        for (int i = 0; i < 4; i++)
            c[(lane / 4 + i / 2 * 8) * 16 + n * 8 + lane % 4 * 2 + i % 2] = sum[i];
    }
}
"""


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_product_of_fragments(card: Card, dtype: dtype) -> None:
    rng = np.random.default_rng(0)
    a, b = (round_to(rng.standard_normal((16, 16)), dtype) for _ in range(2))
    x = card.put(a, dtype)
    if not card.emulated and card.backend.compute_capability() < (8, 0):
        pytest.skip("the card has no such tensor cores")
    kernel = card.backend.compile_kernel(source_of("mma.cuh") + PRODUCT, "product", (f"-DX={element(x)}",))
    for flip_a in (0, 1):
        for flip_b in (0, 1):
            left, right = (card.put(m.T.copy() if flip else m, dtype) for m, flip in ((a, flip_a), (b, flip_b)))
            c = card.put(np.full((16, 16), np.nan, np.float32))
            launch(kernel, (1,), (32,), left, right, c, flip_a, flip_b)
            np.testing.assert_allclose(card.get(c), a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_pack_rounds_to_nearest_even(card: Card, dtype: dtype) -> None:
    source = """
    extern "C" __global__ void packed(const float* x, unsigned* y) {
        y[threadIdx.x] = pack<X>(x[threadIdx.x * 2], x[threadIdx.x * 2 + 1]);
    }
    """
    if not card.emulated and card.backend.compute_capability() < (8, 0):
        pytest.skip("the card has no such conversion")
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    x[:4] = 1.00048828125, -1.00390625, np.inf, 0.0  # including ties, half a unit in the last place
    y = card.put(np.zeros(32, np.uint32))
    name = element(card.put(x, dtype))
    kernel = card.backend.compile_kernel(source_of("mma.cuh") + source, "packed", (f"-DX={name}",))
    launch(kernel, (1,), (32,), card.put(x), y)
    np.testing.assert_array_equal(card.backend.to_host(y).view(np.uint16), dtypes.cast(x, dtype).view(np.uint16))
