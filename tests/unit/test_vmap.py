"""vmap computes a batch as a loop over its elements does: each op with its cases, gradients, writes, errors."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl
from tallow.autograd.functional import gradients
from tallow.core.trees import leaves
from tallow.errors import ArgumentError, GraphError, UnsupportedError
from tallow.func import functional_call, grad, hessian, jacrev, jvp, vmap
from tallow.functions.batching import level as levels
from tallow.functions.batching.tensors import Batched, BatchError
from tallow.nn import functional as F
from tallow.ops.table import OPS
from tallow.utils.checkpoint import checkpoint

SIZE = 3
BY_OP: dict[str, list[Case]] = {}
for _case in load_all():
    BY_OP.setdefault(_case.op, []).append(_case)
WITHOUT_VMAP = {
    "histogram",  # the number of bins depends on the data
    "quantized_linear",  # its weight is read as an array
}
UNLIKE = "cannot write a batch into a tensor that has none"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Leave warnings about missing rules out, and forget which were given."""
    levels._warned.clear()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "vmap: there is no batching rule")
        yield


def batch_of(op: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return inputs of one kind for all elements: numbers of the same signs, indices in the same range."""
    if x.dtype.kind == "f":
        return np.stack([x, x * 0.5, x * 0.75])
    if op == "searchsorted":  # integers stay in order
        return np.stack([x + i for i in range(SIZE)])
    return np.stack([np.roll(x.reshape(-1), i).reshape(x.shape) for i in range(SIZE)])


def dims_of(case: Case) -> Iterator[tuple[int | None, ...]]:
    """Yield which inputs of a case are batches: all, the first, all others."""
    count = len(case.inputs)
    yield (0,) * count
    if count > 1:
        yield (0, *[None] * (count - 1))
        yield (None, *[0] * (count - 1))


def computed(case: Case, dims: tuple[int | None, ...], is_batch: bool) -> list[Any] | None:
    """Return the results of a case and the gradients of its inputs; None if a result is no tensor."""
    inputs = [tl.tensor(batch_of(case.op, x) if d == 0 else x) for x, d in zip(case.inputs, dims, strict=True)]
    for x in inputs:
        x.requires_grad_(case.grad and x.is_floating_point())
    if is_batch:
        results = leaves(vmap(lambda *xs: case.call(tl, *xs), dims)(*inputs))
    else:
        rows = []
        for i in range(SIZE):
            row = [x if d is None else x[i] for x, d in zip(inputs, dims, strict=True)]
            rows.append(leaves(case.call(tl, *row)))
        if not rows[0] or not all(isinstance(y, tl.Tensor) for y in rows[0]):
            return None
        results = [tl.stack(list(column)) for column in zip(*rows, strict=True)]
    seeded = [y for y in results if y.requires_grad]
    seeds = [tl.tensor(np.random.default_rng(1).standard_normal(tuple(y.shape))).to(y.dtype) for y in seeded]
    own = [x for x in inputs if x.requires_grad]
    gradients = tl.autograd.grad(seeded, own, seeds, allow_unused=True, materialize_grads=True) if seeded else ()
    return [*results, *gradients]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", sorted(BY_OP.keys() - WITHOUT_VMAP))
def test_each_op(op: str) -> None:
    for case in BY_OP[op]:
        for dims in dims_of(case) if case.inputs and all(x.size for x in case.inputs) else ():
            try:
                expected = computed(case, dims, is_batch=False)
            except (RuntimeError, ValueError, TypeError, IndexError):  # results of several shapes, a write to a leaf
                continue
            if expected is None:
                continue
            try:
                found = computed(case, dims, is_batch=True) or []
            except GraphError as error:
                if UNLIKE not in str(error):
                    raise
                continue
            for mine, theirs in zip(found, expected, strict=True):
                assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), (case.id, dims)
                np.testing.assert_allclose(
                    mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-8, atol=1e-11, err_msg=f"{case.id} {dims}"
                )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", sorted(BY_OP))
def test_a_pass_for_a_batch_of_seeds(op: str) -> None:
    for case in BY_OP[op]:
        inputs = [tl.tensor(x.astype(np.float64) if x.dtype.kind == "f" else x) for x in case.inputs]
        own = [x.requires_grad_() for x in inputs if x.is_floating_point()]
        try:
            outputs = [y for y in leaves(case.call(tl, *inputs)) if getattr(y, "requires_grad", False)]
        except RuntimeError:  # a write to a leaf
            continue
        rng = np.random.default_rng(0)
        seeds = [tl.tensor(rng.standard_normal((SIZE, *y.shape))).to(y.dtype) for y in outputs]
        if not case.grad or not outputs:
            continue
        found = vmap(lambda *s, ys=outputs, xs=own: gradients(ys, xs, s))(*seeds)
        expected = [gradients(outputs, own, [s[i] for s in seeds]) for i in range(SIZE)]
        for mine, rows in zip(found, zip(*expected, strict=True), strict=True):
            np.testing.assert_allclose(
                mine.numpy(), tl.stack(list(rows)).numpy(), rtol=1e-8, atol=1e-10, err_msg=case.id
            )


def test_a_jacobian_takes_one_pass() -> None:
    x = tl.randn(20)
    recorded = []
    for rows in (2, 50):
        before = (tl.ones(1, requires_grad=True) * 2).grad_fn.sequence
        jacrev(lambda v, n=rows: v.sin().expand(n, 20) * 2)(x)
        recorded.append((tl.ones(1, requires_grad=True) * 2).grad_fn.sequence - before)
    assert recorded[0] == recorded[1]


def test_every_kind_has_a_rule() -> None:
    for op in OPS.values():
        if op.batched is not None:
            assert (op.name if op.batched == "itself" else op.batched) in levels.RULES, op.name


def loop(function: Callable[..., Any], *batches: Any) -> Any:
    return tl.stack([function(*parts) for parts in zip(*batches, strict=True)])


def test_the_function_is_called_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x.shape)
        return x.sin().sum()

    vmap(f)(tl.ones(5, 2))
    assert calls == [(2,)]
    vmap(f, chunk_size=2)(tl.ones(5, 2))
    assert len(calls) == 4


def test_nested() -> None:
    a, b = tl.randn(3, 4), tl.randn(5, 4)
    products = vmap(lambda x: vmap(lambda y: (x * y).sum())(b))(a)
    assert tl.allclose(products, a @ b.T, atol=1e-6)
    outer = vmap(vmap(lambda x, y: x * y, (None, 0)), (0, None))(a[:, 0], b[:, 0])
    assert outer.equal(a[:, :1] * b[:, 0])


def test_gradients_of_each_element() -> None:
    model = tl.nn.Sequential(
        tl.nn.Conv2d(1, 2, 3), tl.nn.ReLU(), tl.nn.MaxPool2d(2), tl.nn.Flatten(), tl.nn.Linear(18, 4)
    )
    images, labels = tl.randn(5, 1, 8, 8), tl.tensor([0, 1, 2, 3, 0])
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(functional_call(model, p, x[None]), y[None])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, labels)
    for i in range(5):
        for name, g in grad(loss)(parameters, images[i], labels[i]).items():
            assert tl.allclose(found[name][i], g, atol=1e-6), name


def test_derivatives_inside() -> None:
    x = tl.randn(3, 4, dtype=tl.float64)

    def f(v: Any) -> Any:
        return (v.sin() * v.prod()).sum()

    for derivative in (
        lambda v: hessian(f)(v),
        lambda v: jacrev(lambda u: u.softmax(0))(v),
        lambda v: jvp(f, (v,), (v,))[1],
        lambda v: grad(lambda u: grad(f)(u).square().sum())(v),
    ):
        assert tl.allclose(vmap(derivative)(x), loop(derivative, x))


def test_gradient_of_what_is_shared() -> None:
    """An argument without a batch gets a gradient for each element."""
    w, x = tl.randn(4), tl.randn(3, 4)
    found = vmap(grad(lambda v, u: (v * u).sum().sin()), (None, 0))(w, x)
    assert tl.allclose(found, loop(lambda u: grad(lambda v: (v * u).sum().sin())(w), x))
    leaf = tl.ones(4, requires_grad=True)
    with pytest.raises(GraphError, match="the sum of the gradients"):
        vmap(lambda u: tl.autograd.grad((leaf * u).sum(), leaf)[0])(x)


def test_writes() -> None:
    x = tl.arange(6.0).reshape(3, 2)

    def f(v: Any) -> Any:
        y = tl.zeros_like(v)
        y[0] = v[1]
        y[1:] += v[:1] * 2
        y.mul_(3)
        z = v.new_zeros(2, 2)
        z[tl.tensor([1, 0])] = v
        return y, z

    y, z = vmap(f)(x)
    assert y.tolist() == [[3, 0], [9, 12], [15, 24]]
    assert z[1].tolist() == [[2, 3], [2, 3]]
    vmap(lambda v: v.mul_(2))(x)  # writes into the batch itself
    assert x.tolist() == [[0, 2], [4, 6], [8, 10]]
    for write in (
        lambda v: tl.zeros(2).add_(v),
        lambda v: tl.zeros(2).copy_(v),
        lambda v: tl.zeros(2).index_add_(0, tl.arange(2), v),
    ):
        with pytest.raises(GraphError, match=UNLIKE):
            vmap(write)(x)
    with pytest.raises(GraphError, match=UNLIKE):
        vmap(lambda v: tl.zeros(2).__setitem__(0, v[0]))(x)


def test_indices_of_a_batch() -> None:
    table, places = tl.randn(7, 4), tl.tensor([[0, 6], [2, -1], [3, 3]])
    assert vmap(lambda i: table[i])(places).equal(table[places])
    assert vmap(lambda i: table[i[0]])(places).equal(table[places[:, 0]])
    assert vmap(lambda i: table[:, i[0] % 4])(places).equal(table[:, places[:, 0] % 4].T)
    batches = tl.randn(3, 5, 7, 4)
    assert vmap(lambda x, i: x[:, i])(batches, places).equal(loop(lambda x, i: x[:, i], batches, places))
    assert vmap(lambda x, i: x[1, i, 2])(batches, places).equal(loop(lambda x, i: x[1, i, 2], batches, places))


def test_values_cannot_decide() -> None:
    x = tl.ones(3, 2)
    for function in (
        lambda v: v if v.sum() > 0 else -v,
        lambda v: v * v.sum().item(),
        lambda v: tl.tensor(v.tolist()),
        lambda v: tl.tensor(float(v[0])),
        lambda v: tl.from_numpy(np.sqrt(v.numpy())),
        lambda v: tl.zeros(int(v[0])),
    ):
        with pytest.raises((BatchError, TypeError)):
            vmap(function)(x)
    with pytest.raises(UnsupportedError, match="backward"):
        vmap(lambda v: v.sum().backward())(x)


def test_one_warning_for_an_op_without_a_rule() -> None:
    x = tl.randn(3, 4)
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always")
        for _ in range(2):
            assert vmap(lambda v: tl.histc(v, 4, -2, 2))(x).equal(loop(lambda v: tl.histc(v, 4, -2, 2), x))
    assert [str(w.message) for w in got] == [
        "vmap: there is no batching rule for histc: it is computed for each element"
    ]


def test_a_custom_function() -> None:
    class Cube(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * ctx.saved_tensors[0] ** 2 * g

    x = tl.tensor([1.0, 2.0])
    assert vmap(grad(lambda v: Cube.apply(v)))(x).tolist() == [3, 12]


def test_recurrent_layers_attention_and_checkpoints() -> None:
    x = tl.randn(2, 5, 4)
    lstm, attention = tl.nn.LSTM(4, 3), tl.nn.MultiheadAttention(4, 2)
    for function in (
        lambda v: lstm(v)[0],
        lambda v: attention(v, v, v)[0],
        lambda v: checkpoint(lambda u: u.sin().sum(0), v, use_reentrant=False),
        lambda v: tl.einsum("ij,kj->ik", v, v),
        lambda v: sum(v.half() + v.bfloat16()),
    ):
        assert tl.allclose(vmap(function)(x), loop(function, x), atol=1e-5)


def test_other_modes() -> None:
    def f(v: Any) -> Any:
        return (v.sin() * v.prod()).sum()

    class Model(tl.nn.Module):
        def forward(self, x: Any) -> Any:
            return vmap(f)(x)

    x = tl.randn(4, 3)
    compiled = tl.compile(lambda v: vmap(grad(f))(v))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "tl.compile: .* runs eagerly")
        for _ in range(3):
            assert tl.allclose(compiled(x), loop(grad(f), x), atol=1e-6)
    assert tl.allclose(tl.export.export(Model(), (x,)).module()(x), loop(f, x), atol=1e-6)
    with tl.inference_mode():
        assert tl.allclose(vmap(f)(x), loop(f, x), atol=1e-6)
    model = tl.nn.Sequential(tl.nn.Linear(3, 5), tl.nn.LayerNorm(5), tl.nn.GELU())
    with tl.autocast("cpu", dtype=tl.bfloat16):
        assert tl.allclose(vmap(model)(x).float(), model(x).float(), atol=1e-2)


def test_dims_of_results() -> None:
    x = tl.randn(3, 2)
    assert vmap(lambda v: (v, tl.ones(2)), out_dims=(1, None))(x)[0].equal(x.T)
    assert vmap(lambda v: tl.ones(2))(x).equal(tl.ones(3, 2))
    with pytest.raises(ArgumentError, match="None"):
        vmap(lambda v: v, out_dims=None)(x)
    with pytest.raises(ArgumentError, match="chunk_size"):
        vmap(lambda v: v, chunk_size=0)


def test_dropout() -> None:
    tl.manual_seed(0)
    x = tl.ones(4, 100)
    same = vmap(lambda v: F.dropout(v), randomness="same")(x)
    different = vmap(lambda v: F.dropout(v), randomness="different")(x)
    assert same[0].equal(same[3])
    assert not different[0].equal(different[3])


@pytest.mark.threads
def test_other_threads_may_draw_meanwhile() -> None:
    def f(v: Any) -> Any:
        other = threading.Thread(target=tl.rand, args=(2,))
        other.start()
        other.join()
        return v * 2

    assert vmap(f)(tl.ones(3, 2)).equal(tl.full((3, 2), 2.0))
    with pytest.raises(ArgumentError, match="draws random numbers"):
        vmap(lambda v: vmap(lambda w: w + tl.rand(2), randomness="same")(v))(tl.ones(3, 2, 2))


def test_statistics_of_a_batch_norm() -> None:
    layer = tl.nn.BatchNorm1d(2)
    x = tl.randn(3, 4, 2)
    with pytest.raises(GraphError, match=UNLIKE):
        vmap(layer)(x)
    free = tl.nn.BatchNorm1d(2, track_running_stats=False)
    assert tl.allclose(vmap(free)(x), loop(free, x), atol=1e-6)


def test_a_batched_tensor_says_what_it_is() -> None:
    seen: list[Any] = []

    def f(v: Any) -> Any:
        seen.append(
            (repr(v), isinstance(v, Batched), v.shape, v.dtype, v.device.type, v.numel(), v.requires_grad, v.is_leaf)
        )
        return v

    vmap(f)(tl.ones(3, 2, requires_grad=True))
    text, *rest = seen[0]
    assert text.startswith("BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[1., 1.],")
    assert rest == [True, (2,), tl.float32, tl.ones(1).device.type, 2, True, True]
