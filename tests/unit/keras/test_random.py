"""keras.random: distributions, and the meaning of seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import keras
from tallow.keras import layers, ops, random

DRAWS: list[Callable[[Any], tl.Tensor]] = [
    lambda seed: random.normal((40,), seed=seed),
    lambda seed: random.uniform((40,), seed=seed),
    lambda seed: random.randint((40,), 0, 1000, seed=seed),
    lambda seed: random.shuffle(tl.arange(40), seed=seed),
    lambda seed: random.categorical(tl.zeros(1, 1000), 40, seed=seed),
    lambda seed: random.dropout(tl.ones(40), 0.5, seed=seed),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_an_integer_seed_repeats_and_a_generator_continues(draw: Callable[[Any], tl.Tensor]) -> None:
    assert draw(3).tolist() == draw(3).tolist() != draw(4).tolist()
    one, other = random.SeedGenerator(3), random.SeedGenerator.from_config(random.SeedGenerator(3).get_config())
    first = draw(one).tolist()
    assert first == draw(other).tolist() != draw(one).tolist()
    keras.utils.set_random_seed(1)
    first = draw(None).tolist()
    keras.utils.set_random_seed(1)
    assert first == draw(None).tolist() != draw(None).tolist()


def test_shapes_and_dtypes() -> None:
    normal = random.normal((20_000,), 3.0, 2.0, seed=0)
    assert normal.dtype is tl.float32
    assert float(normal.mean()) == pytest.approx(3, abs=0.1)
    assert float(normal.std()) == pytest.approx(2, abs=0.1)
    even = random.uniform((20_000,), -1, 3, seed=0)
    assert -1 <= float(even.min()) < -0.99
    assert 2.99 < float(even.max()) < 3
    assert {*random.uniform((200,), 0, 3, dtype="int32", seed=0).tolist()} == {0, 1, 2}
    assert {*random.randint((200,), -1, 2, seed=0).tolist()} == {-1, 0, 1}
    samples = random.categorical(np.log([[0.25, 0.75, 1e-9]]), 20_000, seed=0)
    assert samples.dtype is tl.int32
    np.testing.assert_allclose(np.bincount(samples.numpy()[0], minlength=3) / 20_000, [0.25, 0.75, 0], atol=0.02)
    rows = tl.arange(6).reshape(2, 3)
    assert {tuple(column) for column in random.shuffle(rows, 1, seed=0).T.tolist()} == {(0, 3), (1, 4), (2, 5)}
    dropped = random.dropout(tl.ones(100, 4), 0.5, (None, 1), seed=0)
    assert {tuple(row) for row in dropped.tolist()} == {(0, 0, 0, 0), (2, 2, 2, 2)}


def test_a_layer_draws_with_a_generator_of_its_own() -> None:
    class Sampling(layers.Layer):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.seed_generator = random.SeedGenerator(1337)

        def call(self, inputs: Any) -> Any:
            mean, log_variance = inputs
            epsilon = random.normal(ops.shape(mean), seed=self.seed_generator)
            return mean + ops.exp(0.5 * log_variance) * epsilon

    mean, log_variance = keras.Input((3,)), keras.Input((3,))
    model = keras.Model([mean, log_variance], Sampling()([mean, log_variance]))
    assert model.output_shape == (None, 3)
    samples = model.predict([np.full((5000, 3), 7.0), np.full((5000, 3), -2.0)], verbose=0)
    np.testing.assert_allclose(samples.mean(0), 7, atol=0.05)
    np.testing.assert_allclose(samples.std(0), np.exp(-1), atol=0.05)


@pytest.mark.parametrize(
    ("name", "parameters", "mean", "variance"),
    [
        # of a normal distribution truncated at two standard deviations
        ("truncated_normal", (1.0, 2.0), 1.0, 4 * 0.7737413),
        ("gamma", (3.0,), 3.0, 3.0),
        ("beta", (2.0, 3.0), 0.4, 0.04),
        ("binomial", (10, 0.3), 3.0, 2.1),
    ],
)
def test_moments_of_distributions(name: str, parameters: tuple[float, ...], mean: float, variance: float) -> None:
    """Moments match the formulas within five standard errors."""
    samples = getattr(keras.random, name)((20000,), *parameters, seed=1).numpy()
    again = getattr(keras.random, name)((20000,), *parameters, seed=1).numpy()
    np.testing.assert_array_equal(samples, again)
    assert abs(samples.mean() - mean) < 5 * (variance / 20000) ** 0.5
    np.testing.assert_allclose(samples.var(), variance, rtol=0.08)
    if name == "truncated_normal":
        assert np.abs(samples - 1).max() <= 4
