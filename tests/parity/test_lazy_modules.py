"""Lazy modules become the same modules as PyTorch's, on the first input or from a state dict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl

SHAPES = {1: (2, 4, 9), 2: (2, 4, 9, 8), 3: (2, 4, 6, 7, 5)}
CASES = {"LazyLinear(5)": (3, 7), "LazyLinear(5, bias=False)": (7,)}
for d, shape in SHAPES.items():
    CASES[f"LazyConv{d}d(6, 3, padding=1, groups=2)"] = shape
    CASES[f"LazyConv{d}d(6, 3, bias=False)"] = shape[1:]
    CASES[f"LazyConvTranspose{d}d(6, 3, 2, 1, 1, 2)"] = shape
    CASES[f"LazyBatchNorm{d}d()"] = shape
    CASES[f"LazyBatchNorm{d}d(1e-3, None, False)"] = shape
    CASES[f"LazyInstanceNorm{d}d(affine=True, track_running_stats=True)"] = shape


def make(m: Any, case: str) -> Any:
    return eval(f"m.nn.{case}", {"m": m})


def text(module: Any) -> str:
    return repr(module)


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize("case", CASES)
def test_becomes_the_ordinary_layer_with_the_first_input(case: str) -> None:
    x = np.random.RandomState(0).standard_normal(CASES[case]).astype(np.float32)
    ours, theirs = make(tl, case), make(torch, case)
    assert text(ours) == text(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours(tl.from_numpy(x))
    theirs(torch.from_numpy(x))
    assert type(ours).__name__ == type(theirs).__name__
    assert text(ours) == text(theirs)
    state = theirs.state_dict()
    assert {n: tuple(t.shape) for n, t in ours.state_dict().items()} == {n: tuple(t.shape) for n, t in state.items()}
    ours.load_state_dict({name: tl.tensor(t.numpy()) for name, t in state.items()})
    y, expected = ours.eval()(tl.from_numpy(x)), theirs.eval()(torch.from_numpy(x))
    np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-5)
    assert not ours.has_hooks()


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize("m", [tl, torch], ids=["tallow", "torch"])
def test_a_state_dict_makes_the_parameters(m: Any) -> None:
    model = m.nn.Sequential(m.nn.LazyLinear(3), m.nn.LazyBatchNorm1d())
    assert model[0].has_uninitialized_params()
    other = m.nn.Sequential(m.nn.Linear(2, 3), m.nn.BatchNorm1d(3))
    model.load_state_dict(other.state_dict())
    assert not model[0].has_uninitialized_params()
    x = m.ones(4, 2)
    assert m.allclose(model.eval()(x), other.eval()(x))
    assert model[0].in_features == 2


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize("m", [tl, torch], ids=["tallow", "torch"])
def test_device_and_dtype_may_be_chosen_before(m: Any) -> None:
    model = m.nn.Sequential(m.nn.LazyLinear(3), m.nn.LazyBatchNorm1d()).to("cpu", m.float64)
    assert model(m.ones(2, 5, dtype=m.float64)).dtype is m.float64
    assert model[1].running_mean.dtype is m.float64


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize("m", [tl, torch], ids=["tallow", "torch"])
def test_its_parameters_learn(m: Any) -> None:
    model = m.nn.Sequential(m.nn.LazyLinear(4), m.nn.Tanh(), m.nn.LazyLinear(1))
    x, y = m.linspace(-1, 1, 8).view(-1, 1), m.linspace(1, -1, 8).view(-1, 1)
    model(x)
    optimizer = m.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        loss = m.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize("m", [tl, torch], ids=["tallow", "torch"])
def test_the_shape_of_an_uninitialized_parameter_raises(m: Any) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        _ = m.nn.LazyLinear(3).weight.shape


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize("m", [tl, torch])
def test_a_layer_of_a_program_may_keep_its_class(m: Any) -> None:
    class Scale(m.nn.LazyLinear.__mro__[1], m.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = m.nn.UninitializedParameter()

        def initialize_parameters(self, x: Any, bias: float) -> None:
            self.weight.materialize(x.shape)
            self.weight.data.fill_(2.0)

        def forward(self, x: Any, bias: float) -> Any:
            return x * self.weight + bias

    layer = Scale()
    assert layer(m.ones(3), bias=1.0).tolist() == [3.0, 3.0, 3.0]
    assert type(layer) is Scale
    assert layer(m.ones(3), 0.0).tolist() == [2.0, 2.0, 2.0]
