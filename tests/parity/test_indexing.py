"""Indexing, gathering, shapes: errors and selected values, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from cases import Case, load_all  # noqa: E402
from support.agreement import assert_agree, assert_same  # noqa: E402 - imports torch

import tallow as tl  # noqa: E402
from tallow.ops import OPS  # noqa: E402

INDEXING = """
m.zeros(2)[1.0]
m.zeros(2)[m.tensor([1.0])]
m.zeros(2)[m.tensor([1], dtype=m.int16)]
m.zeros(3)[(0, 0)]
m.zeros(3)[5]
m.zeros(3)[-4]
m.zeros(2, 3)[0, 5]
m.zeros(3)[m.tensor([5])]
m.zeros(3)[m.tensor([-4])]
m.zeros(3)[m.tensor(3)]
m.zeros(3)[::-1]
m.zeros(3)[::0]
m.zeros(3)[m.tensor([True, False])]
m.zeros(3, 2)[m.tensor([True, False])]
m.zeros(3, 2)[:, m.tensor([True, False, True])]
m.zeros(3)[m.tensor([[True, False, True]])]
m.zeros(3)[[0, 1], [0, 1]]
m.zeros(3, 2)[[0, 1, 2], [0, 1]]
m.zeros(3)[{1}]
m.arange(12).reshape(3, 4)[[slice(None), 1]]
m.arange(12).reshape(3, 4)[[..., [0, 1]]]
m.arange(12).reshape(3, 4)[[None, 1]]
m.arange(12).reshape(3, 4).__setitem__([slice(None), 1], 7)
m.zeros(())[0]
m.zeros(())[m.tensor([0])]
m.zeros(())[m.tensor([True])]
m.zeros(())[m.tensor(True)]
m.zeros(())[None]
m.zeros(())[...]
m.arange(6).reshape(2, 3)[..., ...]
m.arange(6).reshape(2, 3)[..., 1, ...]
m.zeros(())[True]
m.zeros(0)[0]
m.zeros(0, 3)[m.tensor([], dtype=m.long)]
m.zeros(3)[m.tensor(1, dtype=m.uint8)]
m.arange(3)[m.tensor([1, 0, 1], dtype=m.uint8)]
m.arange(3)[m.tensor([0, -1], dtype=m.int32)]
m.arange(6).reshape(2, 3)[1][2].item()
len(m.zeros(3, 2))
len(m.zeros(()))
list(m.zeros(()))
[r.tolist() for r in m.arange(6).reshape(3, 2)]
2 in m.arange(3)
7 in m.arange(3)
m.zeros(3).__setitem__(0, [1, 2])
m.zeros(3).__setitem__(0, "a")
m.zeros(3).__setitem__(0, None)
m.zeros(3).__setitem__(slice(None), m.zeros(4))
m.zeros(3).__setitem__(slice(None, None, -1), 1)
m.zeros(3).__setitem__(m.tensor([0]), m.tensor([1]))
m.zeros(3).__setitem__(m.tensor([0, 2]), m.tensor(1))
m.zeros(3).__setitem__(m.tensor([0]), m.zeros(2))
m.zeros(3).__setitem__(m.tensor([5]), 1)
m.zeros(3).__setitem__(m.tensor([True, False]), 1)
m.zeros(3, dtype=m.uint8).__setitem__(0, 300)
m.zeros(3, dtype=m.long).__setitem__(0, float("nan"))
m.ones(3, requires_grad=True).__setitem__(0, 1)
m.zeros(3).index_put_((m.tensor([0]),), m.ones(2))
m.zeros(3).index_put_([m.tensor([0])], m.tensor(1.0))
m.zeros(3).index_put_(m.tensor([0]), m.tensor(1.0))
m.zeros(3)[np.array(2)]
m.zeros(3)[np.uint8(2)]
m.zeros(3)[np.array([True, False, True])]
m.zeros(3)[m.tensor(2, dtype=m.int8)]
m.zeros(3).index_put_((m.tensor([0]), m.tensor([0])), m.tensor(1.0))
m.zeros(3).index_put_((m.tensor([0]),), m.tensor(1))
m.zeros(3).index_put((m.tensor([5]),), m.tensor(1.0))
m.zeros(3).gather(0, m.tensor([5]))
m.zeros(3).gather(0, m.tensor([-1]))
m.zeros(3).gather(0, m.tensor([1.0]))
m.zeros(3, 2).gather(0, m.tensor([1]))
m.zeros(3, 2).gather(0, m.zeros(2, 3, dtype=m.long))
m.zeros(3, 2).gather(2, m.zeros(2, 2, dtype=m.long))
m.tensor(3.0).gather(0, m.tensor([0, 0]))
m.zeros(3).scatter(0, m.tensor([5]), 1.0)
m.zeros(3).scatter(0, m.tensor([1]), m.ones(1).double())
m.zeros(3).scatter(0, m.tensor([1, 0]), m.ones(1))
m.zeros(3).scatter(0, m.tensor([1, 1]), m.ones(2), reduce="add")
m.ones(3).scatter(0, m.tensor([1, 1]), m.tensor([2.0, 3.0]), reduce="multiply")
m.ones(3, dtype=m.bfloat16).scatter(0, m.tensor([1, 1]), m.tensor([2.0, 3.0]).bfloat16(), reduce="multiply")
m.zeros(3).scatter(0, m.tensor([1]), m.ones(1), reduce="foo")
m.zeros(3).scatter_add(0, m.tensor([1, 1]), 1.0)
m.zeros(3).scatter_reduce(0, m.tensor([1, 1]), m.ones(2), "foo")
m.tensor([7, 8, 9]).scatter_reduce(0, m.tensor([1, 1]), m.tensor([1, -4]), "mean")
m.tensor([7, 8, 9]).scatter_reduce(0, m.tensor([1, 1]), m.tensor([1, -4]), "mean", include_self=False)
m.zeros(3).index_add(0, m.tensor([5]), m.ones(1))
m.zeros(3).index_add(0, m.tensor([-1]), m.ones(1))
m.zeros(3).index_add(0, m.tensor([1]), m.ones(2))
m.zeros(3).index_add(0, m.tensor([1]), m.ones(1).double())
m.zeros(3, 2).index_add(0, m.tensor([1]), m.ones(1, 3))
m.zeros(3).index_add(0, m.tensor([1.0]), m.ones(1))
m.zeros(3).index_add(0, m.tensor([[1]]), m.ones(1))
m.zeros(3).index_copy(0, m.tensor([5]), m.ones(1))
m.zeros(3).index_copy(0, m.tensor([1]), m.ones(2))
m.zeros(3, 2).index_copy(0, m.tensor([1]), m.ones(2))
m.zeros(3, 2).index_copy(0, m.tensor([1], dtype=m.int32), m.ones(1, 2))
m.zeros(3, 2).index_copy(0, m.tensor([1]), m.ones(1, 2).double())
m.zeros(3).index_fill(0, m.tensor([5]), 1.0)
m.zeros(3).index_fill(0, m.tensor([-1]), 1.0)
m.zeros(3).index_fill(0, m.tensor([1], dtype=m.int32), 1.0)
m.zeros(3).index_fill(0, m.tensor([1]), m.ones(1))
m.zeros(3).index_select(0, m.tensor([5]))
m.zeros(3).index_select(0, m.tensor([-1]))
m.zeros(3).index_select(0, m.tensor([1.0]))
m.zeros(3).index_select(0, m.tensor([[1]]))
m.zeros(3).index_select(1, m.tensor([1]))
m.tensor(2.0).index_select(0, m.tensor([1]))
m.zeros(3).take(m.tensor([5]))
m.zeros(3).take(m.tensor([1], dtype=m.int32))
m.zeros(0).take(m.tensor([0]))
m.take_along_dim(m.zeros(3, 2), m.tensor([0]), 0)
m.take_along_dim(m.zeros(3, 2), m.tensor([[1.0]]), 0)
m.take_along_dim(m.zeros(3, 2), m.tensor([[1]]), 2)
m.take_along_dim(m.zeros(3, 2), m.tensor([[1]]), -3)
m.zeros(3).put_(m.tensor([5]), m.tensor([1.0]))
m.zeros(3).put_(m.tensor([0]), m.tensor([1.0, 2.0]))
m.zeros(3).put_(m.tensor([0]), m.tensor([1]))
m.zeros(3).put_(m.tensor([0], dtype=m.int32), m.tensor([1.0]))
m.select_scatter(m.zeros(2, 2), m.ones(3), 0, 1)
m.slice_scatter(m.zeros(4), m.ones(3), start=1, end=3)
""".strip().splitlines()

SHAPES = """
m.zeros(2, 3).view(7)
m.zeros(2, 3).view(-1, -1)
m.zeros(2, 3).view(-2, 3)
m.zeros(2, 3).t().view(6)
m.zeros(2, 3).t().view(3, 2, 1)
m.zeros(0, 3).view(-1, 0)
m.zeros(0, 3).view(3, 0, 7)
m.arange(4, dtype=m.int32).view(m.int64).shape
m.arange(4).view(m.int32)
m.arange(3, dtype=m.int32).view(m.int64)
m.tensor([1.0, -2.0]).view(m.int32)
m.zeros(2, 3).reshape(4)
m.zeros(2, 3).reshape(2.5)
m.zeros(2, 3).flatten(1, 0)
m.zeros(2, 3).flatten(0, 5)
m.zeros(2, 6).unflatten(1, (4, 2))
m.zeros(2, 6).unflatten(5, (3, 2))
m.zeros(2, 6).unflatten(1, ())
m.zeros(2, 3).expand(3, 3)
m.zeros(2, 3).expand(3)
m.zeros(2, 3).expand(-1, 2, 3)
m.zeros(1).expand(-1)
m.zeros(2, 3).squeeze(5)
m.zeros(2, 1).squeeze((0, 0))
m.zeros(2, 3).unsqueeze(4)
m.zeros(2, 3).transpose(0, 2)
m.zeros(2, 3).permute(0, 0)
m.zeros(2, 3).permute(0)
m.zeros(2, 3).permute(0, 2)
m.zeros(2, 3, 4).t()
m.zeros(2).mT
m.zeros(2, 3).movedim((0, 1), (0,))
m.zeros(2, 3).movedim((0, 0), (0, 1))
m.zeros(2, 3).movedim(0, 5)
m.cat([])
m.cat([m.zeros(2), m.zeros(2, 2)])
m.cat([m.zeros(2, 3), m.zeros(2, 2)])
m.cat([m.zeros(()), m.zeros(())])
m.cat([m.zeros(1), [1]])
m.cat(3)
m.cat([m.zeros(2)], dim=1)
m.cat([m.zeros(2, dtype=m.float16), m.ones(1, dtype=m.bfloat16)])
m.cat([m.zeros(2, dtype=m.int8), m.ones(1, dtype=m.uint8)])
m.stack([])
m.stack([m.zeros(2), m.zeros(3)])
m.stack([m.zeros(2)], dim=3)
m.stack([m.zeros(2), m.zeros(2, dtype=m.long)])
m.zeros(4).split(0)
m.zeros(4).split(-1)
m.zeros(4).split([1, 2])
m.zeros(4).split([5, -1])
m.zeros(4).chunk(0)
m.zeros(()).chunk(2)
m.zeros(()).unbind()
m.zeros(4).tensor_split(0)
m.zeros(4).unbind(1)
m.zeros(5).hsplit(2)
m.zeros(5).vsplit(2)
m.zeros(5, 2).dsplit(2)
m.zeros(4).narrow(0, 2, 3)
m.zeros(4).narrow(0, -5, 1)
m.zeros(4).narrow(0, 5, 1)
m.zeros(4).narrow(0, 1, -1)
m.zeros(()).narrow(0, 0, 0)
m.zeros(4).select(0, 4)
m.zeros(()).select(0, 0)
m.zeros(2, 3).flip(2)
m.zeros(2, 3).flip(0, 0)
m.zeros(3).fliplr()
m.zeros(()).flipud()
m.zeros(2, 3).rot90(1, (0, 0))
m.zeros(3).rot90()
m.zeros(2, 3).roll((1, 2), 0)
m.zeros(2, 3).roll((1, 2))
m.zeros(2, 3).roll(1, 5)
m.zeros(2, 3).repeat(2)
m.zeros(2, 3).repeat(2, -1)
m.zeros(3).repeat_interleave(m.tensor([1, 2]), 0)
m.zeros(3).repeat_interleave(m.tensor([1, -2, 1]), 0)
m.zeros(3).repeat_interleave(m.tensor([1.0, 2.0, 1.0]), 0)
m.zeros(3).repeat_interleave(-1)
m.zeros(3).repeat_interleave(2, output_size=5)
m.zeros(2, 2, 2).diag()
m.zeros(2, 2).diagonal(0, 1, 1)
m.zeros(2).diagonal()
m.zeros(2).diag_embed(0, 0, 0)
m.zeros(2).tril()
m.zeros(2).triu()
m.zeros(4).unfold(0, 5, 1)
m.zeros(4).unfold(0, 2, 0)
m.zeros(4).unfold(1, 2, 1)
m.zeros(4).as_strided((3, 2), (2, 1))
m.zeros(4).as_strided((2,), (1, 1))
m.zeros(4).as_strided((2,), (-1,))
m.broadcast_shapes((2, 3), (2,))
m.broadcast_to(m.zeros(2), (3,))
m.broadcast_tensors(m.zeros(2), m.zeros(3))
m.meshgrid(m.zeros(2, 2), indexing="ij")
m.meshgrid(m.zeros(2), m.zeros(2), indexing="ab")
m.meshgrid(m.zeros(2), m.zeros(2, dtype=m.long), indexing="ij")
m.cartesian_prod(m.zeros(2, 2))
m.hstack([m.zeros(2), m.zeros(2, 2)])
m.vstack([m.zeros(2), m.zeros(3)])
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("expression", INDEXING + SHAPES)
def test_agrees_with_pytorch(expression: str) -> None:
    assert_agree(expression)


