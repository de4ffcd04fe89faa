import numpy as np

from cases import booleans, case, distinct, integers, normal

for _name in ("sum", "mean"):
    case(_name, lambda m, x, f=_name: getattr(m, f)(x), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(), normal())
    case(_name, lambda m, x, f=_name: getattr(x, f)(0), normal())
    case(_name, lambda m, x, f=_name: getattr(x, f)(1), normal(3, 4, 2))
    case(_name, lambda m, x, f=_name: getattr(x, f)(dim=-1, keepdim=True), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)((0, 2)), normal(3, 4, 2))
    case(_name, lambda m, x, f=_name: getattr(x, f)([0, -1], True), normal(3, 4, 2))
    case(_name, lambda m, x, f=_name: getattr(x, f)(dim=()), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(axis=0, keepdims=True), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(0), normal(3, 0))
    case(_name, lambda m, x, f=_name: getattr(x, f)(1, dtype=m.float64), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(dtype=m.float32), integers(3, 4), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(1, dtype=m.float32), booleans(3, 4), grad=False)
case("sum", lambda m, x: x.sum(1), normal(3, 0))
case("sum", lambda m, x: x.sum(), integers(3, 4), grad=False)
case("sum", lambda m, x: x.sum(0), booleans(3, 4), grad=False)
case("sum", lambda m, x: x.int().sum(0), integers(3, 4), grad=False)
case("sum", lambda m, x: x.sum(0, dtype=m.int32), integers(3, 4), grad=False)
case("sum", lambda m, x: x.sum(0, dtype=m.uint8), integers(3, 4, high=200), grad=False)
case("mean", lambda m, x: x.mean(1), normal(3, 0), grad=False)

for _name in ("amax", "amin"):
    case(_name, lambda m, x, f=_name: getattr(m, f)(x), distinct(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(1), distinct(3, 4, 2))
    case(_name, lambda m, x, f=_name: getattr(x, f)(dim=(0, -1), keepdim=True), distinct(3, 4, 2))
    case(_name, lambda m, x, f=_name: getattr(x, f)(-1), normal())
    case(_name, lambda m, x, f=_name: getattr(x, f)(0), integers(3, 4), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(0), booleans(3, 4), grad=False)

case("logsumexp", lambda m, x: m.logsumexp(x, 1), normal(3, 4))
case("logsumexp", lambda m, x: x.logsumexp((0, 2), keepdim=True), normal(3, 4, 2))
case("logsumexp", lambda m, x: x.logsumexp(-1), normal())
case("logsumexp", lambda m, x: x.logsumexp(1), normal(3, 0), grad=False)
case("logsumexp", lambda m, x: (x + 1000).logsumexp(dim=0), normal(3, 4))
case("logsumexp", lambda m, x: x.logsumexp(0), integers(3, 4), grad=False)
case("logsumexp", lambda m, x: (x / 0).logsumexp(0), -1 - integers(3, 4).astype(float), grad=False)

nan = np.nan
for _name in ("nansum", "nanmean"):
    case(_name, lambda m, x, f=_name: getattr(m, f)(x), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)((0, 2), keepdim=True), normal(3, 4, 2))
    case(_name, lambda m, x, f=_name: getattr(x, f)(1, dtype=m.float64), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(-1), normal())
    case(_name, lambda m, x, f=_name: getattr(x / (x != 0), f)(1), np.array([[0.0, 1.0], [2.0, 0.0]]), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(0), np.array([[1.0, nan], [2.0, nan]]), grad=False)
case("nansum", lambda m, x: x.nansum(0), integers(3, 4), grad=False)

