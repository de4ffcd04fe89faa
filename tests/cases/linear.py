"""linear and bilinear."""

from __future__ import annotations

from cases import case, functional, integers, normal

case("linear", functional("linear"), normal(5, 3), normal(4, 3), normal(4))
case("linear", functional("linear"), normal(2, 5, 3), normal(4, 3))
case("linear", lambda m, x, w, b: m.nn.functional.linear(x, w, bias=b), normal(3), normal(4, 3), normal(4))
case(
    "linear",
    lambda m, x, w, b: m.nn.functional.linear(x.transpose(0, 2), w, b),
    normal(3, 5, 2),
    normal(4, 3),
    normal(4),
)
case("linear", functional("linear"), normal(5, 3), normal(3))
case("linear", functional("linear"), normal(2, 5, 3), normal(3), normal())
case("linear", functional("linear"), normal(0, 3), normal(4, 3))
case("linear", functional("linear"), normal(2, 0), normal(4, 0), normal(4))
case("linear", functional("linear"), integers(2, 3), integers(4, 3), grad=False)

case("bilinear", functional("bilinear"), normal(2, 5, 3), normal(2, 5, 4), normal(6, 3, 4), normal(6))
case("bilinear", lambda m, a, b, w: m.bilinear(a, b, w), normal(3), normal(4), normal(6, 3, 4))
case("bilinear", functional("bilinear"), normal(0, 3), normal(0, 4), normal(6, 3, 4), normal(6))
