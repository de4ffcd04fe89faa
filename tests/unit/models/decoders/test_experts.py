"""Models with experts: what is refused, what is quantised, and which experts are read."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_models import ENTRIES

import tallow as tl
from tallow import models
from tallow.errors import CheckpointError
from tallow.io import gguf, safetensors
from tallow.models import AutoModel
from tallow.models.decoders.experts import Router, SparseMLP
from tallow.models.decoders.llama_formats import save_hugging_face
from tallow.models.gguf.export import model_targets
from tallow.nn.block_layers import BlockLinear

SPARSE = ("DeepseekV2", "DeepseekV3", "Lfm2Moe", "Mixtral", "Olmoe", "Qwen2Moe", "Qwen3Moe", "Qwen3Next", "Qwen3_5Moe")
SIZES = {"vocab_size": 40, "hidden_size": 32, "num_attention_heads": 4}


def model_of(name: str, **entries: Any) -> Any:
    config = getattr(models, name).config_class.from_entries(ENTRIES[name] | entries, "entries")
    tl.manual_seed(0)
    return getattr(models, name)(config).eval()


def output(model: Any) -> Any:
    with tl.no_grad():
        return model(tl.tensor([[3, 5, 7, 1, 9, 15]])).numpy()


def sparse(model: Any) -> list[SparseMLP]:
    return [module for module in model.modules() if isinstance(module, SparseMLP)]


@pytest.mark.parametrize("name", SPARSE)
def test_a_saved_model_is_the_same_model(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    save_hugging_face(model, tmp_path)
    np.testing.assert_array_equal(output(AutoModel.from_pretrained(tmp_path)), output(model))


@pytest.mark.parametrize("name", SPARSE)
def test_experts_in_one_tensor(name: str, tmp_path: Path) -> None:
    """As transformers 5 writes them with save_original_format=False."""
    model = model_of(name)
    save_hugging_face(model, tmp_path)
    state = dict(safetensors.load(tmp_path / "model.safetensors"))
    gate, up, down = model.config.expert_names
    count = model.config.num_experts
    for path in {key.rpartition(".experts.")[0] for key in state if ".experts." in key}:
        matrices = [[state.pop(f"{path}.experts.{i}.{part}.weight") for i in range(count)] for part in (gate, up, down)]
        theirs = path.replace("block_sparse_moe", "mlp")
        both = [tl.cat(pair) for pair in zip(*matrices[:2], strict=True)]
        state |= {
            f"{theirs}.experts.gate_up_proj": tl.stack(both),
            f"{theirs}.experts.down_proj": tl.stack(matrices[2]),
        }
        state[f"{theirs}.gate.weight"] = state.pop(f"{path}.gate.weight")
    expected = output(model)
    safetensors.save(state, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(output(AutoModel.from_pretrained(tmp_path)), expected)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"num_experts_per_tok": 4}, "num_experts_per_tok=4"),
        ({"num_experts": 2}, "unexpected"),
        ({"num_experts": 5}, "missing"),
        ({"num_experts": 1000}, "num_experts=1000"),
        ({"output_router_logits": True}, "output_router_logits is True"),
        ({"router_jitter_noise": 0.1}, "router_jitter_noise is 0.1"),
        ({"intermediate_size": 10}, "w1"),
    ],
)
def test_configs_that_do_not_fit(entries: dict[str, Any], message: str, tmp_path: Path) -> None:
    save_hugging_face(model_of("Mixtral"), tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(ENTRIES["Mixtral"] | entries))
    with pytest.raises(CheckpointError, match=message):
        AutoModel.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda metadata, tensors: metadata.update({"llama.expert_count": 4}), r"\(3, .*expert_count is 4"),
        (lambda metadata, tensors: metadata.update({"llama.expert_used_count": 4}), "num_experts_per_tok=4"),
        (lambda metadata, tensors: metadata.pop("llama.expert_used_count"), "no llama.expert_used_count"),
        (lambda metadata, tensors: tensors.pop("blk.0.ffn_up_exps.weight"), "no tensor 'blk.0.ffn_up_exps.weight'"),
        (
            lambda metadata, tensors: tensors.update({"blk.1.ffn_up_exps.weight": tl.zeros(3, 11, 8)}),
            r"ffn_up_exps.weight' has the shape \(3, 11, 8\)",
        ),
        (
            lambda metadata, tensors: tensors.update({"blk.1.ffn_up_exps.weight": tl.zeros(12, 8)}),
            r"ffn_up_exps.weight' has the shape \(12, 8\)",
        ),
    ],
)
def test_gguf_files_that_do_not_fit(change: Any, message: str, tmp_path: Path) -> None:
    metadata, targets = model_targets(model_of("Mixtral", num_experts_per_tok=1))
    tensors = {key: target.get().floats() for key, target in targets.items()}
    change(metadata, tensors)
    gguf.save(tensors, tmp_path / "x.gguf", metadata)
    with pytest.raises(CheckpointError, match=message):
        AutoModel.from_pretrained(tmp_path / "x.gguf")


@pytest.mark.cpu("quantised blocks compute on the CPU")
@pytest.mark.parametrize("name", SPARSE)
def test_experts_are_quantised_and_routers_are_not(name: str) -> None:
    config = getattr(models, name).config_class
    widths = {field.name: 32 for field in fields(config) if field.name.endswith("intermediate_size")}
    values = {"linear_num_value_heads": 4, "linear_value_head_dim": 8} if "linear_key_head_dim" in ENTRIES[name] else {}
    values |= {"q_lora_rank": 32, "v_head_dim": 8, "qk_rope_head_dim": 8} if "kv_lora_rank" in ENTRIES[name] else {}
    model = model_of(name, **SIZES, **widths, **values, head_dim=8)
    expected = output(model)
    model.quantize("q8_0")
    for part in sparse(model):
        assert isinstance(part.gate, Router)
        layers = [getattr(expert, name) for expert in part.experts for name in expert.names]
        assert all(isinstance(layer, BlockLinear) for layer in layers)
    # Rounding to 8 bits; a state adds up that of all tokens before.
    np.testing.assert_allclose(output(model), expected, atol=0.03 * np.abs(expected).max())


def test_only_chosen_experts_are_read() -> None:
    """An expert that no token chooses may hold anything."""
    (part,) = sparse(model_of("Mixtral", num_hidden_layers=1))
    x = tl.randn(1, 1, 8)
    expected = part(x)
    _, chosen = part.gate(x.flatten(0, -2))
    (unused,) = {0, 1, 2} - {*chosen.flatten().tolist()}
    with tl.no_grad():
        for parameter in part.experts[unused].parameters():
            parameter.fill_(float("nan"))
    np.testing.assert_array_equal(part(x).detach().numpy(), expected.detach().numpy())


@pytest.mark.parametrize("name", ["DeepseekV2", "DeepseekV3"])
@pytest.mark.parametrize("count", [1, 6])
def test_scores_of_deepseek_are_not_rounded(name: str, count: int) -> None:
    """1 and 1 + 2**-9 are one number in bfloat16, and two in float32, by which transformers chooses."""
    gate = sparse(model_of(name, n_group=1, topk_group=1, num_experts_per_tok=1).bfloat16())[0].gate
    with tl.no_grad():
        gate.weight.fill_(0)
        gate.weight[:, 0] = 1
        gate.weight[-1, 1] = 2**-9
        _, chosen = gate(tl.ones(count, gate.weight.shape[1], dtype=tl.bfloat16))
    assert chosen.tolist() == [[len(gate.weight) - 1]] * count


def test_a_bias_of_deepseek_stays_in_float32(tmp_path: Path) -> None:
    """Near experts would have equal biases in bfloat16: transformers rounds all but these."""
    model = model_of("DeepseekV3")
    for part in sparse(model):
        part.gate.e_score_correction_bias += 4 + 2**-9
    save_hugging_face(model, tmp_path, tl.bfloat16)
    loaded = AutoModel.from_pretrained(tmp_path, dtype=tl.bfloat16)
    assert {parameter.dtype for parameter in loaded.parameters()} == {tl.bfloat16}
    for part in sparse(loaded):
        assert part.gate.e_score_correction_bias.tolist() == [4 + 2**-9] * model.config.num_experts
