"""Loading models by config.json: class selection, supported entries, and errors for the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import nn
from tallow.errors import ArgumentError, CheckpointError
from tallow.io import safetensors
from tallow.models import AutoModel
from tallow.models.architectures import ARCHITECTURES, MODEL_TYPES
from tallow.models.auto import model_class
from tallow.models.config import Config
from tallow.models.decoders import falcon, gpt2, qwen
from tallow.models.encoders import bert, distilbert, roberta
from tallow.models.seq2seq import bart
from tallow.nn import init

BERT = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 10,
}


def config_file(folder: Path, **entries: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def bert_folder(folder: Path) -> bert.BertForMaskedLM:
    """Save a model in the layout of Hugging Face folders."""
    tl.manual_seed(0)
    model = bert.BertForMaskedLM(bert.BertConfig(**BERT)).eval()
    config_file(folder, **BERT, model_type="bert", architectures=["BertForMaskedLM"], torch_dtype="float32")
    safetensors.save(model.state_dict(), folder / "model.safetensors")
    return model


def test_automodel_uses_the_class_named_in_the_config(tmp_path: Path) -> None:
    saved = bert_folder(tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    assert type(model) is bert.BertForMaskedLM
    assert not model.training
    tokens = tl.tensor([[1, 2, 3]])
    assert tl.equal(model(tokens), saved(tokens))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_is_a_class_with_a_config(name: str, tmp_path: Path) -> None:
    config_file(tmp_path, architectures=[name])
    loaded_model = model_class(tmp_path)
    assert issubclass(loaded_model.config_class, Config)


@pytest.mark.parametrize("kind", MODEL_TYPES)
def test_every_model_type_is_read_by_its_class(kind: str, tmp_path: Path) -> None:
    config_file(tmp_path, model_type=kind)
    assert kind in model_class(tmp_path).config_class.model_types


@pytest.mark.parametrize(
    "entries",
    [
        {"architectures": ["ProphetNetForConditionalGeneration"]},
        {"model_type": "prophetnet"},
        {},
        {"architectures": [3]},
        {"architectures": [[1]]},
        {"model_type": {}},
    ],
)
def test_unknown_architecture(entries: dict[str, Any], tmp_path: Path) -> None:
    config_file(tmp_path, **entries)
    with pytest.raises(CheckpointError, match="tallow does not support"):
        AutoModel.from_pretrained(tmp_path)


def test_a_config_without_model_type_is_named_as_such(tmp_path: Path) -> None:
    config_file(tmp_path)
    with pytest.raises(CheckpointError, match=r"does not support a model without model_type\n"):
        AutoModel.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ("LLaMAForCausalLM", "Llama"),
        ("LLaMaForCausalLM", "Llama"),
        ("CamembertForSequenceClassification", "RobertaForSequenceClassification"),
        ("CamembertForCausalLM", "RobertaForCausalLM"),
        ("XLMRobertaForMaskedLM", "RobertaForMaskedLM"),
        ("RWForCausalLM", "Falcon"),
        ("T5WithLMHeadModel", "T5ForConditionalGeneration"),
        ("CLIPTextModelWithProjection", "CLIPTextModelWithProjection"),
    ],
)
def test_other_names_of_architectures(architecture: str, expected: str, tmp_path: Path) -> None:
    config_file(tmp_path, architectures=[architecture])
    assert model_class(tmp_path).__name__ == expected


def test_infinity_in_a_config(tmp_path: Path) -> None:
    """Python's json writes it, and transformers reads it. A size must be finite."""
    path = config_file(tmp_path, **BERT, model_type="bert", finetuning_task=float("inf"))
    assert bert.BertConfig.from_json(path) == bert.BertConfig(**BERT)
    path = config_file(tmp_path, **(BERT | {"layer_norm_eps": float("inf")}), model_type="bert")
    with pytest.raises(CheckpointError, match="layer_norm_eps=inf"):
        bert.BertConfig.from_json(path)


def test_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json does not exist"):
        AutoModel.from_pretrained(tmp_path)


def test_entries_that_change_the_output_are_refused_all_at_once(tmp_path: Path) -> None:
    path = config_file(
        tmp_path,
        **BERT,
        model_type="bert",
        position_embedding_type="relative_key",
        add_cross_attention=True,
        new_trick=3,
    )
    with pytest.raises(CheckpointError) as caught:
        bert.BertConfig.from_json(path, strict=True)
    for part in ("position_embedding_type is 'relative_key'", "add_cross_attention is True", "new_trick is 3"):
        assert part in str(caught.value)


def test_entries_without_effect_are_ignored(tmp_path: Path) -> None:
    path = config_file(
        tmp_path, **BERT, model_type="bert", transformers_version="4.1", use_cache=True, new_trick=None, top_k=50
    )
    assert bert.BertConfig.from_json(path) == bert.BertConfig(**BERT)


