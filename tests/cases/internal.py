"""Ops without a public function, which layers use. The PyTorch side is written out as a formula."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases import booleans, case, integers, normal
from tallow.core.apply import apply
from tallow.devices import array_module
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.ops import OPS
from tallow.ops.quantized_linear import quantized_linear as multiplied_by_blocks  # imported with the layers, not before


def is_tallow(m: Any) -> bool:
    return bool(m.__name__ == "tallow")


def rotary(m: Any, x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    if is_tallow(m):
        return apply(OPS["rotary"], x, cos, sin, interleaved)
    half = x.shape[-1] // 2
    p, q = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    rotated = p * cos - q * sin, p * sin + q * cos
    return m.stack(rotated, -1).flatten(-2) if interleaved else m.cat(rotated, -1)


def silu_mul(m: Any, a: Any, b: Any) -> Any:
    return apply(OPS["silu_mul"], a, b) if is_tallow(m) else m.nn.functional.silu(a) * b


def gelu_mul(m: Any, a: Any, b: Any) -> Any:
    return apply(OPS["gelu_mul"], a, b) if is_tallow(m) else m.nn.functional.gelu(a, approximate="tanh") * b


def quantized_linear(m: Any, x: Any, codes: Any, bias: Any) -> Any:
    """Multiply by Q8_0 blocks: 32 codes each, after their scale, 1/8 here, which is the bytes 0x00 0x30 as a half."""
    if not is_tallow(m):
        return m.nn.functional.linear(x, codes.to(x.dtype) / 8, bias)
    scales = m.tensor([[0x00, 0x30]], device=x.device).expand(len(codes), 2)
    blocks = m.cat([scales, codes % 256], 1).to(m.uint8)
    return apply(multiplied_by_blocks, x, BlockMatrix(blocks.array, "Q8_0"), bias)


def csr_matmul(m: Any, values: Any, dense: Any) -> Any:
    """Multiply a matrix (3, 4) with entries in the columns 1, 3 and 1; 0; and none."""
    if is_tallow(m):
        rows, cols = (m.tensor(x, device=dense.device) for x in ([0, 3, 4, 4], [1, 3, 1, 0]))
        return apply(OPS["csr_matmul"], values, dense, rows, cols)
    zero = values[:1] * 0
    first = m.cat([zero, values[:1] + values[2:3], zero, values[1:2]])
    return m.stack([first, m.cat([values[3:], zero, zero, zero]), m.cat([zero] * 4)]) @ dense


def scaled_mask(m: Any, x: Any, keep: Any, scale: float) -> Any:
    return apply(OPS["scaled_mask"], x, keep, scale) if is_tallow(m) else x * keep * scale


case("csr_matmul", csr_matmul, normal(4), normal(4, 3))
case(
    "rotary",
    lambda m, x, a: rotary(m, x, a.to(x.dtype).cos(), a.to(x.dtype).sin(), True),
    normal(2, 3, 5, 8),
    integers(5, 4),
)
case(
    "rotary",
    lambda m, x, a: rotary(m, x, a.to(x.dtype).cos(), a.to(x.dtype).sin(), False),
    normal(2, 3, 5, 8),
    integers(5, 4),
)
case(
    "rotary",
    lambda m, x, a: rotary(m, x, a.to(x.dtype).cos(), a.to(x.dtype).sin(), False),
    normal(5, 2),
    integers(5, 1),
)
case("silu_mul", silu_mul, normal(3, 4), normal(3, 4))
case("silu_mul", silu_mul, 60 * normal(7), normal(7))
case("gelu_mul", gelu_mul, normal(3, 4), normal(3, 4))
case("gelu_mul", gelu_mul, 20 * normal(7), normal(7))
case("scaled_mask", lambda m, x, k: scaled_mask(m, x, k, 1.25), normal(3, 4), booleans(3, 4))
case("scaled_mask", lambda m, x, k: scaled_mask(m, x, k, 2.0), normal(3, 4, 2), booleans(3, 4, 1))
# Kernels round the input to multiples of max|x| / 127: these are such multiples, so the product is exact.
ON_GRID = integers(2, 3, 32, low=-127, high=128).astype(np.float64)
ON_GRID[..., 0] = 127
case("quantized_linear", quantized_linear, ON_GRID, integers(5, 32, low=-128, high=128), normal(5))
case(
    "quantized_linear",
    lambda m, x, c: quantized_linear(m, x, c, None),
    ON_GRID[0, 0],
    integers(3, 32, low=-128, high=128),
)


def cofactors(m: Any, a: Any) -> Any:
    return apply(OPS["cofactors"], a) if is_tallow(m) else m.linalg.det(a)[..., None, None] * m.linalg.inv(a).mT


case("cofactors", cofactors, normal(2, 3, 3) + 3 * np.eye(3), rtol=1e-4, atol=1e-4)  # float32 through an inverse


def mapped(m: Any, x: Any) -> Any:
    """Sum the first two columns, by a linear function of arrays and its transpose."""
    if not is_tallow(m):
        return x[:, :2].sum(1)

    def transpose(g: Any) -> Any:
        y = array_module(g).zeros((len(g), 3), g.dtype)
        y[:, :2] = g[:, None]
        return y

    return apply(OPS["linear_map"], x, lambda a: a[:, :2].sum(1), transpose)


def product(m: Any, x: Any, y: Any) -> Any:
    """Multiply by a form that is linear in each of three arrays, the sum of their products."""
    return apply(OPS["product_map"], x, y, [lambda a, b: a * b] * 3, 1) if is_tallow(m) else x * y


def known(m: Any, x: Any) -> Any:
    """Compute tanh(x) with the value that is known already."""
    return apply(OPS["with_value"], x, x.detach().tanh(), lambda y: 1 - y * y) if is_tallow(m) else x.tanh()


def parts(m: Any, x: Any) -> Any:
    """Return complex numbers whose adjoint map takes the real parts, and their real and imaginary parts."""
    y = (
        apply(OPS["adjoint_map"], x, lambda a: a * (1 + 2j), lambda g: g.real + 2 * g.imag)
        if is_tallow(m)
        else x * (1 + 2j)
    )
    return m.view_as_real(y)


case("adjoint_map", parts, normal(3))
case("linear_map", mapped, normal(4, 3))
case("product_map", product, normal(2, 3), normal(2, 3))
case("with_value", known, normal(2, 3))
