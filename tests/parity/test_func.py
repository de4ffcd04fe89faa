"""torch.func and torch.autograd.functional, compared with PyTorch on small programs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import normal

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

import tallow as tl  # noqa: E402
from tallow.autograd import functional  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning"),  # by PyTorch's own jvp
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node"),  # by its linearize
]
A, B, C = normal(2, 3), normal(3), normal(4, 3)
Program = Callable[..., Any]


class Library:
    """A library, its modules, and the inputs as its tensors."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self.func = lib.func
        self.functional = importlib.import_module(f"{lib.__name__}.autograd.functional")
        self.a, self.b, self.c = (lib.from_numpy(x.copy()) for x in (A, B, C))

    def model(self) -> Any:
        model = self.lib.nn.Sequential(
            self.lib.nn.Linear(3, 2), self.lib.nn.BatchNorm1d(2), self.lib.nn.Tanh()
        ).double()
        rng = np.random.default_rng(2)
        with self.lib.no_grad():
            for p in model.parameters():
                p.copy_(self.lib.from_numpy(rng.standard_normal(tuple(p.shape))))
        return model


def plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {key: plain(part) for key, part in x.items()}
    if isinstance(x, tuple | list):
        return [plain(part) for part in x]
    return (x.detach().numpy(), x.requires_grad) if hasattr(x, "detach") else x


def assert_same(mine: Any, theirs: Any) -> None:
    assert type(mine) is type(theirs)
    if isinstance(mine, dict):
        assert list(mine) == list(theirs)
        mine, theirs = list(mine.values()), list(theirs.values())
    if isinstance(mine, list):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(mine, tuple):
        assert mine[0].dtype == theirs[0].dtype
        assert mine[0].shape == theirs[0].shape
        assert mine[1] == theirs[1]
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-9, atol=1e-12)
    else:
        assert mine == theirs


def ensemble(m: Library) -> Any:
    models = [m.lib.nn.Linear(3, 2).double() for _ in range(3)]
    for i, model in enumerate(models):
        with m.lib.no_grad():
            for p in model.parameters():
                p.fill_(i + 0.5)
    parameters, buffers = m.func.stack_module_state(models)

    def one(p: Any, b: Any, x: Any) -> Any:
        return m.func.functional_call(models[0], (p, b), (x,))

    return m.func.vmap(one, in_dims=(0, 0, None))(parameters, buffers, m.c), parameters


