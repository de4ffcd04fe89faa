"""The optimizers of tallow.keras: first steps by hand, options, and saved states."""

from __future__ import annotations

import copy
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import keras, nn
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, GraphError
from tallow.keras import optimizers
from tallow.keras.optimizers import schedules

G = 0.5  # the gradient


def after(optimizer: Any, steps: int = 1, start: float = 1.0, gradient: float = G) -> float:
    param = tl.tensor([start], requires_grad=True)
    for _ in range(steps):
        optimizer.apply([tl.tensor([gradient])], [param])
    return param.item()


@pytest.mark.parametrize(
    ("optimizer", "change"),
    [
        (optimizers.SGD(0.1), 0.1 * G),
        (optimizers.SGD(0.1, momentum=0.9, nesterov=True), 0.9 * 0.1 * G + 0.1 * G),
        (optimizers.RMSprop(0.1, rho=0.9, epsilon=0.3), 0.1 * G / sqrt(0.1 * G**2 + 0.3)),
        (optimizers.Adagrad(0.1, epsilon=0.3), 0.1 * G / sqrt(0.1 + G**2 + 0.3)),
        (optimizers.Adadelta(1.0, rho=0.9, epsilon=0.3), G * sqrt(0.3) / sqrt(0.1 * G**2 + 0.3)),
        (optimizers.Adam(0.1, epsilon=0.3), 0.1 * sqrt(1e-3) / 0.1 * 0.1 * G / (sqrt(1e-3) * G + 0.3)),
        (optimizers.Adamax(0.1, epsilon=0.3), 0.1 / 0.1 * 0.1 * G / (G + 0.3)),
        (optimizers.Lion(0.1), 0.1),
        (optimizers.AdamW(0.1, weight_decay=0.2, epsilon=0.0), 0.1 * 0.2 + 0.1),
        (optimizers.SGD(0.1, clipvalue=0.2), 0.1 * 0.2),
        (optimizers.SGD(0.1, clipnorm=0.2), 0.1 * 0.2),
        (optimizers.SGD(0.1, loss_scale_factor=5.0), 0.1 * G / 5),
    ],
)
def test_the_first_step_is_the_formula(optimizer: Any, change: float) -> None:
    assert after(optimizer) == pytest.approx(1 - change, rel=1e-5)


def test_momentum_includes_the_learning_rate() -> None:
    optimizer, param = optimizers.SGD(0.1, momentum=0.5), tl.tensor([1.0], requires_grad=True)
    optimizer.apply([tl.tensor([1.0])], [param])
    optimizer.learning_rate = 0.0
    optimizer.apply([tl.tensor([1.0])], [param])
    assert param.item() == pytest.approx(1 - 0.1 - 0.05)  # PyTorch would not move


def test_gradients_are_clipped_together() -> None:
    params = [tl.zeros(2).requires_grad_(), tl.zeros(1).requires_grad_()]
    optimizer = optimizers.SGD(1.0, global_clipnorm=1.0)
    optimizer.apply_gradients([(tl.tensor([3.0, 0.0]), params[0]), (tl.tensor([4.0]), params[1])])
    np.testing.assert_allclose(params[0].detach().numpy(), [-0.6, 0], rtol=1e-6)
    np.testing.assert_allclose(params[1].detach().numpy(), [-0.8], rtol=1e-6)


def test_gradients_of_several_steps_are_one() -> None:
    optimizer, param = optimizers.SGD(1.0, gradient_accumulation_steps=2), tl.zeros(1).requires_grad_()
    seen = []
    for gradient in (1.0, 3.0, 5.0, 7.0):
        optimizer.apply([tl.tensor([gradient])], [param])
        seen.append((param.item(), optimizer.iterations))
    assert seen == [(0, 0), (-2, 1), (-2, 1), (-8, 2)]


def test_the_learning_rate_can_be_set_and_can_follow(tmp_path: Path) -> None:
    optimizer = optimizers.SGD(1.0)
    optimizer.learning_rate.assign(0.5)  # as with Keras's variable
    assert optimizer.learning_rate.numpy() == 0.5
    assert type(copy.deepcopy(optimizer.learning_rate)) is float
    tl.save({"rate": optimizer.learning_rate}, tmp_path / "state.pt")
    assert tl.load(tmp_path / "state.pt") == {"rate": 0.5}
    optimizer.learning_rate = 0.25
    assert after(optimizer) == 1 - 0.25 * G
    halving = optimizers.SGD(schedules.ExponentialDecay(1.0, decay_steps=1, decay_rate=0.5))
    assert after(halving, steps=3) == pytest.approx(1 - (1 + 0.5 + 0.25) * G)
    assert halving.learning_rate == 0.125
    with pytest.raises(ArgumentTypeError, match="follows a ExponentialDecay"):
        halving.learning_rate = 0.1
    chosen = optimizers.SGD(lambda: 0.5 if chosen.iterations == 0 else 0.1)
    assert after(chosen, steps=2) == pytest.approx(1 - 0.6 * G)


