"""`tallow train` in one process."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from support.full_disk import ERROR, a_full_disk

import tallow as tl
from tallow.cli import main
from tallow.distributed.mpi import world
from tallow.training.language_modelling import LanguageModelTraining
from tallow.training.progress import sparkline

pytestmark = pytest.mark.native  # a package that Pyodide lacks reads the tokenizer's file

SIZES = "--width 16 --layers 1 --heads 2 --context 16 --batch-size 4 --learning-rate 0.01"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"Sentence {i} is followed by sentence {i + 1}. " for i in range(40)), encoding="utf-8")
    return path


def train(*arguments: Any, sizes: str = SIZES) -> int:
    return main(["train", *sizes.split(), *map(str, arguments)])


def test_a_full_disk_leaves_no_empty_folder(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with a_full_disk(1000):
        assert train(text, "--out", tmp_path / "new" / "out", "--steps", 1) == 2
    assert ERROR in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def weights(folder: Path) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tl.load(folder / "model.safetensors").items()}


def interrupt_in_step(step: int, monkeypatch: pytest.MonkeyPatch, number: int = signal.SIGINT) -> None:
    learn = LanguageModelTraining.learn

    def learn_and_interrupt(self: LanguageModelTraining) -> tuple[float]:
        if self.step == step:
            signal.raise_signal(number)
        return learn(self)

    monkeypatch.setattr(LanguageModelTraining, "learn", learn_and_interrupt)


@pytest.mark.parametrize("option", ["TEXT", "--eval", "--tokenizer", "--model"])
def test_a_missing_input_leaves_no_folder(
    option: str, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere, out = tmp_path / "nowhere", tmp_path / "out"
    inputs = [nowhere] if option == "TEXT" else [text, option, nowhere]
    assert train(*inputs, "--out", out, sizes="") == 2
    assert "nowhere" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("vocabulary", [[], ["--vocab", "280"]], ids=["bytes", "pieces"])
def test_texts_may_be_pipes(vocabulary: list[str], text: Path, tmp_path: Path) -> None:
    """Each is read once: nothing else comes out of a pipe."""
    pipes, writers = [tmp_path / "pipe", tmp_path / "validation"], []
    for pipe in pipes:
        os.mkfifo(pipe)
        writers.append(Thread(target=pipe.write_bytes, args=(text.read_bytes(),), daemon=True))
        writers[-1].start()
    assert train(pipes[0], "--eval", pipes[1], "--out", tmp_path / "out", "--steps", 1, *vocabulary) == 0
    for writer in writers:
        writer.join()


@pytest.mark.parametrize("vocabulary", [[], ["--vocab", "280"]], ids=["bytes", "pieces"])
def test_ctrl_c_and_resume_end_where_a_run_without_a_break_does(
    vocabulary: list[str],
    text: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [text, "--steps", 8, "--eval", text, "--eval-every", 4, "--log-every", 2, *vocabulary]
    assert train(*options, "--out", tmp_path / "whole") == 0
    stderr = capsys.readouterr().err
    assert "from step 0\n" in stderr
    assert stderr.count(" tokens/s\n") == 4
    assert stderr.count("perplexity") == 2
    with monkeypatch.context() as patch:
        interrupt_in_step(4, patch)
        assert train(*options, "--out", tmp_path / "parts") == 130
    assert "has the model of step 5" in capsys.readouterr().err
    assert train(*options, "--out", tmp_path / "parts", "--resume") == 0
    one_run, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert one_run.keys() == parts.keys()
    assert all(np.array_equal(one_run[name], parts[name]) for name in one_run)


def test_generate_and_another_run_accept_the_folder(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert train(text, "--out", first, "--steps", 2) == 0
    assert main(["generate", "Sen", "--model", str(first), "--steps", "8", "--temperature", "0"]) == 0
    assert capsys.readouterr().out.startswith("Sen")
    options = [text, "--model", first, "--steps", 2, "--batch-size", 2]
    assert train(*options, "--out", second, sizes="") == 0
    assert weights(first).keys() == weights(second).keys()
    assert (second / "tokenizer.json").read_bytes() == (first / "tokenizer.json").read_bytes()
    assert json.loads((second / "config.json").read_text())["hidden_size"] == 16
    assert train(*options, "--out", tmp_path / "third", "--width", 8, sizes="") == 2
    assert "--width with --model" in capsys.readouterr().err
    assert train(text, "--out", tmp_path / "fourth", "--tokenizer", first, "--steps", 1) == 0
    assert (tmp_path / "fourth" / "tokenizer.json").read_bytes() == (first / "tokenizer.json").read_bytes()


def test_a_run_is_not_overwritten(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert train(text, "--out", out, "--resume") == 2
    assert "has no checkpoint.safetensors to resume" in capsys.readouterr().err
    assert train(text, "--out", out, "--steps", 1, "--vocab", 260) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert train(text, "--out", out) == 2
    assert "already has a checkpoint.safetensors; continue with --resume" in capsys.readouterr().err
    assert train(text, "--out", out, "--resume", "--steps", 1, "--clip", 2) == 2
    stderr = capsys.readouterr().err
    assert "clip_norm: 1.0 there, 2.0 here" in stderr
    assert "model.vocab_size: 260 there, 257 here" in stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_bad_input(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def assert_refused(message: str, *options: Any, texts: Path = text, out: Path = tmp_path / "out") -> None:
        assert train(texts, "--out", out, *options) == 2
        assert message in capsys.readouterr().err

    assert_refused("nowhere: No such file", texts=tmp_path / "nowhere")
    assert_refused("a row of context 5000 needs 5001", "--context", 5000)
    assert_refused("--width 15 with --heads 2", "--width", 15)
    assert_refused("--width 32 with --heads 3", "--width", 32, "--heads", 3)
    assert_refused("pass a --width that is a multiple of 6", "--width", 33, "--heads", 3)  # rotary pairs are even
    assert_refused("in 3 parts each; use a multiple of 3", "--accumulate", 3)
    assert_refused("Not a directory", out=text / "below a file")
    assert_refused("has no tokenizer.json", "--tokenizer", tmp_path)
    assert_refused("text.txt is not a tokenizer.json", "--tokenizer", text)
    for option, value in (("--steps", 0), ("--vocab", 256), ("--clip", 0), ("--dtype", "float8"), ("--bogus", 1)):
        with pytest.raises(SystemExit):
            train(text, "--out", tmp_path / "out", option, value)


def test_several_processes_without_mpi(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setattr("tallow.distributed.groups.world", world.__wrapped__)  # a test before may have started MPI
    for name in ("mpi4py", "mpi4py.MPI"):
        monkeypatch.setitem(sys.modules, name, None)
    assert train(text, "--out", tmp_path / "out") == 2
    assert 'needs the package mpi4py; install it: pip install "mpi4py>=4.1" "mpich>=5"' in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_that_diverges_leaves_its_last_checkpoint(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--steps", 9, "--warmup", 0, "--save-every", 1, "--clip", "inf", "--learning-rate", 1e20]
    assert train(text, "--out", tmp_path / "out", *options, sizes=SIZES.partition(" --learning")[0]) == 2
    assert "the norm of the gradients nan; lower the learning rate" in capsys.readouterr().err.replace("-nan", "nan")
    assert not (tmp_path / "out" / "model.safetensors").exists()
    assert tl.load_checkpoint(tmp_path / "out" / "checkpoint.safetensors")["step"] >= 1


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_other_signals_save_like_ctrl_c(
    name: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = getattr(signal, name, None)
    if number is None:
        pytest.skip(f"this system has no {name}")
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        interrupt_in_step(1, patch, number)
        assert train(text, "--out", out, "--steps", 3) == 128 + number
    stderr = capsys.readouterr().err
    assert re.search(
        rf"^{re.escape(str(out))} has the model of step 2; loss .*; continue with --resume$", stderr, re.MULTILINE
    )
    assert (out / "model.safetensors").exists()
    assert tl.load_checkpoint(out / "checkpoint.safetensors")["step"] == 2
    assert train(text, "--out", out, "--steps", 3, "--resume") == 0


def test_the_loss_as_a_line_and_as_a_plot(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "the loss, drückend.png"
    options = [text, "--steps", 4, "--eval", text, "--eval-every", 2, "--log-every", 1]
    assert train(*options, "--out", tmp_path / "first", "--plot", picture) == 0
    stderr = capsys.readouterr().err
    losses = re.findall(r"^step \d: loss ([\d.]+)", stderr, re.MULTILINE)
    (ending,) = re.findall(r"has the model of step 4; loss (\S+) to (\S+) (\S+)$", stderr, re.MULTILINE)
    assert ending[:2] == (losses[0], losses[-1])
    assert ending[2] == sparkline([float(loss) for loss in losses])
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    # The plot of a resumed run has all of its steps; an SVG has them as text.
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(io.BytesIO(), "ascii"))
    plot = tmp_path / "loss.SVG"
    with monkeypatch.context() as patch:
        interrupt_in_step(1, patch)
        assert train(*options, "--out", tmp_path / "second", "--plot", plot) == 130
    assert train(*options, "--out", tmp_path / "second", "--plot", plot, "--resume") == 0
    root = ElementTree.parse(plot).getroot()
    lines = [group for group in root.iter("{http://www.w3.org/2000/svg}g") if "line2d" in group.get("id", "")]
    paths = [path.get("d", "") for group in lines for path in group.iter("{http://www.w3.org/2000/svg}path")]
    assert max(path.count("L ") + path.count("M ") for path in paths if "Q" not in path and "C" not in path) >= 4
    sys.stderr.flush()
    written = sys.stderr.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    assert re.search(r"has the model of step 4; loss [\d.]+ to [\d.]+$", written, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("loss.gif", "loss.gif: unknown image format; use .png, .svg, .pdf"),
        ("nowhere/loss.png", "nowhere/loss.png: No such file or directory"),
        ("folder.png", "folder.png: Is a directory"),
    ],
)
def test_an_impossible_plot_is_refused_before_the_run(
    name: str, message: str, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "folder.png").mkdir()
    assert train(text, "--out", tmp_path / "out", "--plot", tmp_path / name) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_plot_without_matplotlib(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert train(text, "--out", tmp_path / "out", "--plot", tmp_path / "loss.png") == 2
    assert "a plot of the loss needs the package matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_diverging_run_is_plotted_too(text: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    options = ["--steps", 9, "--warmup", 0, "--clip", "inf", "--learning-rate", 1e20, "--plot", tmp_path / "loss.png"]
    assert train(text, "--out", tmp_path / "out", *options, sizes=SIZES.partition(" --learning")[0]) == 2
    assert (tmp_path / "loss.png").stat().st_size > 1000
