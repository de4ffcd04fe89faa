from cases import case, normal

case("add", lambda m, a, b: m.add(a, b), normal(3, 4), normal(4))
case("add", lambda m, a, b: m.add(a, b, alpha=2), normal(3, 1), normal(1, 4))
case("add", lambda m, a: a + 2, normal(3))
case("mul", lambda m, a, b: a * b, normal(2, 3), normal(3))
case("mul", lambda m, a: 3 * a, normal(2, 3))
