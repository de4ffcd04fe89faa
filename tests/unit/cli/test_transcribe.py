"""The command `tallow transcribe`, run as a user runs it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.full_disk import ERROR, a_full_disk
from support.small_whisper import small_config

import tallow as tl
from tallow.audio import write_wav
from tallow.cli import main
from tallow.io import safetensors
from tallow.models.whisper import Whisper, transcribe

pytestmark = pytest.mark.native

COMMAND = [sys.executable, "-m", "tallow", "transcribe"]
CONFIG = small_config(258 + 99 + 8 + 1501)
GREEDY = ["--logprob-threshold", "-99", "--compression-ratio-threshold", "99"]


def run(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False, **options)


def letters() -> dict[str, int]:
    """Return the bytes as GPT-2's vocabulary spells them, and two more tokens."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [b for b in range(256) if b not in visible]
    spelled = [chr(b) if b in visible else chr(256 + hidden.index(b)) for b in range(256)]
    return {token: i for i, token in enumerate([*spelled, "he", "ll"])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whisper")
    tl.manual_seed(0)
    safetensors.save(Whisper(CONFIG).state_dict(), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(asdict(CONFIG) | {"model_type": "whisper"}))
    (folder / "vocab.json").write_text(json.dumps(letters()))
    noise = np.random.default_rng(0).standard_normal(40_000) / 10
    write_wav(folder / "noise.wav", noise, 16000)
    write_wav(folder / "short.wav", noise[:12_000], 16000)
    return folder


def test_a_full_disk_leaves_no_empty_folder(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "out"
    options = ["--model", str(folder), "--format", "json", "--output-dir", str(out), *GREEDY]
    with a_full_disk(10):
        assert main(["transcribe", str(folder / "short.wav"), *options]) == 2
    assert f"{out / 'short.json'}: {ERROR}" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_text_is_that_of_transcribe(folder: Path) -> None:
    process = run(folder / "noise.wav", "--model", folder, *GREEDY)
    assert process.returncode == 0, process.stderr
    transcript = transcribe(
        Whisper.from_pretrained(folder), folder / "noise.wav", logprob_threshold=-99, compression_ratio_threshold=99
    )
    text = "".join(segment.text for segment in transcript.segments)
    words = re.sub(r"[\x00-\x1f\x7f-\x9f\s]", "", text)
    assert words
    assert re.sub(r"\s", "", process.stdout) == words
    assert re.search(r"noise.wav: 2.5 s of sound in [\d.]+ s, [\d.]+ times real time", process.stderr)


@pytest.mark.parametrize("form", ["txt", "srt", "vtt", "tsv", "json"])
def test_files_in_every_format(form: str, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "texts"
    sounds = [folder / "noise.wav", folder / "short.wav"]
    process = run(*sounds, "--model", folder, "--format", form, "--output-dir", out, "--word-timestamps", *GREEDY)
    assert process.returncode == 0, process.stderr
    assert process.stdout == ""
    assert sorted(path.name for path in out.iterdir()) == [f"noise.{form}", f"short.{form}"]
    if form == "json":
        read = json.loads((out / "noise.json").read_text(encoding="utf-8"))
        assert read["duration_s"] == 2.5
        assert any(segment["words"] for segment in read["segments"])


def test_stdin(folder: Path) -> None:
    command = [*COMMAND, "-", "--model", str(folder), "--format", "json", *GREEDY]
    process = subprocess.run(
        command, input=(folder / "short.wav").read_bytes(), capture_output=True, timeout=60, check=False
    )
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["duration_s"] == 0.75


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["noise.wav", "--language", "klingon"], r"unknown language 'klingon'; use one of en"),
        (["noise.wav", "--hallucination-silence-threshold", "1"], r"without word_timestamps"),
        (["noise.wav", "noise.wav", "--output-dir", "out"], r"two files have the same name"),
        (["noise.wav", "--beam-size", "0"], r"expected 1 or more"),
        (["noise.wav", "--tokenizer", "config.json"], r"text tokens|is not a token of bytes"),
    ],
)
def test_bad_input(arguments: list[str], message: str, folder: Path) -> None:
    process = run(*arguments, "--model", folder, cwd=folder)
    assert process.returncode == 2
    assert re.search(message, process.stderr), process.stderr
    assert "Traceback" not in process.stderr