def test_averages_take_the_place_of_the_parameters() -> None:
    optimizer, param = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5), tl.zeros(1).requires_grad_()
    for _ in range(2):
        optimizer.apply([tl.tensor([1.0])], [param])
    assert param.item() == -2
    optimizer.finalize_variable_values([param])
    assert param.item() == -1.5


def test_averages_come_back_with_the_state() -> None:
    def make_optimizer() -> Any:
        return optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)

    uninterrupted, first, second = make_optimizer(), make_optimizer(), make_optimizer()
    expected = train(uninterrupted, network(), 4)
    half = train(first, network(), 2)
    second.load_state_dict(first.state_dict())
    train(second, half, 2)
    for optimizer, model in ((uninterrupted, expected), (second, half)):
        optimizer.finalize_variable_values(model.parameters())
    for one, two in zip(expected.parameters(), half.parameters(), strict=True):
        np.testing.assert_array_equal(one.detach().numpy(), two.detach().numpy())


def test_a_step_with_some_parameters_leaves_the_others() -> None:
    params = [tl.zeros(1).requires_grad_(), tl.zeros(1).requires_grad_()]
    optimizer = optimizers.SGD(1.0)
    optimizer.build(params)
    (params[0] + params[1]).sum().backward()
    optimizer.apply([params[0].grad], params[:1])
    assert [param.item() for param in params] == [-1, 0]
    assert params[1].grad.item() == 1


def test_weight_decay_skips_excluded_variables() -> None:
    params = [tl.ones(1).requires_grad_(), tl.ones(1).requires_grad_()]
    optimizer = optimizers.SGD(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(params[:1])
    optimizer.apply([tl.zeros(1), tl.zeros(1)], params)
    assert [param.item() for param in params] == pytest.approx([1, 0.95])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parameters_of_half_precision(dtype: str) -> None:
    options = {"weight_decay": 0.1, "clipnorm": 0.3, "use_ema": True}
    param = tl.ones(4, dtype=getattr(tl, dtype)).requires_grad_()
    single = tl.ones(4).requires_grad_()
    for target in (param, single):
        optimizer = optimizers.Adam(0.1, **options)
        for _ in range(3):
            optimizer.apply([tl.full((4,), 0.5, dtype=target.dtype)], [target])
        optimizer.finalize_variable_values([target])
    np.testing.assert_allclose(param.detach().float().numpy(), single.detach().numpy(), atol=0.02)


def train(optimizer: Any, model: nn.Module, steps: int) -> nn.Module:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(10, 8, 3)).astype("float32")
    optimizer.build(model.parameters())
    for step in range(optimizer.iterations, optimizer.iterations + steps):
        model.zero_grad()
        model(tl.tensor(data[step])).square().mean().backward()
        optimizer.step()
    return model


def network() -> nn.Module:
    tl.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


