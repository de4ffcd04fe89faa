"""Files of an encoder folder: which are required, and which folders hold an encoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tallow as tl
from tallow.errors import CheckpointError
from tallow.io import safetensors
from tallow.models.decoders import gemma2
from tallow.models.encoders import bert
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.encoders.sentence_folder import (
    EncoderFiles,
    encoder_class,
    encoder_files,
    files_of,
    transformer_class,
)

PARTS = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"), ("Normalize", "3_Normalize")]
MODULES = json.dumps([{"path": place, "type": f"sentence_transformers.models.{kind}"} for kind, place in PARTS])
ALONE = ("config.json", "tokenizer.json")
# tokenizer.json, or else what Hugging Face's slow tokenizers name in `vocab_files_names`.
TOKENIZER = (
    ("tokenizer.json",),
    ("vocab.txt",),
    ("vocab.json", "merges.txt"),
    *zip(("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model", "sentencepiece.model")),
)
SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
# In the order in which sentence-transformers 3.4.1 looks for them.
TEXT_CONFIGS = [
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
]
OPTIONAL = (*SETTINGS, *TEXT_CONFIGS)


def test_files_of_an_encoder_alone() -> None:
    assert files_of(None) == EncoderFiles(("config.json",), OPTIONAL, ("",), (TOKENIZER,))


PROMPTS = "config_sentence_transformers.json"


def test_files_of_its_parts() -> None:
    parts = ("1_Pooling/config.json", "2_Dense/config.json")
    assert files_of(MODULES.encode()) == EncoderFiles(
        ("modules.json", "config.json", *parts),
        (PROMPTS, *OPTIONAL, "3_Normalize/config.json"),
        ("", "2_Dense/"),
        (TOKENIZER,),
    )


def test_files_of_a_transformer_in_a_folder_of_its_own() -> None:
    modules = b'[{"path": "0_BERT", "type": "sentence_transformers.models.Transformer"}]'
    optional = (PROMPTS, *(f"0_BERT/{name}" for name in OPTIONAL))
    tokenizer = tuple(tuple(f"0_BERT/{name}" for name in names) for names in TOKENIZER)
    required = ("modules.json", "0_BERT/config.json")
    assert files_of(modules) == EncoderFiles(required, optional, ("0_BERT/",), (tokenizer,))


@pytest.mark.parametrize("modules", [b"{", b"\xff", b"[" * 100_000, b"{}", b"[1]", b'[{"path": "../x"}]'])
def test_invalid_modules(modules: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"modules\.json"):
        files_of(modules)


def write(folder: Path, *names: str, **config: Any) -> Path:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_folder_of_an_encoder(tmp_path: Path) -> None:
    write(tmp_path, *ALONE, "README.md", "tokenizer_config.json", architectures=["BertForMaskedLM"])
    assert encoder_files(tmp_path) == []
    (tmp_path / "pytorch_model.bin").touch()
    assert encoder_files(tmp_path) == [*ALONE, "pytorch_model.bin", "tokenizer_config.json"]
    (tmp_path / "model.safetensors").touch()
    assert encoder_files(tmp_path) == [*ALONE, "model.safetensors", "tokenizer_config.json"]
    shards = ["model-1.safetensors", "model-2.safetensors"]
    weight_map = {"b": shards[0], "a": shards[1]}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert encoder_files(tmp_path) == []
    write(tmp_path, *shards, architectures=["BertForMaskedLM"])
    assert encoder_files(tmp_path) == [*ALONE, "model.safetensors.index.json", *shards, "tokenizer_config.json"]


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["vocab.txt"], ["vocab.txt"]),
        (["vocab.json", "merges.txt"], ["vocab.json", "merges.txt"]),
        (["tokenizer.model"], ["tokenizer.model"]),
        (["vocab.txt", "tokenizer.json"], ["tokenizer.json"]),
        (["vocab.json", "vocab.txt"], ["vocab.txt"]),
        (["sentencepiece.bpe.model", "vocab.txt"], ["vocab.txt", "sentencepiece.bpe.model"]),  # the class decides
        (["vocab.json"], None),
        ([], None),
    ],
)
def test_tokenizers_of_an_encoder(names: list[str], taken: list[str] | None, tmp_path: Path) -> None:
    write(tmp_path, *names, "model.safetensors", architectures=["BertModel"])
    assert encoder_files(tmp_path) == ([] if taken is None else ["config.json", *taken, "model.safetensors"])


@pytest.mark.parametrize(
    ("names", "config"),
    [
        ((), {"architectures": ["BertModel"]}),
        ((*ALONE, "model.safetensors"), {"architectures": ["LlamaForCausalLM"]}),
        ((*ALONE, "model.safetensors"), {"architectures": ["SomethingElse"]}),
        ((*ALONE, "model.safetensors", "modules.json"), {"architectures": ["BertModel"]}),  # which is empty
    ],
)
def test_folders_of_no_encoder(names: tuple[str, ...], config: dict[str, Any], tmp_path: Path) -> None:
    assert encoder_files(write(tmp_path, *names, **config)) == []


def test_head_of_a_checkpoint_is_ignored(tmp_path: Path) -> None:
    assert encoder_class(write(tmp_path, architectures=["BertForMaskedLM"])) is bert.BertModel


def test_models_that_make_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="Llama does not compute embeddings"):
        encoder_class(write(tmp_path, architectures=["LlamaForCausalLM"]))


def test_decoders_are_taken_where_a_folder_names_them(tmp_path: Path) -> None:
    folder = write(tmp_path, architectures=["Gemma2ForCausalLM"])
    assert transformer_class(folder) is gemma2.Gemma2Model
    with pytest.raises(CheckpointError, match="Whisper does not compute embeddings"):
        transformer_class(write(tmp_path, architectures=["WhisperForConditionalGeneration"]))


@pytest.mark.native  # it reads a tokenizer
def test_texts_that_are_read_as_conversations_are_refused(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    sizes = {
        "vocab_size": 3,
        "hidden_size": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 4,
    }
    write(tmp_path, architectures=["LlamaModel"], model_type="llama", **sizes)
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a")).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "modules.json").write_text(json.dumps(json.loads(MODULES)[:2]))
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text("{}")
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"modality_config": {"text": {}, "message": {}}}))
    with pytest.raises(CheckpointError, match="formats texts as a conversation"):
        SentenceEncoder.from_pretrained(tmp_path)


def small_bert(folder: Path) -> dict[str, Any]:
    """Write a BERT of five positions and a tokenizer of three words; return its weights."""
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "c": 2}, unk_token="c"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.save(str(folder / "tokenizer.json"))
    sizes = {
        "vocab_size": 3,
        "hidden_size": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 4,
    }
    entries = {"architectures": ["BertModel"], "model_type": "bert", "max_position_embeddings": 5, **sizes}
    (folder / "config.json").write_text(json.dumps(entries))
    tl.manual_seed(0)
    return bert.BertModel(bert.BertConfig.from_json(folder / "config.json")).state_dict()


@pytest.mark.native  # it reads a tokenizer
def test_weights_may_be_elsewhere(tmp_path: Path) -> None:
    state = small_bert(tmp_path)
    encoder = SentenceEncoder.assemble(tmp_path, lambda folder: state)
    assert encoder.max_length == 5  # the number of positions
    safetensors.save(state, tmp_path / "model.safetensors")
    vector = SentenceEncoder.from_pretrained(tmp_path).encode("a b c a b c a b c")
    assert vector.tolist() == encoder.encode("a b c a b").tolist()


@pytest.mark.native  # it reads a tokenizer
@pytest.mark.parametrize("name", TEXT_CONFIGS)
def test_names_of_the_length_file(name: str, tmp_path: Path) -> None:
    state = small_bert(tmp_path)
    (tmp_path / TEXT_CONFIGS[-1]).write_text(json.dumps({"max_seq_length": 4}))
    (tmp_path / name).write_text(json.dumps({"max_seq_length": 3, "do_lower_case": True}))
    encoder = SentenceEncoder.assemble(tmp_path, lambda folder: state)
    assert (encoder.max_length, encoder.lowercase) == (3, True)
    assert encoder.encode("A B A C").tolist() == encoder.encode("a b a").tolist() != encoder.encode("c c c").tolist()
