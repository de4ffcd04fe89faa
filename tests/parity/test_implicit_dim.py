"""Softmax, log_softmax and softmin of nn.functional choose a dim, with PyTorch's warning."""

from __future__ import annotations

import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.agreement import assert_same  # noqa: E402 - imports torch


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (2, 3, 4, 5)])
def test_dim_follows_the_rank(name: str, shape: tuple[int, ...]) -> None:
    values = torch.linspace(-1, 1, max(torch.Size(shape).numel(), 1)).reshape(shape)
    with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name} has been deprecated"):
        theirs = getattr(torch.nn.functional, name)(values)
    with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name} has been deprecated"):
        ours = getattr(tl.nn.functional, name)(tl.from_numpy(values.numpy()))
    assert_same(ours, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("layer", ["Softmax", "LogSoftmax", "Softmin"])
def test_layers_without_dim(layer: str) -> None:
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        theirs = getattr(torch.nn, layer)()(x)
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        ours = getattr(tl.nn, layer)()(tl.from_numpy(x.numpy()))
    assert_same(ours, theirs, rtol=1e-6, atol=1e-7)


def test_other_functions_need_a_dim() -> None:
    for m in (torch, tl):
        x = m.ones(2, 3)
        for call in (m.softmax, m.Tensor.softmax, m.log_softmax):
            with pytest.raises(TypeError):
                call(x)
