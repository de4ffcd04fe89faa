"""Sparse tensors against PyTorch's: values, layouts, places, gradients, printing, files, errors."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl
from tallow.errors import CheckpointError, GraphError, ShapeError

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of PyTorch: CSR is in beta, invariants are not checked
        yield


def pair(shape: tuple[int, ...], count: int, dense: int = 0, dtype: Any = np.float64) -> tuple[Any, Any]:
    """One COO tensor with repeated places, as PyTorch's and as tallow's."""
    n = len(shape) - dense
    places = np.stack([RNG.integers(0, size, count) for size in shape[:n]])
    values = (RNG.integers(-20, 20, (count, *shape[n:])) / 4).astype(dtype)  # sums are exact in any order
    return tuple(m.sparse_coo_tensor(m.tensor(places), m.tensor(values), shape) for m in (torch, tl))  # type: ignore[return-value]


def parts(x: Any) -> list[Any]:
    """The layout, the shape, the dtype and the parts of a tensor."""
    described = [x.layout, tuple(x.shape), x.dtype]
    if x.layout in (torch.strided, tl.strided):
        return [*described, x.detach()]
    if x.is_sparse:
        x = x.coalesce()
        return [*described, x.indices(), x.values().detach()]
    kind = str(x.layout)
    names = ("crow", "col") if kind.endswith(("csr", "bsr")) else ("ccol", "row")
    return [*described, *(getattr(x, f"{name}_indices")() for name in names), x.values().detach()]


def assert_same(own: Any, theirs: Any) -> None:
    for a, b in zip(parts(own), parts(theirs), strict=True):
        if isinstance(a, tl.Tensor):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6, atol=1e-9)
        else:
            assert str(a).replace("tallow", "torch") == str(b).replace("tallow", "torch")


DENSE = RNG.standard_normal((4, 5))
OTHER = RNG.standard_normal((5, 3))
# What is computed of a COO tensor A (4, 5), B like it, the same with compressed rows R, dense D (4, 5) and E (5, 3).
CALLS: dict[str, Callable[..., Any]] = {
    "to_dense": lambda m, A, B, R, D, E: A.to_dense(),
    "coalesce": lambda m, A, B, R, D, E: A.coalesce(),
    "csr": lambda m, A, B, R, D, E: A.to_sparse_csr(),
    "csc": lambda m, A, B, R, D, E: A.to_sparse_csc(),
    "bsr": lambda m, A, B, R, D, E: A.to_sparse_bsr((2, 5)),
    "bsr dense": lambda m, A, B, R, D, E: A.to_sparse_bsr((2, 1)).to_dense(),
    "csc dense": lambda m, A, B, R, D, E: A.to_sparse_csc().to_dense(),
    "csr to coo": lambda m, A, B, R, D, E: R.to_sparse(),
    "batch": lambda m, A, B, R, D, E: m.stack([D, 2 * D]).to_sparse_csr(),
    "batch dense": lambda m, A, B, R, D, E: m.stack([D, 2 * D]).to_sparse_csr().to_dense(),
    "from dense": lambda m, A, B, R, D, E: D.relu().to_sparse(),
    "hybrid": lambda m, A, B, R, D, E: D.relu().to_sparse(1),
    "add": lambda m, A, B, R, D, E: A + B,
    "sub": lambda m, A, B, R, D, E: A.coalesce() - B.coalesce(),
    "alpha": lambda m, A, B, R, D, E: m.add(A, B, alpha=3),
    "add csr": lambda m, A, B, R, D, E: R + R,
    "dense + sparse": lambda m, A, B, R, D, E: D + A,
    "dense - sparse": lambda m, A, B, R, D, E: D - A,
    "csr + dense": lambda m, A, B, R, D, E: R + D,
    "in place": lambda m, A, B, R, D, E: D.clone().add_(A, alpha=-2),
    "number": lambda m, A, B, R, D, E: 2 * A / 3,
    "tensor number": lambda m, A, B, R, D, E: A * m.tensor(2.0),
    "neg": lambda m, A, B, R, D, E: -A,
    "mul": lambda m, A, B, R, D, E: (A * B).to_dense(),
    "mul dense": lambda m, A, B, R, D, E: A * D,
    "mul csr": lambda m, A, B, R, D, E: D * R,
    "mul broadcast": lambda m, A, B, R, D, E: A.coalesce() * D[:, :1],
    "pow": lambda m, A, B, R, D, E: A.pow(2),
    "relu": lambda m, A, B, R, D, E: m.relu(A),
    "csr tanh": lambda m, A, B, R, D, E: R.tanh(),
    "mm": lambda m, A, B, R, D, E: A @ E,
    "mm csr": lambda m, A, B, R, D, E: R @ E,
    "mm csc": lambda m, A, B, R, D, E: R.t().to_dense() @ D,
    "mv": lambda m, A, B, R, D, E: A.mv(E[:, 0]),
    "spmm": lambda m, A, B, R, D, E: m.spmm(A, E),
    "dense @ sparse": lambda m, A, B, R, D, E: D.t() @ A,
    "sparse.mm": lambda m, A, B, R, D, E: m.sparse.mm(A, E),
    "of two": lambda m, A, B, R, D, E: m.sparse.mm(A, B.t()),
    "of two csr": lambda m, A, B, R, D, E: (R @ E.relu().to_sparse_csr()).to_dense(),
    "addmm": lambda m, A, B, R, D, E: m.addmm(m.ones(4, 3, dtype=m.float64), A, E, beta=2, alpha=3),
    "bmm": lambda m, A, B, R, D, E: m.bmm(m.stack([A, B]), m.stack([E, E])),
    "linear": lambda m, A, B, R, D, E: m.nn.functional.linear(A, E.t()),
    "sum": lambda m, A, B, R, D, E: A.sum(),
    "sum 0": lambda m, A, B, R, D, E: m.sparse.sum(A, 0),
    "sum 01": lambda m, A, B, R, D, E: m.sparse.sum(A, (0, 1)),
    "csr sum": lambda m, A, B, R, D, E: R.sum(1, keepdim=True),
    "softmax": lambda m, A, B, R, D, E: m.sparse.softmax(A, 1),
    "log_softmax": lambda m, A, B, R, D, E: m.sparse.log_softmax(A, 0),
    "transpose": lambda m, A, B, R, D, E: A.transpose(0, 1),
    "csr t": lambda m, A, B, R, D, E: R.t(),
    "row": lambda m, A, B, R, D, E: A[1],
    "element": lambda m, A, B, R, D, E: A[1, 2],
    "column": lambda m, A, B, R, D, E: A[:, 3],
    "index_select": lambda m, A, B, R, D, E: A.index_select(1, m.tensor([3, 0, 3])),
    "cat": lambda m, A, B, R, D, E: m.cat([A, B], 1),
    "stack": lambda m, A, B, R, D, E: m.stack([A, B]),
    "sparse_mask": lambda m, A, B, R, D, E: D.sparse_mask(A.coalesce()),
    "mask csr": lambda m, A, B, R, D, E: D.sparse_mask(R),
    "zeros_like": lambda m, A, B, R, D, E: m.zeros_like(A),
    "sampled": lambda m, A, B, R, D, E: m.sparse.sampled_addmm(
        R, D @ m.ones(5, 2, dtype=m.float64), E[:2].new_ones(2, 5)
    ),
    "int": lambda m, A, B, R, D, E: A.long(),
    "float": lambda m, A, B, R, D, E: R.float(),
    "spdiags": lambda m, A, B, R, D, E: m.sparse.spdiags(D, m.tensor([0, -1, 2, 1]), (6, 7)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_give_what_pytorch_gives(name: str) -> None:
    a, b = pair((4, 5), 7), pair((4, 5), 6)
    results = []
    for i, m in enumerate((torch, tl)):
        d, e = m.tensor(DENSE), m.tensor(OTHER)
        results.append(CALLS[name](m, a[i], b[i], a[i].to_sparse_csr(), d, e))
    assert_same(results[1], results[0])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (2, 3, 4)])
def test_other_shapes(shape: tuple[int, ...]) -> None:
    theirs, own = pair(shape, 0 if 0 in shape else 5)
    assert_same(own, theirs)
    assert_same(own.to_dense(), theirs.to_dense())
    assert_same(own + own, theirs + theirs)
    assert repr(own.coalesce()).replace("tallow", "torch") == repr(theirs.coalesce())
    if len(shape) == 2:
        e = RNG.standard_normal((shape[1], 2))
        assert_same(own @ tl.tensor(e), theirs @ torch.tensor(e))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_hybrid_tensors(dim: int) -> None:
    theirs, own = pair((3, 4, 2), 6, dense=1)
    assert (own.sparse_dim(), own.dense_dim(), own._nnz()) == (2, 1, 6)
    assert_same(own.to_dense(), theirs.to_dense())
    assert_same(tl.sparse.softmax(own, dim), torch.sparse.softmax(theirs, dim))
    assert_same(tl.sparse.sum(own, dim), torch.sparse.sum(theirs, dim))
    assert_same(own.select(dim, 1), theirs.select(dim, 1))
    assert_same(tl.cat([own, own], dim), torch.cat([theirs, theirs], dim))


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float32, np.complex64])
def test_dtypes(dtype: Any) -> None:
    theirs, own = pair((3, 4), 5, dtype=dtype)
    assert_same(own.to_dense(), theirs.to_dense())
    assert repr(own.coalesce()).replace("tallow", "torch") == repr(theirs.coalesce())


def test_printing() -> None:
    theirs, own = pair((40, 50), 1200)
    for convert in (
        lambda x: x,
        lambda x: x.float().to_sparse_csr(),
        lambda x: x.float().requires_grad_(),
        lambda x: x.float().to_sparse_bsr((20, 25)),
        lambda x: x.float().to_sparse_csc(),
    ):
        assert repr(convert(own)).replace("tallow", "torch") == repr(convert(theirs))


GRADIENTS: dict[str, Callable[..., Any]] = {
    "to_dense": lambda m, A, D, E: A.to_dense() * D,
    "sparse.mm": lambda m, A, D, E: m.sparse.mm(A, E) ** 2,
    "values": lambda m, A, D, E: A.coalesce().values() ** 2,
    "softmax": lambda m, A, D, E: m.sparse.softmax(A, 1).to_dense() * D,
    "sum": lambda m, A, D, E: m.sparse.sum(A, 0).to_dense() ** 2,
    "mul": lambda m, A, D, E: (A * 3).to_dense() * D,
    "t": lambda m, A, D, E: m.sparse.mm(A.t(), D),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_gradient_of_a_leaf_is_sparse(name: str) -> None:
    leaves = pair((4, 5), 9)
    for i, m in enumerate((torch, tl)):
        leaves[i].requires_grad_()
        GRADIENTS[name](m, leaves[i], m.tensor(DENSE), m.tensor(OTHER)).sum().backward()
    assert leaves[1].is_leaf
    assert leaves[1].grad.is_sparse
    np.testing.assert_allclose(leaves[1].grad.to_dense().numpy(), leaves[0].grad.to_dense().numpy(), atol=1e-12)


def test_gradients_of_the_operands() -> None:
    places, values = np.array([[0, 1, 1, 0], [2, 0, 2, 2]]), RNG.standard_normal(4)
    grads = []
    for m in (torch, tl):
        v, e, d = (m.tensor(x, requires_grad=True) for x in (values, OTHER[:3], DENSE[:2, :3]))
        a = m.sparse_coo_tensor(m.tensor(places), v, (2, 3))
        assert not a.is_leaf
        loss = (m.sparse.mm(a, e) ** 2).sum() + (d.to_sparse().to_dense() ** 3).sum() + (d.t() @ a).sum()
        grads.append(m.autograd.grad(loss, [v, e, d]))
    for own, theirs in zip(grads[1], grads[0], strict=True):
        np.testing.assert_allclose(own.numpy(), theirs.numpy(), atol=1e-12)
    a = tl.sparse_csr_tensor([0, 1, 2], [2, 0], [1.0, 2.0], (2, 3), requires_grad=True)
    (g,) = tl.autograd.grad(tl.sparse.mm(a, tl.eye(3)).sum(), [a])
    assert g.layout is tl.sparse_csr
    (g,) = tl.autograd.grad((tl.sparse.mm(a, tl.eye(3)) ** 3).sum(), [a], create_graph=True)
    (second,) = tl.autograd.grad(g.values().sum(), [a])
    np.testing.assert_allclose(second.values().numpy(), [6.0, 12.0])


def train(m: Any, kind: str, bag: str | None, options: dict[str, Any]) -> tuple[Any, Any]:
    layer = (
        m.nn.Embedding(6, 3, padding_idx=2, sparse=True)
        if bag is None
        else m.nn.EmbeddingBag(6, 3, mode=bag, sparse=True)
    )
    with m.no_grad():
        layer.weight.copy_(m.tensor(np.linspace(-1, 1, 18).reshape(6, 3)))
    optimizer = getattr(m.optim, kind)(layer.parameters(), **options)
    for words in ([[1, 3, 1, 2]], [[0, 3]], [[5, 5]]):
        optimizer.zero_grad()
        (layer(m.tensor(words)) ** 2).sum().backward()
        assert layer.weight.grad.is_sparse
        optimizer.step()
    return layer.weight.detach().numpy(), layer.weight.grad


@pytest.mark.parametrize("bag", [None, "sum", "mean"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("SGD", {"lr": 0.1, "maximize": True}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
        ("SparseAdam", {"lr": 0.1}),
    ],
)
def test_optimizers_take_sparse_gradients(kind: str, options: dict[str, Any], bag: str | None) -> None:
    (theirs, their_grad), (own, own_grad) = (train(m, kind, bag, options) for m in (torch, tl))
    np.testing.assert_allclose(own, theirs, rtol=1e-6)
    assert_same(own_grad, their_grad)


def test_sparse_and_dense_gradients_add_up() -> None:
    for order in (1, -1):
        totals = []
        for m in (torch, tl):
            layer = m.nn.Embedding(4, 2, sparse=True)
            words = m.tensor([1, 1])
            uses = [lambda x=layer, w=words: x(w).sum(), lambda x=layer: (x.weight * 3).sum()][::order]
            (uses[0]() + uses[1]()).backward()
            for use in uses:
                use().backward()
            totals.append(layer.weight.grad.to_dense().numpy())
        np.testing.assert_allclose(totals[1], totals[0])


def test_gradients_of_rows_in_other_surroundings() -> None:
    def loss(table: Any) -> Any:
        return (tl.nn.functional.embedding(tl.tensor([1, 1, 3]), table, sparse=True) ** 2).sum()

    tables = [tl.arange(8.0).view(4, 2).requires_grad_() for _ in range(3)]  # leaves, and views
    loss(tables[0]).backward()
    with tl.autograd.detect_anomaly():
        loss(tables[1]).backward()
    tl.utils.checkpoint.checkpoint(loss, tables[2], use_reentrant=False).backward()
    assert [t.grad.is_sparse for t in tables[:2]] == [True, True]
    for table in tables:
        assert table.grad.to_dense().tolist() == [[0, 0], [8, 12], [0, 0], [12, 14]]


def test_functions_in_place() -> None:
    leaves = pair((4, 5), 9)
    for m, a in zip((torch, tl), leaves, strict=True):
        a.detach().div_(2)  # on the same memory
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            a.requires_grad_().mul_(2)
        with m.no_grad():
            a.sub_(m.sparse_coo_tensor([[0], [1]], [0.5], (4, 5)))
        assert (a.requires_grad, str(a.dtype).rpartition(".")[2]) == (True, "float64")
        m.sparse.sum(a * 3).backward()
        with pytest.raises(RuntimeError, match=r"result type Float can't be cast|result type .*float32 can't be cast"):
            a.detach().int().div_(2)
    assert_same(leaves[1].detach(), leaves[0].detach())
    assert_same(leaves[1].grad, leaves[0].grad)
    out = tl.zeros(4, 5, dtype=tl.float64)
    with pytest.raises(NotImplementedError, match="neg with out"):
        tl.neg(leaves[1].detach(), out=out)
    assert not out.any()


def test_backward_takes_a_gradient_at_the_same_places() -> None:
    values = tl.tensor([1.0, 2.0], requires_grad=True)
    y = tl.sparse_coo_tensor([[0, 1]], values * 2, (3,)).coalesce()
    for places in ([[1, 0]], [[0, 2]]):
        with pytest.raises(GraphError, match="a gradient with the same entries"):
            y.backward(tl.sparse_coo_tensor(places, [1.0, 10.0], (3,)))
    y.backward(tl.sparse_coo_tensor([[0, 1]], [1.0, 10.0], (3,)))
    assert values.grad.tolist() == [2, 20]


def test_products_by_compressed_columns() -> None:
    dense, x = RNG.standard_normal((5, 4)) * (RNG.random((5, 4)) < 0.5), RNG.standard_normal((4, 3))
    found = []
    for m in (torch, tl):
        a = m.tensor(dense).to_sparse_csc()
        values = a.values().clone().requires_grad_()
        a = m.sparse_csc_tensor(a.ccol_indices(), a.row_indices(), values, (5, 4))
        y = a @ m.tensor(x)
        found.append([y, a @ m.tensor(x * 2)])
        if m is tl:  # PyTorch has no gradient for compressed columns
            (y**2).sum().backward()
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-12)
    columns, rows = np.nonzero(dense.T)
    np.testing.assert_allclose(values.grad.numpy(), (2 * (dense @ x) @ x.T)[rows, columns], rtol=1e-12)


def test_columns_may_be_in_any_order() -> None:
    unordered, ordered = (
        tl.sparse_csr_tensor([0, 2, 3], columns, values, (2, 2))
        for columns, values in (([1, 0, 1], [1.0, 2.0, 3.0]), ([0, 1, 1], [2.0, 1.0, 3.0]))
    )
    assert unordered.to_sparse().coalesce().indices().tolist() == [[0, 0, 1], [0, 1, 1]]
    assert (unordered.to_sparse() * ordered.to_sparse()).to_dense().tolist() == [[4, 1], [0, 9]]


def test_other_optimizers_refuse_sparse_gradients() -> None:
    layer = tl.nn.Embedding(4, 2, sparse=True)
    layer(tl.tensor([1])).sum().backward()
    for kind in ("Adam", "RMSprop", "Adamax", "Adadelta"):
        with pytest.raises(GraphError, match=f"{kind} does not support sparse gradients"):
            getattr(tl.optim, kind)(layer.parameters()).step()


@pytest.mark.parametrize("convert", ["coalesce", "to_sparse_csr", "to_sparse_csc"])
def test_files_go_both_ways(convert: str) -> None:
    theirs, own = (getattr(x, convert)() for x in pair((4, 5), 7))
    for write, read, value, expected in ((torch, tl, theirs, theirs), (tl, torch, own, own)):
        file = io.BytesIO()
        write.save({"x": value, "y": [value]}, file)
        file.seek(0)
        loaded = read.load(file)
        a, b = (loaded["x"], expected) if read is tl else (expected, loaded["x"])
        assert_same(a, b)


def test_a_file_with_wrong_places_is_refused() -> None:
    file = io.BytesIO()
    torch.save(torch.sparse_coo_tensor([[0, 7]], [1.0, 2.0], (3,), check_invariants=False), file)
    file.seek(0)
    with pytest.raises(CheckpointError, match="size is inconsistent with indices"):
        tl.load(file)


def test_copies_and_modules() -> None:
    _, own = pair((4, 5), 7)
    for copied in (copy.deepcopy(own), pickle.loads(pickle.dumps(own)), own.clone(), own.detach()):
        assert_same(copied, own)
    module = tl.nn.Linear(2, 2)
    module.register_buffer("mask", own)
    assert_same(module.state_dict()["mask"], own)
    assert module.half().mask.dtype is tl.float16
    module.load_state_dict(module.state_dict())
    assert isinstance(module.mask, tl.Tensor)


def test_what_is_not_implemented_raises_by_name() -> None:
    _, own = pair((4, 5), 7)
    dense = tl.ones(4, 5, dtype=tl.float64)
    for name, call in {
        "exp": own.exp,
        "softmax": lambda: tl.softmax(own, 1),
        "where": lambda: tl.where(dense > 0, own, dense),
        "gelu": lambda: tl.nn.functional.gelu(own),
        "max": own.max,
        "reshape": lambda: own.reshape(20),
        "eq": lambda: own == own,
        "tolist": own.tolist,
        "data_ptr": own.data_ptr,
        "exp_": own.exp_,
    }.items():
        with pytest.raises(NotImplementedError, match=rf"{name} is not implemented for layout .*sparse_coo"):
            call()
    for call in (own.numpy, lambda: np.asarray(own)):
        with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy"):
            call()


def test_parts_that_do_not_fit_are_refused() -> None:
    for match, call in {
        "same nnz": lambda: tl.sparse_coo_tensor([[0, 1]], [1.0]),
        "inconsistent with indices": lambda: tl.sparse_coo_tensor([[0, 3]], [1.0, 2.0], (3,)),
        "negative index": lambda: tl.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)),
        "a size is negative": lambda: tl.sparse_coo_tensor(tl.zeros(1, 0, dtype=tl.int64), [], (-1,)),
        "more places than": lambda: tl.sparse_coo_tensor([[0, 1], [0, 0]], [1.0, 2.0], (2**40, 2**40)).coalesce(),
        "ascend without": lambda: tl.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (3,), is_coalesced=True),
        "must ascend": lambda: tl.sparse_csr_tensor([0, 2, 1], [0], [1.0]),
        "cannot be multiplied": lambda: tl.ones(2, 2).to_sparse() @ tl.ones(3, 2),
        "takes a matrix": lambda: tl.sparse.mm(tl.eye(2).to_sparse_csr(), tl.ones(2), "sum"),
        "divisible": lambda: tl.ones(3, 3).to_sparse_bsr((2, 2)),
    }.items():
        with pytest.raises(ShapeError, match=match):
            call()
    with pytest.raises(RuntimeError, match="uncoalesced"):
        tl.sparse_coo_tensor([[1, 0]], [1.0, 2.0]).values()


def test_products_of_a_batch_are_those_of_each_element() -> None:
    warnings.filterwarnings("error", "vmap")  # of an op that is computed for each element
    rng = np.random.RandomState(0)
    crow, col = tl.tensor([0, 2, 2, 3]), tl.tensor([0, 3, 1])
    values, dense = tl.tensor(rng.randn(5, 3)), tl.tensor(rng.randn(5, 4, 2))

    def product(values: Any, dense: Any) -> Any:
        return tl.sparse_csr_tensor(crow, col, values, (3, 4)) @ dense

    def loss(values: Any, dense: Any) -> Any:
        return product(values, dense).square().sum()

    for dims in ((0, 0), (None, 0), (0, None)):
        arguments = [x if d == 0 else x[0] for x, d in zip((values, dense), dims, strict=True)]
        each = [[x[i] if d == 0 else x for x, d in zip(arguments, dims, strict=True)] for i in range(5)]
        found = tl.func.vmap(product, dims)(*arguments)
        assert tl.allclose(found, tl.stack([product(*e) for e in each]))
        gradients = tl.func.vmap(tl.func.grad(loss, (0, 1)), dims)(*arguments)
        for got, wanted in zip(
            gradients, zip(*[tl.func.grad(loss, (0, 1))(*e) for e in each], strict=True), strict=True
        ):
            assert tl.allclose(got, tl.stack(wanted))
