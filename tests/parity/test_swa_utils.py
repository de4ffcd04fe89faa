"""Averaged weights and their schedule equal PyTorch's."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl


def model(m: Any) -> Any:
    net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.BatchNorm1d(4), m.nn.Linear(4, 1))
    rng = np.random.RandomState(0)
    net.load_state_dict(
        {
            name: m.from_numpy(rng.rand(*t.shape).astype(np.float32)) if t.ndim else t
            for name, t in net.state_dict().items()
        }
    )
    return net


AVERAGES = {
    "mean": lambda m: {},
    "buffers too": lambda m: {"use_buffers": True},
    "exponential": lambda m: {"multi_avg_fn": m.optim.swa_utils.get_ema_multi_avg_fn(0.9)},
    "exponential, one by one": lambda m: {"avg_fn": m.optim.swa_utils.get_ema_avg_fn(0.9), "use_buffers": True},
    "mean of lists": lambda m: {"multi_avg_fn": m.optim.swa_utils.get_swa_multi_avg_fn()},
    "own": lambda m: {"avg_fn": lambda average, current, number: average * 0.5 + current * number},
}


@pytest.mark.parametrize("kind", AVERAGES)
def test_averaged_model(kind: str) -> None:
    results = []
    for m in (tl, torch):
        net = model(m)
        averaged = m.optim.swa_utils.AveragedModel(net, **AVERAGES[kind](m))
        optimizer = m.optim.SGD(net.parameters(), lr=0.1)
        x = m.from_numpy(np.random.RandomState(1).rand(8, 3).astype(np.float32))
        for _ in range(4):
            optimizer.zero_grad()
            net(x).pow(2).mean().backward()
            optimizer.step()
            averaged.update_parameters(net)
        state = {f"before {name}": value.clone() for name, value in averaged.state_dict().items()}
        m.optim.swa_utils.update_bn([(x,), (x * 2,)], averaged)
        results.append((state | averaged.state_dict(), averaged.eval()(x)))
        assert copy.deepcopy(averaged).n_averaged == 4
    (ours, y), (theirs, expected) = results
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"anneal_epochs": 3, "anneal_strategy": "linear"}, {"anneal_epochs": 0}])
def test_swalr(options: dict[str, Any]) -> None:
    seen = []
    for m in (tl, torch):
        optimizer = m.optim.SGD([m.ones(1, requires_grad=True)], lr=0.5)
        scheduler = m.optim.swa_utils.SWALR(optimizer, swa_lr=0.05, **options)
        lrs = []
        for _ in range(14):
            optimizer.step()
            scheduler.step()
            lrs.append(scheduler.get_last_lr()[0])
        seen.append(lrs)
    np.testing.assert_allclose(*seen, rtol=1e-10)


@pytest.mark.parametrize("m", [tl, torch], ids=["tallow", "torch"])
def test_invalid_arguments(m: Any) -> None:
    optimizer = m.optim.SGD([m.ones(1, requires_grad=True)], lr=0.5)
    with pytest.raises(ValueError):
        m.optim.swa_utils.SWALR(optimizer, 0.1, anneal_strategy="sine")
    with pytest.raises(ValueError):
        m.optim.swa_utils.SWALR(optimizer, 0.1, anneal_epochs=-1)
    with pytest.raises(ValueError):
        m.optim.swa_utils.get_ema_multi_avg_fn(1.5)
