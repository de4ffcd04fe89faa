import numpy as np

from cases import Input, booleans, case, distinct, integers, normal, uniform

nan = np.nan


def with_nan(*shape: int) -> Input:
    x = distinct(*shape)
    x[booleans(*shape)] = nan
    return x


case("sort", lambda m, x: m.sort(x), distinct(3, 4))
case("sort", lambda m, x: x.sort(0, descending=True), distinct(3, 4))
case("sort", lambda m, x: x.sort(dim=1, stable=True), distinct(3, 4, 2))
case("sort", lambda m, x: x.sort(), normal())
case("sort", lambda m, x: x.sort(), normal(3, 0))
case("sort", lambda m, x: x.sort(descending=True, stable=True), integers(4, 20, high=4), grad=False)
case("sort", lambda m, x: x.sort(stable=True), booleans(4, 9), grad=False)
case("sort", lambda m, x: x.sort(0).values, distinct(5))
case("argsort", lambda m, x: m.argsort(x, 0), distinct(3, 4), grad=False)
case("argsort", lambda m, x: x.argsort(descending=True, stable=True), integers(4, 20, high=4), grad=False)
case("argsort", lambda m, x: x.argsort(), normal(), grad=False)
case("topk", lambda m, x: m.topk(x, 2), distinct(3, 4))
case("topk", lambda m, x: x.topk(3, 0, largest=False), distinct(5, 4))
case("topk", lambda m, x: x.topk(4, dim=1, sorted=True), distinct(3, 4, 2))
case("topk", lambda m, x: x.topk(0), distinct(3, 4))
case("topk", lambda m, x: x.topk(1), normal())
case("topk", lambda m, x: x.topk(2), (2 * distinct(9)).astype("int64"), grad=False)