def test_the_packaged_model_is_the_default(folder: Path) -> None:
    done = run(folder / "noise.wav")
    assert done.returncode == 0, done.stderr
    assert re.search(r"knows English digits.*; for general speech use --model openai/whisper-tiny", done.stderr)
    assert "--tokenizer without --model" in run(folder / "noise.wav", "--tokenizer", folder / "vocab.json").stderr


def test_a_bad_file_does_not_stop_the_others(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cut ö.wav").write_bytes((folder / "short.wav").read_bytes()[:30])
    sounds = [folder / "short.wav", tmp_path / "cut ö.wav", tmp_path / "nowhere.wav", tmp_path, folder / "noise.wav"]
    out = tmp_path / "out"
    options = ["--model", str(folder), *GREEDY, "--output-dir", str(out)]
    assert main(["transcribe", *map(str, sounds), *options]) == 1
    stderr = capsys.readouterr().err.splitlines()
    errors = [line for line in stderr if line.startswith("tallow transcribe: error: ")]
    assert "cut ö.wav is truncated" in errors[0]
    assert f"{tmp_path / 'nowhere.wav'}: No such file or directory" in errors[1]
    assert f"{tmp_path}: Is a directory" in errors[2]
    assert stderr[-1] == f"3 of 5 files were not transcribed: {', '.join(map(str, sounds[1:4]))}"
    assert sorted(path.name for path in out.iterdir()) == ["noise.txt", "short.txt"]


def test_a_file_without_its_end(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.wav").write_bytes((folder / "short.wav").read_bytes()[:3000])
    done = run(tmp_path / "cut.wav", "--model", folder, *GREEDY)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stderr.splitlines() if "truncated" in line)
    assert line.startswith(f"tallow transcribe: warning: {tmp_path / 'cut.wav'} is truncated: ")


@pytest.mark.parametrize("form", ["txt", "srt", "json"])
def test_text_and_reports_share_no_line(form: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both stdout and stderr are a terminal."""
    terminal = io.StringIO()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("sys.stderr", terminal)
    sounds = [str(folder / "noise.wav"), str(folder / "short.wav")]
    assert main(["transcribe", *sounds, "--model", str(folder), *GREEDY, "--format", form]) == 0
    lines = terminal.getvalue().splitlines()
    reports = [line for line in lines if "times real time" in line or re.search(r"wav: [\d.]+ s, \w+$", line)]
    assert len(reports) == 4
    assert all(line.startswith(str(folder)) for line in reports)
    assert len([line for line in lines if line.strip() and not line.startswith(("loaded", str(folder)))]) >= 2


def render(line: str) -> str:
    """Return a line as a terminal shows it, with carriage returns applied."""
    text = ""
    for part in line.split("\r"):
        text = part + text[len(part) :]
    return text.rstrip()


def test_the_progress_bar_does_not_overlap_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test a terminal with tqdm and without: no line of text may contain a piece of the progress bar."""
    sound = str(folder / "noise.wav")
    for has_tqdm in (True, False):
        if has_tqdm:
            pytest.importorskip("tqdm")
        terminal = io.StringIO()
        with monkeypatch.context() as patch:
            patch.setattr(terminal, "isatty", lambda: True, raising=False)
            patch.setattr("sys.stdout", terminal)
            patch.setattr("sys.stderr", terminal)
            if not has_tqdm:
                patch.setattr("tallow.cli.progress.find_spec", lambda name: None)
            assert main(["transcribe", sound, "--model", str(folder), *GREEDY]) == 0
        output = terminal.getvalue()
        assert "100%" in output
        lines = [render(line) for line in output.split("\n")]
        assert not [line for line in lines if "0%" in line]
        assert re.fullmatch(r".*noise.wav: 2.5 s of sound in .* times real time", lines[-2])
