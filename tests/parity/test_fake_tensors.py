"""Tensors without values that say they are on a device: the answers of PyTorch's FakeTensorMode."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._subclasses import fake_tensor as theirs

import tallow as tl
from tallow.compat.torch._subclasses import fake_tensor as ours

# Programs in the block of a mode `f`, with PyTorch or tallow as `m`. Each names what it makes as `out`.
PROGRAMS = {
    "ops": "x = m.empty(2, 3); y = x @ x.T + 1; out = [y.shape, y.device.type, type(y).__name__, repr(y)]",
    "halves": "x = m.zeros(3, dtype=m.float16); y = (x + 1).sum(0, keepdim=True); out = [repr(y).split('.')[-1]]",
    "devices": (
        "x = m.empty(2, 3, device='cuda'); y = x.relu().t(); "
        "out = [str(y.device), y.is_cuda, y.stride(), x.to('cpu').is_cpu, x.cpu().is_meta, repr(y)]"
    ),
    "in place": "a = m.tensor([1.0, 2.0]); b = m.cat([a.add_(1), a]); v, i = b.max(0); out = [b.shape, v.shape]",
    "gradients": (
        "x = m.empty(4, 4, requires_grad=True); y = (x * 2).mean(); (g,) = m.autograd.grad(y, x); "
        "out = [g.shape, x.is_leaf, y.grad_fn is not None, len(x), [t.shape for t in x]]"
    ),
    "layers": (
        "n = m.nn.Sequential(m.nn.Conv2d(3, 4, 3), m.nn.BatchNorm2d(4), m.nn.Dropout(), m.nn.Flatten()); "
        "y = n(m.zeros(2, 3, 8, 8)); y.sum().backward(); out = [y.shape, n[0].weight.grad.shape]"
    ),
    "attention": (
        "n = m.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True); o = m.optim.AdamW(n.parameters()); "
        "y = n(m.randn(2, 5, 8)); y.sum().backward(); o.step(); out = [y.shape, y.device.type]"
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_agree(program: str) -> None:
    results = []
    for m, fake in ((tl, ours), (torch, theirs)):
        names: dict[str, Any] = {"m": m}
        with fake.FakeTensorMode():
            exec(PROGRAMS[program], names)
        results.append([tuple(x) if isinstance(x, tl.Size | torch.Size) else x for x in names["out"]])
    assert results[0] == results[1]


def test_a_tensor_with_values_is_taken_by_its_shape() -> None:
    real = tl.ones(2, 3, dtype=tl.float64)
    for mode in (ours.FakeTensorMode(), ours.FakeTensorMode(allow_non_fake_inputs=True)):
        fake = mode.from_tensor(real)
        assert fake is mode.from_tensor(real)
        total = (fake + 1).sum(0)  # outside of the block
        assert (tuple(total.shape), total.dtype, ours.is_fake(total)) == ((3,), tl.float64, True)
        if mode.allow_non_fake_inputs:
            assert tuple((fake * real).shape) == (2, 3)
        else:
            with pytest.raises(ValueError, match="convert all Tensors to FakeTensors"):
                fake * real
    with pytest.raises(RuntimeError, match="Mixing fake modes"):
        ours.FakeTensorMode().from_tensor(fake)


def test_values_and_two_devices_are_refused() -> None:
    with ours.FakeTensorMode():
        x = tl.empty(3)
        with pytest.raises(ours.DataDependentOutputException, match="no data"):
            x.sum().item()
        with pytest.raises(RuntimeError, match="two different devices"):
            x + tl.empty(3, device="cuda")
    assert tl.ones(2).device.type == "cpu"