for _name in ("max", "min"):
    _op = f"{_name}_along"
    case(_op, lambda m, x, f=_name: getattr(m, f)(x, 1), distinct(3, 4))
    case(_op, lambda m, x, f=_name: getattr(x, f)(dim=-2, keepdim=True), distinct(3, 4, 2))
    case(_op, lambda m, x, f=_name: getattr(x, f)(0, True), distinct(3, 4))
    case(_op, lambda m, x, f=_name: getattr(x, f)(0), normal())
    case(_op, lambda m, x, f=_name: getattr(x, f)(-1), integers(5, 30, high=4), grad=False)
    case(_op, lambda m, x, f=_name: getattr(x, f)(-1), booleans(5, 4), grad=False)
    case(_op, lambda m, x, f=_name: getattr(x, f)(axis=1, keepdims=True), distinct(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(), distinct(3, 4))
    case(_name, lambda m, x, f=_name: getattr(m, f)(x), integers(3, 4), grad=False)
    case(_name, lambda m, x, y, f=_name: getattr(m, f)(x, y), distinct(3, 4), distinct(4) + 0.25)
    case(_name, lambda m, x, y, f=_name: getattr(x, f)(other=y), distinct(3, 4), distinct(4) + 0.25)

for _name in ("argmax", "argmin"):
    case(_name, lambda m, x, f=_name: getattr(m, f)(x), distinct(3, 4), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(keepdim=True), distinct(3, 4), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(1), distinct(3, 4), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(dim=-2, keepdim=True), distinct(3, 4, 2), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(0), normal(), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(0, True), normal(), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(0), integers(30, 3, high=4), grad=False)

case("msort", lambda m, x: m.msort(x), distinct(5, 3))
case("msort", lambda m, x: x.msort(), distinct(4))
case("kthvalue", lambda m, x: m.kthvalue(x, 2), distinct(3, 4))
case("kthvalue", lambda m, x: x.kthvalue(3, 0, True), distinct(3, 4))
case("kthvalue", lambda m, x: x.kthvalue(k=1, dim=-2), distinct(3, 4, 2))
case("kthvalue", lambda m, x: x.kthvalue(1), normal())
case("kthvalue", lambda m, x: x.kthvalue(4), (2 * distinct(6)).astype("int64"), grad=False)

for _name in ("median", "nanmedian"):
    case(f"{_name}_of_all", lambda m, x, f=_name: getattr(m, f)(x), distinct(3, 4))
    case(f"{_name}_of_all", lambda m, x, f=_name: getattr(x, f)(), np.array([1.0, nan, 2.0, 5.0]), grad=False)
    case(f"{_name}_of_all", lambda m, x, f=_name: getattr(x, f)(), normal(0), grad=False)
    case(f"{_name}_of_all", lambda m, x, f=_name: getattr(x, f)(), integers(7), grad=False)
    case(f"{_name}_along", lambda m, x, f=_name: getattr(m, f)(x, 1), distinct(3, 4))
    case(f"{_name}_along", lambda m, x, f=_name: getattr(x, f)(dim=0, keepdim=True), distinct(5, 4))
    case(f"{_name}_along", lambda m, x, f=_name: getattr(x, f)(0), normal())
    case(f"{_name}_along", lambda m, x, f=_name: getattr(x, f)(1).values, with_nan(5, 6), grad=False)
    case(f"{_name}_along", lambda m, x, f=_name: getattr(x, f)(1)[0], integers(5, 6), grad=False)

case("mode", lambda m, x: m.mode(x), integers(4, 9, high=4), grad=False)
case("mode", lambda m, x: x.mode(0, True), integers(9, 4, high=4), grad=False)
case("mode", lambda m, x: x.mode(), distinct(3, 4))
case("mode", lambda m, x: x.mode(), normal())

for _name in ("quantile", "nanquantile"):
    case(_name, lambda m, x, q, f=_name: getattr(m, f)(x, q, 1), distinct(3, 5), uniform(4, low=0.1, high=0.9))
    case(_name, lambda m, x, q, f=_name: getattr(x, f)(q), distinct(3, 5), uniform(low=0.1, high=0.9))
    case(_name, lambda m, x, f=_name: getattr(m, f)(x, 0.3), distinct(3, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(0.75, dim=1, keepdim=True), distinct(3, 4))
    case(
        _name,
        lambda m, x, f=_name: getattr(x, f)(m.tensor([0, 0.4, 0.5, 1], dtype=x.dtype, device=x.device), 0),
        distinct(5, 4),
    )
    case(
        _name,
        lambda m, x, f=_name: getattr(x, f)(m.tensor([0.4, 0.9], dtype=x.dtype, device=x.device), 1, True),
        distinct(2, 5, 3),
    )
    case(
        _name,
        lambda m, x, f=_name: getattr(x, f)(m.tensor([0.4], dtype=x.dtype, device=x.device), keepdim=True),
        distinct(2, 5),
    )
    case(_name, lambda m, x, f=_name: getattr(x, f)(0.3, dim=1), with_nan(5, 6), grad=False)
    for _how in ("lower", "higher", "midpoint", "nearest"):
        case(_name, lambda m, x, f=_name, i=_how: getattr(x, f)(0.3, 0, interpolation=i), distinct(6, 3))

case("searchsorted", lambda m, s, v: m.searchsorted(s, v), np.arange(5.0), normal(3, 4) * 3, grad=False)
case("searchsorted", lambda m, s, v: m.searchsorted(s, v), integers(5).cumsum(), integers(3, 4, high=30), grad=False)
case("searchsorted", lambda m, s, v: m.searchsorted(s, v, right=True), np.arange(6), integers(9), grad=False)
case(
    "searchsorted",
    lambda m, s, v: m.searchsorted(s, v, side="right"),
    integers(3, 6).cumsum(1),
    integers(3, 9, high=40),
    grad=False,
)
case(
    "searchsorted",
    lambda m, s, v: m.searchsorted(s, v),
    integers(2, 3, 6, high=3).cumsum(2),
    integers(2, 3, 4),
    grad=False,
)
case("searchsorted", lambda m, s: m.searchsorted(s, 3), np.arange(6), grad=False)
case("searchsorted", lambda m, s: m.searchsorted(s, 2.5, out_int32=True), np.arange(6), grad=False)
case(
    "searchsorted",
    lambda m, s, v, i: m.searchsorted(s, v, sorter=i),
    np.array([3, 1, 2]),
    integers(4),
    np.array([1, 2, 0]),
    grad=False,
)
case("bucketize", lambda m, v, s: m.bucketize(v, s), normal(3, 4) * 3, np.arange(5.0), grad=False)
case(
    "bucketize", lambda m, v, s: m.bucketize(v, s, right=True, out_int32=True), integers(3, 4), np.arange(5), grad=False
)
case("bucketize", lambda m, s: m.bucketize(2, s), np.arange(5), grad=False)
case("isin", lambda m, x, y: m.isin(x, y), integers(3, 4), integers(4), grad=False)
case("isin", lambda m, x, y: m.isin(x, y, invert=True), normal(3), integers(4), grad=False)
case("isin", lambda m, x: m.isin(x, 3), integers(9), grad=False)
case("isin", lambda m, x: m.isin(3, x, assume_unique=True), integers(9), grad=False)
