"""Writes to views of `expand`, `unfold` and `as_strided`: taken where no two elements share memory, else refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

View = Callable[[Any], Any]
SHAPE = (6, 4)
NAMED: dict[str, View] = {
    "windows side by side": lambda x: x.unfold(0, 2, 2),
    "windows that overlap": lambda x: x.unfold(0, 3, 2),
    "every other window": lambda x: x.unfold(0, 2, 1)[::2],
    "parts of windows": lambda x: x.unfold(0, 3, 2)[..., 1:],
    "windows of windows": lambda x: x.unfold(0, 2, 2).unfold(1, 2, 1),
    "windows of columns": lambda x: x.t().unfold(0, 2, 2),
    "expanded by one": lambda x: x.expand(1, 6, 4),
    "expanded": lambda x: x.expand(3, 6, 4),
    "one of the expanded": lambda x: x.expand(3, 6, 4)[1],
    "a slice of the expanded": lambda x: x.expand(3, 6, 4)[2:],
    "a diagonal of the expanded": lambda x: x[0].expand(4, 4).diagonal(),
    "nothing expanded": lambda x: x[:0].expand(5, 0, 4),
    "strides of 0": lambda x: x.as_strided((3, 2), (0, 1)),
    "rows that overlap": lambda x: x.as_strided((3, 2), (1, 1)),
    "steps of 2 and 3, apart": lambda x: x.as_strided((3, 2), (2, 3)),
    "steps of 2 and 3, together": lambda x: x.as_strided((4, 3), (2, 3)),
    "more elements than memory": lambda x: x.as_strided((12, 13), (1, 1)),
}
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda m, y: y.add_(1),
    "mul_": lambda m, y: y.mul_(m.full(tuple(y.shape), 2.0)),
    "sigmoid_": lambda m, y: y.sigmoid_(),
    "copy_": lambda m, y: y.copy_(m.arange(float(y.numel())).reshape(y.shape)),
    "setitem": lambda m, y: y.__setitem__(..., m.arange(float(y.numel())).reshape(y.shape)),
    "addcmul_": lambda m, y: y.addcmul_(m.ones(()), m.ones(())),
}


def random_view(seed: int) -> View:
    """Return a chain of views that is the same in both libraries."""

    def view(x: Any) -> Any:
        rng = np.random.default_rng(seed)
        for _ in range(rng.integers(1, 5)):
            dim = int(rng.integers(max(x.ndim, 1)))
            kind = rng.integers(6)
            if kind == 0 and x.ndim:
                size = int(rng.integers(1, x.shape[dim] + 1)) if x.shape[dim] else 0
                x = x.unfold(dim, size, int(rng.integers(1, 4)))
            elif kind == 1 and x.ndim < 5:
                x = x.expand(int(rng.integers(1, 4)), *x.shape)
            elif kind == 2 and x.ndim:
                start, step = int(rng.integers(2)), int(rng.integers(1, 4))
                x = x[(slice(None),) * dim + (slice(start, None, step),)]
            elif kind == 3 and x.ndim and x.shape[dim]:
                x = x.select(dim, int(rng.integers(x.shape[dim])))
            elif kind == 4 and x.ndim > 1:
                x = x.transpose(dim, int(rng.integers(x.ndim)))
            elif kind == 5 and x.ndim > 1:
                x = x.diagonal(0, 0, 1)
        return x

    return view


def shares_elements(view: View) -> bool:
    """Return whether two elements of a view are one element of its storage."""
    places = view(torch.arange(float(np.prod(SHAPE))).reshape(SHAPE)).reshape(-1)
    return bool(places.unique().numel() < places.numel())


def written(m: Any, view: View, write: Callable[[Any, Any], Any]) -> Any:
    """Return the storage after a write to a view of it, or the error."""
    x = m.arange(float(np.prod(SHAPE))).reshape(SHAPE) / 10
    try:
        write(m, view(x))
    except RuntimeError as error:
        return error
    return x.numpy()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", [*NAMED, "random"])
def test_a_view_is_written_unless_elements_share_memory(name: str, write: str) -> None:
    for view in [NAMED[name]] if name in NAMED else map(random_view, range(150)):
        theirs, ours = (written(m, view, WRITES[write]) for m in (torch, tl))
        if shares_elements(view):  # PyTorch finds strides of 0 only; what it writes to others depends on the order
            assert isinstance(ours, RuntimeError)
            assert "more than one element of the written-to tensor refers to a single memory location" in str(ours)
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
