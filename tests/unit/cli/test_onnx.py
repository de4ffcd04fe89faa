"""ONNX files in the commands: `tallow inspect`, `tallow run` and `tallow convert`."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.onnx_files import encoded_model, node, value

import tallow as tl
from tallow import nn
from tallow.cli import main
from tallow.cli.onnx_target import write_onnx
from tallow.io import npz, safetensors
from tallow.models import BertConfig, BertForQuestionAnswering, BertForSequenceClassification, BertModel, stories
from tallow.onnx.protobuf import (
    AttributeProto,
    DataType,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    encode,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    weight = TensorProto(dims=[2, 3], data_type=1, name="fc.weight", raw_data=bytes(24))
    node = NodeProto(input=["x", "fc.weight"], output=["y"], op_type="Gemm")
    graph = GraphProto(node=[node, node], name="net\x1b[31m", initializer=[weight])
    path = tmp_path / "net.onnx"
    path.write_bytes(encode(ModelProto(ir_version=10, graph=graph, opset_import=[OperatorSetIdProto(version=18)])))
    return path


def test_inspect_shows_operators_and_layers(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "format  ONNX" in shown
    assert "opset   ai.onnx 18" in shown
    assert "2 operators\n  Gemm  2\n" in shown
    assert "layers\n  fc  24 bytes\n" in shown
    assert "1 tensor, 6 elements, 24 bytes (float32)" in shown
    assert "\x1b" not in shown


def test_inspect_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["operators"] == {"Gemm": 2}
    assert shown["layers"] == {"fc": 24}
    assert shown["tensors"][0]["shape"] == [2, 3]


def test_inspect_checks_the_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = [
        TensorProto(dims=[2], data_type=1, name=name, raw_data=np.float32(values).tobytes())
        for name, values in (("good", [1, 2]), ("bad", [1, np.nan]))
    ]
    path = tmp_path / "net.onnx"
    path.write_bytes(encoded_model([node("Add", "good", "bad")], [], [value("y", 2)], weights))
    assert main(["inspect", str(path), "--check"]) == 1
    assert "bad holds NaN or infinities" in capsys.readouterr().out


def test_weights_in_constant_nodes_are_checked_and_converted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = TensorProto(dims=[300], data_type=1, raw_data=np.full(300, np.nan, np.float32).tobytes())
    constant = NodeProto(output=["k"], op_type="Constant", attribute=[AttributeProto(name="value", type=4, t=held)])
    path, out = tmp_path / "net.onnx", tmp_path / "weights.safetensors"
    path.write_bytes(encoded_model([constant, node("Add", "x", "k")], [value("x", 300)], [value("y", 300)]))
    assert main(["inspect", str(path), "--check"]) == 1
    assert "k holds NaN or infinities" in capsys.readouterr().out
    assert main(["convert", str(path), str(out)]) == 0
    assert safetensors.load(str(out))["k"].shape == (300,)


def test_inspect_of_a_file_that_is_no_onnx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.onnx").write_text("<!doctype html>")
    assert main(["inspect", str(tmp_path / "page.onnx")]) == 2
    assert "page.onnx" in capsys.readouterr().err


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A model of two inputs, a - b."""
    path = tmp_path / "pair.onnx"
    path.write_bytes(encoded_model([node("Sub", "a", "b")], [value("a", "n", 2), value("b", 2)], [value("y", "n", 2)]))
    return path


@pytest.fixture
def eye(tmp_path: Path) -> Path:
    """A model that returns a picture as it gets it."""
    path = tmp_path / "eye.onnx"
    path.write_bytes(encoded_model([node("Identity", "x")], [value("x", 1, 3, 4, 6)], [value("y", 1, 3, 4, 6)]))
    return path


