"""vmap with tensors on a GPU: indices, masks and what it creates are there, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tallow as tl
from tallow.func import functional_call, grad, jacrev, vmap

PLACES = tl.tensor([[0, 2], [1, 1], [2, 0]])
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise": lambda x, i: x.sin() * 2 + x.new_ones(3),
    "reduction": lambda x, i: x.logsumexp(0) + tl.zeros_like(x).sum(),
    "index": lambda x, i: x[i] + x[:, None][1],
    "gather": lambda x, i: x.gather(0, i),
    "mask": lambda x, i: tl.where(x > 0, x, x * 0.5),
    "product": lambda x, i: x.outer(x) @ x,
    "jacobian": lambda x, i: jacrev(lambda v: v.softmax(0))(x),
    "without a rule": lambda x, i: tl.histc(x, 3, -1, 1),
}


@pytest.mark.filterwarnings("ignore:vmap. there is no batching rule")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, cuda: str) -> None:
    x = tl.randn(3, 3)
    found = vmap(FUNCTIONS[name])(x.to(cuda), PLACES.to(cuda))
    assert found.device.type == "cuda"
    assert tl.allclose(found.cpu(), vmap(FUNCTIONS[name])(x, PLACES), atol=1e-5)


def test_gradients_of_each_sample(cuda: str) -> None:
    model = tl.nn.Sequential(tl.nn.Conv2d(1, 2, 3), tl.nn.ReLU(), tl.nn.Flatten(), tl.nn.Linear(18, 3))
    images, labels = tl.randn(4, 1, 5, 5), tl.tensor([0, 1, 2, 0])

    def gradients(device: str) -> dict[str, Any]:
        parameters = {name: p.detach().to(device) for name, p in model.named_parameters()}

        def loss(p: Any, x: Any, y: Any) -> Any:
            return tl.nn.functional.cross_entropy(functional_call(model, p, x[None]), y[None])

        found: dict[str, Any] = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images.to(device), labels.to(device))
        return found

    on_gpu = gradients(cuda)
    for name, expected in gradients("cpu").items():
        assert tl.allclose(on_gpu[name].cpu(), expected, atol=1e-5)
