"""Scaled rotary embeddings, compared with their formulas."""

from __future__ import annotations

import numpy as np

import tallow as tl
from tallow.nn.rope_scaling import frequencies
from tallow.nn.rotary import RotaryEmbedding


def test_dynamic_angles_follow_the_positions_of_each_row() -> None:
    rotary = RotaryEmbedding(4, scaling={"rope_type": "dynamic", "factor": 2.0}, context=4)
    x = tl.tensor(np.random.default_rng(0).standard_normal((2, 3, 2, 4)).astype(np.float32))
    rotated = rotary(x, 5, np.array([0, 2]))
    length = 7  # position of the longest text, which scales all texts
    base = 10000.0 * (2.0 * length / 4 - 1) ** (4 / 2)
    for row, first in enumerate((5, 3)):
        for place in range(2):
            angles = (first + place) * base ** (-np.arange(0, 4, 2) / 4)
            low, high = x[row, :, place, :2].numpy(), x[row, :, place, 2:].numpy()
            expected = [low * np.cos(angles) - high * np.sin(angles), low * np.sin(angles) + high * np.cos(angles)]
            np.testing.assert_allclose(rotated[row, :, place].numpy(), np.concatenate(expected, -1), atol=1e-5)


def test_proportional_angles_are_those_of_the_first_pairs() -> None:
    scaling = {"rope_type": "proportional", "factor": 2.0, "partial_rotary_factor": 0.5}
    np.testing.assert_allclose(frequencies(8, 16.0, scaling), [0.5, 0.25, 0, 0])