def test_run_takes_arrays_by_name_and_by_order(pair: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.float64([1, 2]))
    (tmp_path / "a.json").write_text("[[5, 7], [9, 11]]")
    out = tmp_path / "out.npz"
    inputs = [f"b={tmp_path / 'b.npy'}", str(tmp_path / "a.json")]
    assert main(["run", str(pair), "--input", *inputs, "--output", str(out)]) == 0
    assert npz.load(str(out))["y"].tolist() == [[4, 5], [8, 9]]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (["c=a.npy"], "no input 'c'"),
        (["a=a.npy"], "no file for b"),
        (["a.npy", "a.npy", "a.npy"], "no input is left"),
        (["a.npy", "a.npy"], "b: shape (1, 2)"),
        (["a.npy", "words.json"], "no array"),
        (["a.npy", "b=a.npy", "--output", "out.txt"], "out.txt: outputs are an .npz file"),
    ],
)
def test_run_says_what_does_not_fit(
    pair: Path,
    tmp_path: Path,
    inputs: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.float32([[1, 2]]))
    Path("words.json").write_text("[[1], [2, 3]]")
    assert main(["run", str(pair), "--input", *inputs]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.native("Pyodide has no Pillow")
def test_run_resizes_pictures_and_goes_through_folders(
    eye: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "pictures"
    folder.mkdir()
    red = np.zeros((8, 24, 3), np.uint8)
    red[..., 0] = 255
    image.fromarray(red).save(folder / "red.png")
    (folder / "torn.png").write_bytes(b"no picture")
    out = tmp_path / "results"
    assert main(["run", str(eye), "--input", str(folder), "--fit", "pad", "--output", str(out)]) == 1
    assert "torn.png" in capsys.readouterr().err
    (y,) = npz.load(str(out / "red.png.npz")).values()
    grey = 114 / 255  # above and below, since the picture is wide
    np.testing.assert_allclose(y.numpy()[0, :, :, 2].T, [[grey] * 3, [1, 0, 0], [1, 0, 0], [grey] * 3], atol=1e-6)
    assert (
        main(["run", str(eye), "--input", str(folder / "red.png"), "--scale", "bytes", "--order", "bgr", "--json"]) == 0
    )
    shown = json.loads(capsys.readouterr().out)["outputs"]["y"]
    assert shown["shape"] == [1, 3, 4, 6]
    assert np.asarray(shown["data"])[0, :, 0, 0].tolist() == [0, 0, 255]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[1]", "no strings"),
        ('[["a", null]]', "no strings"),
        ('{"a": "b"}', "no strings"),
        # The stack of Pyodide ends before Python's limit does, and a tab has no commands.
        pytest.param("[" * 100_000 + "]" * 100_000, "holds no array", marks=pytest.mark.native),
    ],
    ids=["number", "null", "object", "deep"],
)
def test_run_takes_strings_for_texts_alone(
    written: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [value(name, "n", dtype=DataType.STRING) for name in ("x", "y")]
    (tmp_path / "words.onnx").write_bytes(encoded_model([node("Identity", "x")], words[:1], words[1:]))
    (tmp_path / "x.json").write_text(written)
    assert main(["run", str(tmp_path / "words.onnx"), "--input", str(tmp_path / "x.json")]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.native("Pyodide has no Pillow")
def test_run_cuts_narrow_pictures_before_they_become_large(
    eye: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    image = pytest.importorskip("PIL.Image")
    narrow = np.zeros((9001, 1, 3), np.uint8)
    narrow[4500] = 255  # the middle, which is what remains
    image.fromarray(narrow).save(tmp_path / "narrow.png")
    sizes: list[tuple[int, int]] = []
    resize = image.Image.resize
    monkeypatch.setattr(
        image.Image, "resize", lambda self, *args, **rest: (sizes.append(args[0]), resize(self, *args, **rest))[1]
    )
    assert main(["run", str(eye), "--input", str(tmp_path / "narrow.png"), "--json"]) == 0
    assert np.asarray(json.loads(capsys.readouterr().out)["outputs"]["y"]["data"]).min() > 0.5
    assert sizes == [(6, 4)]


@pytest.mark.native("reads a sound and a picture")
def test_run_refuses_dims_that_no_memory_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dims = {"sound": (1, 1 << 40), "picture": (1, 3, 1 << 30, 1 << 30)}
    for name, shape in dims.items():
        file = encoded_model([node("Identity", "x")], [value("x", *shape)], [value("y", *shape)])
        (tmp_path / f"{name}.onnx").write_bytes(file)
    with wave.open(str(tmp_path / "tone.wav"), "wb") as tone:
        tone.setnchannels(1)
        tone.setsampwidth(2)
        tone.setframerate(16000)
        tone.writeframes(bytes(200))
    assert main(["run", str(tmp_path / "sound.onnx"), "--input", str(tmp_path / "tone.wav")]) == 2
    assert "1,099,511,627,776 values" in capsys.readouterr().err
    pytest.importorskip("PIL.Image").new("RGB", (4, 4)).save(tmp_path / "dot.png")
    assert main(["run", str(tmp_path / "picture.onnx"), "--input", str(tmp_path / "dot.png")]) == 2
    assert "takes no picture" in capsys.readouterr().err


@pytest.mark.native("reads a sound file")
def test_run_pads_sounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sound.onnx"
    path.write_bytes(encoded_model([node("Identity", "x")], [value("x", 1, 400)], [value("y", 1, 400)]))
    with wave.open(str(tmp_path / "tone.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(np.full(100, 1 << 14, "<i2").tobytes())
    assert main(["run", str(path), "--input", str(tmp_path / "tone.wav"), "--json"]) == 0
    y = np.asarray(json.loads(capsys.readouterr().out)["outputs"]["y"]["data"])
    np.testing.assert_allclose(y[0], [0.5] * 100 + [0] * 300, atol=1e-4)


def test_convert_writes_the_weights_and_the_source(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "weights.safetensors"
    assert main(["convert", str(path), str(out)]) == 0
    assert [*safetensors.load(str(out))] == ["fc.weight"]
    line = encoded_model([node("Neg", "x")], [value("x", 2)], [value("y", 2)])
    (tmp_path / "neg.onnx").write_bytes(line)
    assert main(["convert", str(tmp_path / "neg.onnx"), str(tmp_path / "neg.py")]) == 0
    assert "class Model(" in (tmp_path / "neg.py").read_text()
    assert main(["convert", str(tmp_path / "neg.onnx"), str(tmp_path / "folder/")]) == 0
    assert (tmp_path / "folder" / "model.py").is_file()


def test_convert_replaces_no_weights_beside_the_source(path: Path, tmp_path: Path) -> None:
    (tmp_path / "net.safetensors").write_bytes(b"kept")
    assert main(["convert", str(path), str(tmp_path / "net.py")]) == 2
    assert (tmp_path / "net.safetensors").read_bytes() == b"kept"


def test_convert_exports_a_model(tmp_path: Path) -> None:
    model, _ = stories.load()
    target = tmp_path / "stories.onnx"
    assert main(["convert", str(stories.FOLDER), str(target), "--dtype", "float32"]) == 0
    loaded = tl.onnx.load(target)
    assert [info.shape for info in loaded.inputs()] == [("batch", "sequence")]
    assert loaded.output_names == ("logits",)
    tokens = tl.tensor([[1, 5, 9], [2, 4, 8]])
    np.testing.assert_allclose(loaded(tokens).detach().numpy(), model(tokens).detach().numpy(), atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (BertModel, ("last_hidden_state", "pooler_output")),
        (BertForSequenceClassification, ("logits",)),
        (BertForQuestionAnswering, ("start_logits", "end_logits")),
    ],
)
def test_convert_names_the_outputs_as_optimum(kind: Any, names: tuple[str, ...], tmp_path: Path) -> None:
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    write_onnx(kind(config), tmp_path / "out.onnx")
    assert tl.onnx.load(tmp_path / "out.onnx").output_names == names


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("net.onnx", "x.gguf", "does not become a .gguf file"),
        ("net.onnx", "x.bin", "does not become a .bin file"),
        ("net.onnx", "x.onnx", "does not become a .onnx file"),
        ("a.safetensors", "x.py", "no ONNX file"),
    ],
)
def test_convert_refuses_other_targets(
    path: Path, source: str, target: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.safetensors").write_bytes(b"")
    assert main(["convert", str(tmp_path / source), str(tmp_path / target)]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / target).exists()


def test_json_has_no_numbers_that_json_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tl.onnx.export(nn.Identity(), (tl.ones(3),), str(tmp_path / "same.onnx"))
    np.save(tmp_path / "x.npy", np.array([1.5, np.nan, -np.inf], np.float32))
    assert main(["run", str(tmp_path / "same.onnx"), "--input", str(tmp_path / "x.npy"), "--json"]) == 0
    (y,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["outputs"].values()
    assert y["data"] == [1.5, "NaN", "-Infinity"]