def random_index(rng: np.random.Generator, shape: tuple[int, ...], module: Any) -> Any:
    """Return a random index of mixed kinds that fits the shape; with equal `rng`, the same for both modules."""
    items: list[Any] = []
    dim = 0
    length = int(rng.integers(1, 4))  # the shape all arrays broadcast to
    while dim < len(shape) and rng.random() < 0.85:
        n = shape[dim]
        kind = rng.choice(["int", "slice", "none", "array", "list", "mask", "bool", "number", "ellipsis"])
        if kind == "int":
            items.append(int(rng.integers(-n, n)))
        elif kind == "slice":
            start, stop = (None if rng.random() < 0.3 else int(v) for v in rng.integers(-n - 1, n + 2, 2))
            items.append(slice(start, stop, int(rng.integers(1, 3))))
        elif kind == "none":
            items.append(None)
        elif kind == "array":
            places = rng.integers(-n, n, (length,) if rng.random() < 0.6 else (int(rng.integers(1, 3)), 1))
            items.append(module.tensor(places))
        elif kind == "list":
            items.append(rng.integers(0, n, length).tolist())
        elif kind == "number":
            items.append(module.tensor(int(rng.integers(0, n))))
        elif kind == "mask":
            mask = np.zeros(n, bool)
            mask[rng.permutation(n)[: min(length, n)]] = True
            items.append(module.tensor(mask))
        elif kind == "bool" and True not in [i for i in items if isinstance(i, bool)]:
            items.append(True)
        elif kind == "ellipsis" and not any(i is ... for i in items):
            items.append(...)
            dim = max(dim, len(shape) - int(rng.integers(0, len(shape) - dim + 1))) - 1
        if kind not in ("none", "bool"):
            dim += 1
    return tuple(items)


