"""jit.script and jit.trace: a program and what it sees of its modules, compared with PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

import tallow as tl  # noqa: E402

X = np.random.default_rng(0).standard_normal((6, 3), dtype=np.float32)


def model_of(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.ReLU(), lib.nn.Linear(4, 2))
    rng = np.random.default_rng(1)
    with lib.no_grad():
        for p in model.parameters():
            p.copy_(lib.from_numpy(rng.standard_normal(tuple(p.shape)).astype(np.float32)))
    return model


def towards_zero(x: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps):
        x = x - 1 if bool(x.sum() > 0) else x + 1
    return x


def program(lib: Any, *, traced: bool) -> list[Any]:
    """Train, evaluate and load a scripted or traced module. Return what it has shown."""
    x = lib.from_numpy(X)
    module = lib.jit.trace(model_of(lib).eval(), x) if traced else lib.jit.script(model_of(lib))
    shown: list[Any] = [list(module.state_dict()), [name for name, _ in module.named_modules()], module.original_name]
    shown += [module.training, isinstance(module, lib.jit.ScriptModule), isinstance(module, lib.nn.Module)]
    optimizer = lib.optim.SGD(module.parameters(), lr=0.05)
    for _ in range(4):
        loss = (module(x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown.append(loss.item())
    module.eval()
    shown += [
        module(x).detach().numpy(),
        dict(module.named_buffers())["1.running_mean"].numpy(),
        lib.jit.isinstance([1], list[int]),
    ]
    function = lib.jit.script(towards_zero)
    shown += [isinstance(function, lib.jit.ScriptFunction), function(x, 3).numpy(), function(-x, 3).numpy()]
    return shown


@pytest.mark.parametrize("traced", [False, True], ids=["script", "trace"])
def test_a_program(traced: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch deprecates both
        mine, theirs = program(tl, traced=traced), program(torch, traced=traced)
    for a, b in zip(mine, theirs, strict=True):
        if isinstance(b, np.ndarray | float):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
        else:
            assert a == b
