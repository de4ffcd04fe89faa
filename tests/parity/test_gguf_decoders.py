"""GGUF files of decoders that differ from Llama in some terms: equal outputs to those of transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.gguf_decoders import DECODERS, write_decoder, write_rwkv7
from support.gguf_models import SIZES, TOKENS, output, reference

import tallow as tl
from tallow.models import AutoModel
from tallow.models.decoders.rwkv7 import RWKV7, RWKV7Config

pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")


@pytest.mark.parametrize("name", DECODERS)
def test_logits(name: str, tmp_path: Path) -> None:
    architecture, kind, changes = DECODERS[name]
    model = reference(kind, changes, SIZES | {"tie_word_embeddings": name.startswith(("cohere", "gemma"))})
    write_decoder(model, architecture, tmp_path / "model.gguf")
    with tl.no_grad():
        ours = AutoModel.from_pretrained(tmp_path / "model.gguf")(tl.tensor(TOKENS)).numpy()
    expected = output(model)
    np.testing.assert_allclose(ours, expected, atol=1e-4 * max(1, np.abs(expected).max()))


def test_experts_of_gpt_oss_stay_in_mxfp4(tmp_path: Path) -> None:
    architecture, kind, changes = DECODERS["gpt-oss"]
    path = tmp_path / "model.gguf"
    write_decoder(reference(kind, changes), architecture, path, gguf.GGMLQuantizationType.MXFP4)
    model, floats = AutoModel.from_pretrained(path), AutoModel.from_pretrained(path, dtype=tl.float32)
    assert model.model.layers[0].mlp.experts[0].up_proj.format == "MXFP4"
    with tl.no_grad():
        ours, expected = (each(tl.tensor(TOKENS)).numpy() for each in (model, floats))
    np.testing.assert_allclose(ours, expected, atol=1e-4 * np.abs(expected).max())


def test_rwkv7_as_converters_write_it(tmp_path: Path) -> None:
    """transformers has no RWKV-7: the file has the weights of a model that equals the paper's equations."""
    tl.manual_seed(0)
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 8}
    ranks = {"decay_low_rank_dim": 8, "a_low_rank_dim": 6, "v_low_rank_dim": 4, "gate_low_rank_dim": 12}
    model = RWKV7(RWKV7Config(**sizes, **ranks, initializer_range=0.3)).eval()
    write_rwkv7(model, tmp_path / "model.gguf")
    found = AutoModel.from_pretrained(tmp_path / "model.gguf")
    assert found.config.norm_first
    with tl.no_grad():
        expected, ours = (each(tl.tensor(TOKENS)).numpy() for each in (model, found))
    np.testing.assert_allclose(ours, expected, atol=1e-5)