@pytest.mark.parametrize("seed", range(8))
def test_random_indices_read_and_write_as_in_pytorch(seed: int) -> None:
    """Read, differentiate, and write a number and a tensor; if PyTorch raises, tallow must raise."""
    rng = np.random.default_rng(seed)
    for _ in range(150):
        shape = tuple(rng.integers(1, 5, rng.integers(1, 5)).tolist())
        values = rng.standard_normal(shape)
        choice = int(rng.integers(2**31))
        outcomes = [_use(m, values, random_index(np.random.default_rng(choice), shape, m)) for m in (tl, torch)]
        ours, theirs = outcomes
        index = random_index(np.random.default_rng(choice), shape, torch)
        if isinstance(theirs, Exception):
            assert isinstance(ours, tl.errors.TallowError), f"{shape} {index}: {theirs!r}, {ours!r}"
        else:
            assert not isinstance(ours, Exception), f"{shape} {index}: {ours!r}"
            assert_same(ours, theirs, 1e-12, 1e-12)


def _use(module: Any, values: np.ndarray[Any, Any], index: Any) -> Any:
    x = module.tensor(values, requires_grad=True)
    try:
        read = x[index]
        y = x * 1
        y[index] = 7.0
        z = x * 1
        z[index] = (read * 2).detach()
        total = (read * read).sum() + (y * y).sum() + (z * 3).sum()
        total.backward()
    except Exception as error:
        return error
    return read, y, z, x.grad


