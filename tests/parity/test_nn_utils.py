"""tallow.nn.utils compared with torch.nn.utils: clipping, vectors of parameters, weight normalization."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import normal

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

RTOL = 1e-10
GRADIENTS = [3 * normal(2, 3), normal(4), normal()]


def parameters(lib: Any, gradients: list[Any] = GRADIENTS) -> list[Any]:
    tensors = []
    for gradient in (*gradients, None):
        tensors.append(lib.nn.Parameter(lib.zeros(() if gradient is None else gradient.shape, dtype=lib.float64)))
        tensors[-1].grad = None if gradient is None else lib.from_numpy(np.array(gradient))
    return tensors


@pytest.mark.parametrize("max_norm", [1.0, 100.0])
@pytest.mark.parametrize("norm_type", [2.0, 1, float("inf"), 3.0])
def test_clip_grad_norm(norm_type: float, max_norm: float) -> None:
    def clip(lib: Any) -> list[Any]:
        tensors = parameters(lib)
        total = lib.nn.utils.clip_grad_norm_(iter(tensors), max_norm, norm_type)
        return [total.numpy(), *(p.grad.numpy() for p in tensors if p.grad is not None)]

    for mine, theirs in zip(clip(tl), clip(torch), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=RTOL)


def test_clip_grad_value() -> None:
    def clip(lib: Any) -> list[Any]:
        tensors = parameters(lib)
        lib.nn.utils.clip_grad_value_(tensors, 0.5)
        lib.nn.utils.clip_grad_value_(tensors[0], 0.1)
        return [p.grad.numpy() for p in tensors if p.grad is not None]

    for mine, theirs in zip(clip(tl), clip(torch), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_norm_that_is_not_finite() -> None:
    for lib in (tl, torch):
        tensors = parameters(lib, [np.array([np.inf])])
        with pytest.raises(RuntimeError, match="norm"):
            lib.nn.utils.clip_grad_norm_(tensors, 1.0, error_if_nonfinite=True)
        assert lib.nn.utils.clip_grad_norm_(tensors, 1.0).item() == np.inf


def test_parameters_as_a_vector_and_back() -> None:
    def through(lib: Any) -> list[Any]:
        tensors = parameters(lib)
        vector = lib.nn.utils.parameters_to_vector(tensors)
        values = lib.arange(float(len(vector)), dtype=lib.float64)
        lib.nn.utils.vector_to_parameters(values, tensors)
        return [vector.detach().numpy(), *(p.detach().numpy() for p in tensors)]

    for mine, theirs in zip(through(tl), through(torch), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
@pytest.mark.parametrize("dim", [0, 1, -1, None])
@pytest.mark.parametrize(
    ("name", "args", "x"), [("Linear", (4, 3), normal(2, 4)), ("Conv1d", (4, 3, 2), normal(2, 4, 5))]
)
def test_weight_norm(name: str, args: tuple[int, ...], x: Any, dim: int | None) -> None:
    torch.manual_seed(0)
    plain = getattr(torch.nn, name)(*args).double()
    weights = {key: t.numpy().copy() for key, t in plain.state_dict().items()}
    mine = getattr(tl.nn, name)(*args).double()
    mine.load_state_dict({key: tl.from_numpy(w) for key, w in weights.items()})

    def through(lib: Any, layer: Any) -> Any:
        lib.nn.utils.weight_norm(layer, "weight", dim)
        y = layer(lib.from_numpy(x.copy()))
        (y * y).sum().backward()
        grads = {key: p.grad.numpy() for key, p in layer.named_parameters()}
        state = {key: t.numpy().copy() for key, t in layer.state_dict().items()}
        lib.nn.utils.remove_weight_norm(layer)
        return y.detach().numpy(), grads, state, {k: t.numpy() for k, t in layer.state_dict().items()}

    (y, *mine_dicts), (y_torch, *their_dicts) = through(tl, mine), through(torch, plain)
    np.testing.assert_allclose(y, y_torch, rtol=1e-9)
    for own, theirs in zip(mine_dicts, their_dicts, strict=True):
        assert set(own) == set(theirs)
        for key in theirs:
            assert own[key].shape == theirs[key].shape
            np.testing.assert_allclose(own[key], theirs[key], rtol=1e-8, atol=1e-12, err_msg=key)
