"""GGUF files of every architecture: the outputs equal those of transformers with the same weights.

The files are written by the `gguf` package, with its own table of names, by the rules of llama.cpp's converter.
"""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import tokenizer_kinds
from support.gguf_files import add_bytes, add_words, write_model
from support.gguf_models import MODELS, SIZES, TOKENS, output, reference

import tallow as tl
from tallow.cli import main
from tallow.errors import CheckpointError
from tallow.models import AutoModel, BertForSequenceClassification
from tallow.models.decoders.experts import Gate
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.encoders.sentence_parts import Pooling
from tallow.models.gguf.names import NAMES
from tallow.nn.block_layers import BlockConv1D, BlockEmbedding, BlockLinear, widened_state

transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")
tokenizers = pytest.importorskip("tokenizers")
Q8_0 = gguf.GGMLQuantizationType.Q8_0


def write(name: str, path: Path, kind: Any = None, **options: Any) -> Any:
    """Write the model of MODELS to a file, and return it."""
    model = reference(*MODELS[name])
    write_model(model, path, kind, **options)
    return model


def ours(model: Any, tokens: Any = TOKENS) -> Any:
    with tl.no_grad():
        result = model(tl.tensor(tokens))
    return (result if isinstance(result, tl.Tensor) else result.last_hidden_state).numpy()


def cosines(a: Any, b: Any) -> Any:
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def add_classifier(writer: Any) -> None:
    writer.add_tensor("cls.output.weight", np.zeros((3, 64), np.float32))
    writer.add_tensor("cls.output.bias", np.zeros(3, np.float32))


@pytest.mark.parametrize("name", MODELS)
def test_outputs(name: str, tmp_path: Path) -> None:
    expected = output(write(name, tmp_path / "model.gguf"))
    np.testing.assert_allclose(ours(AutoModel.from_pretrained(tmp_path / "model.gguf")), expected, atol=1e-4)


# Over 46 layers of random weights, rounding grows beyond any bound that could find a fault.
@pytest.mark.parametrize("name", [name for name in MODELS if name != "gemma2, 27B"])
def test_quantised_matrices_stay_quantised(name: str, tmp_path: Path) -> None:
    """Every weight is bit for bit that of the loaded floats, in the order and the orientation of the model."""
    model = write(name, tmp_path / "model.gguf", Q8_0)
    kept = AutoModel.from_pretrained(tmp_path / "model.gguf")
    widened = AutoModel.from_pretrained(tmp_path / "model.gguf", dtype=tl.float32)
    matrices = {path for path, each in widened.state_dict().items() if each.ndim == 2}
    blocks = {path for path, each in kept.named_modules() if isinstance(each, BlockLinear | BlockEmbedding)}
    gates = {path for path, each in kept.named_modules() if isinstance(each, Gate)}
    matrices -= {path for path in matrices if path.endswith(".A_log")}
    assert {path.removesuffix(".weight") for path in matrices} - blocks - gates <= {
        "transformer.wpe",
        "embeddings.position_embeddings",
        "embeddings.token_type_embeddings",
    }
    state = widened_state(kept)
    for path, tensor in widened.state_dict().items():
        np.testing.assert_array_equal(state[path].numpy(), tensor.numpy(), strict=True)
    typical = np.median if gates else np.min  # rounding may change the choice of an expert, and so the whole output
    assert typical(cosines(ours(kept), ours(widened))) > 0.98
    assert typical(cosines(ours(widened), output(model))) > 0.98


def test_the_matrices_of_gpt2_are_multiplied_as_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("gpt2", tmp_path / "model.gguf", Q8_0)
    model = AutoModel.from_pretrained(tmp_path / "model.gguf")
    assert isinstance(model.transformer.h[0].attn.c_attn, BlockConv1D)
    assert model.transformer.h[0].attn.c_attn.weight.shape == (64, 192)
    assert "BlockConv1D(in_features=64, out_features=192, bias=True, format=Q8_0)" in repr(model)
    model.explain()
    assert "Q8_0  9 matrices, multiplied as stored" in capsys.readouterr().out


def test_a_quantised_table_of_positions(tmp_path: Path) -> None:
    """llama.cpp does not quantise it; other programs do."""
    model = reference(*MODELS["gpt2"])
    write_model(model, tmp_path / "model.gguf")
    raw = gguf.GGUFReader(tmp_path / "model.gguf")
    writer = gguf.GGUFWriter(tmp_path / "all.gguf", "gpt2")
    for key, value in (("block_count", 2), ("embedding_length", 64), ("feed_forward_length", 96)):
        writer.add_uint32(f"gpt2.{key}", value)
    writer.add_head_count(4)
    writer.add_layer_norm_eps(1e-5)
    writer.add_context_length(64)
    for tensor in raw.tensors:
        if len(tensor.shape) == 2:
            writer.add_tensor(tensor.name, gguf.quants.quantize(tensor.data, Q8_0), raw_dtype=Q8_0)
        else:
            writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    kept = AutoModel.from_pretrained(tmp_path / "all.gguf")
    assert isinstance(kept.transformer.wpe, BlockEmbedding)
    assert cosines(ours(kept), output(model)).min() > 0.99
    cache = kept.new_cache()
    one_by_one = [kept.next_logits([token], cache) for token in TOKENS[0][:8]]
    assert cosines(np.array(one_by_one), ours(kept)[0, :8]).min() > 0.999


