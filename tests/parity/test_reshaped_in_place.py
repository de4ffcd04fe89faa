"""Programs that change a tensor's shape in place, and use views made before and after, compute as in PyTorch."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

CHANGES = ("t_", "squeeze_", "unsqueeze_", "transpose_")


def run(m: Any, seed: int) -> tuple[Any, ...]:
    """Run a random program on views of a tensor that requires grad, or of a constant; return values and gradients."""
    choose = random.Random(seed)
    x = (m.arange(6.0) + 1).reshape(2, 3).requires_grad_()
    w = m.ones(6, requires_grad=True)
    base = x * 2 if choose.random() < 0.7 else m.arange(6.0).reshape(2, 3)
    tensors = [base]
    for _ in range(choose.randint(3, 9)):
        source = choose.choice(tensors)
        action = choose.choice(("change", "change", "view", "view", "write", "write"))
        if action == "change":
            change_shape(base, choose)
        elif action == "view":
            tensors.append(view_of(source, choose))
        elif choose.random() < 0.5:
            source.mul_(choose.randint(2, 3))
        else:
            source.add_(w[: source.shape[-1]] if source.ndim else w[0])
    total = sum(t.sum() * (i + 1) for i, t in enumerate(tensors)) + (w * 0).sum() + (x * 0).sum()
    total.backward()
    return [t.tolist() for t in tensors], x.grad.tolist(), w.grad.tolist()


def change_shape(base: Any, choose: random.Random) -> None:
    change = choose.choice(CHANGES)
    if change == "t_" and base.ndim <= 2:
        base.t_()
    elif change == "squeeze_":
        base.squeeze_()
    elif change == "unsqueeze_" and base.ndim < 4:
        base.unsqueeze_(choose.randint(0, base.ndim))
    elif base.ndim > 1:
        base.transpose_(choose.randrange(base.ndim), choose.randrange(base.ndim))


def view_of(source: Any, choose: random.Random) -> Any:
    if not source.ndim:
        return source.unsqueeze(0)
    dim = choose.randrange(source.ndim)
    kind = choose.choice(("select", "narrow", "transpose", "flip"))
    if kind == "select":
        return source.select(dim, choose.randrange(source.shape[dim]))
    if kind == "narrow":
        return source.narrow(dim, 0, 1)
    return source.transpose(dim, -1)


@pytest.mark.parametrize("seed", range(120))
def test_random_programs(seed: int) -> None:
    try:
        theirs = run(torch, seed)
    except RuntimeError:  # of a constant that a view has made require grad, PyTorch takes its other views for leaves
        return
    assert run(tl, seed) == theirs
