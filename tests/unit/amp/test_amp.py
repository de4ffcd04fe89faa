"""Mixed precision: which ops autocast lowers, and a gradient scaler that skips steps with overflow."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tallow as tl
from tallow import nn
from tallow.amp import GradScaler, autocast
from tallow.errors import ArgumentError, CheckpointError, DeviceError, GraphError
from tallow.nn import functional as F

HERE = tl.get_default_device().type
LOWER, OTHER = (tl.bfloat16, tl.float16) if HERE == "cpu" else (tl.float16, tl.bfloat16)


def test_products_are_lowered_and_losses_are_not() -> None:
    x, y = tl.randn(4, 4), tl.tensor([0, 1, 2, 3])
    with autocast(HERE):
        assert (x @ x).dtype is F.linear(x, x).dtype is LOWER
        assert F.conv1d(x[None], tl.randn(2, 4, 3)).dtype is LOWER
        assert F.cross_entropy((x @ x), y).dtype is tl.float32
        assert (x + x).dtype is x.exp().dtype is tl.float32
        assert (x @ x).softmax(-1).dtype is (LOWER if HERE == "cpu" else tl.float32)
    assert (x @ x).dtype is tl.float32


def test_the_dtype_may_be_chosen_and_blocks_nest() -> None:
    x = tl.randn(2, 2)
    with autocast(HERE, dtype=OTHER):
        assert (x @ x).dtype is OTHER
        with autocast(HERE, enabled=False):
            assert (x @ x).dtype is tl.float32
            assert not tl.is_autocast_enabled(HERE)
        with autocast(HERE):
            assert (x @ x).dtype is LOWER
        assert tl.get_autocast_dtype(HERE) is OTHER
        assert tl.is_autocast_enabled(HERE)
    assert not tl.is_autocast_enabled(HERE)
    assert tl.get_autocast_dtype(HERE) is LOWER


def test_it_ends_with_an_error_and_decorates() -> None:
    @autocast(HERE)
    def product(x: tl.Tensor) -> tl.Tensor:
        if x.ndim != 2:
            raise ValueError
        return x @ x

    assert product(tl.ones(2, 2)).dtype is LOWER
    with pytest.raises(ValueError):
        product(tl.ones(2))
    assert not tl.is_autocast_enabled(HERE)


def test_integers_and_float64_stay() -> None:
    with autocast(HERE):
        assert (tl.ones(2, 2, dtype=tl.float64) @ tl.ones(2, 2, dtype=tl.float64)).dtype is tl.float64
        assert (tl.ones(2, 2, dtype=tl.int64) @ tl.ones(2, 2, dtype=tl.int64)).dtype is tl.int64


def test_gradients_have_the_dtype_of_the_parameters_and_are_near() -> None:
    tl.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
    x, y = tl.randn(5, 8), tl.tensor([0, 1, 2, 3, 0])
    F.cross_entropy(model(x), y).backward()
    exact = [p.grad.clone() for p in model.parameters()]  # type: ignore[union-attr]
    model.zero_grad()
    with autocast(HERE):
        loss = F.cross_entropy(model(x), y)
    loss.backward()
    for p, expected in zip(model.parameters(), exact, strict=True):
        assert p.grad is not None
        assert p.grad.dtype is tl.float32
        assert float((p.grad - expected).norm() / expected.norm()) < 0.02  # bfloat16 keeps 8 bits


def test_layers_that_hold_several_ops() -> None:
    x = tl.randn(2, 3, 8)
    with autocast(HERE):
        assert nn.LSTM(8, 4)(x)[0].dtype is LOWER
        assert nn.MultiheadAttention(8, 2)(x, x, x)[0].dtype is LOWER
        assert nn.TransformerEncoderLayer(8, 2, 16)(x).isfinite().all()


def test_other_devices_and_dtypes() -> None:
    with pytest.raises(DeviceError, match="no device of type 'tpu'"):
        autocast("tpu")
    with pytest.warns(UserWarning, match="disabled"), autocast(HERE, dtype=tl.float32):
        assert (tl.ones(2, 2) @ tl.ones(2, 2)).dtype is tl.float32
    if not tl.cuda.is_available():
        with pytest.warns(UserWarning, match="there is no GPU; disabled"), tl.cuda.amp.autocast():
            assert not tl.is_autocast_enabled()
        with pytest.warns(UserWarning, match="there is no GPU; disabled"):
            assert not tl.cuda.amp.GradScaler().is_enabled()


def one_step(scaler: GradScaler, gradient: float) -> tuple[float, float]:
    """Return the parameter after one step of SGD with lr 1 from 0, and the scale."""
    w = tl.zeros(1, requires_grad=True)
    optimizer = tl.optim.SGD([w], lr=1.0)
    scaler.scale((w * gradient).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return w.item(), scaler.get_scale()


def test_the_scale_goes_up_and_down() -> None:
    scaler = GradScaler("cpu", init_scale=8.0, growth_interval=2)
    assert one_step(scaler, 0.5) == (-0.5, 8.0)
    assert one_step(scaler, 0.5) == (-0.5, 16.0)  # after two finite steps
    assert one_step(scaler, math.inf) == (0.0, 8.0)  # the step is skipped
    assert one_step(scaler, 0.25) == (-0.25, 8.0)
    other = GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert one_step(other, 0.5) == (-0.5, 16.0)


def test_unscaled_gradients_can_be_clipped() -> None:
    scaler, w = GradScaler("cpu", init_scale=1024.0), tl.zeros(2, requires_grad=True)
    optimizer = tl.optim.SGD([w], lr=1.0)
    scaler.scale((w * 30).sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad is not None
    assert w.grad.tolist() == [30, 30]
    nn.utils.clip_grad_value_([w], 1.0)
    scaler.step(optimizer)
    assert w.tolist() == [-1, -1]


def test_the_order_of_calls_is_checked() -> None:
    scaler, w = GradScaler("cpu"), tl.zeros(1, requires_grad=True)
    optimizer = tl.optim.SGD([w], lr=1.0)
    scaler.scale(w.sum()).backward()
    with pytest.raises(GraphError, match="no inf checks"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(GraphError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(GraphError, match="already been called"):
        scaler.step(optimizer)
    with pytest.raises(GraphError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(ArgumentError, match="closures"):
        scaler.step(optimizer, closure=lambda: None)


def test_a_scaler_that_is_not_enabled_does_nothing() -> None:
    scaler = GradScaler("cpu", enabled=False)
    assert one_step(scaler, math.inf)[0] == -math.inf
    assert scaler.get_scale() == 1.0
    assert scaler.state_dict() == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": "x"}, "scale is 'x'; expected a number"),
        ({"scale": 0.0}, "scale is 0.0"),
        ({"growth_interval": 1.5}, "growth_interval is 1.5"),
        ({"_growth_tracker": -1}, "_growth_tracker is -1"),
        ({"growth_factor": None}, "growth_factor is None"),
    ],
)
def test_a_scaler_refuses_an_invalid_state_and_keeps_its_own(changes: dict[str, Any], message: str) -> None:
    scaler = GradScaler("cpu", init_scale=8.0)
    before = scaler.state_dict()
    with pytest.raises(CheckpointError, match=message):
        scaler.load_state_dict(before | {"scale": 4.0} | changes)
    with pytest.raises(CheckpointError, match="missing  scale"):
        scaler.load_state_dict({"growth_factor": 2.0})
    assert scaler.state_dict() == before
