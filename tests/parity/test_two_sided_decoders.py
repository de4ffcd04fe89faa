"""Decoders whose config makes them encoders of texts: a position sees those before and after it, as in transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.chats import CHATML, save_tokenizer
from support.model_pairs import GEMMA3, LABELS, LLAMA_SIZES, SLIDING

import tallow as tl
from tallow import models
from tallow.errors import ArgumentError, CheckpointError
from tallow.models import AutoModel
from tallow.nn.cache import KVCache

ENCODING: dict[str, tuple[str, dict[str, Any]]] = {
    "gemma3": ("Gemma3TextModel", GEMMA3 | {"use_bidirectional_attention": True}),
    "gemma3, wide": ("Gemma3TextModel", GEMMA3 | {"use_bidirectional_attention": True, "sliding_window": 64}),
    "gemma3, not causal": ("Gemma3TextModel", GEMMA3 | {"is_causal": False}),
    "gemma2, not causal": (
        "Gemma2Model",
        {"is_causal": False, "head_dim": 16, "sliding_window": 5, "attn_logit_softcapping": 1.0},
    ),
    "llama": ("LlamaModel", {"is_causal": False}),
    "mistral": ("MistralModel", {"is_causal": False, "sliding_window": 5}),
    "qwen2": ("Qwen2Model", {"is_causal": False}),
    "qwen3, sliding": ("Qwen3Model", SLIDING | {"is_causal": False, "max_window_layers": 1}),
    "qwen3, classifier": ("Qwen3ForSequenceClassification", LABELS | {"is_causal": False, "pad_token_id": 0}),
}


def save_model(variant: str, folder: Path) -> Any:
    name, sizes = ENCODING[variant]
    kind = getattr(transformers, name)
    # With "sdpa" and no mask, transformers' attention is causal all the same.
    config = kind.config_class(**(LLAMA_SIZES | sizes), attn_implementation="eager")
    torch.manual_seed(0)
    model = kind(config).eval()
    model.save_pretrained(folder)
    return model


def inputs(padded: str | None) -> tuple[torch.Tensor, torch.Tensor | None]:
    ids = torch.tensor(np.random.default_rng(0).integers(3, 90, (2, 21)))
    if padded is None:
        return ids, None
    mask = torch.ones_like(ids)
    places = slice(13, None) if padded == "right" else slice(8)
    ids[1, places], mask[1, places] = 0, 0
    return ids, mask


@pytest.mark.parametrize("padded", [None, "right", "left"])
@pytest.mark.parametrize("variant", ENCODING)
def test_outputs(variant: str, padded: str | None, tmp_path: Path) -> None:
    reference = save_model(variant, tmp_path)
    ids, mask = inputs(padded)
    with torch.no_grad():
        expected = reference(ids, attention_mask=mask)[0].numpy()
    model = AutoModel.from_pretrained(tmp_path)
    with tl.no_grad():
        got = model(tl.tensor(ids.numpy()), None if mask is None else tl.tensor(mask.numpy())).numpy()
    assert np.isfinite(got).all()
    visible = slice(None) if mask is None or got.ndim == 2 else mask.bool().numpy()
    np.testing.assert_allclose(got[visible], expected[visible], atol=1e-4)


def test_they_write_no_texts(tmp_path: Path) -> None:
    save_model("gemma3", tmp_path)
    with pytest.raises((ArgumentError, CheckpointError), match="Gemma3: the config is of a model that encodes texts"):
        models.Gemma3.from_pretrained(tmp_path)
    model = models.Gemma3TextModel.from_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match="a cache for a Gemma3TextModel"):
        model(tl.tensor([[1, 2]]), cache=KVCache(3, 1, 2, 8, 16))


def test_vectors_of_texts(tmp_path: Path) -> None:
    """EmbeddingGemma's folder: texts of other lengths in one batch do not change a vector."""
    save_tokenizer(tmp_path, CHATML, 300)
    config = transformers.Gemma3TextConfig(
        **(LLAMA_SIZES | GEMMA3 | {"use_bidirectional_attention": True, "vocab_size": 300})
    )
    torch.manual_seed(0)
    reference = transformers.Gemma3TextModel(config).eval()
    reference.save_pretrained(tmp_path)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (tmp_path / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": config.hidden_size, "pooling_mode_mean_tokens": True}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    encoder = models.SentenceEncoder.from_pretrained(tmp_path)
    assert isinstance(encoder.model, models.Gemma3TextModel)
    texts = ["the cat sat on the mat and the dog", "a cat", "the dog and the cat"]
    for text, vector in zip(texts, encoder.encode(texts), strict=True):
        with torch.no_grad():
            hidden = reference(torch.tensor([encoder.tokenizer.encode(text)])).last_hidden_state
        np.testing.assert_allclose(vector, hidden[0].mean(0).numpy(), atol=1e-4)
