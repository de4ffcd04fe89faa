"""Watermarks are those of transformers: each finds the texts of the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, both_raise

from tallow.errors import ArgumentError

random = np.random.default_rng(0)
IDS = random.integers(0, 50, (2, 7)).tolist()
SCORES = random.normal(size=(2, 50)).astype(np.float32).tolist()


@pytest.mark.parametrize(
    "options",
    [{}, {"greenlist_ratio": 0.5, "bias": -1.0, "hashing_key": 7}, {"seeding_scheme": "selfhash", "context_width": 3}],
)
def test_green_tokens(options: dict[str, Any]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        config = tf.WatermarkingConfig(**options)
        config.validate()
        processor = config.construct_processor(50, "cpu")
        return processor(torch.tensor(IDS), torch.tensor(SCORES)), config.to_dict()

    both(program)


@pytest.mark.parametrize("options", [{}, {"skip_first_ngram_calls": True}, {"debug_mode": True}])
def test_tournaments(options: dict[str, Any]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        config = tf.SynthIDTextWatermarkingConfig(ngram_len=3, keys=[654, 400, 836], context_history_size=8, **options)
        processor = config.construct_processor(50, "cpu")
        ids = torch.tensor(IDS)
        return [processor(ids[:, :length], torch.tensor(SCORES)) for length in (2, 3, 4, 5, 3, 4, 5, 6)]

    both(program)


def test_wrong_watermarks() -> None:
    both_raise(lambda tf, torch: tf.WatermarkingConfig(seeding_scheme="none").validate(), errors=ArgumentError)
    both_raise(
        lambda tf, torch: tf.SynthIDTextWatermarkingConfig(5, [1], sampling_table_size=2**25).validate(),
        errors=ArgumentError,
    )
    both_raise(lambda tf, torch: tf.WatermarkLogitsProcessor(30, "cpu", greenlist_ratio=1.0), errors=ArgumentError)
