"""GGUF files that `tallow convert` writes: the `gguf` package reads them, and the models in them compute what
transformers computes with the same weights."""

from __future__ import annotations

import base64
import json
import shutil
import unicodedata
import warnings
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import tokenizer_kinds
from support.chats import CHATML, TURNS, save_tokenizer
from support.gguf_files import write_model

import tallow as tl
from tallow.cli import main
from tallow.errors import ArgumentError, TallowWarning, TokenizerError
from tallow.io import safetensors
from tallow.io.gguf import GGUF
from tallow.models import AutoModel
from tallow.models.built_in import stories
from tallow.models.gguf.export import save_gguf
from tallow.models.gguf.importance import importance_of
from tallow.models.gguf.recipes import RECIPES
from tallow.nn import functional as F
from tallow.nn.block_layers import BlockLinear
from tallow.text import Tokenizer
from tallow.text.gguf_tokenizer import tokenizer_entries
from tallow.text.gguf_tokenizer_export import gguf_entries

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
gguf = pytest.importorskip("gguf")

SIZES = {
    "vocab_size": 320,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.06,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
    "rope_theta": 500000.0,
}
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32, "rope_theta": 10000.0}
BETAS = {"beta_fast": 4.0, "beta_slow": 0.5}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000}
TOKENS = [[1, 5, 9, 2, 7, 33, 60, 8]]
# Of logits with quantised weights and those with floats. Random weights lose more by rounding than trained ones.
COSINE = {"q8_0": 0.998, "q4_k_m": 0.92}
MESSAGES = [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "sat"}]
STORY = (
    "Once upon a time there was a clever rabbit named Clover. Clover lived in a field of clover. One warm afternoon "
    "Clover went to the beach with a blue train. It was a good train. Dot the frog was sitting between two boats. She "
    'was new and did not know anyone. Dot saw the train, but she did not dare to come near. "Why does she not play?" '
    'thought Clover. "Perhaps she has no friend." So Clover went up to her. "Do you want to play with my train?" she '
    'asked. "May I?" asked Dot. "Of course!" said Clover.'
)
# Types of the story model, and by how much its perplexity may grow: of few weights each matters.
WORSE = {
    "bf16": 0.01,
    "q8_0": 0.01,
    "q6_k": 0.01,
    "q5_k_m": 0.02,
    "q4_k_m": 0.05,
    "q4_0": 0.1,
    "q3_k_m": 0.2,
    "q2_k": 0.5,
}


def reference(name: str, **changes: Any) -> Any:
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForCausalLM")(getattr(transformers, f"{name}Config")(**SIZES | changes))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) / 4)
    return model.eval()


def logits_of(model: Any) -> Any:
    with torch.no_grad():
        return model(torch.tensor(TOKENS)).logits.numpy()


def convert(*arguments: Any) -> int:
    return main(["convert", *map(str, arguments)])