def test_other_names_of_the_same_sizes() -> None:
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 3, "max_position_embeddings": 16}
    config = gpt2.GPT2Config.from_entries({"vocab_size": 20, **sizes}, "the file")
    assert (config.n_embd, config.n_head, config.n_layer, config.n_positions) == (8, 2, 3, 16)
    assert (config.hidden_size, config.num_hidden_layers) == (8, 3)
    distilled = distilbert.DistilBertConfig.from_entries({"vocab_size": 20, **sizes}, "the file")
    assert (distilled.dim, distilled.n_heads, distilled.n_layers) == (8, 2, 3)
    assert (distilled.hidden_size, distilled.num_hidden_layers) == (8, 3)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"model_type": "roberta"}, "BertConfig reads bert"),
        ({"hidden_size": None}, "missing hidden_size"),
        ({"hidden_size": 9}, "2 heads do not divide hidden_size=9"),
        ({"hidden_size": -8}, "hidden_size=-8"),
        ({"hidden_size": 2.5}, "hidden_size=2.5"),
        ({"hidden_act": "gelish"}, "activation 'gelish'"),
        ({"layer_norm_eps": "tiny"}, "layer_norm_eps='tiny'"),
        ({"pad_token_id": 20}, "an id below 20"),
    ],
)
def test_invalid_config(entries: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = config_file(tmp_path, **BERT | entries)
    with pytest.raises(CheckpointError) as caught:
        bert.BertConfig.from_json(path)
    assert message in str(caught.value)


def test_weights_that_do_not_fit_are_listed_at_once(tmp_path: Path) -> None:
    model = bert_folder(tmp_path)
    state = dict(model.state_dict())
    del state["bert.encoder.layer.0.attention.output.dense.bias"]
    state["bert.embeddings.word_embeddings.weight"] = tl.zeros(21, 8)
    state["bert.encoder.layer.1.output.dense.bias"] = tl.zeros(8)
    safetensors.save(state, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError) as caught:
        bert.BertForMaskedLM.from_pretrained(tmp_path)
    assert "missing      bert.encoder.layer.0.attention.output.dense.bias" in str(caught.value)
    assert "unexpected   bert.encoder.layer.1.output.dense.bias" in str(caught.value)
    assert "wrong shape  bert.embeddings.word_embeddings.weight: file (21, 8), model (20, 8)" in str(caught.value)


def test_tensorflow_names_are_converted() -> None:
    model = bert.BertModel(bert.BertConfig(**BERT)).eval()
    state = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in model.state_dict().items()
    }
    tokens = tl.tensor([[4, 5]])
    loaded = bert.BertModel.assemble(model.config, state)
    assert tl.equal(loaded(tokens).last_hidden_state, model(tokens).last_hidden_state)


def test_a_bart_without_a_head_holds_its_table_under_three_names() -> None:
    """As in the state dict of transformers' BartModel."""
    names = (f"{part}_{size}" for part in ("encoder", "decoder") for size in ("layers", "attention_heads", "ffn_dim"))
    config = bart.BartConfig(vocab_size=20, d_model=8, max_position_embeddings=9, **dict.fromkeys(names, 1))
    model = bart.BartForConditionalGeneration(config)
    state = {name.removeprefix("model."): value for name, value in model.model.state_dict().items()}
    for part in ("encoder", "decoder"):
        state[f"{part}.embed_tokens.weight"] = state["shared.weight"].clone()
    loaded = bart.BartForConditionalGeneration.assemble(config, state)
    assert tl.equal(loaded.model.shared.weight, model.model.shared.weight)
    assert {*loaded.loading_report.repeated.values()} == {"model.shared.weight"}
    state["encoder.embed_tokens.weight"] += 1
    loaded = bart.BartForConditionalGeneration.assemble(config, state)
    assert {*loaded.loading_report.untied} == {"model.encoder.embed_tokens.weight"}


def test_a_bert_without_a_pooler_loads_without_it() -> None:
    config, tokens = bert.BertConfig(**BERT), tl.tensor([[4, 5], [6, 7]])
    state = bert.BertForMaskedLM(config).state_dict()
    assert bert.BertModel.assemble(config, state)(tokens).pooler_output is None
    full_state = bert.BertForSequenceClassification(config).state_dict()
    assert bert.BertModel.assemble(config, full_state)(tokens).pooler_output.shape == (2, 8)
    with pytest.raises(CheckpointError, match=r"missing      pooler\.dense\.weight"):
        bert.BertModel.assemble(config, state, add_pooling_layer=True)


