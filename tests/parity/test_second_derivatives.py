"""Gradients of gradients compared with PyTorch, for every case whose ops have a rule of the second order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl
from tallow.errors import UnsupportedError
from tallow.ops.table import OPS

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

WITH_RULE = {name for name, op in OPS.items() if op.rule is not None}
CASES = [
    case
    for case in load_all()
    if case.grad and (case.op in WITH_RULE or case.op not in OPS) and any(x.dtype.kind == "f" for x in case.inputs)
]


def derivatives(module: Any, case: Case, dtype: str = "float64") -> tuple[list[Any], list[Any]]:
    """Return the gradients of a case's inputs, and the gradients of a function of those."""
    arrays = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in case.inputs]
    inputs = [module.tensor(x) for x in arrays]
    inputs = [x.to(getattr(module, dtype)).requires_grad_() if x.is_floating_point() else x for x in inputs]
    own = [x for x in inputs if x.requires_grad]
    result = case.call(module, *inputs)
    outputs = [y for y in _leaves(result) if getattr(y, "requires_grad", False)]
    rng = np.random.default_rng(1)
    seeds = [module.tensor(rng.standard_normal(tuple(y.shape))).to(y.dtype) for y in outputs]
    first = module.autograd.grad(outputs, own, seeds, create_graph=True, allow_unused=True)
    total = sum(
        (g.double() * g.double() * module.tensor(rng.standard_normal(tuple(g.shape)))).sum()
        for g in first
        if g is not None
    )
    second = module.autograd.grad(total, own, allow_unused=True) if total.requires_grad else [None for _ in own]
    return list(first), list(second)


def _as_node(name: str) -> str:
    """Return the name of an op as nodes have it."""
    return "".join(word.capitalize() for word in name.split("_"))


NODES_WITH_RULE = set(map(_as_node, WITH_RULE))


def _leaves(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in _leaves(item)] if isinstance(result, list | tuple) else [result]


@pytest.mark.filterwarnings("ignore")  # raised by PyTorch
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_equal_pytorchs(case: Case) -> None:
    try:
        ours = derivatives(tl, case)
    except UnsupportedError as error:
        name = str(error).partition("Backward0")[0]
        assert name not in NODES_WITH_RULE
        pytest.skip(f"no rule: {error}")
    try:
        theirs = derivatives(torch, case)
    except RuntimeError as error:
        pytest.skip(f"PyTorch has none: {error}")
    for mine, expected in zip([*ours[0], *ours[1]], [*theirs[0], *theirs[1]], strict=True):
        if expected is None or mine is None:
            given = expected if mine is None else mine
            assert given is None or np.abs(given.numpy(force=True)).max(initial=0) < 1e-12
            continue
        tolerance, own, reference = max(case.rtol64, 1e-8), mine.numpy(force=True), expected.numpy(force=True)
        if case.op == "sinc":
            reference = np.where(np.isnan(reference), 0, reference)  # at 0 PyTorch's is 0 / 0
        np.testing.assert_allclose(own, reference, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore")  # raised by PyTorch
@pytest.mark.parametrize("case", [c for c in CASES if c.op in OPS and OPS[c.op].halves], ids=lambda c: c.id)
def test_halves_are_near_float64(case: Case) -> None:
    """Ops whose closures save halves, of which the gradients are float32."""
    arrays = [tl.tensor(x).bfloat16().double().numpy() if x.dtype.kind == "f" else x for x in case.inputs]
    case = dataclasses.replace(case, inputs=arrays)
    try:
        theirs = derivatives(torch, case)
    except RuntimeError as error:
        pytest.skip(f"PyTorch has none: {error}")
    ours = derivatives(tl, case, "bfloat16")
    for mine, expected in zip([*ours[0], *ours[1]], [*theirs[0], *theirs[1]], strict=True):
        if expected is not None and expected.numel():
            own = np.zeros(expected.shape) if mine is None else mine.double().numpy(force=True)
            error = np.abs(own - expected.numpy(force=True)).max()
            assert error <= 0.05 * max(1, np.abs(expected.numpy(force=True)).max())


def compare(program: Callable[[Any], list[Any]]) -> None:
    """Run a program with tallow and with PyTorch, and compare what it returns."""
    for mine, expected in zip(program(tl), program(torch), strict=True):
        np.testing.assert_allclose(mine.numpy(force=True), expected.numpy(force=True), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("LSTM", {"bidirectional": True, "num_layers": 2}),
        ("LSTM", {"proj_size": 2}),
        ("GRU", {"bidirectional": True, "num_layers": 2}),
        ("GRU", {"bias": False}),
        ("RNN", {"nonlinearity": "relu", "bidirectional": True}),
        ("RNN", {}),
    ],
)
def test_recurrent_layers(kind: str, options: dict[str, Any], is_packed: bool) -> None:
    def program(m: Any) -> list[Any]:
        rng = np.random.default_rng(0)
        net = getattr(m.nn, kind)(3, 4, **options).double()
        net.load_state_dict({k: m.tensor(rng.standard_normal(tuple(v.shape))) for k, v in net.state_dict().items()})
        x = m.tensor(rng.standard_normal((5, 2, 3)), requires_grad=True)
        y, h = net(m.nn.utils.rnn.pack_padded_sequence(x, m.tensor([5, 3])) if is_packed else x)
        if is_packed:
            y = m.nn.utils.rnn.pad_packed_sequence(y)[0]
        loss = (y**2).sum() + sum((state**3).sum() for state in (h if isinstance(h, tuple) else (h,)))
        operands = [x, *net.parameters()]
        first = m.autograd.grad(loss, operands, create_graph=True)
        return [*first, *m.autograd.grad(sum((g * g).sum() for g in first), operands)]

    compare(program)


