import numpy as np

from cases import booleans, case, integers, normal

X = (4, 5, 3)
case("getitem", lambda m, x: x[1], normal(*X))
case("getitem", lambda m, x: x[-1, 2], normal(*X))
case("getitem", lambda m, x: x[1, 2, 0], normal(*X))
case("getitem", lambda m, x: x[1:3], normal(*X))
case("getitem", lambda m, x: x[::2, 1:-1:3, -2:], normal(*X))
case("getitem", lambda m, x: x[..., 0], normal(*X))
case("getitem", lambda m, x: x[1, ..., None], normal(*X))
case("getitem", lambda m, x: x[None, :, None, 2], normal(*X))
case("getitem", lambda m, x: x[...], normal(*X))
case("getitem", lambda m, x: x[()], normal(*X))
case("getitem", lambda m, x: x[()], normal())
case("getitem", lambda m, x: x[None], normal())
case("getitem", lambda m, x: x[3:1], normal(*X))
case("getitem", lambda m, x: x[:100, -100:], normal(*X))
case("getitem", lambda m, x: x[m.tensor(1)], normal(*X))
case("getitem", lambda m, x: x[m.tensor(1) : m.tensor(3)], normal(*X))
case("getitem", lambda m, x: x[np.int64(1), np.array(2)], normal(*X))
case("getitem", lambda m, x: x[2], integers(5), grad=False)
case("take_at", lambda m, x, i: x[i], normal(*X), integers(6, high=4))
case("take_at", lambda m, x, i: x[i], normal(*X), integers(2, 3, low=-4, high=4))
case("take_at", lambda m, x, i: x[:, i], normal(*X), integers(7, high=5))
case("take_at", lambda m, x, i: x[..., i], normal(*X), integers(2, 2, high=3))
case("take_at", lambda m, x, i, j: x[i, j], normal(*X), integers(6, high=4), integers(6, high=3))
case("take_at", lambda m, x, i, j: x[i, :, j], normal(*X), integers(2, 1, high=4), integers(3, high=3))
case("take_at", lambda m, x, i, j: x[:, i, j], normal(*X), integers(2, 1, high=5), integers(3, high=3))
case("take_at", lambda m, x, i: x[0, :, i], normal(*X), integers(3, high=3))  # the integer is not an array
case("take_at", lambda m, x, i: x[i, 0], normal(*X), integers(3, high=4))
case("take_at", lambda m, x, i: x[1:, i, None], normal(*X), integers(3, high=5))
case("take_at", lambda m, x, i: x[i, None], normal(*X), integers(3, high=4))
case("take_at", lambda m, x, i: x[None, ..., i], normal(*X), integers(3, high=3))
case("take_at", lambda m, x: x[[0, 2]], normal(*X))
case("take_at", lambda m, x: x[[0, 2], [1, 1]], normal(*X))
case("take_at", lambda m, x: x[:, range(3)], normal(*X))
case("take_at", lambda m, x: x[np.array([1, 1])], normal(*X))
case("take_at", lambda m, x: x[[]], normal(*X))
case("take_at", lambda m, x: x[[True, False, True, False]], normal(*X))
case("take_at", lambda m, x, k: x[k], normal(4, 5), booleans(4, 5))
case("take_at", lambda m, x, k: x[k], normal(*X), booleans(4))
case("take_at", lambda m, x, k: x[k], normal(*X), booleans(4, 5))
case("take_at", lambda m, x, k: x[:, k], normal(*X), booleans(5, 3))
case("take_at", lambda m, x, k: x[0, k], normal(*X), booleans(5))
case("take_at", lambda m, x, k: x[..., k, :], normal(*X), booleans(5))
case("take_at", lambda m, x: x[True], normal(*X))
case("take_at", lambda m, x: x[False], normal(*X))
case("take_at", lambda m, x: x[True, 1, None], normal(*X))
case("take_at", lambda m, x: x[m.tensor(True)], normal(*X))
case("take_at", lambda m, x: x[x > 0.5], normal(*X))
case("take_at", lambda m, x, k, i: x[k, i], normal(4, 5), np.array([True, False, True, True]), np.array([0, 4, 4]))
case("take_at", lambda m, x, i: x[i.int()], normal(4, 20), integers(9, high=4))  # long rows
case("take_at", lambda m, x, i: x[i], integers(5), integers(3, high=5), grad=False)


