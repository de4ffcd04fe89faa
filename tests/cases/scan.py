from cases import booleans, case, integers, normal

case("cumsum", lambda m, x: m.cumsum(x, 0), normal(3, 4))
case("cumsum", lambda m, x: x.cumsum(dim=-1), normal(3, 4))
case("cumsum", lambda m, x: (x * 1).cumsum_(1), normal(3, 4, 2))
case("cumsum", lambda m, x: x.cumsum(0), normal())
case("cumsum", lambda m, x: x.cumsum(1), normal(3, 0))
case("cumsum", lambda m, x: x.cumsum(0, dtype=m.float64), normal(3, 4))
case("cumsum", lambda m, x: x.cumsum(0), integers(3, 4), grad=False)
case("cumsum", lambda m, x: x.cumsum(0), booleans(3, 4), grad=False)
case("cumsum", lambda m, x: x.int().cumsum(0), integers(3, 4), grad=False)
