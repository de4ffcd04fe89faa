"""pad."""

from __future__ import annotations

from cases import booleans, case, functional, integers, normal

x1, x2, x3 = normal(2, 3, 5), normal(2, 3, 5, 4), normal(2, 2, 3, 4, 5)

case("pad", functional("pad", pad=(1, 2)), normal(4))
case("pad", functional("pad", pad=(1, 2, 0, 3), value=1.5), x1)
case("pad", functional("pad", pad=(-1, 2, 3, -2)), x1)
case("pad", functional("pad", pad=(-2, -1), mode="constant", value=-2.0), x1)
case("pad", functional("pad", pad=[0, 1, 2, 0, 1, 1, 0, 2]), x2)
case("pad", functional("pad", pad=(1, 1), value=2.7), integers(3, 2), grad=False)
case("pad", functional("pad", pad=(1, 1), value=1), booleans(3, 2), grad=False)
case("pad", functional("pad", pad=(1, 1)), normal(0, 2))
for _mode in ("reflect", "replicate", "circular"):
    case("pad", functional("pad", pad=(2, 3), mode=_mode), x1)
    case("pad", functional("pad", pad=(0, 2), mode=_mode), x1[0])
    case("pad", functional("pad", pad=(1, 2, 3, 0), mode=_mode), x2)
    case("pad", functional("pad", pad=(-1, 2, 1, -2), mode=_mode), x2)
    case("pad", functional("pad", pad=(1, 2, 0, 1, 2, 1), mode=_mode), x3)
case("pad", functional("pad", pad=(7, 9), mode="replicate"), x1)
