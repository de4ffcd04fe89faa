"""Pooling."""

from __future__ import annotations

from typing import Any

from cases import case, distinct, functional, integers, normal

x1, x2, x3 = distinct(2, 3, 11), distinct(2, 3, 7, 8), distinct(2, 2, 5, 4, 6)

case("max_pool", functional("max_pool1d", kernel_size=3), x1)
case("max_pool", functional("max_pool1d", kernel_size=3, stride=2, padding=1, dilation=2), x1)
case("max_pool", functional("max_pool1d", kernel_size=4, stride=3, padding=2, ceil_mode=True), x1[0])
case("max_pool", functional("max_pool2d", kernel_size=2), x2)
case("max_pool", functional("max_pool2d", kernel_size=(3, 2), stride=(1, 3), padding=(1, 0), ceil_mode=True), x2)
case("max_pool", functional("max_pool2d", kernel_size=3, stride=1, padding=1, dilation=(1, 2)), x2[0])
case("max_pool", functional("max_pool3d", kernel_size=(2, 3, 2), stride=2, padding=1, ceil_mode=True), x3)
case("max_pool", lambda m, x: m.max_pool2d(x, 2, 1), integers(2, 3, 4, 5, high=3), grad=False)
case("max_pool", functional("max_pool2d", kernel_size=2), integers(2, 3, 4, 4, high=3) / 1.0, grad=False)
case("max_pool", functional("max_pool2d", kernel_size=2), normal(0, 3, 4, 4), grad=False)

case("max_pool_with_indices", functional("max_pool1d", kernel_size=3, stride=2, padding=1, return_indices=True), x1)
case("max_pool_with_indices", functional("max_pool2d", kernel_size=(3, 2), padding=1, return_indices=True), x2)
case("max_pool_with_indices", functional("max_pool2d", kernel_size=2, dilation=2, return_indices=True), x2[0])
case("max_pool_with_indices", functional("max_pool3d", kernel_size=2, stride=1, return_indices=True), x3)
case("max_pool_with_indices", functional("max_pool2d_with_indices", kernel_size=3, ceil_mode=True), x2)
case(
    "max_pool_with_indices",
    functional("max_pool2d", kernel_size=3, padding=1, return_indices=True),
    integers(2, 3, 5, 5, high=2),
    grad=False,
)


def unpool(dims: int, **options: Any) -> Any:
    def call(m: Any, x: Any) -> Any:
        F = m.nn.functional
        y, places = getattr(F, f"max_pool{dims}d")(x, 2, return_indices=True)
        return getattr(F, f"max_unpool{dims}d")(y * y, places, 2, **options)

    return call


case("max_unpool", unpool(1), x1)
case("max_unpool", unpool(1, output_size=(11,)), x1[0])
case("max_unpool", unpool(2, output_size=(2, 3, 7, 8)), x2)
case("max_unpool", unpool(3), x3)

case("avg_pool", functional("avg_pool1d", kernel_size=3), x1)
case("avg_pool", functional("avg_pool1d", kernel_size=3, stride=2, padding=1, ceil_mode=True), x1[0])
case("avg_pool", functional("avg_pool2d", kernel_size=2), x2)
case("avg_pool", functional("avg_pool2d", kernel_size=(3, 4), stride=2, padding=(1, 2), count_include_pad=False), x2)
case("avg_pool", functional("avg_pool2d", kernel_size=3, stride=2, padding=1, ceil_mode=True), x2)
case("avg_pool", functional("avg_pool2d", kernel_size=3, stride=2, padding=1, divisor_override=5), x2)
case(
    "avg_pool",
    functional("avg_pool2d", kernel_size=3, stride=3, padding=1, ceil_mode=True, count_include_pad=False),
    x2,
)
case("avg_pool", functional("avg_pool3d", kernel_size=(2, 1, 3), stride=(1, 2, 2), padding=(1, 0, 1)), x3)
case("avg_pool", lambda m, x: m.avg_pool1d(x, (2,), (1,)), x1)

case("adaptive_avg_pool", functional("adaptive_avg_pool1d", output_size=4), x1)
case("adaptive_avg_pool", functional("adaptive_avg_pool1d", output_size=1), x1[0])
case("adaptive_avg_pool", functional("adaptive_avg_pool1d", output_size=25), x1)
case("adaptive_avg_pool", functional("adaptive_avg_pool2d", output_size=(3, 4)), x2)
case("adaptive_avg_pool", functional("adaptive_avg_pool2d", output_size=(None, 3)), x2)
case("adaptive_avg_pool", functional("adaptive_avg_pool2d", output_size=1), x2)
case("adaptive_avg_pool", functional("adaptive_avg_pool3d", output_size=(2, 4, 5)), x3)
case("adaptive_avg_pool", functional("adaptive_avg_pool2d", output_size=0), x2, grad=False)

case("adaptive_max_pool", functional("adaptive_max_pool1d", output_size=4), x1)
case("adaptive_max_pool", functional("adaptive_max_pool1d", output_size=25, return_indices=True), x1[0])
case("adaptive_max_pool", functional("adaptive_max_pool2d", output_size=(3, 4), return_indices=True), x2)
case("adaptive_max_pool", functional("adaptive_max_pool2d", output_size=(None, 3)), x2)
case("adaptive_max_pool", functional("adaptive_max_pool3d", output_size=(2, 4, 5), return_indices=True), x3)

case("lp_pool", functional("lp_pool1d", norm_type=3, kernel_size=2), abs(x1) + 1, atol=1e-4)
case("lp_pool", functional("lp_pool2d", norm_type=2.0, kernel_size=3, stride=2, ceil_mode=True), x2)
case("lp_pool", functional("lp_pool3d", norm_type=1, kernel_size=2), abs(x3) + 1)
case("lp_pool", functional("lp_pool2d", norm_type=float("inf"), kernel_size=3, stride=2, ceil_mode=True), x2 + 0.3)

empty = normal(0, 2, 6)
case("max_pool_with_indices", functional("max_pool1d", kernel_size=2, return_indices=True), empty)
case("adaptive_max_pool", functional("adaptive_max_pool1d", output_size=2), empty)
case("avg_pool", functional("avg_pool1d", kernel_size=2), empty)
case("adaptive_avg_pool", functional("adaptive_avg_pool1d", output_size=4), empty)
