"""Forward mode compared with PyTorch: for every case with second derivatives, and in nested functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Case, load_all, normal

import tallow as tl
from tallow.errors import UnsupportedError

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

CASES = [case for case in load_all() if case.grad and any(x.dtype.kind == "f" for x in case.inputs)]
# PyTorch's change is wrong: of a triangle of cholesky_inverse, of large numbers, of products.
BY_DIFFERENCES = {"cholesky_inverse-0", "cholesky_inverse-1", "logcumsumexp-1"}
BY_DIFFERENCES |= {f"scatter_reduce-{i}" for i in (3, 4, 18, 19)}


def changes(module: Any, case: Case, jvp: Callable[..., Any]) -> list[Any]:
    """Return how the floating results of a case change as its floating inputs move."""
    rng = np.random.default_rng(1)
    inputs = [module.tensor(x.astype(np.float64) if x.dtype.kind == "f" else x) for x in case.inputs]
    places = [i for i, x in enumerate(inputs) if x.is_floating_point()]
    tangents = tuple(module.tensor(rng.standard_normal(tuple(inputs[i].shape))) for i in places)

    def call(*moved: Any) -> Any:
        given = list(inputs)
        for i, x in zip(places, moved, strict=True):
            given[i] = x
        found = [y for y in _leaves(case.call(module, *given)) if getattr(y, "dtype", None) is module.float64]
        return tuple(found)

    return list(jvp(call, tuple(inputs[i] for i in places), tangents)[1])


def _leaves(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in _leaves(item)] if isinstance(result, list | tuple) else [result]


def differences(call: Callable[..., Any], inputs: Any, tangents: Any, step: float = 1e-6) -> Any:
    """Return the change of a function's results by finite differences."""
    up, down = (call(*[x + s * t for x, t in zip(inputs, tangents, strict=True)]) for s in (step, -step))
    return None, tuple([(a - b) / (2 * step) for a, b in zip(up, down, strict=True)])


@pytest.mark.filterwarnings("ignore")  # raised by PyTorch
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_each_op(case: Case) -> None:
    if case.id in BY_DIFFERENCES:
        for mine, reference in zip(changes(tl, case, tl.func.jvp), changes(tl, case, differences), strict=True):
            np.testing.assert_allclose(mine.numpy(), reference.numpy(), rtol=1e-6, atol=1e-7)
        return
    try:
        theirs = changes(torch, case, torch.func.jvp)
    except (RuntimeError, NotImplementedError):  # an op that has no forward mode in PyTorch
        try:
            theirs = changes(torch, case, torch.autograd.functional.jvp)
        except (RuntimeError, NotImplementedError) as error:
            pytest.skip(f"PyTorch: {error}"[:100])
    ours = changes(tl, case, tl.func.jvp)
    assert len(ours) == len(theirs)
    for mine, reference in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.numpy(), reference.numpy(), rtol=1e-7, atol=1e-9)


A, B = normal(2, 3), normal(3)
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "jacfwd": lambda m, a, b: m.func.jacfwd(lambda x: x.sin() @ b)(a),
    "jacfwd by both": lambda m, a, b: m.func.jacfwd(lambda x, y: {"p": x @ y, "q": [y.exp()]}, argnums=(0, 1))(a, b),
    "jacfwd of a dict": lambda m, a, b: m.func.jacfwd(lambda p: p["x"] @ p["y"])({"x": a, "y": b}),
    "jacfwd with others": lambda m, a, b: m.func.jacfwd(lambda x: (x.sum(), {"x": x * 2}), has_aux=True)(a),
    "jacfwd of jacfwd": lambda m, a, b: m.func.jacfwd(m.func.jacfwd(lambda x: x**3))(b),
    "jacfwd of grad": lambda m, a, b: m.func.jacfwd(m.func.grad(lambda x: (x**3).sum()))(b),
    "jacrev of jacfwd": lambda m, a, b: m.func.jacrev(m.func.jacfwd(lambda x: x.tanh()))(b),
    "product with a Hessian": lambda m, a, b: m.func.jvp(m.func.grad(lambda x: x.sin().prod()), (b,), (b * 2,)),
    "grad of jvp": lambda m, a, b: m.func.grad(lambda x: m.func.jvp(lambda y: y.exp() * y, (x,), (b,))[1].sum())(b),
    "grad by the tangent": lambda m, a, b: m.func.grad(
        lambda v: m.func.jvp(lambda y: y.exp() * y, (b,), (v,))[1].square().sum()
    )(b),
    "jvp of jvp": lambda m, a, b: m.func.jvp(lambda x: m.func.jvp(lambda y: y.sin() * y, (x,), (b,))[1], (b,), (b,)),
    "jvp of a constant": lambda m, a, b: m.func.jvp(lambda x: (m.lib_ones(3), x), (b,), (b,)),
    "hessian": lambda m, a, b: m.func.hessian(lambda x: x.sin().prod())(b),
    "linearize": lambda m, a, b: m.func.linearize(lambda x: x.softmax(-1), b)[1](b),
}


