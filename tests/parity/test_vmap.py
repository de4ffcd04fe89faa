"""vmap compared with torch.func.vmap: each op with a batch of its cases, models by functional_call, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Case, load_all, normal

import tallow as tl
from tallow.core.trees import leaves

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

pytestmark = [
    pytest.mark.filterwarnings("ignore:There is a performance drop"),  # PyTorch has no rule
    pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning"),  # by PyTorch's own jvp
    pytest.mark.filterwarnings("ignore:vmap. there is no batching rule"),
]
BY_OP: dict[str, list[Case]] = {}
for _case in load_all():
    BY_OP.setdefault(_case.op, []).append(_case)


def batch_of(op: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if x.dtype.kind == "f":
        return np.stack([x, x * 0.5, x * 0.75])
    if op == "searchsorted":  # integers stay in order
        return np.stack([x + i for i in range(3)])
    return np.stack([np.roll(x.reshape(-1), i).reshape(x.shape) for i in range(3)])


def computed(lib: Any, case: Case) -> list[Any]:
    def call(*inputs: Any) -> Any:
        result = case.call(lib, *inputs)
        return tuple(result) if isinstance(result, list) else result

    return leaves(lib.func.vmap(call)(*[lib.from_numpy(batch_of(case.op, x)) for x in case.inputs]))


# PyTorch's result under its vmap is not that of a loop.
ELSEWHERE = {"all-3", "any-3", "argmax-1", "argmin-1", "index_select-3", "linalg_qr-6"}
WITHOUT_VMAP = {"histogram", "quantized_linear"}  # see tests/unit/test_vmap.py


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", sorted(BY_OP.keys() - WITHOUT_VMAP))
def test_each_op(op: str) -> None:
    for case in BY_OP[op]:
        if not case.inputs or case.id in ELSEWHERE or not all(x.size for x in case.inputs):
            continue
        try:
            theirs = computed(torch, case)
        except Exception:
            continue
        mine = computed(tl, case)
        assert len(mine) == len(theirs)
        for y, expected in zip(mine, theirs, strict=True):
            assert tuple(y.shape) == tuple(expected.shape), case.id
            assert y.dtype.name == str(expected.dtype).removeprefix("torch."), case.id
            is_double = y.dtype is tl.float64
            rtol, atol = (max(case.rtol64, 1e-7), 1e-9) if is_double else (case.rtol, case.atol)
            np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=rtol, atol=atol, err_msg=case.id)


def lenet(m: Any) -> Any:
    nn = m.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 10),
    )  # fmt: skip


class Encoder:
    """Make a small encoder with token embeddings, as BERT has, of either library."""

    def __new__(cls, m: Any) -> Any:
        class Model(m.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.words, self.places = m.nn.Embedding(11, 8), m.nn.Embedding(6, 8)
                self.norm = m.nn.LayerNorm(8)
                self.layer = m.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True)
                self.head = m.nn.Linear(8, 10)

            def forward(self, ids: Any) -> Any:
                x = self.words(ids) + self.places(m.arange(ids.shape[1]))
                return self.head(self.layer(self.norm(x))[:, 0].tanh())

        return Model()


MODELS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "LeNet": (lenet, normal(4, 1, 28, 28)),
    "encoder": (Encoder, np.random.default_rng(0).integers(0, 11, (4, 6))),
}


@pytest.mark.filterwarnings("ignore::UserWarning:torch")
@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_each_sample(name: str) -> None:
    make, inputs = MODELS[name]
    state = {k: normal(*p.shape) * 0.2 for k, p in make(tl).named_parameters()}

    def gradients(m: Any) -> dict[str, Any]:
        model = make(m).double()
        parameters = {k: m.from_numpy(p.copy()) for k, p in state.items()}

        def loss(p: Any, x: Any, y: Any) -> Any:
            logits = m.func.functional_call(model, p, (x.unsqueeze(0),))
            return m.nn.functional.cross_entropy(logits, y.unsqueeze(0))

        labels = m.tensor([0, 3, 9, 1])
        found: dict[str, Any] = m.func.vmap(m.func.grad(loss), in_dims=(None, 0, 0))(
            parameters, m.from_numpy(inputs), labels
        )
        return found

    mine, theirs = gradients(tl), gradients(torch)
    assert list(mine) == list(theirs)
    for key, g in mine.items():
        np.testing.assert_allclose(g.numpy(), theirs[key].numpy(), rtol=1e-8, atol=1e-10, err_msg=key)


A, B = normal(3, 4), normal(3, 4)
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "Hessian of each": lambda m, a, b: m.func.vmap(m.func.hessian(lambda x: x.sin().prod()))(a),
    "jacrev of each": lambda m, a, b: m.func.vmap(m.func.jacrev(lambda x: x.softmax(0)))(a),
    "jacfwd of each": lambda m, a, b: m.func.vmap(m.func.jacfwd(lambda x: x.softmax(0)))(a),
    "jvp of each": lambda m, a, b: m.func.vmap(lambda x, v: m.func.jvp(lambda y: y.exp(), (x,), (v,))[1])(a, b),
    "jvps of one": lambda m, a, b: m.func.vmap(lambda v: m.func.jvp(lambda y: y.exp(), (a[0],), (v,))[1])(b),
    "grad through": lambda m, a, b: m.func.grad(lambda x: m.func.vmap(lambda r, s: (r * s).cumsum(0))(x, b).sum())(a),
    "grad of grad of each": lambda m, a, b: m.func.vmap(
        m.func.grad(lambda x: m.func.grad(lambda y: (y**3).sum())(x).sum())
    )(a),
    "vmap in vmap": lambda m, a, b: m.func.vmap(lambda x: m.func.vmap(lambda y: (x * y).logsumexp(0))(b))(a),
    "vmap of vmap, other dims": lambda m, a, b: m.func.vmap(m.func.vmap(lambda x, y: x - y, (0, None)), (0, 1), 1)(
        a, b[:, :3]
    ),
    "vmap in grad in vmap": lambda m, a, b: m.func.vmap(
        m.func.grad(lambda x: m.func.vmap(lambda y: (x * y).sum().sin())(b).sum())
    )(a),
    "chunks": lambda m, a, b: m.func.vmap(lambda x, y: (x @ y, x + y), out_dims=(0, 1), chunk_size=2)(a, b),
    "a dict": lambda m, a, b: m.func.vmap(lambda p: {"y": p["x"] * p["c"]}, ({"x": 0, "c": None},))(
        {"x": a, "c": b[0]}
    ),
    "writes": lambda m, a, b: m.func.vmap(lambda x: m.zeros_like(x).index_put_((m.tensor([1, 0]),), x[:2]))(a),
    "a mask": lambda m, a, b: m.func.vmap(lambda x, y: m.where(x > y, x, m.zeros((), dtype=m.float64)))(a, b),
    "promotion": lambda m, a, b: m.func.vmap(lambda x: x * m.ones(2, dtype=m.float32))(a[:, 0]),
    "promotion of halves": lambda m, a, b: m.func.vmap(lambda x, y: x.half() + y)(a[:, 0], b[:, 0]),
    "promotion of integers": lambda m, a, b: m.func.vmap(lambda x: m.arange(3) + x)(a[:, 0]),
    "a size": lambda m, a, b: m.func.vmap(lambda x: x.reshape(-1, 2).T.flatten() * x.shape[0])(a),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    mine, theirs = (leaves(PROGRAMS[name](m, m.from_numpy(A.copy()), m.from_numpy(B.copy()))) for m in (tl, torch))
    for y, expected in zip(mine, theirs, strict=True):
        assert tuple(y.shape) == tuple(expected.shape)
        assert y.dtype.name == str(expected.dtype).removeprefix("torch.")
        np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "a decision": lambda m, x: m.func.vmap(lambda v: v if v.sum() > 0 else -v)(x),
    "a number": lambda m, x: m.func.vmap(lambda v: v * v.sum().item())(x),
    "a write to what is shared": lambda m, x: m.func.vmap(lambda v: m.zeros(4, dtype=m.float64).add_(v))(x),
    "a copy to what is shared": lambda m, x: m.func.vmap(lambda v: m.zeros(4, dtype=m.float64).copy_(v))(x),
    "backward": lambda m, x: m.func.vmap(lambda v: v.sum().backward())(x.requires_grad_()),
    "running statistics": lambda m, x: m.func.vmap(m.nn.BatchNorm1d(4).double())(x[:, None].expand(3, 2, 4)),
    "no dim for the results": lambda m, x: m.func.vmap(lambda v: v, out_dims=None)(x),
    "a chunk of none": lambda m, x: m.func.vmap(lambda v: v, chunk_size=0)(x),
    "a number as a result": lambda m, x: m.func.vmap(lambda v: 3)(x),
    "a dim of the batch": lambda m, x: m.func.vmap(lambda v: v.sum(1))(x),
    "a shape": lambda m, x: m.func.vmap(lambda v: v.reshape(3, 4))(x),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    for m in (torch, tl):
        with pytest.raises((RuntimeError, ValueError, IndexError, TypeError)):
            ERRORS[name](m, m.from_numpy(A.copy()))


EMPTY: dict[str, Callable[[Any, Any], Any]] = {
    "by rules": lambda m, v: (v.sum(), m.nn.functional.linear(v, m.ones(2, 3)), m.ones(2)),
    "by elements": lambda m, v: m.linalg.svd(v.reshape(1, 3)).S.sort()[0],
    "gradient": lambda m, v: m.func.grad(lambda w: (w**2).sum())(v),
    "Jacobian": lambda m, v: m.func.jacrev(lambda w: w.sin().cumsum(0))(v),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_batch(name: str) -> None:
    def shapes(m: Any) -> list[tuple[int, ...]]:
        return [tuple(y.shape) for y in leaves(m.func.vmap(lambda v: EMPTY[name](m, v), in_dims=1)(m.ones(3, 0)))]

    assert shapes(tl) == shapes(torch)
