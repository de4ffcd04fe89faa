"""GGUF files that tallow writes of every architecture.

They have the tensors and the metadata of files that the `gguf` package writes by the rules of llama.cpp's converter.
The outputs are those of transformers with the same weights.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import tokenizer_kinds
from support.gguf_files import add_words, write_model
from support.gguf_models import GEMMA3, MODELS, SIZES, TOKENS, output, reference, save

import tallow as tl
from tallow.cli import main
from tallow.io.gguf import GGUF
from tallow.models import AutoModel
from tallow.models.architectures import ARCHITECTURES
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.gguf.export import save_gguf
from tallow.models.gguf.settings import _WRITERS
from tallow.nn.block_layers import widened_state

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
gguf = pytest.importorskip("gguf")

HAVE_WRITERS = {kind.__name__ for kind in _WRITERS}
# Models that are read and not written -> words of the error.
REFUSED = {
    name: f"tallow writes no GGUF files of a {ARCHITECTURES[kind]};"
    for name, (kind, _) in MODELS.items()
    if ARCHITECTURES[kind] not in HAVE_WRITERS
}
REFUSED["falcon, biases"] = "bias=True"
WRITTEN = [name for name in MODELS if name not in REFUSED]
# Entries of files written by tallow alone, and those of the tokenizer, which has tests of its own.
IGNORED = ("general.", "GGUF.", "tokenizer.")
PLAIN = {"rope_type": "default", "rope_theta": 500.0}
LINEAR = {"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0}


def convert(*arguments: Any) -> int:
    return main(["convert", *map(str, arguments)])


def ours(path: Path, dtype: Any = None) -> Any:
    with tl.no_grad():
        result = AutoModel.from_pretrained(path, dtype=dtype)(tl.tensor(TOKENS))
    return (result if isinstance(result, tl.Tensor) else result.last_hidden_state).numpy()


def fields(path: Path) -> dict[str, Any]:
    entries = gguf.GGUFReader(path).fields
    return {name: (field.types[0].name, field.contents()) for name, field in entries.items()}


@pytest.mark.parametrize("name", WRITTEN)
def test_files_are_those_of_the_converter(name: str, tmp_path: Path) -> None:
    """Bit for bit, and each entry of the metadata with its type."""
    model = reference(*MODELS[name])
    save(model, tmp_path / "folder")
    write_model(model, tmp_path / "theirs.gguf")
    assert convert(tmp_path / "folder", tmp_path / "ours.gguf", "--quant", "f32") == 0
    theirs, written = (gguf.GGUFReader(tmp_path / f"{kind}.gguf") for kind in ("theirs", "ours"))
    expected = {tensor.name: tensor.data for tensor in theirs.tensors}
    assert {tensor.name for tensor in written.tensors} == {*expected}
    for tensor in written.tensors:
        np.testing.assert_array_equal(tensor.data, expected[tensor.name], strict=True)
    found, wanted = fields(tmp_path / "ours.gguf"), fields(tmp_path / "theirs.gguf")
    wanted = {key: entry for key, entry in wanted.items() if not key.startswith(IGNORED)}
    assert {key: found.get(key) for key in wanted} == wanted


@pytest.mark.parametrize("name", WRITTEN)
def test_outputs_are_those_of_the_folder(name: str, tmp_path: Path) -> None:
    model = reference(*MODELS[name])
    save(model, tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / "model.gguf") == 0
    folder, file = ours(tmp_path / "folder"), ours(tmp_path / "model.gguf")
    # Rounding of 1 + weight, of sums over reordered heads, and of the factor of "longrope".
    rounded = ("gemma", "gemma2", "gemma2, 27B", "gemma3", "mistral", "mixtral", "phi3, longrope")
    rounding = 1e-4 if name in rounded else 0
    np.testing.assert_allclose(file, folder, atol=rounding)
    np.testing.assert_allclose(file, output(model), atol=1e-4)


@pytest.mark.parametrize("name", [name for name in WRITTEN if name not in ("mistral", "mixtral", "gemma2, 27B")])
@pytest.mark.parametrize("kind", ["q8_0", "q4_k_m"])
def test_quantised_weights_are_those_that_the_package_reads(name: str, kind: str, tmp_path: Path) -> None:
    """Rows that are not multiples of 256 weights fall back from Q4_K to Q5_0."""
    save(reference(*MODELS[name]), tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / "model.gguf", "--quant", kind) == 0
    tensors = gguf.GGUFReader(tmp_path / "model.gguf").tensors
    weights = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in tensors}
    types = {tensor.tensor_type.name for tensor in tensors if tensor.shape[0] % 256}
    assert types == {"F32", *({"Q8_0"} if kind == "q8_0" else {"Q5_0", "Q8_0"})} | (types & {"Q5_1"})
    folder = AutoModel.from_pretrained(tmp_path / "folder")
    state = {key: value.numpy() for key, value in folder.state_dict().items()}
    kept = widened_state(AutoModel.from_pretrained(tmp_path / "model.gguf"))
    file = GGUF(tmp_path / "model.gguf")
    for key, array in weights.items():
        np.testing.assert_array_equal(file[key].numpy(), array.reshape(file[key].shape))
    for key, tensor in kept.items():
        scale = max(np.abs(state[key]).max(), 1e-6)
        assert np.abs(tensor.numpy() - state[key][-len(tensor) :]).max() <= scale * (0.01 if kind == "q8_0" else 0.1)


@pytest.mark.parametrize(
    "name", ["falcon, 40B", "gpt2", "gemma", "phi3, longrope", "bert", "mistral", "mixtral", "qwen2 moe"]
)
def test_a_quantised_model_is_written_as_it_was_read(name: str, tmp_path: Path) -> None:
    """Rows are reordered without another quantisation."""
    save(reference(*MODELS[name]), tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / "a.gguf", "--quant", "q8_0") == 0
    save_gguf(AutoModel.from_pretrained(tmp_path / "a.gguf"), tmp_path / "b.gguf", "Q8_0")
    a, b = GGUF(tmp_path / "a.gguf"), GGUF(tmp_path / "b.gguf")
    assert {key: a.info(key).type for key in a} == {key: b.info(key).type for key in b}
    for key in a:
        if a.info(key).type == "Q8_0":
            np.testing.assert_array_equal(a.get_blocks(key), b.get_blocks(key))
        else:
            np.testing.assert_allclose(a[key].numpy(), b[key].numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_models_that_readers_would_compute_differently(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(reference(*MODELS[name]), tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / "x.gguf") == 2
    assert REFUSED[name] in capsys.readouterr().err
    assert not (tmp_path / "x.gguf").exists()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("GemmaForCausalLM", {"head_dim": 32, "tie_word_embeddings": False}, "tie_word_embeddings=False"),
        ("GemmaForCausalLM", {"head_dim": 32, "attention_bias": True}, "attention_bias=True"),
        ("Gemma2ForCausalLM", {"head_dim": 32, "query_pre_attn_scalar": 20}, "query_pre_attn_scalar=20"),
        ("Gemma2ForCausalLM", {"head_dim": 32, "query_pre_attn_scalar": 32, "final_logit_softcapping": None}, "cap"),
        (
            "Gemma2ForCausalLM",
            {"head_dim": 32, "query_pre_attn_scalar": 32, "layer_types": ["full_attention"] * 2},
            "layer_types",
        ),
        ("Gemma3ForCausalLM", GEMMA3 | {"query_pre_attn_scalar": 20}, "query_pre_attn_scalar=20"),
        ("Gemma3ForCausalLM", GEMMA3 | {"layer_types": ["sliding_attention"] * 7}, "layer_types"),
        (
            "Gemma3ForCausalLM",
            GEMMA3 | {"rope_parameters": dict.fromkeys(("full_attention", "sliding_attention"), LINEAR)},
            "rope_local_scaling",
        ),
        (
            "Gemma3ForCausalLM",
            GEMMA3 | {"rope_parameters": dict.fromkeys(("full_attention", "sliding_attention"), PLAIN)},
            "rope_local_base_freq=500.0",
        ),
        ("FalconForCausalLM", {"alibi": True}, "alibi=True"),
        ("FalconForCausalLM", {"parallel_attn": False}, "parallel_attn=False"),
        ("FalconForCausalLM", {"activation": "relu"}, "activation='relu'"),
        ("GPT2LMHeadModel", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ("GPT2LMHeadModel", {"activation_function": "relu"}, "activation_function='relu'"),
        ("BertModel", {"hidden_act": "relu"}, "hidden_act='relu'"),
        ("OlmoeForCausalLM", {"clip_qkv": 1.0}, "clip_qkv=1.0"),
        ("OlmoeForCausalLM", {"norm_topk_prob": True}, "norm_topk_prob=True"),
        ("Qwen3MoeForCausalLM", {}, "norm_topk_prob=False"),
        ("Qwen2MoeForCausalLM", {"mlp_only_layers": [0]}, "mlp_only_layers=(0,)"),
        ("BertForMaskedLM", {}, "no GGUF files of a BertForMaskedLM"),
    ],
)
def test_settings_without_an_entry(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    save(kind(kind.config_class(**SIZES | changes)), tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / "x.gguf") == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_classifier_of_texts(tmp_path: Path) -> None:
    names = ("no", "maybe", "yes")
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
    model = reference("BertForSequenceClassification", labels)
    save(model, tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / "x.gguf") == 0
    assert AutoModel.from_pretrained(tmp_path / "x.gguf").config.labels == names
    np.testing.assert_array_equal(ours(tmp_path / "x.gguf"), ours(tmp_path / "folder"))
    entries = fields(tmp_path / "x.gguf")
    assert entries["bert.pooling_type"] == ("UINT32", gguf.PoolingType.RANK)
    assert entries["bert.classifier.output_labels"][1] == [*names]


@pytest.mark.parametrize(("modes", "kind"), [({}, "MEAN"), ({"cls": True, "mean": False}, "CLS")])
def test_sentence_encoders(modes: dict[str, bool], kind: str, tmp_path: Path) -> None:
    """With the pooling that modules.json names, and the tokenizer."""
    folder = tmp_path / "folder"
    source = tokenizer_kinds.KINDS["words-uncased"]()
    save(reference("BertModel", {"vocab_size": 600}), folder)
    (folder / "tokenizer.json").write_text(source)
    (folder / "modules.json").write_text(
        json.dumps(
            [
                {"type": "sentence_transformers.models.Transformer", "path": ""},
                {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
                {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"},
            ]
        )
    )
    (folder / "1_Pooling").mkdir()
    pooling = {f"pooling_mode_{mode}_token{'s' * (mode == 'mean')}": value for mode, value in modes.items()}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True} | pooling))
    assert convert(folder, tmp_path / "x.gguf") == 0
    entries = fields(tmp_path / "x.gguf")
    assert entries["bert.pooling_type"] == ("UINT32", gguf.PoolingType[kind])
    assert entries["tokenizer.ggml.token_type_count"] == ("UINT32", 2)
    expected = SentenceEncoder.from_pretrained(folder).encode(tokenizer_kinds.CORPUS)
    got = SentenceEncoder.from_pretrained(tmp_path / "x.gguf").encode(tokenizer_kinds.CORPUS, normalize=True)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    write_model(reference("BertModel", {"vocab_size": 600}), tmp_path / "y.gguf", add=lambda w: add_words(w, source))
    theirs = fields(tmp_path / "y.gguf")
    for key in ("model", "bos_token_id", "eos_token_id", "unknown_token_id", "seperator_token_id", "add_sep_token"):
        assert entries[f"tokenizer.ggml.{key}"] == theirs[f"tokenizer.ggml.{key}"], key
    for key in ("tokens", "token_type"):  # the model has more ids than the tokenizer
        expected = theirs[f"tokenizer.ggml.{key}"][1]
        assert entries[f"tokenizer.ggml.{key}"][1][: len(expected)] == expected


def test_poolings_that_gguf_has_no_number_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "folder"
    save(reference("BertModel", {}), folder)
    kinds = [{"type": "sentence_transformers.models.Pooling", "path": "1"}]
    (folder / "modules.json").write_text(json.dumps(kinds))
    (folder / "1").mkdir()
    (folder / "1" / "config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    assert convert(folder, tmp_path / "x.gguf") == 2
    assert "no number for the pooling max" in capsys.readouterr().err
    kinds[0]["type"] = "sentence_transformers.models.Dense"
    (folder / "modules.json").write_text(json.dumps(kinds))
    assert convert(folder, tmp_path / "x.gguf") == 2
    assert "hold no modules of kind 'Dense'" in capsys.readouterr().err


def test_an_importance_matrix_of_transposed_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns of the matrices in the file are inputs also where the checkpoint has the transposed matrices."""
    folder = tmp_path / "folder"
    save(reference("GPT2LMHeadModel", {"vocab_size": 600}), folder)
    (folder / "tokenizer.json").write_text(tokenizer_kinds.KINDS["bytes-gpt2"]())
    (tmp_path / "text.txt").write_text("The quick brown fox jumps over the lazy dog. " * 5)
    options = ["--quant", "q4_0"]
    assert convert(folder, tmp_path / "plain.gguf", *options) == 0
    assert convert(folder, tmp_path / "weighed.gguf", *options, "--imatrix", tmp_path / "text.txt") == 0
    plain, weighed = GGUF(tmp_path / "plain.gguf"), GGUF(tmp_path / "weighed.gguf")
    for key in ("attn_qkv", "attn_output", "ffn_up", "ffn_down"):
        name = f"blk.1.{key}.weight"
        assert (plain.get_blocks(name) != weighed.get_blocks(name)).any()
    save(reference("BertModel", {"vocab_size": 600}), tmp_path / "bert")
    assert convert(tmp_path / "bert", tmp_path / "x.gguf", *options, "--imatrix", tmp_path / "text.txt") == 2
    assert "--imatrix with a BertModel" in capsys.readouterr().err
