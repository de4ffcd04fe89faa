"""vmap over objects that hold tensors, by the methods that PyTorch's vmap calls on TensorDict."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import tallow as tl
from tallow.compat import install_torch
from tallow.errors import ArgumentError


class Pair:
    """Two tensors whose first dims are the object's, as those of a TensorDict."""

    def __init__(self, x: tl.Tensor, y: tl.Tensor, ndim: int) -> None:
        self.x, self.y, self.ndim = x, y, ndim
        self.shape = x.shape[:ndim]
        self.functorch = importlib.import_module("torch._C._functorch")
        self.vmap = importlib.import_module("torch._functorch.vmap")

    def permute(self, *dims: int) -> Pair:
        return Pair(*(t.permute(*dims, *range(self.ndim, t.ndim)) for t in (self.x, self.y)), self.ndim)

    def _add_batch_dim(self, *, in_dim: int, vmap_level: Any) -> Pair:
        add = self.functorch._add_batch_dim
        return Pair(add(self.x, in_dim, vmap_level), add(self.y, in_dim, vmap_level), self.ndim - 1)

    def _maybe_remove_batch_dim(self, funcname: str, vmap_level: Any, batch_size: int, out_dim: int) -> Pair:
        remove = self.vmap._maybe_remove_batch_dim
        parts = (remove(funcname, t, vmap_level, batch_size, out_dim) for t in (self.x, self.y))
        return Pair(*parts, self.ndim + 1)


@pytest.fixture(autouse=True)
def _stand_in() -> Iterator[None]:
    with install_torch(replace=True):
        yield


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_a_container_is_mapped_along_its_dims(dim: int) -> None:
    x, y, z = tl.rand(3, 2, 4), tl.rand(3, 2), tl.rand(5, (3, 2)[dim])
    at = dim % 2

    def call(pair: Pair, z: tl.Tensor) -> tuple[tl.Tensor, Pair]:
        assert tuple(pair.shape) == ((2, 3)[at],)
        return pair.x.sum() * z, Pair(pair.x * 2, pair.y + z[0], 1)

    sums, pairs = tl.func.vmap(call, (dim, 1))(Pair(x, y, 2), z)
    tl.testing.assert_close(sums, x.movedim(at, 0).sum((1, 2))[:, None] * z.T)
    tl.testing.assert_close(pairs.x, x.movedim(at, 0) * 2)
    tl.testing.assert_close(pairs.y, y.movedim(at, 0) + z[0][:, None])


def test_gradients_reach_what_a_container_holds() -> None:
    x, y = tl.rand(3, 2, requires_grad=True), tl.rand(3)
    tl.func.vmap(lambda pair: (pair.x * pair.y).sum())(Pair(x, y, 1)).sum().backward()
    assert x.grad is not None
    tl.testing.assert_close(x.grad, y[:, None].expand(3, 2))


def test_a_dim_that_a_container_lacks() -> None:
    with pytest.raises(ArgumentError, match="along dim 1 of Pair"):
        tl.func.vmap(lambda pair: pair.x, 1)(Pair(tl.ones(2, 3), tl.ones(2), 1))