case("prod", lambda m, x: m.prod(x), normal(3, 4))
case("prod", lambda m, x: x.prod(1), normal(3, 4, 2))
case("prod", lambda m, x: x.prod(dim=-1, keepdim=True), normal(3, 4))
case("prod", lambda m, x: x.prod(0), np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 3.0], [4.0, 5.0, 6.0]]))
case("prod", lambda m, x: x.prod(), np.array([2.0, 0.0, 3.0]))
case("prod", lambda m, x: x.prod(0), normal())
case("prod", lambda m, x: x.prod(1), normal(3, 0), grad=False)
case("prod", lambda m, x: x.prod(1), normal(3, 1))
case("prod", lambda m, x: x.prod(1, dtype=m.float64), normal(3, 4))
case("prod", lambda m, x: x.prod(0), integers(3, 4), grad=False)
case("prod", lambda m, x: x.prod(), booleans(3), grad=False)

case("aminmax", lambda m, x: m.aminmax(x), distinct(3, 4))
case("aminmax", lambda m, x: x.aminmax(dim=1, keepdim=True), distinct(3, 4))
case("aminmax", lambda m, x: x.aminmax(dim=0).max, distinct(3, 4))
case("aminmax", lambda m, x: x.aminmax(dim=0), integers(3, 4), grad=False)

for _name in ("all", "any"):
    case(_name, lambda m, x, f=_name: getattr(m, f)(x), booleans(3, 4), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(1), booleans(3, 2), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(dim=(0, -1), keepdim=True), booleans(3, 2, 2), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(()), booleans(3, 2), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(1), normal(3, 0), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(0), integers(3, 9, high=2), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x.to(m.uint8), f)(0), integers(3, 9, high=2), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(-1), normal(), grad=False)

case("count_nonzero", lambda m, x: m.count_nonzero(x), integers(3, 4, high=2), grad=False)
case("count_nonzero", lambda m, x: x.count_nonzero(dim=1), integers(3, 4, high=2), grad=False)
case("count_nonzero", lambda m, x: x.count_nonzero((0, 1)), booleans(3, 4, 2), grad=False)

for _name in ("var", "std"):
    case(_name, lambda m, x, f=_name: getattr(m, f)(x), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(1), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(False), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(1, False, True), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(unbiased=False), normal(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(dim=(0, 2), correction=2, keepdim=True), normal(3, 4, 2))
    case(_name, lambda m, x, f=_name: getattr(x, f)(-1, correction=0), normal(3, 1), grad=_name == "var")
    case(f"{_name}_mean", lambda m, x, f=_name: getattr(m, f + "_mean")(x, 1), normal(3, 4))
    case(f"{_name}_mean", lambda m, x, f=_name: getattr(m, f + "_mean")(x, dim=(0, 1), correction=0), normal(3, 4, 2))

case("norm", lambda m, x: m.norm(x), normal(3, 4))
case("norm", lambda m, x: x.norm(1, dim=1), normal(3, 4))
case("norm", lambda m, x: x.norm(dim=(0, 1), keepdim=True), normal(3, 4, 2))
case("norm", lambda m, x: x.norm(p=3, dim=-1, dtype=m.float64), normal(3, 4))
case("norm", lambda m, x: x.norm(p="nuc"), normal(3, 4))
case("norm", lambda m, x: x.norm(p="fro", dim=0), normal(3, 4))

case("std", lambda m, x: x.std(axis=0, keepdims=True), normal(3, 4))
case("norm", lambda m, x: m.norm(x, p=2, dim=1, keepdim=True), normal(3, 4))

case("trace", lambda m, x: m.trace(x), normal(3, 4))
case("trace", lambda m, x: x.trace(), integers(3, 3), grad=False)

case("diff", lambda m, x: m.diff(x), normal(3, 4))
case("diff", lambda m, x: x.diff(n=2, dim=0), normal(4, 3))
case("diff", lambda m, x: x.diff(n=9), normal(4, 3), grad=False)
case("diff", lambda m, x, a, b: x.diff(dim=1, prepend=a, append=b), normal(3, 4), normal(3, 2), normal(3, 1))
case("diff", lambda m, x: x.diff(), booleans(3, 4), grad=False)
