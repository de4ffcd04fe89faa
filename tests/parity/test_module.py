"""Modules compared with torch.nn: the same names in the same order, the same repr, and equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl

RTOL = 1e-5  # float32


def make(lib: Any) -> Any:
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(4, eps=1e-3)
            self.branches = nn.ModuleDict({"wide": nn.Linear(4, 4), "narrow": nn.Linear(4, 4, bias=False)})
            self.scale = nn.Parameter(lib.ones(4))
            self.register_buffer("shift", lib.full((4,), 0.5))
            self.register_buffer("scratch", lib.zeros(1), persistent=False)
            self.rms = nn.RMSNorm(4)
            self.shared = self.branches["wide"]

        def forward(self, x: Any) -> Any:
            x = self.norm(x)
            x = self.branches["wide"](x) + self.branches["narrow"](x) * self.scale + self.shift
            return self.shared(self.rms(x))

    layers = nn.ModuleList([Block(), Block(), nn.Identity()])
    return nn.Sequential(nn.Embedding(10, 4, padding_idx=0), *layers, nn.Dropout(0.1))


@pytest.fixture
def pair() -> tuple[Any, Any]:
    torch.manual_seed(0)
    reference, model = make(torch), make(tl)
    model.load_state_dict({name: tl.from_numpy(t.numpy()) for name, t in reference.state_dict().items()})
    return reference.eval(), model.eval()


def test_names_and_order(pair: tuple[Any, Any]) -> None:
    reference, model = pair
    for listing in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        assert [n for n, _ in getattr(model, listing)()] == [n for n, _ in getattr(reference, listing)()], listing
    assert list(model.state_dict()) == list(reference.state_dict())


def test_repr(pair: tuple[Any, Any]) -> None:
    reference, model = pair
    assert repr(model) == repr(reference)


def test_results_and_gradients(pair: tuple[Any, Any]) -> None:
    reference, model = pair
    indices = [[1, 0, 9], [3, 3, 5]]
    expected, actual = reference(torch.tensor(indices)), model(tl.tensor(indices))
    np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=RTOL, atol=1e-6)
    (expected**2).sum().backward()
    (actual**2).sum().backward()
    for (name, p), q in zip(reference.named_parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(q.grad.numpy(), p.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


def test_modes(pair: tuple[Any, Any]) -> None:
    for model in pair:
        model.train()
        assert all(m.training for m in model.modules())
        model[-1].eval()
        assert [m.training for m in (model, model[0], model[-1])] == [True, True, False]


@pytest.mark.parametrize("name", ["", "a.b", "forward", 3])
def test_refused_names(name: Any) -> None:
    for lib in (torch, tl):
        with pytest.raises((KeyError, TypeError, ValueError)):
            lib.nn.Module().register_parameter(name, lib.nn.Parameter(lib.ones(1)))