def test_classifiers_of_texts(tmp_path: Path) -> None:
    """RoBERTa's head is the same computation as BERT's pooler and classifier."""
    names = ("no", "maybe", "yes")
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
    model = reference("RobertaForSequenceClassification", {"pad_token_id": 1, **labels})
    write_model(model, tmp_path / "model.gguf", add=lambda writer: writer.add_classifier_output_labels([*names]))
    loaded = AutoModel.from_pretrained(tmp_path / "model.gguf")
    assert isinstance(loaded, BertForSequenceClassification)
    assert loaded.config.labels == names
    np.testing.assert_allclose(ours(loaded), output(model), atol=1e-4)
    # llama.cpp's converter omits the pooler, without which a BERT's classifier computes nothing of use.
    write_model(reference("BertForSequenceClassification", labels), tmp_path / "model.gguf", add=add_classifier)
    with pytest.raises(CheckpointError, match=r"no tensor 'cls\.weight'"):
        AutoModel.from_pretrained(tmp_path / "model.gguf")


@pytest.mark.parametrize("name", ["gemma2", "phi3, longrope", "falcon, 40B", "gpt2"])
def test_tokens_one_by_one(name: str, tmp_path: Path) -> None:
    expected = output(write(name, tmp_path / "model.gguf"))
    model = AutoModel.from_pretrained(tmp_path / "model.gguf")
    cache = model.new_cache()
    got = [model.next_logits([token], cache) for token in TOKENS[0]]
    np.testing.assert_allclose(got[-1], expected[0, -1], atol=1e-3)


TEXTS = ["A cat sleeps.", "The quick brown fox jumps over the lazy dog", "x"]