def test_a_list_of_lists_is_one_index() -> None:
    """PyTorch warns that a future version will read x[[[0, 2], [1, 1]]] like this; now it reads x[[0, 2], [1, 1]]."""
    x = tl.arange(12).reshape(3, 4)
    assert x[[[0, 2], [1, 1]]].shape == (2, 2, 4)


# PyTorch rounds after each summand
SUMS = ("scatter_add", "scatter_reduce", "index_add", "index_put", "put", "scatter")
MOVING = [c for c in load_all() if c.op in OPS and (OPS[c.op].dtypes == "keep" or c.op in (*SUMS, "cat", "stack"))]
COMPUTING = ("embedding", "linear", "adjoint_map")  # these widen by themselves, or are of any map
COMPLEX = ("tallow.ops.complex_numbers", "tallow.ops.fourier")  # of halves: complex32, which computes nothing
MOVING = [c for c in MOVING if OPS[c.op].function.__module__ not in COMPLEX]
MOVING = [c for c in MOVING if c.op not in COMPUTING and any(a.dtype.kind == "f" for a in c.inputs)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", MOVING, ids=lambda c: c.id)
def test_sixteen_bit_floats_are_moved_as_in_pytorch(case: Case, dtype: str) -> None:
    results = []
    for module in (tl, torch):
        inputs = [module.tensor(a) for a in case.inputs]
        inputs = [t.to(getattr(module, dtype)) if t.is_floating_point() else t for t in inputs]
        try:
            result = case.call(module, *inputs)
        except RuntimeError as error:
            result = error
        results.append(result)
    ours, theirs = results
    if isinstance(theirs, Exception):  # the case itself mixes in another dtype
        assert isinstance(ours, tl.errors.TallowError)
        return
    if isinstance(ours, Exception):
        raise ours
    tolerance = {"float16": 2**-9, "bfloat16": 2**-6}[dtype] if case.op in SUMS else 0
    assert_same(ours, theirs, rtol=tolerance, atol=tolerance)
