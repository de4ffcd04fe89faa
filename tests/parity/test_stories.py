"""transformers loads the packaged language model's folder and computes the same logits."""

from __future__ import annotations

import numpy as np
import pytest

import tallow as tl
from tallow.models.built_in import stories

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOLERANCE = 1e-4  # float32, four layers


def test_transformers_computes_the_same_logits() -> None:
    model, tokenizer = stories.load()
    reference = transformers.LlamaForCausalLM.from_pretrained(stories.FOLDER, dtype=torch.float32).eval()
    ids = tokenizer.encode("Once upon a time there was a shy otter named Pip. Pip lived in a hole by the river.")
    with torch.no_grad():
        expected = reference(torch.tensor([ids])).logits.numpy()
    with tl.no_grad():
        np.testing.assert_allclose(model(tl.tensor([ids])).numpy(), expected, atol=TOLERANCE)
