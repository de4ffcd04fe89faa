"""transformers loads the packaged speech model as a Whisper and computes the same logits."""

from __future__ import annotations

import numpy as np
import pytest

import tallow as tl
from tallow.models.built_in import spoken

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOLERANCE = 1e-4  # float32, five layers


def test_transformers_computes_the_same_logits() -> None:
    model = spoken.load()
    theirs = transformers.WhisperForConditionalGeneration.from_pretrained(spoken.FOLDER, dtype=torch.float32).eval()
    rng = np.random.default_rng(0)
    config = model.config
    mel = rng.standard_normal((2, config.num_mel_bins, 2 * config.max_source_positions)).astype(np.float32) / 2
    tokens = np.array([[model.tokenizer.sot, *model.tokenizer.encode(text)] for text in (" turn left", " Monday nine")])
    with tl.no_grad():
        mine = model(tl.from_numpy(mel), tl.from_numpy(tokens)).numpy()
    with torch.no_grad():
        expected = theirs(torch.from_numpy(mel), decoder_input_ids=torch.from_numpy(tokens)).logits.numpy()
    np.testing.assert_allclose(mine, expected, atol=TOLERANCE, rtol=TOLERANCE)