def test_a_bert_decoder_is_causal() -> None:
    tl.manual_seed(0)
    model = bert.BertLMHeadModel(bert.BertConfig(**BERT, is_decoder=True)).eval()
    tokens = tl.tensor([[3, 4, 5, 6], [9, 10, 11, 12]])
    full, beginning = model(tokens), model(tokens[:, :3])
    np.testing.assert_allclose(full[:, :3].detach().numpy(), beginning.detach().numpy(), atol=1e-5)
    padded = model(tokens, tl.tensor([[1] * 4, [0, 0, 1, 1]]))
    assert tl.isfinite(padded).all()


def test_dtype_is_the_files_or_the_requested_one(tmp_path: Path) -> None:
    bert_folder(tmp_path)
    assert AutoModel.from_pretrained(tmp_path).cls.predictions.bias.dtype is tl.float32
    assert AutoModel.from_pretrained(tmp_path, dtype=tl.bfloat16).cls.predictions.bias.dtype is tl.bfloat16


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        (bert.BertModel(bert.BertConfig(**BERT)), 10),
        (roberta.RobertaModel(roberta.RobertaConfig(**BERT)), 8),  # two positions precede the text
        (gpt2.GPT2Model(gpt2.GPT2Config(vocab_size=20, n_positions=6, n_embd=8, n_layer=1, n_head=2)), 6),
    ],
    ids=["bert", "roberta", "gpt2"],
)
def test_text_beyond_the_context(model: Any, limit: int) -> None:
    model(tl.full((1, limit), 3))
    with pytest.raises(ArgumentError, match=f"a text of {limit + 1} tokens; the model has {limit} positions"):
        model(tl.full((1, limit + 1), 3))


def test_positions_of_roberta_start_after_the_padding() -> None:
    embeddings = roberta.RobertaModel(roberta.RobertaConfig(**BERT)).embeddings
    assert embeddings.positions(tl.tensor([[5, 6, 7, 1, 1], [1, 5, 1, 6, 7]])).tolist() == [
        [2, 3, 4, 1, 1],
        [1, 2, 1, 3, 4],
    ]


def test_slopes_of_linear_biases() -> None:
    # The paper's example: 8 heads have 1/2, 1/4, ..., 1/2^8; with 12 heads, 4 of the slopes for 16 heads follow.
    assert falcon.alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert falcon.alibi_slopes(12)[8:].tolist() == pytest.approx([2 ** (-0.5 * i) for i in (1, 3, 5, 7)])


def test_sliding_windows(tmp_path: Path) -> None:
    sizes = BERT | {"num_key_value_heads": 2, "sliding_window": 3}
    kinds = {"llama": None, "gemma": None, "mistral": 3, "phi3": 3, "gemma2": 3}
    for kind, window in kinds.items():
        reader = model_class(config_file(tmp_path, **sizes, model_type=kind).parent).config_class
        assert reader.from_json(tmp_path / "config.json").window_of(0) == window, kind


@pytest.mark.parametrize("types", [["full_attention"], ["full_attention", "chunked_attention"], "full_attention"])
def test_layer_types_are_one_for_each_layer(types: Any, tmp_path: Path) -> None:
    sizes = BERT | {"num_hidden_layers": 2, "num_key_value_heads": 1}
    with pytest.raises(CheckpointError, match="layer_types"):
        qwen.Qwen2Config.from_json(config_file(tmp_path, **sizes, layer_types=types))


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertForSequenceClassification", "BertModel"])
def test_new_weights_are_drawn_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    initialized: list[tl.Tensor] = []

    def normal_(weight: tl.Tensor, mean: float = 0.0, std: float = 1.0) -> None:
        if std != 1.0:  # otherwise it is the layer itself, which does not know how it is used
            initialized.append(weight)

    monkeypatch.setattr(init, "normal_", normal_)
    model = getattr(bert, kind)(bert.BertConfig(**BERT))
    matrices = [module.weight for module in model.modules() if isinstance(module, nn.Linear | nn.Embedding)]
    assert {id(weight) for weight in initialized} == {id(weight) for weight in matrices}
    assert len(initialized) == len({id(weight) for weight in initialized})


def test_weights_that_are_not_tensors(tmp_path: Path) -> None:
    bert_folder(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    tl.save([tl.zeros(2)], tmp_path / "pytorch_model.bin.pth")
    (tmp_path / "pytorch_model.bin.pth").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="does not contain tensors by name, but list"):
        AutoModel.from_pretrained(tmp_path)


def test_page_saved_as_weights(tmp_path: Path) -> None:
    bert_folder(tmp_path)
    (tmp_path / "model.safetensors").write_text("<!doctype html><title>404</title>" + " " * 99, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        AutoModel.from_pretrained(tmp_path)
