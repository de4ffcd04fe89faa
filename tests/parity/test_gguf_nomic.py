"""A GGUF file of a Nomic encoder, by the names of the package `gguf`, compared with transformers."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers
from support.model_pairs import ENCODER_SIZES

import tallow as tl
from tallow.models import AutoModel
from tallow.models.encoders.rotary_bert import NomicBertModel

# transformers' names -> those of the repository's own code, which the converter of llama.cpp reads.
OLDER = {"layers.": "encoder.layers.", "embeddings.LayerNorm": "emb_ln", "self_attn.o_proj": "attn.out_proj"}
OLDER |= {"self_attn.q_proj": "attn.Wqkv", "up_proj": "fc11", "gate_proj": "fc12", "down_proj": "fc2"}
OLDER |= {"post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2"}


@pytest.mark.parametrize("kind", [gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.Q8_0])
def test_nomic(kind: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs = transformers.NomicBertModel(transformers.NomicBertConfig(**ENCODER_SIZES)).eval()
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.NOMIC_BERT, ENCODER_SIZES["num_hidden_layers"])
    path, state = tmp_path / "model.gguf", theirs.state_dict()
    writer = gguf.GGUFWriter(path, "nomic-bert")
    writer.add_block_count(ENCODER_SIZES["num_hidden_layers"])
    writer.add_embedding_length(ENCODER_SIZES["hidden_size"])
    writer.add_feed_forward_length(ENCODER_SIZES["intermediate_size"])
    writer.add_head_count(ENCODER_SIZES["num_attention_heads"])
    writer.add_context_length(ENCODER_SIZES["max_position_embeddings"])
    writer.add_layer_norm_eps(theirs.config.layer_norm_eps)
    writer.add_rope_freq_base(1000.0)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    for name, tensor in state.items():
        if "k_proj" in name or "v_proj" in name:
            continue
        parts = [state[name.replace("q_proj", f"{part}_proj")] for part in "qkv"] if "q_proj" in name else [tensor]
        array = torch.cat(parts).numpy()
        for new, old in OLDER.items():
            name = name.replace(new, old)
        stored = names.get_name(name, (".weight", ".bias"))
        is_matrix = array.ndim == 2 and array.shape[1] % 32 == 0 and "embeddings" not in name
        if is_matrix and kind is not gguf.GGMLQuantizationType.F32:
            writer.add_tensor(stored, gguf.quants.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(stored, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model = AutoModel.from_pretrained(path)
    assert isinstance(model, NomicBertModel)
    ids = np.random.default_rng(0).integers(5, 99, (2, 20))
    with torch.no_grad():
        expected = theirs(input_ids=torch.tensor(ids)).last_hidden_state.numpy()
    with tl.no_grad():
        got = model(tl.tensor(ids)).last_hidden_state.numpy()
    np.testing.assert_allclose(got, expected, atol=1e-4 if kind is gguf.GGMLQuantizationType.F32 else 0.15)
