"""Relatives of BERT compared with transformers: equal weights give equal outputs and gradients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import save_file
from support.model_pairs import ENCODER_SIZES, LABELS

import tallow as tl
from tallow.models import AutoModel

VOCAB, LENGTH = 99, 30
DEBERTA = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8, **LABELS}
# For each case the class of transformers, and what differs from the small sizes.
CASES: dict[str, dict[str, Any]] = {
    "MPNetModel": {"hidden_act": "gelu_new"},
    "MPNetForMaskedLM": {"max_position_embeddings": 50},
    "MPNetForMultipleChoice": {"layer_norm_eps": 1e-3},
    "ElectraModel": {"embedding_size": 32},
    "ElectraForMaskedLM": {"embedding_size": 20, "tie_word_embeddings": False},
    "ElectraForPreTraining": {"embedding_size": 20},
    "ElectraForSequenceClassification": {"embedding_size": 20, **LABELS},
    "AlbertModel": {"num_hidden_groups": 2, "inner_group_num": 2},
    "AlbertForMaskedLM": {"embedding_size": 20},
    "AlbertForSequenceClassification": {"num_hidden_groups": 3, **LABELS},
    "ErnieForQuestionAnswering": {"use_task_id": True},
    "DebertaV2Model": DEBERTA | {"conv_kernel_size": 3, "conv_act": "gelu", "share_att_key": True},
    "DebertaV2ForMaskedLM": DEBERTA | {"legacy": False, "position_buckets": -1},
    "DebertaV2ForSequenceClassification": DEBERTA | {"position_biased_input": False, "norm_rel_ebd": "layer_norm"},
    "DebertaV2ForTokenClassification": {"type_vocab_size": 2, "embedding_size": 20, **LABELS},
    "NomicBertForMaskedLM": {"hidden_act": "silu"},
    "NomicBertForSequenceClassification": {"head_dim": 6, **LABELS},
    "GteForMaskedLM": {
        "type_vocab_size": 0,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 1e3, "factor": 2.0},
    },
    "GteForTokenClassification": LABELS,
    "JinaEmbeddingsV3ForSequenceClassification": LABELS,
    "JinaEmbeddingsV3ForMaskedLM": {},
    "EuroBertForMaskedLM": {"pad_token_id": 0, "num_key_value_heads": 2, "tie_word_embeddings": True},
    "EuroBertForSequenceClassification": {"pad_token_id": 0, "classifier_pooling": "late", **LABELS},
    "EuroBertForTokenClassification": {"pad_token_id": 0, "head_dim": 6, **LABELS},
    "XLMRobertaXLForMaskedLM": {"pad_token_id": 1},
    "MobileBertForMaskedLM": {"embedding_size": 20, "intra_bottleneck_size": 16},
    "MobileBertForSequenceClassification": {
        "embedding_size": 32,
        "trigram_input": False,
        "normalization_type": "layer_norm",
        "use_bottleneck": False,
        **LABELS,
    },
}


def reference(name: str, changes: dict[str, Any], folder: Path) -> Any:
    """Save a random model of transformers, all of whose weights affect its output."""
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**ENCODER_SIZES | changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:  # norms are initialized to ones, biases to zeros
                parameter.add_(torch.randn_like(parameter) / 4)
    model.save_pretrained(folder)
    return model


def batch(side: str) -> dict[str, Any]:
    """Return three texts of different lengths, with padding on a side."""
    ids = np.random.default_rng(0).integers(5, VOCAB, (3, LENGTH))
    mask = np.ones((3, LENGTH), np.int64)
    for row, count in ((1, 9), (2, 21)):
        padding = slice(LENGTH - count, None) if side == "right" else slice(0, count)
        ids[row, padding], mask[row, padding] = 1, 0
    return {"input_ids": ids, "attention_mask": mask}


def outputs(result: Any, mask: Any) -> list[Any]:
    """Return the tensors of a result, without padding."""
    tensors = result.to_tuple() if hasattr(result, "to_tuple") else result if isinstance(result, tuple) else [result]
    tensors = [each for each in tensors if isinstance(each, tl.Tensor | torch.Tensor)]
    return [each[mask] if tuple(each.shape[:2]) == (3, LENGTH) else each for each in tensors]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients(name: str, side: str, tmp_path: Path) -> None:
    theirs, inputs = reference(name, CASES[name], tmp_path), batch(side)
    model = AutoModel.from_pretrained(tmp_path)
    extra = {key: torch.tensor(value) for key, value in inputs.items()}
    if name.endswith("MultipleChoice"):
        extra = {key: value[None] for key, value in extra.items()}
    expected = outputs(theirs(**extra), extra["attention_mask"].bool())
    given = {key: tl.tensor(value) for key, value in inputs.items()}
    seen = given["attention_mask"].bool()
    with tl.no_grad():
        fused = outputs(model(**given), seen)
    got = outputs(model(**given), seen)
    for ours, quick, other in zip(got, fused, expected, strict=True):
        values = other.detach().numpy().reshape(ours.shape)
        np.testing.assert_allclose(ours.detach().numpy(), values, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(quick.numpy(), values, rtol=1e-4, atol=1e-4)
    if side == "left":  # a text's vector may be that of its padding
        return
    sum(each.square().sum() for each in expected).backward()
    sum(each.square().sum() for each in got).backward()
    gradients = {key: each.grad for key, each in theirs.named_parameters() if each.grad is not None}
    # Those of keys' biases are zero but for rounding, which grows with the others: a softmax does not see them.
    largest = max(float(each.abs().max()) for each in gradients.values())
    for key, parameter in model.named_parameters():
        if key in gradients and parameter.grad is not None:
            limit = 1e-4 * max(1.0, float(gradients[key].abs().max())) + 1e-7 * largest
            np.testing.assert_allclose(parameter.grad.numpy(), gradients[key].numpy(), atol=limit, err_msg=key)


PROJECTIONS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
NOMIC_NAMES = {"layers.": "encoder.layers.", "embeddings.LayerNorm": "emb_ln", "self_attn.o_proj": "attn.out_proj"}
NOMIC_NAMES |= {"up_proj": "fc11", "gate_proj": "fc12", "down_proj": "fc2"}
NOMIC_NAMES |= {"post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2"}
NOMIC = {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "vocab_size": VOCAB, "type_vocab_size": 2}
NOMIC |= {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_inner": 64, "n_positions": 8192, "max_trained_positions": 2048}
NOMIC |= {"activation_function": "swiglu", "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000, "prenorm": False}
NOMIC |= {"rotary_emb_fraction": 1.0, "rotary_scaling_factor": None, "qkv_proj_bias": False, "use_flash_attn": True}
GTE_NAMES = {"layers.": "encoder.layer.", "self_attn.o_proj": "attention.o_proj"}
GTE_NAMES |= {"post_attention_layernorm": "attn_ln", "post_mlp_layernorm": "mlp_ln"}
GTE = {"architectures": ["NewModel"], "model_type": "new", "type_vocab_size": 1, "pack_qkv": True, "rope_theta": 2e4}
GTE |= {"rope_scaling": {"factor": 8.0, "type": "ntk"}, "position_embedding_type": "rope", "pad_token_id": 1}
GTE |= {"layer_norm_type": "layer_norm", "logn_attention_scale": False, "unpad_inputs": False}
SCALED = {"rope_type": "linear", "rope_theta": 160_000.0, "factor": 8 ** (2 / 8)}  # what "ntk" means for heads of 8


@pytest.mark.parametrize(
    ("name", "changes", "packs", "names", "entries"),
    [
        ("NomicBertModel", {}, {PROJECTIONS: "attn.Wqkv"}, NOMIC_NAMES, NOMIC),
        (
            "GteModel",
            {"rope_parameters": SCALED, "type_vocab_size": 1},
            {PROJECTIONS: "attention.qkv_proj", ("mlp.up_proj", "mlp.gate_proj"): "mlp.up_gate_proj"},
            GTE_NAMES,
            ENCODER_SIZES | GTE,
        ),
    ],
)
def test_files_of_the_repositories_own_code(
    name: str, changes: Any, packs: Any, names: Any, entries: Any, tmp_path: Path
) -> None:
    theirs = reference(name, changes, tmp_path)
    state = {}
    for key, tensor in theirs.state_dict().items():
        pack = next((pack for pack in packs if any(part in key for part in pack)), None)
        if pack is not None and pack[0] not in key:
            continue
        if pack is not None:
            tensor = torch.cat([theirs.state_dict()[key.replace(pack[0], part)] for part in pack])
            key = key.replace(pack[0], packs[pack])
        for new, old in names.items():
            key = key.replace(new, old)
        state[key] = tensor.contiguous()
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_text(json.dumps(entries), encoding="utf-8")
    inputs = batch("right")
    mask = inputs["attention_mask"].astype(bool)
    with torch.no_grad():
        expected = theirs(**{key: torch.tensor(value) for key, value in inputs.items()}).last_hidden_state
    with tl.no_grad():
        got = AutoModel.from_pretrained(tmp_path)(**{key: tl.tensor(value) for key, value in inputs.items()})[0]
    np.testing.assert_allclose(got.numpy()[mask], expected.numpy()[mask], rtol=1e-4, atol=1e-4)
