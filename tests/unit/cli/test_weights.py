"""`tallow inspect` and `tallow convert`: contents of files, and the same weights in another format."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.cli import convert, main, writing
from tallow.cli.progress import Progress
from tallow.io import gguf, llama2c, safetensors
from tallow.io.contents import contents
from tallow.models.decoders.llama import Llama, LlamaConfig

SIZES = {
    "vocab_size": 20,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-5,
}
SUBFOLDERS = (("0_Transformer", "Transformer"), ("1_Pooling", "Pooling"))


def llama(**changes: Any) -> Llama:
    tl.manual_seed(0)
    return Llama(LlamaConfig(**SIZES | {"initializer_range": 0.4} | changes)).eval().requires_grad_(False)


def run(*arguments: Any) -> int:
    return main([str(argument) for argument in arguments])


@pytest.mark.parametrize("tied", [True, False])
def test_a_llama_goes_to_llama2c_and_back(tied: bool, tmp_path: Path) -> None:
    model = llama(rope_interleaved=True, tie_word_embeddings=tied)
    tokens = tl.tensor([[1, 5, 9, 2, 7]])
    safetensors.save(model.state_dict(), tmp_path / "model.safetensors")
    entries = SIZES | {"model_type": "llama", "rope_interleaved": True, "tie_word_embeddings": tied}
    (tmp_path / "config.json").write_text(json.dumps(entries), encoding="utf-8")
    assert run("convert", tmp_path, tmp_path / "model.bin") == 0
    np.testing.assert_allclose(
        Llama.from_llama2c(tmp_path / "model.bin")(tokens).detach().numpy(), model(tokens).numpy(), atol=1e-5
    )
    # Hugging Face's order of rows: the same model with rotary pairs that are not adjacent.
    assert run("convert", tmp_path / "model.bin", tmp_path / "folder") == 0
    reloaded = Llama.from_pretrained(tmp_path / "folder")
    assert not reloaded.config.rope_interleaved
    np.testing.assert_allclose(reloaded(tokens).detach().numpy(), model(tokens).numpy(), atol=1e-5)
    assert run("convert", tmp_path / "folder", tmp_path / "again.bin") == 0
    assert (tmp_path / "again.bin").read_bytes() == (tmp_path / "model.bin").read_bytes()


def test_the_tables_of_llama2c(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "stories260K.bin"
    assert run("convert", source, tmp_path / "again.bin") == 0
    expected, converted = (np.fromfile(path, np.float32) for path in (source, tmp_path / "again.bin"))
    np.testing.assert_allclose(converted, expected, atol=1e-4)  # angles of up to 512 radians, each rounded to float32
    loaded = (llama2c.load(path).arrays for path in (source, tmp_path / "again.bin"))
    for ours, theirs in zip(*(arrays.values() for arrays in loaded), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("extension", [".pth", ".npz", ".safetensors"])
def test_tensors_go_to_other_formats_under_their_names(extension: str, tmp_path: Path) -> None:
    tensors = {"a.weight": tl.randn(3, 4), "count": tl.tensor(7)}
    tl.save(tensors, tmp_path / "in.safetensors")
    target = tmp_path / f"out{extension}"
    assert run("convert", tmp_path / "in.safetensors", target, "--dtype", "float16") == 0
    loaded = tl.load(target)
    assert tl.equal(loaded["a.weight"], tensors["a.weight"].half().cpu())
    assert loaded["count"].dtype is tl.int64


def test_an_entry_is_chosen_by_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.save({"state_dict": {"weight": tl.ones(2)}, "epoch": 3}, tmp_path / "in.pth")
    assert run("convert", tmp_path / "in.pth", tmp_path / "out.npz") == 2
    assert (
        "does not contain tensors by name, but state_dict, epoch; choose one of its entries with the argument `key`"
        in capsys.readouterr().err
    )
    assert run("convert", tmp_path / "in.pth", tmp_path / "out.npz", "--key", "state_dict") == 0
    assert tl.load(tmp_path / "out.npz")["weight"].tolist() == [1, 1]
    assert run("convert", tmp_path / "in.pth", tmp_path / "other.npz", "--key", "model") == 2
    assert "has no entry 'model'" in capsys.readouterr().err


def test_existing_files_are_replaced_only_with_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.save({"weight": tl.ones(2)}, tmp_path / "in.npz")
    (tmp_path / "out.npz").write_bytes(b"precious")
    assert run("convert", tmp_path / "in.npz", tmp_path / "out.npz") == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "out.npz").read_bytes() == b"precious"
    assert run("convert", tmp_path / "in.npz", tmp_path / "out.npz", "--force") == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rope_theta": 5e5}, "rope_theta=10000.0"),
        ({"rms_norm_eps": 1e-6}, "rms_norm_eps=1e-05"),
        ({"attention_bias": True}, "attention_bias=False"),
        ({"head_dim": 8}, "head_width=4"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "cannot compute"),
    ],
)
def test_models_that_llama2c_cannot_hold(
    changes: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    safetensors.save(llama(**changes).state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(SIZES | {"model_type": "llama"} | changes), encoding="utf-8")
    assert run("convert", tmp_path, tmp_path / "out.bin") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.bin").exists()


def test_an_extension_that_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.save({"weight": tl.ones(2)}, tmp_path / "in.npz")
    assert run("convert", tmp_path / "in.npz", tmp_path / "out.h5") == 2
    assert ".safetensors" in capsys.readouterr().err


def test_inspect_lists_the_contents_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.save(
        {"w": tl.zeros(300, 1000), "b": tl.zeros(7, dtype=tl.bfloat16)}, path, {"note": "a\x1b[2J" + "z" * 300}
    )
    assert run("inspect", path) == 0
    out = capsys.readouterr().out
    assert out.startswith("format  safetensors\n")
    assert "\x1b" not in out
    assert "w  F32   300 x 1000    1.2 MB" in out
    assert "b  BF16  7           14 bytes" in out
    assert out.endswith("2 tensors, 300,007 elements, 1.2 MB (F32, BF16)\n")
    assert max(map(len, out.splitlines())) < 120


def test_inspect_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.save({"model": {"w": tl.zeros(2, 3)}, "epoch": 4, "losses": [1.0, 0.5]}, tmp_path / "x.pth")
    assert run("inspect", tmp_path / "x.pth", "--json") == 0
    entries = json.loads(capsys.readouterr().out)
    assert entries["tensors"] == [{"name": "model.w", "dtype": "float32", "shape": [2, 3], "bytes": 24}]
    assert entries["metadata"] == {"epoch": 4, "losses": [1.0, 0.5]}


def test_contents_of_every_format(data_dir: Path, tmp_path: Path) -> None:
    entries = contents(data_dir / "stories260K.bin")
    assert entries.format == "llama2c, version 0"
    assert entries.metadata["dim"] == 64
    assert sum(entry.bytes for entry in entries.tensors) + 28 == (data_dir / "stories260K.bin").stat().st_size
    tl.save(tl.zeros(2, 3), tmp_path / "x.npy")
    assert contents(tmp_path / "x.npy").tensors[0].shape == (2, 3)
    tl.save({"a": tl.zeros(5)}, tmp_path / "x.npz")
    assert [entry.name for entry in contents(tmp_path / "x.npz").tensors] == ["a"]


@pytest.mark.parametrize("content", [b"hello", b"<html>" + b"x" * 200, bytes(64)])
def test_inspect_refuses_unknown_files(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert run("inspect", path) == 2
    assert "is in an unknown format" in capsys.readouterr().err


def test_inspect_says_that_a_file_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.safetensors"
    path.touch()
    assert run("inspect", path) == 2
    assert "x.safetensors is empty; download it again" in capsys.readouterr().err


def test_inspect_a_transformer_in_a_subfolder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in SUBFOLDERS]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    for path, _ in SUBFOLDERS:
        (tmp_path / path).mkdir()
        (tmp_path / path / "config.json").write_text(json.dumps({"model_type": path}))
    tl.save({"weight": tl.ones(2, 3)}, tmp_path / "0_Transformer" / "model.safetensors")
    assert run("inspect", tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("sentence-transformers folder")
    assert lines[2].split() == ["0_Transformer/model_type", "0_Transformer"]
    assert lines[4].split() == ["0_Transformer/weight", "float32", "2", "x", "3", "24", "bytes"]
    assert lines[6] == "1 tensor, 6 elements, 24 bytes (float32)"


def test_inspect_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", tmp_path / "none") == 2
    assert "none" in capsys.readouterr().err


def test_a_llama2c_checkpoint_goes_to_files_of_tensors(data_dir: Path, tmp_path: Path) -> None:
    """Tensor names as `inspect` shows them, with the values that run.c reads."""
    source = data_dir / "stories260K.bin"
    expected = llama2c.load(source).arrays
    for extension in (".safetensors", ".pt", ".npz"):
        assert run("convert", source, tmp_path / f"out{extension}") == 0
        tensors = tl.load(tmp_path / f"out{extension}")
        assert tensors.keys() == expected.keys()
        assert all(np.array_equal(tensors[name].numpy(), expected[name]) for name in expected)
    assert tl.load(source).keys() == expected.keys()
    assert run("convert", source, tmp_path / "half.safetensors", "--dtype", "float16") == 0
    assert {tensor.dtype for tensor in tl.load(tmp_path / "half.safetensors").values()} == {tl.float16}


def test_a_converted_llama2c_folder_has_its_tokenizer(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tokenizers")
    source, vocabulary, folder = data_dir / "stories260K.bin", data_dir / "tok512.bin", tmp_path / "a Märchen v1.5"
    assert run("convert", source, folder) == 0
    assert "has no tokenizer; add one with --tokenizer" in capsys.readouterr().err
    assert run("convert", source, folder, "--tokenizer", vocabulary, "--force") == 0
    assert "no tokenizer" not in capsys.readouterr().err
    tale = ["generate", "Once upon a time", "--temperature", 0, "--steps", 30]
    assert run(*tale, "--model", source, "--tokenizer", vocabulary) == 0
    output = capsys.readouterr().out
    assert len(output) > 50
    for options in (
        [],
        ["--tokenizer", vocabulary],
        ["--tokenizer", folder],
        ["--tokenizer", folder / "tokenizer.json"],
    ):
        assert run(*tale, "--model", folder, *options) == 0
        assert capsys.readouterr().out == output
    assert run("convert", source, tmp_path / "other", "--tokenizer", folder / "tokenizer.json") == 0
    assert run(*tale, "--model", tmp_path / "other") == 0
    assert capsys.readouterr().out == output
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for wrong, message in (
        (data_dir / "llama2c_tokenizer_32000.bin", "has 32000 tokens, but the model has vocab_size=512"),
        (tmp_path, "has no tokenizer.json"),
        (tmp_path / "nowhere.bin", "nowhere.bin: No such file"),
        (source, "tokenizer"),
    ):
        assert run("convert", source, folder, "--tokenizer", wrong, "--force") == 2
        assert message in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a Märchen v1.5", "other"]


def sentence_folder(folder: Path) -> Path:
    """The parts of a sentence-transformers folder that a conversion reads."""
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"), ("Own", "3_Own")]
    names = [{"path": place, "type": f"sentence_transformers.models.{kind}"} for kind, place in modules]
    files = {
        "modules.json": json.dumps([*names, {"path": "4_Normalize", "type": "sentence_transformers.models.Normalize"}]),
        "config.json": json.dumps({"model_type": "bert", "dtype": "float32"}),
        "additional_chat_templates/tool.jinja": "{{ messages }}",
        "1_Pooling/config.json": json.dumps({"pooling_mode_mean_tokens": True}),
        "2_Dense/config.json": json.dumps({"in_features": 2, "out_features": 2}),
        "3_Own/deep/table.bin": "whatever it is",
        "README.md": "not of the model",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    tl.save({"weight": tl.ones(2, 2)}, folder / "model.safetensors")
    tl.save({"linear.weight": tl.full((2, 2), 3.0)}, folder / "2_Dense" / "pytorch_model.bin")
    return folder


def test_all_parts_of_a_sentence_model_are_kept(tmp_path: Path) -> None:
    source, target = sentence_folder(tmp_path / "source"), tmp_path / "target"
    assert run("convert", source, target, "--dtype", "float16") == 0
    names = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    top = {"modules.json", "config.json", "model.safetensors", "additional_chat_templates/tool.jinja"}
    parts = {"1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors", "3_Own/deep/table.bin"}
    assert names == top | parts
    for name in ("1_Pooling/config.json", "3_Own/deep/table.bin", "modules.json"):
        assert (target / name).read_bytes() == (source / name).read_bytes()
    weight = tl.load(target / "2_Dense" / "model.safetensors")["linear.weight"]
    assert (weight.dtype, weight.tolist()) == (tl.float16, [[3.0, 3.0], [3.0, 3.0]])
    # the dtype that transformers loads it in
    assert json.loads((target / "config.json").read_text())["dtype"] == "float16"


def test_a_transformer_in_a_folder_of_its_own(tmp_path: Path) -> None:
    source = sentence_folder(tmp_path / "source")
    modules = json.loads((source / "modules.json").read_text())
    modules[0]["path"] = "0_BERT"
    (source / "modules.json").write_text(json.dumps(modules))
    (source / "0_BERT").mkdir()
    for name in ("model.safetensors", "config.json"):
        (source / name).rename(source / "0_BERT" / name)
    assert run("convert", source, tmp_path / "target", "--dtype", "bfloat16") == 0
    assert tl.load(tmp_path / "target" / "0_BERT" / "model.safetensors")["weight"].dtype is tl.bfloat16
    assert not (tmp_path / "target" / "model.safetensors").exists()


def test_a_folder_is_converted_in_place(tmp_path: Path) -> None:
    """Old shards and their index would take precedence over the new file; they must not be loaded."""
    folder = sentence_folder(tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "model-00001.safetensors")
    index = {"weight_map": {"weight": "model-00001.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert run("convert", folder, folder, "--dtype", "float16") == 2
    assert run("convert", folder, folder, "--dtype", "float16", "--force") == 0
    (entry,) = contents(folder).tensors
    assert entry.dtype == "float16"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_failed_conversion_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = sentence_folder(tmp_path / "source")
    (source / "2_Dense" / "pytorch_model.bin").write_bytes(b"<html>")
    assert run("convert", source, tmp_path / "target") == 2
    assert "is a web page, not a weights file" in capsys.readouterr().err
    (tmp_path / "file").write_text("precious")
    assert run("convert", source, f"{tmp_path / 'file'}/", "--force") == 2
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["file", "source"]


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("out.bin", ["--dtype", "float16"], "--dtype with a .bin file: the llama2c format is float32"),
        ("out.npz", ["--tokenizer", "tok512.bin"], "--tokenizer with a .npz file, which contains only weights"),
        ("out", ["--key", "model"], "--key applies only to files of tensors"),
        ("out.bin", ["--key", "model"], "--key applies only to files of tensors"),
        ("out.h5", [], "unknown extension"),
    ],
)
def test_options_without_an_effect_are_refused(
    target: str, options: list[str], message: str, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("convert", data_dir / "stories260K.bin", tmp_path / target, *options) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_missing_file_is_not_searched_on_the_hub(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("nowhere.safetensors", "owner/nowhere.bin"):
        assert run("convert", name, tmp_path / "out.pt") == 2
        assert capsys.readouterr().err == f"tallow convert: error: {name}: No such file or directory\n"


def test_tensors_without_a_config_are_not_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.save({"weight": tl.ones(2)}, tmp_path / "x.safetensors")
    for target in ("folder", "x.bin"):
        assert run("convert", tmp_path / "x.safetensors", tmp_path / target) == 2
        assert "x.safetensors is safetensors: weights without a model config" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


def test_a_tokenizer_for_a_gguf_file_without_an_embedding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gguf.save({"v.patch_embd.weight": tl.ones(4, 32)}, tmp_path / "clip.gguf", {"general.architecture": "clip"})
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text("{}")
    assert run("convert", tmp_path / "clip.gguf", tmp_path / "out.gguf", "--tokenizer", tokenizer) == 2
    assert "has no token_embd.weight of two dims" in capsys.readouterr().err
    assert not (tmp_path / "out.gguf").exists()


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("model", ""),
        ("Qwen2.5-0.5B", ""),
        ("Qwen2.5-0.5B-float16", ""),
        ("v1.5", ""),
        ("out.onnx/", ""),
        ("a.b/out.safetensors", ".safetensors"),
        ("OUT.PTH", ".pth"),
        ("model.bin", ".bin"),
    ],
)
def test_names_of_folders_and_files(name: str, form: str) -> None:
    assert convert._extension(name) == form


def test_the_progress_bar_counts_every_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress bar (tqdm on a terminal) is full at the end, then cleared."""
    pytest.importorskip("tqdm")
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(writing, "CHUNK", 1000)
    tl.save({"a": tl.zeros(3000), "b": tl.zeros(2, 500)}, tmp_path / "in.safetensors")
    progress: list[float] = []
    advance_to = Progress.advance_to
    monkeypatch.setattr(Progress, "advance_to", lambda self, n: (advance_to(self, n), progress.append(self._done))[0])
    for extension in (".safetensors", ".npz", ".pth"):
        progress.clear()
        assert run("convert", tmp_path / "in.safetensors", tmp_path / f"out{extension}") == 0
        assert progress[:2] == [1, 2]  # tensors read
        assert len(progress) > 16
        assert progress[2:] == sorted(progress[2:])
        assert progress[-1] == 4 * (3000 + 1000)
    assert f"writing out{extension}" in stderr.getvalue()
