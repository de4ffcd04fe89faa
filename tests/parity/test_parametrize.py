"""Parametrizations, weight and spectral normalization, compared with PyTorch from equal values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl

BOTH = pytest.mark.parametrize("m", [tl, torch], ids=["tallow", "torch"])


def set_fixed_values(m: Any, module: Any) -> Any:
    """Set all parameters and buffers to fixed values, vectors to length one."""
    rng = np.random.RandomState(0)
    with m.no_grad():
        for name, t in module.state_dict().items():
            value = rng.standard_normal(tuple(t.shape)).astype(np.float32)
            t.copy_(m.from_numpy(value / np.linalg.norm(value) if name[-2:] in ("_u", "_v") else value))
    return module


def train_and_evaluate(m: Any, module: Any, x: np.ndarray[Any, Any], steps: int = 3) -> Any:
    """Return the results of three training steps and an evaluation."""
    optimizer = m.optim.SGD(module.parameters(), lr=0.1)
    seen = []
    for _ in range(steps):
        loss = (module(m.from_numpy(x)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    state = {name: t.numpy() for name, t in module.state_dict().items()}
    return seen, state, module.eval()(m.from_numpy(x)).detach().numpy(), type(module).__name__


def assert_agree(make: Callable[[Any], Any], *shape: int) -> None:
    x = np.random.RandomState(1).standard_normal(shape).astype(np.float32)
    ours, theirs = (train_and_evaluate(m, set_fixed_values(m, make(m)), x) for m in (tl, torch))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
    assert list(ours[1]) == list(theirs[1])
    for name, value in theirs[1].items():
        np.testing.assert_allclose(ours[1][name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-4, atol=1e-5)
    assert ours[3] == theirs[3]


@pytest.mark.parametrize("name", ["parametrizations.spectral_norm", "parametrizations.weight_norm", "spectral_norm"])
def test_normalized_layers_train_equally(name: str) -> None:
    def norm(m: Any) -> Any:
        place: Any = m.nn.utils
        for part in name.split("."):
            place = getattr(place, part)
        return place

    assert_agree(lambda m: norm(m)(m.nn.Linear(5, 3)), 4, 5)
    assert_agree(lambda m: norm(m)(m.nn.Conv2d(2, 3, 3)), 2, 2, 5, 5)
    assert_agree(lambda m: norm(m)(m.nn.ConvTranspose1d(2, 3, 3)), 2, 2, 5)
    assert_agree(lambda m: norm(m)(m.nn.Linear(5, 3), name="bias"), 4, 5)


@BOTH
def test_the_spectral_norm_is_one(m: Any) -> None:
    layer = m.nn.utils.parametrizations.spectral_norm(m.nn.Linear(6, 4), n_power_iterations=50)
    assert m.linalg.matrix_norm(layer.weight, 2).item() == pytest.approx(1, abs=1e-3)
    old = m.nn.utils.spectral_norm(m.nn.Linear(6, 4), n_power_iterations=50)
    old(m.ones(1, 6))
    assert m.linalg.matrix_norm(old.weight, 2).item() == pytest.approx(1, abs=1e-3)
    weight = old.weight.detach().numpy()
    m.nn.utils.remove_spectral_norm(old)
    np.testing.assert_allclose(old.weight.detach().numpy(), weight, rtol=1e-5)
    assert [name for name, _ in old.named_parameters()] == ["bias", "weight"]


@BOTH
def test_weight_norm_keeps_the_value(m: Any) -> None:
    layer = m.nn.Linear(4, 3)
    before = layer.weight.detach().clone()
    m.nn.utils.parametrizations.weight_norm(layer)
    assert m.allclose(layer.weight, before)
    place = "parametrizations.weight.original"
    assert list(layer.state_dict()) == ["bias", f"{place}0", f"{place}1"]


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
@BOTH
def test_weight_norm_loads_what_the_older_one_saved(m: Any) -> None:
    old = m.nn.Sequential(m.nn.Linear(4, 3), m.nn.utils.weight_norm(m.nn.Linear(3, 2)))
    new = m.nn.Sequential(m.nn.Linear(4, 3), m.nn.utils.parametrizations.weight_norm(m.nn.Linear(3, 2)))
    new.load_state_dict(old.state_dict())
    assert m.equal(new(m.ones(1, 4)), old(m.ones(1, 4)))


def symmetric(m: Any) -> Any:
    class Symmetric(m.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, a):
            return a.triu()

    return Symmetric()


@BOTH
def test_own_parametrizations(m: Any) -> None:
    parametrize = m.nn.utils.parametrize
    layer = m.nn.Linear(3, 3)
    original = layer.weight
    parametrize.register_parametrization(layer, "weight", symmetric(m))
    assert m.equal(layer.weight, layer.weight.mT)
    assert layer.parametrizations.weight.original is original
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert isinstance(layer, m.nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is m.nn.Linear
    with m.no_grad():
        layer.weight = m.ones(3, 3)
    assert layer.parametrizations.weight.original.tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    layer(m.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    other = copy.deepcopy(layer)
    assert m.equal(other.weight, layer.weight)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is m.nn.Linear
    assert isinstance(layer.weight, m.nn.Parameter)
    assert layer.weight.tolist() == [[1] * 3] * 3


@BOTH
def test_several_parametrizations_of_one_tensor(m: Any) -> None:
    class Double(m.nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    layer = m.nn.Linear(3, 3)
    m.nn.utils.parametrize.register_parametrization(layer, "weight", symmetric(m))
    before = layer.weight.detach().clone()
    m.nn.utils.parametrize.register_parametrization(layer, "weight", Double())
    assert m.allclose(layer.weight, 2 * before)
    assert len(layer.parametrizations.weight) == 2
    m.nn.utils.parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert m.allclose(layer.weight, before.triu())


@BOTH
def test_invalid_parametrizations(m: Any) -> None:
    class Flat(m.nn.Module):
        def forward(self, x):
            return x.flatten()

    with pytest.raises(ValueError):
        m.nn.utils.parametrize.register_parametrization(m.nn.Linear(2, 2), "height", Flat())
    with pytest.raises((ValueError, RuntimeError)):
        m.nn.utils.parametrize.register_parametrization(m.nn.Linear(2, 2), "weight", Flat())
    with pytest.raises(ValueError):
        m.nn.utils.parametrize.remove_parametrizations(m.nn.Linear(2, 2), "weight")


@BOTH
def test_skip_init(m: Any) -> None:
    layer = m.nn.utils.skip_init(m.nn.Linear, 3, 2, bias=False)
    assert layer.weight.shape == (2, 3)
    assert layer.weight.device.type == "cpu"


@BOTH
def test_older_names_warn(m: Any) -> None:
    w = m.empty(2, 3)
    with pytest.warns(FutureWarning, match="xavier_uniform"):
        assert m.nn.init.xavier_uniform(w) is w
    with pytest.warns(FutureWarning, match="clip_grad_norm"):
        m.nn.utils.clip_grad_norm([w], 1.0)


@pytest.mark.parametrize("orthogonal_map", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("use_trivialization", [True, False])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal_weights(shape: tuple[int, int], use_trivialization: bool, orthogonal_map: str | None) -> None:
    """From PyTorch's state the same weight and the same gradient, and after assignment the assigned weight."""
    modules = []
    for m in (tl, torch):
        linear = m.nn.Linear(*shape, dtype=m.float64)
        options = {"orthogonal_map": orthogonal_map, "use_trivialization": use_trivialization}
        modules.append(m.nn.utils.parametrizations.orthogonal(linear, **options))
    ours, theirs = modules
    noise = np.random.RandomState(0).randn(*shape[::-1])
    np.fill_diagonal(noise, 0)  # where the Householder map keeps signs
    with torch.no_grad():
        theirs.parametrizations.weight.original.add_(torch.from_numpy(noise))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({name: tl.from_numpy(value.numpy()) for name, value in theirs.state_dict().items()})
    np.testing.assert_allclose(ours.weight.detach(), theirs.weight.detach(), atol=1e-12)
    gram = ours.weight @ ours.weight.mT if shape[0] > shape[1] else ours.weight.mT @ ours.weight
    np.testing.assert_allclose(gram.detach(), np.eye(min(shape)), atol=1e-12)
    for module in modules:
        (module.weight[0] ** 3).sum().backward()
    gradients = [module.parametrizations.weight.original.grad for module in modules]
    np.testing.assert_allclose(*gradients, atol=1e-12)
    assigned = np.linalg.svd(np.random.RandomState(1).randn(*shape[::-1]), full_matrices=False)
    weight = assigned.U @ assigned.Vh
    if use_trivialization or theirs.parametrizations.weight[0].orthogonal_map.name == "householder":
        ours.weight = tl.from_numpy(weight)
        np.testing.assert_allclose(ours.weight.detach(), weight, atol=1e-12)
    else:
        with pytest.raises(NotImplementedError, match="use_trivialization"):
            ours.weight = tl.from_numpy(weight)


@BOTH
def test_weights_that_cannot_be_orthogonal(m: Any) -> None:
    with pytest.raises(ValueError, match="orthogonal"):
        m.nn.utils.parametrizations.orthogonal(m.nn.Linear(3, 3), orthogonal_map="qr")
    with pytest.raises(ValueError):
        m.nn.utils.parametrizations.orthogonal(m.nn.Linear(3, 3), "bias")
    with pytest.raises(ValueError):
        m.nn.utils.parametrizations.orthogonal(m.nn.Linear(3, 3)).weight = m.ones(2, 2)