def cosine(a: Any, b: Any) -> float:
    return float(((a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))).min())


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("Llama", {"rope_parameters": LLAMA3}),
        ("Llama", {"rope_parameters": LINEAR, "attention_bias": True, "tie_word_embeddings": True}),
        ("Mistral", {"sliding_window": 4}),
        ("Qwen2", {"tie_word_embeddings": True}),
        ("Qwen3", {"head_dim": 32}),
        ("Qwen3", {"head_dim": 32, "rope_parameters": YARN}),
        ("Llama", {"rope_parameters": YARN | BETAS}),
    ],
    ids=["llama 3", "llama, linear", "mistral", "qwen2", "qwen3", "qwen3, yarn", "llama, yarn"],
)
def test_models_compute_the_same(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = reference(name, **changes)
    model.save_pretrained(tmp_path / "folder")
    save_tokenizer(tmp_path / "folder")
    expected = logits_of(model)
    assert convert(tmp_path / "folder", tmp_path / "f32.gguf") == 0
    with tl.no_grad():
        got = AutoModel.from_pretrained(tmp_path / "f32.gguf")(tl.tensor(TOKENS)).numpy()
        np.testing.assert_allclose(got, expected, atol=1e-4)
        for kind, least in COSINE.items():
            assert convert(tmp_path / "folder", tmp_path / f"{kind}.gguf", "--quant", kind) == 0
            quantised = AutoModel.from_pretrained(tmp_path / f"{kind}.gguf")
            assert any(isinstance(module, BlockLinear) for module in quantised.modules())
            assert cosine(quantised(tl.tensor(TOKENS)).numpy(), expected) > least


@pytest.mark.parametrize("kind", [kind.lower() for kind in RECIPES])
def test_the_package_reads_every_type(kind: str, tmp_path: Path) -> None:
    reference("Qwen3", head_dim=32, num_hidden_layers=1).save_pretrained(tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / "model.gguf", "--quant", kind) == 0
    reader, ours = gguf.GGUFReader(tmp_path / "model.gguf"), GGUF(tmp_path / "model.gguf")
    assert reader.fields["general.file_type"].contents() == RECIPES[kind.upper()].number
    assert [tensor.name for tensor in reader.tensors] == list(ours)
    for tensor in reader.tensors:
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        np.testing.assert_array_equal(ours[tensor.name].float().numpy(), expected.reshape(ours[tensor.name].shape))


def test_metadata_is_that_of_the_config(tmp_path: Path) -> None:
    reference("Qwen3", head_dim=32, rope_parameters={"rope_type": "default", "rope_theta": 1000000}).save_pretrained(
        tmp_path / "small-model"
    )
    save_tokenizer(tmp_path / "small-model")
    assert convert(tmp_path / "small-model", tmp_path / "x.gguf", "--quant", "q8_0") == 0
    fields = gguf.GGUFReader(tmp_path / "x.gguf").fields
    expected = {
        "general.architecture": ("STRING", "qwen3"),
        "general.name": ("STRING", "small-model"),
        "general.file_type": ("UINT32", 7),
        "general.quantization_version": ("UINT32", gguf.GGML_QUANT_VERSION),
        "qwen3.block_count": ("UINT32", 2),
        "qwen3.context_length": ("UINT32", 64),
        "qwen3.embedding_length": ("UINT32", 256),
        "qwen3.feed_forward_length": ("UINT32", 512),
        "qwen3.attention.head_count": ("UINT32", 4),
        "qwen3.attention.head_count_kv": ("UINT32", 2),
        "qwen3.attention.key_length": ("UINT32", 32),
        "qwen3.attention.value_length": ("UINT32", 32),
        "qwen3.attention.layer_norm_rms_epsilon": ("FLOAT32", pytest.approx(1e-6)),
        "qwen3.rope.freq_base": ("FLOAT32", 1e6),
        "tokenizer.ggml.model": ("STRING", "gpt2"),
        "tokenizer.ggml.pre": ("STRING", "gpt-2"),
        "tokenizer.ggml.bos_token_id": ("UINT32", 0),
        "tokenizer.ggml.eos_token_id": ("UINT32", 1),
        "tokenizer.ggml.add_bos_token": ("BOOL", False),
        "tokenizer.chat_template": ("STRING", CHATML),
    }
    assert {name: (fields[name].types[0].name, fields[name].contents()) for name in expected} == expected
    tokens, types = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type"))
    assert len(tokens) == len(types) == 320
    assert tokens[-1] == "[PAD319]"
    assert types[-1] == gguf.TokenType.UNUSED
    assert types[:2] == [gguf.TokenType.CONTROL] * 2


# ---------------------------------------------------------------------------------------------------------- tokenizers


def _with(kind: str, **parts: Any) -> str:
    """Return a tokenizer with other components, which are methods of the package."""
    tokenizer = tokenizers.Tokenizer.from_str(tokenizer_kinds.KINDS[kind]())
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    return tokenizer.to_str()


def _falcon() -> str:
    """With the splits in Falcon's tokenizer.json."""
    steps = tokenizers.pre_tokenizers
    splits = [
        steps.Punctuation("contiguous"),
        steps.ByteLevel(add_prefix_space=False, use_regex=True),
        steps.Digits(individual_digits=False),
        steps.Split(tokenizers.Regex("[0-9][0-9][0-9]"), "isolated"),
    ]
    return _with("bytes-gpt2", pre_tokenizer=steps.Sequence(splits))


def _gemma() -> str:
    """With the normalizer and the split in Gemma's tokenizer.json: no space before a text."""
    source = _with(
        "pieces-llama2",
        normalizer=tokenizers.normalizers.Replace(" ", "▁"),
        pre_tokenizer=tokenizers.pre_tokenizers.Split(" ", "merged_with_previous"),
    )
    parts = tokenizers.decoders
    decoder = parts.Sequence([parts.Replace("▁", " "), parts.ByteFallback(), parts.Fuse()])
    tokenizer = tokenizers.Tokenizer.from_str(source)
    tokenizer.decoder = decoder
    return str(tokenizer.to_str())


def _unigram(*steps: Any) -> str:
    """With a table of characters, and white space removed as in XLM-RoBERTa's newer files."""
    parts = tokenizers.normalizers
    table = parts.Precompiled(zlib.decompress(base64.b85decode(tokenizer_kinds.CHARSMAP)))
    return _with("unigram", normalizer=parts.Sequence([table, *steps]))


def _unigram_newer() -> str:
    parts = tokenizers.normalizers
    return _unigram(parts.Strip(False, True), parts.Replace(tokenizers.Regex(" {2,}"), "▁"))


def _unigram_older() -> str:
    """With words split at white space, as in XLM-RoBERTa's first files."""
    steps = tokenizers.pre_tokenizers
    tokenizer = tokenizers.Tokenizer.from_str(_unigram())
    tokenizer.pre_tokenizer = steps.Sequence([steps.WhitespaceSplit(), steps.Metaspace()])
    return str(tokenizer.to_str())


WRITTEN = {name: make for name, make in tokenizer_kinds.KINDS.items() if name != "unigram"}
WRITTEN |= {"falcon": _falcon, "gemma": _gemma, "unigram": _unigram_newer, "unigram, words": _unigram_older}


NUMERIC = frozenset("¹²³¼½¾".encode("latin-1"))  # bytes whose letters in byte-level BPE are numbers


def _is_plain(letter: str) -> bool:
    return letter.isascii() or not unicodedata.category(letter).startswith("N")


def _as_read(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", WRITTEN)
def test_tokenizers_give_the_same_ids(name: str) -> None:
    text = WRITTEN[name]()
    tokenizer = tokenizers.Tokenizer.from_str(text)
    special = json.loads(text)["added_tokens"]
    config = {"mask_token": "[MASK]"} if name.startswith("words") else {}
    size = tokenizer.get_vocab_size() + 3  # of a model with more ids
    with pytest.warns(TallowWarning) if name == "pieces-metaspace" else nullcontext():
        metadata = gguf_entries(json.loads(text), config, size, "tokenizer")
    assert {*map(len, (metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]))} == {size}
    entries, _ = tokenizer_entries({key: _as_read(value) for key, value in metadata.items()}, "file")
    converted = tokenizers.Tokenizer.from_str(json.dumps(entries))
    previous = "a"
    for line in tokenizer_kinds.texts(200, seed=3):
        marked = any(token["content"] in line for token in special)
        if name == "pieces-metaspace" and (marked or line.startswith((" ", "▁"))):
            continue  # it adds a space only at the start of the text, and only where there is none; GGUF cannot say so
        if name == "falcon" and not (NUMERIC.isdisjoint(line.encode()) and all(map(_is_plain, line))):
            continue  # the last splits see the letters of bytes; those of llama.cpp see the text
        if name.startswith("unigram") and any(each.isspace() and each not in " \u3000" for each in line):
            continue  # this small table keeps white space that those of models replace
        encoded = tokenizer.encode(line)
        assert converted.encode(line).ids == encoded.ids, line
        assert converted.decode(encoded.ids) == tokenizer.decode(encoded.ids)
        if name.startswith(("words", "unigram", "bytes-roberta")):
            pair, expected = converted.encode(line, previous), tokenizer.encode(line, previous)
            assert pair.ids == expected.ids
            assert pair.type_ids == expected.type_ids or name == "bytes-roberta"
        previous = line


@pytest.mark.parametrize("scheme", ["never", "always", "first"])
@pytest.mark.parametrize("kind", ["pieces-metaspace", "unigram"])
def test_a_space_that_readers_of_gguf_add_is_told(kind: str, scheme: str) -> None:
    """A warning names what gets other ids in the file, and nothing else does."""
    entries = json.loads(WRITTEN[kind]() if kind in WRITTEN else tokenizer_kinds.KINDS[kind]())
    spaces = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": kind == "unigram"}
    entries |= {"normalizer": None, "pre_tokenizer": spaces, "post_processor": None}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(entries))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metadata = gguf_entries(entries, {}, tokenizer.get_vocab_size(), "tokenizer")
    note = " ".join(str(warning.message) for warning in caught)
    read, _ = tokenizer_entries({key: _as_read(value) for key, value in metadata.items()}, "file")
    converted = tokenizers.Tokenizer.from_str(json.dumps(read))
    token = next(token["content"] for token in entries["added_tokens"] if token["special"])
    texts = {"": "The fox", "after special tokens": f"A {token}fox"}
    if kind != "unigram":  # llama.cpp adds a space there too; here a file's Unigram model does not
        texts["that begins with one"] = " The fox"
    for phrase, text in texts.items():
        same = converted.encode(text).ids == tokenizer.encode(text).ids
        assert same == (not phrase or phrase not in note), (text, note)


