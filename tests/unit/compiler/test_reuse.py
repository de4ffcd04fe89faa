"""Constants of a plan are computed once, and results are written to memory that nothing reads any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.fx.compile import reuse

pytestmark = pytest.mark.cpu("plans are for the CPU")
rng = np.random.default_rng(6)


def data(*shape: int) -> tl.Tensor:
    return tl.from_numpy(rng.standard_normal(shape, dtype=np.float32))


def masked(x: Any) -> Any:
    n = x.shape[-1]
    mask = tl.arange(n)[:, None] >= tl.arange(n)
    return tl.softmax(x + tl.where(mask, 0.0, -1e9), -1)


def returned(x: Any) -> Any:
    ones = tl.ones(2, 3)
    return x * 2, ones[0]


def copied(x: Any) -> Any:
    rows = tl.arange(3)[:, None].expand(3, 3)
    return x * 2, rows.reshape(9)


def written(x: Any) -> Any:
    counts = tl.zeros(3, 3)
    counts[0].add_(x[0])
    return counts + x


def drawn(x: Any) -> Any:
    return x + tl.rand(3, 3) * tl.full((3,), 2.0) + tl.nn.functional.dropout(tl.ones(3, 3))


# A function, and whether its plan still makes tensors.
CONSTANTS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "read": (masked, False), "returned": (returned, True), "copied": (copied, False), "written": (written, True),
    "drawn": (drawn, True),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("mode", [tl.no_grad, tl.enable_grad, tl.inference_mode])
def test_constants(name: str, mode: Any) -> None:
    function, makes = CONSTANTS[name]
    compiled = tl.compile(function, fullgraph=True)
    with mode():
        for _ in range(3):
            x, results = data(3, 3), []
            for call in (function, compiled):
                tl.manual_seed(0)
                result = call(x)
                results.append(result if isinstance(result, tuple) else (result,))
            for a, b in zip(*results, strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
                b.mul_(5)  # no later call may see it
    (plan,) = compiled.plans
    makers = ("arange", "ones", "zeros", "rand")
    assert any(getattr(node.target, "__name__", "") in makers for node in plan.graph.nodes) == makes
    assert ("constant" in plan.source) == (name in ("read", "copied", "drawn"))


@pytest.mark.filterwarnings("ignore:tl.compile")
def test_constants_are_of_the_default_device() -> None:
    compiled = tl.compile(lambda x: (x * 2, tl.zeros(2) + 1))
    for device in ("cpu", "meta", "cpu"):
        with tl.device(device):
            assert compiled(tl.ones(3, device="cpu"))[1].device.type == device


def test_constants_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "MOST_BYTES", 8)
    compiled = tl.compile(masked, fullgraph=True)
    for _ in range(2):
        x = data(3, 3)
        np.testing.assert_array_equal(compiled(x).numpy(), masked(x).numpy())
    assert "arange" in compiled.plans[0].source


def test_constants_in_a_joined_step() -> None:
    def step(x: Any) -> Any:
        loss = (tl.tanh(x * w) * tl.arange(3.0)).sum()
        loss.backward()
        return loss

    results = []
    for transform in (lambda f: f, tl.compile):
        w = tl.ones(3, requires_grad=True)
        call: Any = transform(step)
        for _ in range(3):
            loss = call(tl.ones(3))
        results.append((loss.item(), w.grad.tolist()))
    assert results[0] == results[1]
    assert "forward_and_backward" in call.plans[0].source


N = reuse.LEAST_BYTES // 4


# A function, and whether its sum is written to the memory of the cosine.
def first(x: Any) -> Any:
    y = tl.cos(x)
    return y + x


def second(x: Any) -> Any:
    y = tl.cos(x)
    return x + y


def read_later(x: Any) -> Any:
    y = tl.cos(x)
    return tl.maximum(tl.cos(y + x), tl.sin(y))


def a_view(x: Any) -> Any:
    y = tl.cos(x)
    z = y[:1]
    return tl.maximum(tl.cos(y + x).sum(), tl.cos(z))


def with_factor(x: Any) -> Any:
    return tl.add(x, tl.cos(x), alpha=2)


def an_argument(x: Any) -> Any:
    return tl.cos(x * 2.0)


REUSED: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "first": (first, True), "second": (second, True), "read later": (read_later, False), "a view": (a_view, False),
    "with factor": (with_factor, False), "an argument": (an_argument, False),
}  # fmt: skip


@pytest.mark.parametrize("name", REUSED)
@pytest.mark.parametrize("needs_gradient", [False, True])
def test_memory_is_used_again(name: str, needs_gradient: bool) -> None:
    function, reuses = REUSED[name]
    compiled = tl.compile(function, fullgraph=True)
    for _ in range(3):
        x = data(8, N // 8)
        kept = x.numpy().copy()
        x.requires_grad_(needs_gradient)
        np.testing.assert_array_equal(compiled(x).detach().numpy(), function(x).detach().numpy())
        np.testing.assert_array_equal(x.detach().numpy(), kept)
    assert ("add_(" in compiled.plans[0].source) == (reuses and not needs_gradient)


def test_a_value_that_a_gradient_needs_is_not_written_to() -> None:
    w = tl.ones(8, N // 8, requires_grad=True)

    def function(x: Any) -> Any:
        y = tl.cos(x)
        return w * y, y + x

    compiled = tl.compile(function, fullgraph=True)
    for _ in range(2):
        x, w.grad = data(8, N // 8), None
        compiled(x)[0].sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), tl.cos(x).numpy())


@pytest.mark.parametrize("is_first", [True, False])
def test_what_is_made_in_inference_mode_stays_apart(is_first: bool) -> None:
    def function(x: Any) -> Any:
        with tl.inference_mode(is_first):
            y = tl.cos(x)
        with tl.inference_mode(not is_first):
            z = y + x
        x.add_(1)
        return z

    compiled = tl.compile(function, fullgraph=True)
    for _ in range(2):
        x = data(8, N // 8)
        expected = function(x.clone())
        z = compiled(x)
        np.testing.assert_array_equal(z.numpy(), expected.numpy())
        assert z.is_inference() is expected.is_inference() is not is_first