class Library:
    """A library; constants are of float64."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.func = lib, lib.func
        self.forward_ad = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")

    def lib_ones(self, *size: int) -> Any:
        return self.lib.ones(*size, dtype=self.lib.float64)

    def run(self, program: Callable[..., Any]) -> list[Any]:
        result = program(self, *(self.lib.from_numpy(x.copy()) for x in (A, B)))
        return [None if x is None else x.detach().numpy() for x in _flat(result)]


def _flat(result: Any) -> list[Any]:
    if isinstance(result, dict):
        return _flat(list(result.values()))
    return [leaf for item in result for leaf in _flat(item)] if isinstance(result, list | tuple) else [result]


def assert_same(program: Callable[..., Any]) -> None:
    for mine, theirs in zip(Library(tl).run(program), Library(torch).run(program), strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            assert mine.shape == theirs.shape
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore")  # raised by PyTorch
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    assert_same(PROGRAMS[name])


def dual(m: Any, a: Any, b: Any) -> Any:
    """Return what several tensors hold after a computation with two dual tensors."""
    f = m.forward_ad
    with f.dual_level():
        x, y = f.make_dual(a * 1, a * 2), f.make_dual(b, b.cos())
        x.mul_(y)
        z = x.sin() @ y
        return [*f.unpack_dual(z), *f.unpack_dual(x), *f.unpack_dual(a), *f.unpack_dual(m.lib_ones(2))]


def dual_parameters(m: Any, a: Any, b: Any) -> Any:
    """Return the change of a layer's result as its parameters move."""
    f, layer = m.forward_ad, m.lib.nn.Linear(3, 2).double()
    given = {"weight": a, "bias": b[:2]}
    with f.dual_level():
        moved = {name: f.make_dual(p, p * 3) for name, p in given.items()}
        return list(f.unpack_dual(m.func.functional_call(layer, moved, b)))


def dual_gradients(m: Any, a: Any, b: Any) -> Any:
    """Return gradients, one without create_graph, and their changes; `.grad` has none."""
    f, w = m.forward_ad, a.clone().requires_grad_()
    with f.dual_level():
        x = f.make_dual(b.requires_grad_(), b.cos())
        y = (w @ x).sin().sum()
        by_x, by_w = m.lib.autograd.grad(y, (x, w), retain_graph=True)
        y.backward(retain_graph=True)
        return [part for t in (by_x, by_w, w.grad) for part in f.unpack_dual(t)]


@pytest.mark.parametrize("program", [dual, dual_parameters, dual_gradients], ids=lambda p: p.__name__)
def test_dual_numbers(program: Callable[..., Any]) -> None:
    assert_same(program)


def test_the_gradient_of_a_tangent() -> None:
    gradients = []
    for m in (Library(tl), Library(torch)):
        x = m.lib.from_numpy(B.copy()).requires_grad_()
        with m.forward_ad.dual_level():
            value, change = m.forward_ad.unpack_dual(m.forward_ad.make_dual(x, m.lib_ones(3)).exp())
        (value.sum() + change.square().sum()).backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(*gradients)


def test_refused() -> None:
    for m, errors in ((Library(tl), (RuntimeError, ValueError, TypeError)), (Library(torch), Exception)):
        f, x = m.forward_ad, m.lib_ones(2)
        with pytest.raises(errors):
            f.make_dual(x, x)  # outside of a level
        with f.dual_level():
            with pytest.raises(errors):
                f.make_dual(x, m.lib_ones(3))
            with pytest.raises(errors):
                f.make_dual(x.long(), x.long())
            with pytest.raises(errors):
                f.enter_dual_level()
        assert f.unpack_dual(x).tangent is None


def test_a_pass_for_each_tangent() -> None:
    """The number of outputs does not matter: each closure runs once for a tangent."""
    calls = []

    @tl.op
    def counted(x):  # type: ignore[no-untyped-def]
        def backward(g):  # type: ignore[no-untyped-def]
            calls.append(1)
            return (2 * g,)

        return 2 * x, backward

    with pytest.raises(UnsupportedError):  # an op without a rule has no derivatives of derivatives
        tl.func.jvp(lambda x: tl.func.grad(lambda y: counted(y.exp()).sum())(x), (tl.ones(3),), (tl.ones(3),))
    calls.clear()
    tl.func.jvp(lambda x: counted(x).expand(50, 3), (tl.ones(3),), (tl.ones(3),))
    assert len(calls) == 150  # it takes a pass for each element of the results
    many = []
    for rows in (1, 50):
        x = tl.ones(3)
        before = _sequence()
        tl.func.jvp(lambda x, n=rows: (x * 2).expand(n, 3).sin(), (x,), (x,))
        many.append(_sequence() - before)
    assert many[0] == many[1]


def _sequence() -> int:
    """Return the number of ops that have been recorded."""
    return (tl.ones(1, requires_grad=True) * 2).grad_fn.sequence


@pytest.mark.parametrize("call", ["x * x.conj()", "x.abs()", "m.fft.rfft(x.real)", "m.linalg.inv(x)", "x.exp().imag"])
def test_dual_tensors_of_complex_numbers(call: str) -> None:
    rng = np.random.default_rng(0)
    x, v = (rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)) for _ in range(2))
    changes = []
    for m in (torch, tl):
        fw = importlib.import_module(f"{m.__name__}.autograd.forward_ad")
        with fw.dual_level():
            y = eval(call, {"m": m, "x": fw.make_dual(m.tensor(x), m.tensor(v))})
            changes.append(fw.unpack_dual(y).tangent.resolve_conj().numpy())
    np.testing.assert_allclose(*changes, rtol=1e-9, atol=1e-12)