@pytest.mark.parametrize(
    "template", [CHATML, [{"name": "default", "template": CHATML}, {"name": "x", "template": TURNS}]]
)
def test_chat_templates_and_ids_of_a_converted_model(template: Any, tmp_path: Path) -> None:
    reference("Qwen2").save_pretrained(tmp_path / "folder")
    save_tokenizer(tmp_path / "folder", template)
    assert convert(tmp_path / "folder", tmp_path / "model.gguf", "--quant", "q8_0") == 0
    original, converted = (Tokenizer.from_pretrained(tmp_path / name) for name in ("folder", "model.gguf"))
    assert converted.encode("the cat <|im_end|> sat") == original.encode("the cat <|im_end|> sat")
    for name in [None] if isinstance(template, str) else ["default", "x"]:
        chats = (each.render_chat(MESSAGES, chat_template=name) for each in (original, converted))
        assert len({*chats}) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"type": "WordLevel", "vocab": {}}}, "of type 'WordLevel'"),
        ({"model": {"type": "Unigram", "vocab": [["a"]]}}, "has no vocabulary"),
        ({"model": {"type": "Unigram", "vocab": [["a", 0]]}}, "prepares text in a way"),
        ({"model": {"type": "WordPiece", "vocab": {"a": 0}}}, "prepares text in a way"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "x+"}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]}}, "no name for"),
        ({"post_processor": {"type": "BertProcessing"}}, "adds tokens to a text by 'BertProcessing'"),
        ({"post_processor": {"type": "TemplateProcessing", "single": [1]}}, "its post_processor adds"),
        ({"added_tokens": [{"id": 900, "content": "<x>", "special": True}]}, "has a token 900"),
        ({"added_tokens": [{"content": "<x>"}]}, "without an id"),
    ],
)  # fmt: skip
def test_tokenizers_that_gguf_has_no_name_for(change: dict[str, Any], message: str) -> None:
    entries = json.loads(tokenizer_kinds._bytes_gpt2()) | change
    with pytest.raises(TokenizerError, match=message):
        gguf_entries(entries, {}, 700, "tokenizer")


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"lowercase": False}},  # with pieces that are all in lower case
        {"normalizer": {"strip_accents": True}},
        {"model": {"max_input_chars_per_word": 200}},
        {"model": {"continuing_subword_prefix": "@@"}},
    ],
)
def test_words_that_readers_would_split_differently(change: dict[str, Any]) -> None:
    entries = json.loads(tokenizer_kinds.KINDS["words-uncased"]())
    for name, values in change.items():
        entries[name] |= values
    with pytest.raises(TokenizerError, match="readers of GGUF assume"):
        gguf_entries(entries, {}, 700, "tokenizer")