def assign(index, value=None):
    """Return a call of x[index] = value on a copy of x, which is not a leaf."""

    def call(m, x, *values):
        y = x * 1
        y[index(m) if callable(index) else index] = values[0] if value is None else value
        return y

    return call


case("copy", assign(1), normal(*X), normal(5, 3))
case("copy", assign((slice(None), 1)), normal(*X), normal(3))
case("copy", assign((0, ..., slice(1, None))), normal(*X), normal(5, 1))
case("copy", assign(...), normal(*X), normal(3))
case("copy", assign((None, 1)), normal(*X), normal(1, 5, 3))
case("copy", assign(1), normal(*X), normal(1, 1, 5, 3))
case("copy", assign((1, 2, 0)), normal(*X), normal())
case("copy", assign(slice(3, 1)), normal(*X), normal(1, 5, 3))
case("copy", assign(1), normal(4), integers())
case("copy", lambda m, x, y: (x * 1).copy_(y), normal(2, 3), normal(3))
case("copy", lambda m, x, y: x.clone().copy_(y), integers(2, 3), normal(3), grad=False)
case("fill", assign(1, 2.5), normal(*X))
case("fill", assign((slice(None), slice(1, 3)), -1), normal(*X))
case("fill", lambda m, x: (x * 1).fill_(3), normal(2, 3))
case("fill", lambda m, x: m.fill(x, 3), normal(2, 3))
case("fill", lambda m, x: m.fill(x, 3.9), integers(2, 3), grad=False)
case("fill", lambda m, x, v: (x * 1).fill_(v), normal(2, 3), normal())
case("fill", lambda m, x: (x * 1).zero_(), normal(2, 3))
case("index_put", assign(lambda m: m.tensor([0, 2])), normal(*X), normal(2, 5, 3))
case("index_put", assign(lambda m: (slice(None), m.tensor([0, 2]))), normal(*X), normal(3))
case("index_put", assign(lambda m: (m.tensor([[0], [2]]), ..., m.tensor([0, 1]))), normal(*X), normal(2, 1, 1))
case("index_put", assign([1, 2]), normal(*X), normal(1, 1, 5, 3))
case("index_put", assign([1, 2], 4.0), normal(*X))
case("index_put", assign(lambda m: m.arange(4) > 1, 4.0), normal(*X))
case("index_put", assign(lambda m: m.arange(4) > 1), normal(*X), normal(2, 1, 3))
case("index_put", assign((1, [0, 3])), normal(*X), normal(2, 3))
case("index_put", assign(True, 1.0), normal(*X))
case("index_put", lambda m, x, v, i: m.index_put(x, (i,), v), normal(4, 3), normal(3, 3), np.array([0, 1, 3]))
case(
    "index_put",
    lambda m, x, v, i, j: x.index_put((i, j), v, accumulate=True),
    normal(4, 3), normal(7), integers(7, high=4), integers(7, high=3),
)  # fmt: skip
case("index_put", lambda m, x, v, i: x.index_put((i,), v, True), normal(4, 9), normal(7, 1), integers(7, high=4))
case("index_put", lambda m, x, v, i: (x * 1).index_put_((i,), v, True), normal(4, 9), normal(), integers(7, high=4))
case(
    "index_put",
    lambda m, x, v, i: x.index_put((i,), v, True),
    integers(4),
    integers(7),
    integers(7, high=4),
    grad=False,
)
case("index_select", lambda m, x, i: m.index_select(x, 0, i), normal(4, 3), integers(6, high=4))
case("index_select", lambda m, x, i: x.index_select(-1, i), normal(4, 3), integers(6, high=3))
case("index_select", lambda m, x, i: x.index_select(dim=1, index=i.int()), normal(2, 4, 9), integers(6, high=4))
case("index_select", lambda m, x, i: x.index_select(0, i), normal(4, 3), integers(high=4))
case("index_select", lambda m, x, i: x.index_select(0, i), normal(), np.array([0]))
case("index_select", lambda m, x, i: x.index_select(0, i), normal(4, 3), integers(0))