@pytest.mark.parametrize("is_built", [True, False], ids=["built", "not built"])
@pytest.mark.parametrize("name", sorted({cls.__name__ for cls in optimizers.CLASSES.values()} - {"FromOptim"}))
def test_a_state_comes_back(name: str, is_built: bool) -> None:
    kind = getattr(optimizers, name)

    def make(rate: float) -> Any:
        return kind(optimizers.Adam(rate)) if name == "LossScaleOptimizer" else kind(rate)

    uninterrupted = train(make(0.01), network(), 6)
    first = make(0.01)
    half = train(first, network(), 3)
    second, other = make(0.5), network()
    other.load_state_dict(half.state_dict())
    if is_built:
        second.build(other.parameters())
    second.load_state_dict(first.state_dict())
    train(first, half, 1)  # its next update has no effect
    assert (second.iterations, second.learning_rate) == (3, 0.01)
    train(second, other, 3)
    for one, two in zip(uninterrupted.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(one.detach().numpy(), two.detach().numpy())


def test_a_state_of_another_model_is_refused() -> None:
    optimizer = optimizers.Adam()
    train(optimizer, network(), 1)
    other = optimizers.Adam()
    other.build([tl.zeros(3).requires_grad_()])
    with pytest.raises(CheckpointError):
        other.load_state_dict(optimizer.state_dict())


def test_checkpoints_of_tallow_hold_one(tmp_path: Any) -> None:
    optimizer, model = optimizers.Adam(0.05), network()
    train(optimizer, model, 2)
    tl.save_checkpoint(tmp_path / "run.safetensors", model=model, optimizer=optimizer)
    again, other = optimizers.Adam(), network()
    tl.load_checkpoint(tmp_path / "run.safetensors", model=other, optimizer=again)
    (tmp_path / "run.safetensors").unlink()
    for one, two in zip(train(optimizer, model, 2).parameters(), train(again, other, 2).parameters(), strict=True):
        np.testing.assert_array_equal(one.detach().numpy(), two.detach().numpy())


def test_optimizers_of_tallow_are_wrapped() -> None:
    params = [tl.ones(2).requires_grad_()]
    wrapped = optimizers.get(tl.optim.SGD(params, lr=0.5))
    wrapped.apply([tl.ones(2)], params)
    assert params[0].tolist() == [0.5, 0.5]
    assert wrapped.learning_rate == 0.5
    again = optimizers.deserialize(optimizers.serialize(wrapped))
    again.build(params)
    assert type(again.inner) is tl.optim.SGD
    assert again.learning_rate == 0.5


def test_invalid_arguments() -> None:
    with pytest.raises(ArgumentError, match="only one of"):
        optimizers.SGD(clipnorm=1.0, clipvalue=1.0)
    with pytest.raises(ArgumentError, match="2 or more"):
        optimizers.SGD(gradient_accumulation_steps=1)
    with pytest.raises(
        ArgumentTypeError, match=r"Adam: unexpected arguments: lr\n  hint: accepted arguments: learning_rate"
    ):
        optimizers.Adam(lr=0.1)
    with pytest.raises(ArgumentTypeError, match=r"must be a number, a schedule or a function, not '0\.1'"):
        optimizers.Adam("0.1")
    with pytest.raises(ArgumentTypeError, match="learning_rate must be a number"):
        optimizers.SGD("fast")
    with pytest.raises(ArgumentError, match="no trainable parameters"):
        optimizers.SGD().build([])
    with pytest.raises(GraphError, match="no gradients for any parameter"):
        optimizers.SGD().apply([None], [tl.zeros(1).requires_grad_()])
    with pytest.raises(ArgumentError, match="1 gradients for 2 parameters"):
        optimizers.SGD().apply([tl.zeros(1)], [tl.zeros(1).requires_grad_(), tl.zeros(1).requires_grad_()])
    with pytest.raises(ArgumentError, match="did you mean 'sgd'"):
        optimizers.get("sdg")
    with pytest.raises(ArgumentTypeError, match="not an optimizer"):
        optimizers.get(nn.Linear(1, 1))


# --------------------------------------------------------------------------------------------------------- schedules


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        (schedules.ExponentialDecay(1.0, 2, 0.25), {0: 1, 1: 0.5, 2: 0.25}),
        (schedules.ExponentialDecay(1.0, 2, 0.25, staircase=True), {0: 1, 1: 1, 2: 0.25}),
        (schedules.InverseTimeDecay(1.0, 2, 1.0), {0: 1, 2: 0.5, 4: 1 / 3}),
        (schedules.PiecewiseConstantDecay([2, 4], [1.0, 0.5, 0.1]), {0: 1, 2: 1, 3: 0.5, 4: 0.5, 5: 0.1}),
        (schedules.PolynomialDecay(1.0, 10, 0.0), {0: 1, 5: 0.5, 10: 0, 20: 0}),
        (schedules.CosineDecay(1.0, 10), {0: 1, 5: 0.5, 10: 0, 20: 0}),
        (schedules.CosineDecay(0.0, 10, warmup_target=1.0, warmup_steps=4), {0: 0, 2: 0.5, 4: 1, 9: 0.5, 14: 0}),
        (schedules.CosineDecayRestarts(1.0, 4, m_mul=0.5), {0: 1, 2: 0.5, 4: 0.5, 8: 0.25, 12: 0.25}),
    ],
)
def test_a_schedule_is_its_formula(schedule: Any, values: dict[int, float]) -> None:
    assert {step: schedule(step) for step in values} == pytest.approx(values)
    assert schedules.deserialize(schedules.serialize(schedule)).get_config() == schedule.get_config()


def test_a_schedule_of_ones_own() -> None:
    class Slower(schedules.LearningRateSchedule):
        def __call__(self, step: Any) -> float:
            return 1 / (step + 1)

    assert after(optimizers.SGD(Slower()), steps=2) == 1 - 1.5 * G
    with pytest.raises(ArgumentError, match="one more value"):
        schedules.PiecewiseConstantDecay([1], [1.0])
    with pytest.raises(ArgumentError, match="a period of 0 steps"):
        schedules.CosineDecay(1.0, 0)
    with pytest.raises(ArgumentError, match="'Slower' is not the name of a schedule"):
        schedules.deserialize(schedules.serialize(Slower()))
    assert isinstance(schedules.deserialize(schedules.serialize(Slower()), {"Slower": Slower}), Slower)


def test_import_paths_are_those_of_keras() -> None:
    assert keras.optimizers.schedules is schedules