def per_sample_gradients(m: Library) -> Any:
    model = m.lib.nn.Linear(3, 1).double()
    parameters = {name: m.lib.ones_like(p).detach() for name, p in model.named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return ((m.func.functional_call(model, p, (x.unsqueeze(0),)) - y) ** 2).sum()

    return m.func.vmap(m.func.grad(loss), in_dims=(None, 0, 0))(parameters, m.c, m.c[:, 0])


def functional_call_with_buffers(m: Library) -> Any:
    model = m.model()
    state = {name: t.detach().clone() * 2 for name, t in (*model.named_parameters(), *model.named_buffers())}
    result = m.func.functional_call(model, state, m.c)
    return result, state, dict(model.named_buffers()), model(m.c)


def tied(m: Library) -> Any:
    model = m.lib.nn.ModuleDict({"a": m.lib.nn.Linear(3, 3), "b": m.lib.nn.Linear(3, 3)}).double()
    model["b"].weight = model["a"].weight
    model.forward = lambda x: model["b"](model["a"](x))
    given = {name: m.lib.ones(*p.shape, dtype=m.lib.float64) for name, p in model.named_parameters()}
    return m.func.functional_call(model, given, m.c)


PROGRAMS: dict[str, Program] = {
    "grad": lambda m: m.func.grad(lambda x: (x.sin() * x).sum())(m.a),
    "grad by the second": lambda m: m.func.grad(lambda x, y: (x @ y).sum(), argnums=1)(m.a, m.b),
    "grad by both": lambda m: m.func.grad(lambda x, y: (x @ y).exp().sum(), argnums=(0, 1))(m.a, m.b),
    "grad by the last": lambda m: m.func.grad(lambda x, y: (x @ y).exp().sum(), argnums=-1)(m.a, m.b),
    "grad of a dict": lambda m: m.func.grad(lambda p: (p["w"] @ p["v"][0]).sum())({"w": m.a, "v": [m.b]}),
    "grad with aux": lambda m: m.func.grad(lambda x: (x.sum() ** 2, {"y": x * 2}), has_aux=True)(m.a),
    "grad and value": lambda m: m.func.grad_and_value(lambda x: x.sum() ** 2)(m.a),
    "grad and value with aux": lambda m: m.func.grad_and_value(lambda x: (x.sum(), x), has_aux=True)(m.a),
    "grad of a constant": lambda m: m.func.grad(lambda x: m.lib.ones(()) * 2)(m.a),
    "grad of unused": lambda m: m.func.grad(lambda x, y: x.sum(), argnums=(0, 1))(m.a, m.b),
    "grad with keywords": lambda m: m.func.grad(lambda x, scale: (x * scale).sum())(m.a, scale=3),
    "grad without recording": lambda m: m.lib.no_grad()(m.func.grad(lambda x: x.square().sum()))(m.a),
    "vjp": lambda m: (r := m.func.vjp(lambda x: x @ m.b, m.a), r[1](r[0] * 2))[1],
    "vjp of two": lambda m: m.func.vjp(lambda x, y: (x @ y, y * 2), m.a, m.b)[1]((m.b[:2], m.b)),
    "vjp with aux": lambda m: m.func.vjp(lambda x: (x.sum(), x), m.a, has_aux=True)[::2],
    "jvp": lambda m: m.func.jvp(lambda x: x.sin().sum(0), (m.a,), (m.a * 2,)),
    "jvp of two": lambda m: m.func.jvp(lambda x, y: (x @ y, y * 2), (m.a, m.b), (m.a, m.b)),
    "linearize": lambda m: [
        (r := m.func.linearize(lambda x, y: {"p": x @ y, "q": y.sin()}, m.a, m.b))[0],
        r[1](m.a, m.b),
        r[1](m.a * 2, m.b),
    ],
    "jacrev": lambda m: m.func.jacrev(lambda x: x.sin().sum(1))(m.a),
    "jacrev in chunks": lambda m: m.func.jacrev(lambda x: (x @ m.b).sin(), chunk_size=4)(m.a),
    "jacrev by both": lambda m: m.func.jacrev(lambda x, y: {"p": x @ y, "q": y.sum()}, argnums=(0, 1))(m.a, m.b),
    "jacfwd": lambda m: m.func.jacfwd(lambda x: x.exp())(m.b),
    "vmap": lambda m: m.func.vmap(lambda x: x * 2)(m.a),
    "vmap of a product": lambda m: m.func.vmap(m.lib.dot)(m.c, m.c),
    "vmap along dims": lambda m: m.func.vmap(lambda x, y: x * y.sum(), in_dims=(1, None), out_dims=1)(m.a, m.b),
    "vmap of several": lambda m: m.func.vmap(lambda p: (p[0], p[1].sum()), in_dims=((0, 1),), out_dims=(1, 0))(
        (m.a, m.a.T)
    ),
    "vmap twice": lambda m: m.func.vmap(m.func.vmap(lambda x, y: x * y, (0, None)), (None, 0))(m.b, m.b),
    "vmap of a gradient": lambda m: m.func.vmap(m.func.grad(lambda x: (x**3).sum()))(m.c),
    "vmap with keywords": lambda m: m.func.vmap(lambda x, y: x + y)(m.c, y=m.c),
    "jacobian by vmap": lambda m: m.func.vmap(m.func.vjp(lambda x: x.exp(), m.b)[1])(m.lib.eye(3, dtype=m.lib.float64)),
    "gradient through vmap": lambda m: m.func.grad(lambda x: m.func.vmap(lambda r: (r * r).sum())(x).sum())(m.a),
    "torch.vmap": lambda m: m.lib.vmap(lambda x: x.sum())(m.a),
    "ensemble": ensemble,
    "per-sample gradients": per_sample_gradients,
    "functional_call": functional_call_with_buffers,
    "functional_call of tied weights": tied,
    "jacobian": lambda m: m.functional.jacobian(lambda x: (x**2).sum(1), m.a),
    "jacobian of two by two": lambda m: m.functional.jacobian(lambda x, y: (x @ y, x.sum()), (m.a, m.b)),
    "jacobian of a constant": lambda m: m.functional.jacobian(lambda x: m.lib.ones(3), m.a),
    "functional vjp": lambda m: m.functional.vjp(lambda x: x.sum() ** 2, m.a),
    "functional vjp of two": lambda m: m.functional.vjp(lambda x, y: (x @ y, y), (m.a, m.b), (m.b[:2], m.b)),
    "functional jvp": lambda m: m.functional.jvp(lambda x, y: (x @ y, y * 2), (m.a, m.b), (m.a, m.b)),
    "functional jvp of a number": lambda m: m.functional.jvp(lambda x: x.exp(), m.a.sum()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    assert_same(plain(PROGRAMS[name](Library(tl))), plain(PROGRAMS[name](Library(torch))))


ERRORS: dict[str, Program] = {
    "grad of many": lambda m: m.func.grad(lambda x: x)(m.a),
    "grad of a number": lambda m: m.func.grad(lambda x: 3.0)(m.a),
    "grad by a number": lambda m: m.func.grad(lambda x: m.a.sum())(3),
    "grad by a fourth": lambda m: m.func.grad(lambda x: x.sum(), argnums=3)(m.a),
    "vmap of sizes": lambda m: m.func.vmap(lambda x, y: x)(m.a, m.b),
    "vmap of nothing": lambda m: m.func.vmap(lambda x: x, in_dims=None)(m.a),
    "vmap of numbers": lambda m: m.func.vmap(lambda x: 3)(m.a),
    "vmap with dims": lambda m: m.func.vmap(lambda x, y: x, in_dims=(0,))(m.a, m.b),
    "vmap with a dim": lambda m: m.func.vmap(lambda x: x, in_dims=2)(m.a),
    "vmap with random numbers": lambda m: m.func.vmap(lambda x: x + m.lib.rand(1))(m.a),
    "vjp of another shape": lambda m: m.func.vjp(lambda x: x, m.a)[1](m.b),
    "linearize of another shape": lambda m: m.func.linearize(lambda x: x, m.a)[1](m.b),
    "jvp of another shape": lambda m: m.func.jvp(lambda x: x, (m.a,), (m.b,)),
    "functional_call, strict": lambda m: m.func.functional_call(m.model(), {"x": m.a}, m.c, strict=True),
    "strict jvp of a constant": lambda m: m.func.jvp(lambda x: m.lib.ones(3), (m.a,), (m.a,), strict=True),
    "strict jacobian": lambda m: m.functional.jacobian(lambda x, y: x.sum(), (m.a, m.b), strict=True),
    "strict jacobian of a constant": lambda m: m.functional.jacobian(lambda x: m.lib.ones(3), m.a, strict=True),
    "vjp without a vector": lambda m: m.functional.vjp(lambda x: x, m.a),
    "vjp with another": lambda m: m.functional.vjp(lambda x: x, m.a, m.b),
    "vjp of a number": lambda m: m.functional.vjp(lambda x: 3.0, m.a),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    for lib in (torch, tl):
        with pytest.raises((ValueError, RuntimeError, TypeError)):
            ERRORS[name](Library(lib))


@pytest.mark.parametrize("at_once", [1, 30, 10**6])
def test_jacobians_in_parts(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of operands and results bounds how many rows are computed at once, and changes no number."""
    monkeypatch.setattr(functional, "AT_ONCE", at_once)
    a, b = normal(3, 4), normal(4, 5)
    for name in ("jacrev", "jacfwd", "hessian"):
        results = []
        for m in (tl, torch):
            weight = m.tensor(b)
            power = 3 if name == "hessian" else 1
            results.append(
                getattr(m.func, name)(lambda x, w=weight, p=power: ((x @ w).tanh() ** p).sum(0)[1])(m.tensor(a))
            )
        np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), rtol=1e-5, atol=1e-6)


def test_jacrev_refuses_chunks_of_nothing() -> None:
    with pytest.raises(tl.errors.ArgumentError, match="chunk_size=0"):
        tl.func.jacrev(tl.sin, chunk_size=0)