@pytest.mark.parametrize("both", [True, False], ids=["both", "one"])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf], ids=str)
def test_distances_are_norms_of_differences(p: float, both: bool) -> None:
    """PyTorch has no second derivatives of cdist itself."""

    def program(m: Any) -> list[Any]:
        rng = np.random.default_rng(0)
        a, b = (m.tensor(rng.standard_normal(shape), requires_grad=True) for shape in ((2, 3, 4), (1, 5, 4)))
        own = [a, b] if both else [b]
        a = a if both else a.detach()
        distances = m.cdist(a, b, p) if m is tl else m.linalg.vector_norm(a[:, :, None] - b[:, None], p, -1)
        first = m.autograd.grad((distances**3).sum(), own, create_graph=True)
        return [*first, *m.autograd.grad(sum((g * g).sum() for g in first), own)]

    compare(program)


def rows(m: Any, x: Any) -> Any:
    h = x * 2
    h[0] = x[1] ** 2
    return h


def transposed(m: Any, x: Any) -> Any:
    h = m.zeros(3, 2, dtype=m.float64)
    h.t()[1] = x[0] * x[1]
    h[:, 0] += x[0] ** 2
    return h * x.t()


def by_indices(m: Any, x: Any) -> Any:
    h = (x**2).clone()
    h[m.tensor([0, 1]), m.tensor([2, 0])] = x[:, 1]
    v = h.view(-1)[2:5]
    h[1, 1] = x.sum()
    return h.sum() * v**2


def numbers(m: Any, x: Any) -> Any:
    h = x**2
    h[x > 2.5] = 0
    h[:, 1].fill_(4)
    h[1] /= 8
    h[0, 0].mul_(3)
    return h.sin()


@pytest.mark.parametrize("write", [rows, transposed, by_indices, numbers])
def test_writes(write: Callable[[Any, Any], Any]) -> None:
    def program(m: Any) -> list[Any]:
        x = m.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=m.float64, requires_grad=True)
        (first,) = m.autograd.grad((write(m, x) ** 3).sum(), x, create_graph=True)
        return [first, *m.autograd.grad((first**2).sum(), x)]

    compare(program)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "hardtanh", "softshrink", "l1"])
def test_slopes_in_steps_have_derivatives_of_zero(name: str) -> None:
    def program(m: Any) -> list[Any]:
        x = m.tensor([[-2.0, 0.25, 3.0]], dtype=m.float64, requires_grad=True)
        F = m.nn.functional
        y = F.l1_loss(x, 0 * x.detach(), reduction="sum") if name == "l1" else getattr(F, name)(x * 2).sum()
        (first,) = m.autograd.grad(y, x, create_graph=True)
        assert first.requires_grad
        (second,) = m.autograd.grad(first.sum(), x, create_graph=True)
        return [first, second, *m.autograd.grad((first**2).sum(), x)]

    compare(program)


@pytest.mark.parametrize("name", ["conv1d", "conv_transpose1d"])
def test_third_derivatives_of_convolutions(name: str) -> None:
    def program(m: Any) -> list[Any]:
        rng = np.random.default_rng(0)
        x, w = (m.tensor(rng.standard_normal(shape), requires_grad=True) for shape in ((2, 4, 7), (4, 2, 3)))
        y = getattr(m.nn.functional, name)(x, w, stride=2, padding=1, groups=2)
        results = []
        total = (y**4).sum()
        for _ in range(3):
            gradients = m.autograd.grad(total, [x, w], create_graph=True)
            results += gradients
            total = sum((g * g).sum() for g in gradients)
        return results

    compare(program)


@pytest.mark.parametrize("name", ["det", "slogdet"])
def test_third_derivatives_of_determinants(name: str) -> None:
    def program(m: Any) -> list[Any]:
        x = m.tensor(np.random.default_rng(0).standard_normal((2, 3, 3)), requires_grad=True)
        y = getattr(m.linalg, name)(x)
        total = ((y[1] if name == "slogdet" else y) ** 3).sum()
        results = []
        for _ in range(3):
            results += m.autograd.grad(total, x, create_graph=True)
            total = (results[-1] ** 2).sum()
        return results

    compare(program)


@pytest.mark.parametrize("left", [True, False])
def test_systems_without_columns(left: bool) -> None:
    def program(m: Any) -> list[Any]:
        a = m.tensor(np.eye(3), requires_grad=True)
        b = m.tensor(np.zeros((3, 0) if left else (0, 3)), requires_grad=True)
        first = m.autograd.grad(m.linalg.solve(a, b, left=left).sum(), [a, b], create_graph=True)
        second = m.autograd.grad(sum((g * g).sum() for g in first), [a, b], allow_unused=True)
        return [g for g in (*first, *second) if g is not None]

    compare(program)