def test_ends_of_a_text(tmp_path: Path) -> None:
    """A config may name several tokens that end a text; a file has three entries."""
    reference("Llama", eos_token_id=[1, 6, 3]).save_pretrained(tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / "model.gguf", "--quant", "f16") == 0
    assert AutoModel.from_pretrained(tmp_path / "model.gguf").config.eos_token_id == (1, 6, 3)


# ------------------------------------------------------------------------------------------------------- other sources


def test_a_safetensors_file_beside_its_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = reference("Llama")
    model.save_pretrained(tmp_path / "folder")
    assert convert(tmp_path / "folder" / "model.safetensors", tmp_path / "model.gguf", "--quant", "f32") == 0
    assert "has no tokenizer; add one with --tokenizer FILE --force" in capsys.readouterr().err
    with tl.no_grad():
        got = AutoModel.from_pretrained(tmp_path / "model.gguf")(tl.tensor(TOKENS)).numpy()
    np.testing.assert_allclose(got, logits_of(model), atol=1e-4)


def test_a_gguf_file_gets_other_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As from the original, whatever the architecture; shards become one file."""
    model = reference("Llama")
    write_model(model, tmp_path / "model.gguf", split_max_tensors=8)
    first = min(tmp_path.glob("model-00001-of-*.gguf"))
    assert convert(first, tmp_path / "whole.gguf") == 0
    assert convert(first, tmp_path / "small.gguf", "--quant", "q4_k_m") == 0
    assert "quantised already" not in capsys.readouterr().err
    whole, small = GGUF(tmp_path / "whole.gguf"), GGUF(tmp_path / "small.gguf")
    shards = GGUF(first)
    assert {name: whole.info(name).type for name in whole} == {name: shards.info(name).type for name in shards}
    assert whole.metadata["llama.block_count"] == 2
    assert not [key for key in whole.metadata if key.startswith("split.")]
    model.save_pretrained(tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / "direct.gguf", "--quant", "q4_k_m") == 0
    direct = GGUF(tmp_path / "direct.gguf")
    assert {*direct} == {*small}
    for name in direct:
        assert direct.info(name).type == small.info(name).type
        np.testing.assert_array_equal(direct.get_blocks(name), small.get_blocks(name))
    assert convert(tmp_path / "small.gguf", tmp_path / "again.gguf", "--quant", "q4_k_m") == 0
    assert "quantised already" in capsys.readouterr().err
    assert all(np.array_equal(GGUF(tmp_path / "again.gguf").get_blocks(name), small.get_blocks(name)) for name in small)


def test_a_model_with_blocks_is_saved_as_it_is(tmp_path: Path) -> None:
    reference("Llama").save_pretrained(tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / "a.gguf", "--quant", "q8_0") == 0
    save_gguf(AutoModel.from_pretrained(tmp_path / "a.gguf"), tmp_path / "b.gguf", "Q8_0")
    a, b = GGUF(tmp_path / "a.gguf"), GGUF(tmp_path / "b.gguf")
    assert {*a} == {*b}
    assert all(np.array_equal(a.get_blocks(name), b.get_blocks(name)) for name in a)


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("x.gguf", ["--quant", "q7"], "unknown type 'q7'; use one of f32"),
        ("x.gguf", ["--dtype", "float16"], "choose its type with --quant"),
        ("x.safetensors", ["--quant", "q8_0"], "--quant applies only to .gguf files"),
        ("folder2", ["--quant", "q8_0"], "--quant applies only to .gguf files"),
    ],
)
def test_options_that_do_not_fit(
    target: str, options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference("Llama").save_pretrained(tmp_path / "folder")
    assert convert(tmp_path / "folder", tmp_path / target, *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / target).exists()


def test_weights_that_are_not_finite_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = reference("Llama")
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[3, 4] = float("nan")
    model.save_pretrained(tmp_path / "folder")
    for kind in ("q4_k_m", "f32"):
        assert convert(tmp_path / "folder", tmp_path / "x.gguf", "--quant", kind) == 2
        assert "'blk.1.ffn_up.weight'" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_sources_that_gguf_cannot_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.save({"weight": tl.ones(2)}, tmp_path / "x.npz")
    assert convert(tmp_path / "x.npz", tmp_path / "x.gguf", "--quant", "q8_0") == 2
    assert "weights without a model config" in capsys.readouterr().err
    config = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 32}
    transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=50, **config)).save_pretrained(tmp_path / "bert")
    assert convert(tmp_path / "bert", tmp_path / "x.gguf", "--quant", "q8_0") == 2
    assert "no GGUF files of a BertForMaskedLM" in capsys.readouterr().err
    scalings: dict[str, dict[str, Any]] = {
        "no rope_scaling of type 'dynamic'": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0},
        "the attention factor 3.0 of 'yarn'": YARN | {"attention_factor": 3.0},
        "truncate=False of 'yarn'": YARN | {"truncate": False},
    }
    for i, (message, scaling) in enumerate(scalings.items()):
        reference("Qwen3", rope_parameters=scaling).save_pretrained(tmp_path / f"scaled{i}")
        assert convert(tmp_path / f"scaled{i}", tmp_path / "x.gguf", "--quant", "q8_0") == 2
        assert message in capsys.readouterr().err
    reference("Llama", hidden_act="gelu").save_pretrained(tmp_path / "gelu")
    model = AutoModel.from_pretrained(tmp_path / "gelu")
    with pytest.raises(ArgumentError, match="hidden_act='gelu'"):
        save_gguf(model, tmp_path / "x.gguf")


# ----------------------------------------------------------------------------------------------------- the story model


def perplexity(model: Any, ids: list[int]) -> float:
    with tl.no_grad():
        logits = model(tl.tensor([ids[:-1]]))[0]
        return float(np.exp(F.cross_entropy(logits, tl.tensor(ids[1:])).item()))


@pytest.mark.parametrize("kind", list(WORSE))
def test_perplexity_of_stories(kind: str, tmp_path: Path) -> None:
    """As with the weights that the `gguf` package dequantises, in float32; products round inputs to 8 bits."""
    folder = tmp_path / "stories"
    shutil.copytree(stories.FOLDER, folder)
    assert convert(folder, tmp_path / "x.gguf", "--quant", kind, "--tokenizer", folder / "tokenizer.bin") == 0
    model, tokenizer = stories.load()
    ids = tokenizer.encode(STORY)
    assert Tokenizer.from_pretrained(tmp_path / "x.gguf").encode(STORY) == ids
    plain = perplexity(model, ids)
    weights = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "x.gguf").tensors}
    wide = AutoModel.from_pretrained(tmp_path / "x.gguf", dtype=tl.float32)
    name = "blk.2.ffn_down.weight"
    expected = gguf.quants.dequantize(weights[name].data, weights[name].tensor_type)
    np.testing.assert_array_equal(wide.model.layers[2].mlp.down_proj.weight.detach().numpy(), expected)
    reference = perplexity(wide, ids)
    assert perplexity(AutoModel.from_pretrained(tmp_path / "x.gguf"), ids) == pytest.approx(reference, rel=0.01)
    assert reference == pytest.approx(plain, rel=WORSE[kind])


def test_an_importance_matrix_lowers_perplexity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.txt").write_text(STORY, encoding="utf-8")
    ids = stories.load()[1].encode(STORY)
    found = {}
    options = ["--quant", "q3_k_m", "--tokenizer", stories.FOLDER / "tokenizer.bin"]
    for name, imatrix in (("plain", []), ("weighed", ["--imatrix", tmp_path / "text.txt"])):
        assert convert(stories.FOLDER, tmp_path / f"{name}.gguf", *options, *imatrix) == 0
        found[name] = perplexity(AutoModel.from_pretrained(tmp_path / f"{name}.gguf", dtype=tl.float32), ids)
    assert found["weighed"] < found["plain"]
    assert convert(stories.FOLDER, tmp_path / "x.gguf", "--imatrix", tmp_path / "text.txt") == 2
    assert "--imatrix without --quant" in capsys.readouterr().err


def test_importance_is_the_mean_square_of_inputs() -> None:
    model, _ = stories.load()
    ids = list(range(300, 700))  # of two windows
    inputs: list[Any] = []
    layer = model.model.layers[1].mlp.down_proj
    handle = layer.register_forward_pre_hook(lambda module, arguments: inputs.append(arguments[0].numpy()[0]))
    found = importance_of(model, ids)
    handle.remove()
    assert [len(part) for part in inputs] == [256, 144]
    np.testing.assert_allclose(found["blk.1.ffn_down.weight"], (np.concatenate(inputs) ** 2).mean(axis=0), rtol=1e-4)
    assert {*found} == {f"blk.{i}.{name}.weight" for i in range(4) for name in MATRICES}


MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


def test_safetensors_of_a_folder_are_not_changed(tmp_path: Path) -> None:
    reference("Llama").save_pretrained(tmp_path / "folder")
    before = (tmp_path / "folder" / "model.safetensors").read_bytes()
    assert convert(tmp_path / "folder", tmp_path / "x.gguf", "--quant", "q4_0") == 0
    assert (tmp_path / "folder" / "model.safetensors").read_bytes() == before
    assert safetensors.load(before).keys()
