"""The optimizers and learning-rate schedules of tallow.keras compared with Keras."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.keras_reference import KERAS_WARNS, keras

import tallow as tl
from tallow.keras import optimizers
from tallow.keras.optimizers import schedules

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

STEPS = 20
TOLERANCE = 1e-5  # Keras computes 1 - beta^t in float32
SHAPES = [(3, 4), (4,), (2, 5)]

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"learning_rate": 0.1, "nesterov": True}),
    ("SGD", {"learning_rate": 0.1, "weight_decay": 0.1}),
    ("RMSprop", {}),
    ("RMSprop", {"rho": 0.8, "momentum": 0.5, "epsilon": 1e-3, "learning_rate": 0.01}),
    ("RMSprop", {"centered": True, "epsilon": 1e-3, "learning_rate": 0.01}),
    ("RMSprop", {"centered": True, "momentum": 0.3, "epsilon": 1e-2}),
    ("Adagrad", {}),
    ("Adagrad", {"learning_rate": 0.1, "initial_accumulator_value": 0.0, "epsilon": 1e-2}),
    ("Adadelta", {}),
    ("Adadelta", {"learning_rate": 1.0, "rho": 0.8, "epsilon": 1e-3}),
    ("Adam", {}),
    ("Adam", {"learning_rate": 0.05, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-2}),
    ("Adam", {"learning_rate": 0.05, "amsgrad": True, "weight_decay": 0.02}),
    ("AdamW", {}),
    ("AdamW", {"learning_rate": 0.05, "weight_decay": 0.1}),
    ("Adamax", {}),
    ("Adamax", {"learning_rate": 0.05, "epsilon": 1e-2}),
    ("Nadam", {}),
    ("Nadam", {"learning_rate": 0.05, "beta_1": 0.8, "epsilon": 1e-2}),
    ("Lion", {}),
    ("Lion", {"learning_rate": 0.01, "weight_decay": 0.1}),
    ("Ftrl", {"learning_rate": 0.1}),
    (
        "Ftrl",
        {
            "learning_rate": 0.05,
            "learning_rate_power": -0.7,
            "l1_regularization_strength": 0.01,
            "l2_regularization_strength": 0.02,
            "l2_shrinkage_regularization_strength": 0.03,
            "beta": 0.1,
        },
    ),
    ("Lamb", {"learning_rate": 0.05, "epsilon": 1e-2}),
    ("Lamb", {"weight_decay": 0.1}),
    ("Adafactor", {"learning_rate": 0.3}),
    ("Adafactor", {"learning_rate": 0.05, "relative_step": False, "clip_threshold": 0.5, "weight_decay": 0.01}),
    ("Muon", {"learning_rate": 0.01}),
    ("Muon", {"learning_rate": 0.02, "nesterov": False, "rms_rate": None, "adam_lr_ratio": 0.5, "weight_decay": 0.1}),
    *(
        ("Adam", {"learning_rate": 0.05} | option)
        for option in (
            {"clipnorm": 0.5},
            {"clipvalue": 0.2},
            {"global_clipnorm": 0.7},
            {"global_clipnorm": 1e3},
            {"loss_scale_factor": 8.0},
            {"gradient_accumulation_steps": 3},
            {"gradient_accumulation_steps": 2, "clipnorm": 0.5, "weight_decay": 0.1},
            {"use_ema": True, "ema_momentum": 0.8},
            {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 4},
        )
    ),
    *(
        ("SGD", {"learning_rate": (name, options), "momentum": 0.9})
        for name, options in (
            ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 4, "decay_rate": 0.7}),
            ("CosineDecay", {"initial_learning_rate": 0.0, "decay_steps": 8, "warmup_target": 0.2, "warmup_steps": 5}),
        )
    ),
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(CASES)]


def make_optimizers(library: Any, name: str, options: dict[str, Any]) -> Any:
    rate = options.get("learning_rate")
    if isinstance(rate, tuple):
        options = options | {"learning_rate": getattr(library.schedules, rate[0])(**rate[1])}
    return getattr(library, name)(**options)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_twenty_steps_are_keras(name: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    start = [rng.normal(size=shape).astype("float32") for shape in SHAPES]
    ours = [tl.tensor(array, requires_grad=True) for array in start]
    theirs = [keras.Variable(array) for array in start]
    mine, reference = make_optimizers(optimizers, name, options), make_optimizers(keras.optimizers, name, options)
    for step in range(STEPS):
        grads = [rng.normal(size=shape).astype("float32") for shape in SHAPES]
        mine.apply([tl.tensor(grad) for grad in grads], ours)
        with torch.no_grad():
            reference.apply([torch.tensor(grad) for grad in grads], theirs)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(
                one.detach().numpy(), other.numpy(), rtol=TOLERANCE, atol=TOLERANCE, err_msg=f"step {step}"
            )
        assert mine.iterations == int(reference.iterations)
        assert mine.learning_rate == pytest.approx(float(reference.learning_rate), rel=1e-5)
    mine.finalize_variable_values(ours)
    reference.finalize_variable_values(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.numpy(), rtol=TOLERANCE, atol=TOLERANCE)


# With PyTorch, Keras modifies its weights in place here: it uses the new z as the old one.
@pytest.mark.parametrize("warmup", [0, 7])
def test_schedule_free_adamw_is_the_paper(warmup: int) -> None:
    """Algorithm 1 of arXiv:2405.15682 with equally weighted averages."""
    rng = np.random.default_rng(0)
    z = x = y = rng.normal(size=(3, 4))
    param = tl.tensor(y.astype(np.float32), requires_grad=True)
    optimizer = optimizers.ScheduleFreeAdamW(0.02, 0.8, 0.95, 1e-6, warmup)
    v = np.zeros_like(y)
    for t in range(1, STEPS + 1):
        gradient = rng.normal(size=y.shape)
        v = 0.95 * v + 0.05 * gradient**2
        z = z - 0.02 * min(1.0, t / max(warmup, 1)) * gradient / (np.sqrt(v / (1 - 0.95**t)) + 1e-6)
        x = (1 - 1 / t) * x + z / t
        y = 0.2 * z + 0.8 * x
        optimizer.apply([tl.tensor(gradient.astype(np.float32))], [param])
    np.testing.assert_allclose(param.numpy(force=True), y, rtol=1e-4, atol=1e-5)


NAMES = sorted({cls.__name__ for cls in optimizers.CLASSES.values()} - {"FromOptim", "LossScaleOptimizer"})


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_keras(name: str) -> None:
    ours, theirs = getattr(optimizers, name)().get_config(), getattr(keras.optimizers, name)().get_config()
    assert ours.keys() >= theirs.keys()
    for key, value in ((key, theirs[key]) for key in theirs.keys() - {"name"}):
        assert ours[key] == (pytest.approx(value) if isinstance(value, float) else value), key
    again = optimizers.deserialize(optimizers.serialize(getattr(optimizers, name)()))
    assert again.get_config() == ours


SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 7, "decay_rate": 0.6}),
    ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 7, "decay_rate": 0.6, "staircase": True}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 7, "decay_rate": 0.6}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 7, "decay_rate": 0.6, "staircase": True}),
    ("PiecewiseConstantDecay", {"boundaries": [5, 12], "values": [1.0, 0.5, 0.1]}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 9, "end_learning_rate": 0.01, "power": 2.0}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 9, "cycle": True}),
    ("CosineDecay", {"initial_learning_rate": 0.1, "decay_steps": 20, "alpha": 0.1}),
    ("CosineDecay", {"initial_learning_rate": 0.0, "decay_steps": 20, "warmup_target": 0.3, "warmup_steps": 6}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 5}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 5, "t_mul": 1.0, "m_mul": 0.8}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 5, "t_mul": 1.5, "alpha": 0.05}),
]


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(SCHEDULES)])
def test_a_schedule_is_keras(name: str, options: dict[str, Any]) -> None:
    ours, theirs = getattr(schedules, name)(**options), getattr(keras.optimizers.schedules, name)(**options)
    for step in range(40):
        assert ours(step) == pytest.approx(float(theirs(step)), rel=1e-5, abs=1e-7), step
    config = theirs.get_config()
    assert ours.get_config() == config
    assert schedules.deserialize(schedules.serialize(ours)).get_config() == config