@pytest.mark.parametrize(("kind", "mode"), [(None, "mean"), (1, "mean"), (2, "cls")])
def test_sentence_encoders(kind: int | None, mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tokenizer_kinds.KINDS["words-uncased"]()
    sizes = {name: SIZES[name] for name in SIZES if name not in ("num_key_value_heads", "rms_norm_eps")}
    model = reference("BertModel", {"vocab_size": 600}, sizes)
    model.save_pretrained(tmp_path / "folder")
    (tmp_path / "folder" / "tokenizer.json").write_text(source)
    folder = SentenceEncoder.from_pretrained(tmp_path / "folder")
    expected = SentenceEncoder(folder.tokenizer, folder.model, Pooling(mode)).encode(TEXTS)

    def add(writer: Any) -> None:
        add_words(writer, source)
        if kind is not None:
            writer.add_pooling_type(gguf.PoolingType(kind))

    path = tmp_path / "model.gguf"
    write_model(model, path, add=add)
    encoder = SentenceEncoder.from_pretrained(path)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    assert encoder.max_length == 64
    assert main(["embed", "--model", str(path), *TEXTS]) == 0
    printed = [json.loads(line)["vector"] for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_allclose(printed, expected, atol=1e-5)


def test_decoders_for_embeddings(tmp_path: Path) -> None:
    source = tokenizer_kinds.KINDS["bytes-gpt2"]()
    model = reference("Qwen3ForCausalLM", {"vocab_size": 600, "head_dim": 16})

    def add(writer: Any) -> None:
        add_bytes(writer, source, "qwen2")
        writer.add_pooling_type(gguf.PoolingType.LAST)

    write_model(model, tmp_path / "model.gguf", add=add)
    encoder = SentenceEncoder.from_pretrained(tmp_path / "model.gguf")
    tokens = torch.tensor([encoder.tokenizer.encode(TEXTS[1])])
    with torch.no_grad():
        expected = model.model(tokens).last_hidden_state[0, -1].numpy()
    np.testing.assert_allclose(encoder.encode(TEXTS)[1], expected, atol=1e-4)
    write_model(model, tmp_path / "model.gguf", add=lambda writer: add_bytes(writer, source, "qwen2"))
    with pytest.raises(CheckpointError, match=r"qwen3\.pooling_type is None; tallow supports 1, 2, 3"):
        SentenceEncoder.from_pretrained(tmp_path / "model.gguf")


def test_names_are_those_of_the_package() -> None:
    """Each name of a table is one that the package knows for the architecture."""
    by_name = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
    for names in NAMES.values():
        known = {gguf.TENSOR_NAMES[kind] for kind in gguf.MODEL_TENSORS[by_name[names.architecture]]}
        # Files of Gemma and GPT-2 may have heads of their own, which llama.cpp's table for writers omits.
        assert {*names.outer.values()} <= known | {"output"}
        assert {f"blk.{{bid}}.{inner}" for inner in names.inner.values()} <= known


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = reference("GPT2LMHeadModel", {"vocab_size": 600})
    source = tokenizer_kinds.KINDS["bytes-gpt2"]()
    write_model(model, tmp_path / "gpt2.gguf", add=lambda writer: add_bytes(writer, source, "gpt-2"))
    options = ["--temperature", "0", "--steps", "8", "The quick"]
    assert main(["generate", "--model", str(tmp_path / "gpt2.gguf"), *options]) == 0
    printed = capsys.readouterr().out
    tokens = tokenizers.Tokenizer.from_str(source).encode("The quick").ids
    while len(tokens) < 9:
        with torch.no_grad():
            tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
    expected = tokenizers.Tokenizer.from_str(source).decode(tokens)
    assert printed.removesuffix("\n") == expected.rstrip("\ufffd")
    write("bert", tmp_path / "bert.gguf")
    assert main(["generate", "--model", str(tmp_path / "bert.gguf"), "text"]) == 2
    assert "is a BertModel, not a language model" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["mistral", "gemma2", "phi3, longrope", "falcon, 7B", "falcon, 40B", "gpt2", "bert", "distilbert", "lfm2"]
)
def test_converted_folders_load_in_transformers(name: str, tmp_path: Path) -> None:
    model = write(name, tmp_path / "model.gguf")
    assert main(["convert", str(tmp_path / "model.gguf"), str(tmp_path / "folder")]) == 0
    loaded = type(model).from_pretrained(tmp_path / "folder").eval()
    np.testing.assert_allclose(output(loaded), output(model), atol=1e-4)
    np.testing.assert_allclose(ours(AutoModel.from_pretrained(tmp_path / "folder")), output(model), atol=1e-4)


def test_value_heads_in_the_order_of_a_file_are_not_converted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("qwen3.5", tmp_path / "model.gguf")
    assert main(["convert", str(tmp_path / "model.gguf"), str(tmp_path / "folder")]) == 2
    assert "has its value heads in another order" in capsys.readouterr().err


def further(writer: Any) -> None:
    writer.add_nextn_predict_layers(1)
    writer.add_tensor("blk.2.nextn.eh_proj.weight", np.zeros((64, 128), np.float32))


def test_layers_that_predict_further_tokens_are_left_out(tmp_path: Path) -> None:
    """A file counts them among its blocks."""
    model = reference(*MODELS["qwen3.5"])
    model.config.num_hidden_layers = 3
    write_model(model, tmp_path / "model.gguf", add=further)
    model.config.num_hidden_layers = 2
    np.testing.assert_allclose(ours(AutoModel.from_pretrained(tmp_path / "model.gguf")), output(model), atol=1e-4)


MORE = 0.15  # relative to the size of the file


@pytest.mark.parametrize("name", ["gemma", "phi3", "falcon, 40B", "gpt2", "bert"])
def test_peak_memory(name: str, tmp_path: Path) -> None:
    """Python and NumPy allocate little: blocks stay in the mapped file, and only rows to reorder are copied."""
    large = {"hidden_size": 512, "intermediate_size": 2048, "vocab_size": 4000, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 2}
    changes = MODELS[name][1] | large | heads
    changes |= {"n_inner": 2048} if name == "gpt2" else {"rope_parameters": None} if name == "phi3" else {}
    model = reference(MODELS[name][0], changes)
    path = tmp_path / "model.gguf"
    write_model(model, path, Q8_0)
    AutoModel.from_pretrained(path)  # do not count modules and caches that the first use creates
    tracemalloc.start()
    try:
        AutoModel.from_pretrained(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= MORE * path.stat().st_size


def test_tensors_that_do_not_fit_are_named(tmp_path: Path) -> None:
    model = reference(*MODELS["gpt2"])
    write_model(model, tmp_path / "model.gguf", add=lambda writer: writer.add_tensor("blk.0.extra.weight", np.ones(1)))
    with pytest.raises(CheckpointError, match=r"does not fit a GPT2:\n  unknown tensor 'blk\.0\.extra\.weight'"):
        AutoModel.from_pretrained(tmp_path / "model.gguf")
    model.transformer.h[1].mlp.c_fc.weight = transformers.GPT2LMHeadModel(model.config).lm_head.weight
    write_model(model, tmp_path / "model.gguf")
    with pytest.raises(CheckpointError, match=r"'blk\.1\.ffn_up\.weight' has the shape \(64, 64\); the metadata gives"):
        AutoModel.from_pretrained(tmp_path / "model.gguf")
