import numpy as np

from cases import case, distinct, integers, normal

X = (3, 4)
I = np.array([[0, 2, 1, 0], [2, 2, 0, 1]])  # shape (2, 4), indices along dim 0 of X
J = np.array([[0, 3, 3], [1, 0, 2], [3, 3, 3]])  # shape (3, 3), indices along dim 1 of X

case("gather", lambda m, x, i: m.gather(x, 0, i), normal(*X), I)
case("gather", lambda m, x, i: x.gather(1, i), normal(*X), J)
case("gather", lambda m, x, i: x.gather(-1, i[:2, :2]), normal(*X), J)
case("gather", lambda m, x, i: x.gather(dim=2, index=i.int()), normal(2, 3, 4), integers(2, 3, 5, high=4))
case("gather", lambda m, x, i: x.gather(0, i), normal(), np.array([0, 0]))
case("gather", lambda m, x, i: x.gather(0, i), normal(3), integers(high=3))
case("gather", lambda m, x, i: x.gather(0, i), normal(*X), integers(0))
case("take", lambda m, x, i: x.take(i), normal(*X), integers(2, 3, low=-12, high=12))
case("take", lambda m, x, i: m.take(x, i), normal(*X), integers(high=12))
case("take_along_dim", lambda m, x, i: m.take_along_dim(x, i), normal(*X), integers(5, high=12))
case("take_along_dim", lambda m, x, i: x.take_along_dim(i, 1), normal(*X), integers(1, 2, high=4))
case("take_along_dim", lambda m, x, i: x.take_along_dim(i, dim=0), normal(3, 1), integers(2, 4, low=-3, high=3))
case("argwhere", lambda m, x: (m.argwhere(x), x.nonzero(), m.nonzero(x)), integers(3, 4, high=3), grad=False)
case("argwhere", lambda m, x: (x.argwhere(), m.nonzero(x)), normal(), grad=False)
case("argwhere", lambda m: m.zeros(()).nonzero(), grad=False)
case("nonzero_tuple", lambda m, x: x.nonzero(as_tuple=True), integers(3, 4, high=3), grad=False)
case("nonzero_tuple", lambda m, x: m.nonzero(x, as_tuple=True), normal(), grad=False)

case("scatter", lambda m, x, i, s: m.scatter(x, 0, i, s), normal(*X), I[:1], normal(1, 4))
case("scatter", lambda m, x, i, s: x.scatter(1, i, s), normal(*X), J[1:2], normal(1, 3))
case("scatter", lambda m, x, i: x.scatter(1, i, 2.5), normal(*X), J)
case("scatter", lambda m, x, i: x.scatter(dim=-1, index=i, value=2), normal(*X), J)
case("scatter", lambda m, x, i, s: (x * 1).scatter_(0, i, s), normal(*X), I[:1], normal(1, 4))
case("scatter", lambda m, x, i: x.scatter(0, i, 3.0, reduce="multiply"), normal(*X), I, grad=False)
case("scatter", lambda m, x, i: x.scatter(0, i, 2.9), integers(*X), I, grad=False)
case("scatter", lambda m, x, i: x.scatter(0, i, 2.0), normal(), np.array([0]))
case("scatter", lambda m, x, i, s: x.scatter(0, i, s), normal(*X), integers(0, 4), normal(0, 4))
case("scatter_add", lambda m, x, i, s: m.scatter_add(x, 0, i, s), normal(*X), I, normal(2, 4))
case("scatter_add", lambda m, x, i, s: x.scatter_add(1, i, s), normal(*X), J, normal(3, 3))
case("scatter_add", lambda m, x, i, s: (x * 1).scatter_add_(-1, i, s), normal(*X), J, normal(3, 3))
case("scatter_add", lambda m, x, i, s: x.scatter_add(0, i, s), integers(*X), I, integers(2, 4), grad=False)
for reduce in ("sum", "prod", "mean", "amax", "amin"):
    for include_self in (True, False):
        case(
            "scatter_reduce",
            lambda m, x, i, s, r=reduce, w=include_self: m.scatter_reduce(x, 1, i, s, r, include_self=w),
            distinct(*X) + 0.1,  # never equal to an element of src: PyTorch counts ties even if include_self=False
            J,
            distinct(3, 3),
        )
    case(
        "scatter_reduce",
        lambda m, x, i, s, r=reduce: x.scatter_reduce(0, i, s, reduce=r),
        integers(*X),
        I,
        integers(2, 4),
        grad=False,
    )
