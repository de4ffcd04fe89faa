"""Ops that are offered nowhere: what layers are made of. PyTorch's side is the formula."""

from __future__ import annotations

from typing import Any

from cases import booleans, case, integers, normal
from tallow.apply import apply
from tallow.ops import OPS


def is_ours(m: Any) -> bool:
    return bool(m.__name__ == "tallow")


def rotary(m: Any, x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    if is_ours(m):
        return apply(OPS["rotary"], x, cos, sin, interleaved)
    half = x.shape[-1] // 2
    p, q = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = p * cos - q * sin, p * sin + q * cos
    return m.stack(turned, -1).flatten(-2) if interleaved else m.cat(turned, -1)


def silu_mul(m: Any, a: Any, b: Any) -> Any:
    return apply(OPS["silu_mul"], a, b) if is_ours(m) else m.nn.functional.silu(a) * b


def gelu_mul(m: Any, a: Any, b: Any) -> Any:
    return apply(OPS["gelu_mul"], a, b) if is_ours(m) else m.nn.functional.gelu(a, approximate="tanh") * b


def weight_only_linear(m: Any, x: Any, codes: Any, scales: Any, bias: Any) -> Any:
    scales = scales.to(x.dtype) / 8
    if is_ours(m):
        return apply(OPS["weight_only_linear"], x, codes.to(m.int8), scales, bias)
    groups = codes.to(x.dtype).reshape(*scales.shape, -1)
    return m.nn.functional.linear(x, (groups * scales[..., None]).flatten(1), bias)


def scaled_mask(m: Any, x: Any, keep: Any, scale: float) -> Any:
    return apply(OPS["scaled_mask"], x, keep, scale) if is_ours(m) else x * keep * scale


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
case(
    "weight_only_linear",
    weight_only_linear,
    normal(2, 3, 8),
    integers(5, 8, low=-128, high=128),
    integers(5, 2, low=1),
    normal(5),
)
case(
    "weight_only_linear",
    lambda m, x, c, s: weight_only_linear(m, x, c, s, None),
    normal(8),
    integers(3, 8, low=-128, high=128),
    integers(3, 1, low=1),
)