case("scatter_reduce", lambda m, x, i, s: (x * 1).scatter_reduce_(0, i, s, "sum"), normal(*X), I, normal(2, 4))
case("scatter_reduce", lambda m, x, i, s: x.scatter_reduce(0, i, s, "max"), integers(*X), I, integers(2, 4), grad=False)
case("scatter_reduce", lambda m, x, i, s: x.scatter_reduce(0, i, s, "min"), integers(*X), I, integers(2, 4), grad=False)
# positions with two, one and no zeros; finite differences are meaningless at ties, so only PyTorch is compared there
ZEROS = np.array([[0.0, 1.0, 0.0], [2.0, 3.0, 0.0], [0.0, 5.0, 2.0]])
case("scatter_reduce", lambda m, x, i, s: x.scatter_reduce(1, i, s, "prod"), normal(*X), J, ZEROS)
case(
    "scatter_reduce",
    lambda m, x, i, s: (x * m.tensor([0.0, 1, 1, 0], dtype=x.dtype, device=x.device)).scatter_reduce(1, i, s, "prod"),
    normal(*X),
    J,
    ZEROS,
)

case("index_add", lambda m, x, i, s: m.index_add(x, 0, i, s), normal(*X), np.array([2, 0, 2]), normal(3, 4))
case("index_add", lambda m, x, i, s: x.index_add(1, i, s, alpha=2), normal(*X), np.array([3, 3]), normal(3, 2))
case(
    "index_add",
    lambda m, x, i, s: (x * 1).index_add_(-1, i.int(), s),
    normal(2, 3, 4),
    np.array([3, 1]),
    normal(2, 3, 2),
)
case("index_add", lambda m, x, i, s: x.index_add(0, i, s), integers(*X), np.array([2, 2]), integers(2, 4), grad=False)
case("index_add", lambda m, x, i, s: x.index_add(0, i, s), normal(20, 9), integers(30, high=20), normal(30, 9))
case("index_copy", lambda m, x, i, s: m.index_copy(x, 0, i, s), normal(*X), np.array([2, 0]), normal(2, 4))
case("index_copy", lambda m, x, i, s: (x * 1).index_copy_(1, i, s), normal(*X), np.array([3]), normal(3, 1))
case("index_copy", lambda m, x, i, s: x.index_copy(0, i, s), normal(), np.array(0), normal())
case("index_fill", lambda m, x, i: m.index_fill(x, 0, i, 2.5), normal(*X), np.array([2, 0, 2]))
case("index_fill", lambda m, x, i, v: x.index_fill(1, i, v), normal(*X), np.array([3, 3, 0]), normal())
case("index_fill", lambda m, x, i: (x * 1).index_fill_(1, i, -1), normal(*X), np.array([1]))
case("index_fill", lambda m, x, i: x.index_fill(0, i, 2.7), integers(*X), np.array([1]), grad=False)
case("put", lambda m, x, i, s: x.put(i, s), normal(*X), np.array([[0, -1, 5]]), normal(3))
case("put", lambda m, x, i, s: m.put(x, i, s, True), normal(*X), np.array([7, -1, 7]), normal(1, 3))
case("put", lambda m, x, i, s: (x * 1).put_(i, s, accumulate=True), normal(*X), np.array([7, -1, 7]), normal(3))
case("put", lambda m, x, i, s: x.put(i, s, True), integers(*X), np.array([7, -1, 7]), integers(3), grad=False)
case("select_scatter", lambda m, x, s: m.select_scatter(x, s, 1, -1), normal(*X), normal(3))
case("slice_scatter", lambda m, x, s: x.slice_scatter(s, 1, start=1, step=2), normal(*X), normal(3, 2))
case("diagonal_scatter", lambda m, x, s: m.diagonal_scatter(x, s, 1), normal(*X), normal(3))
case("index_add", lambda m, x, i, s: x.index_add(0, i, s), normal(), np.array([0]), normal())
