"""The command `tallow speak`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_speaker import save_small_speaker

from tallow.audio import Sound, WavReader
from tallow.cli import main

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_speaker(tmp_path_factory.mktemp("voice"))


def test_texts_become_wav_files(voice: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def samples(name: str, *options: Any) -> Any:
        path = tmp_path / name
        arguments = [
            "speak",
            "Hello there. How are you?",
            "--model",
            voice,
            "--save",
            path,
            "--device",
            "cpu",
            *options,
        ]
        assert main([str(each) for each in arguments]) == 0
        with path.open("rb") as file:
            assert WavReader(file, name).sample_rate_hz == 16000
        return Sound(path).read()

    one = samples("one.wav", "--seed", 3)
    assert "s of sound" in capsys.readouterr().err
    np.testing.assert_array_equal(samples("two.wav", "--seed", 3), one)
    assert len(samples("slow.wav", "--noise", 0, "--speed", 0.2)) > len(samples("still.wav", "--noise", 0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["?!"], "nothing that the model can say"),
        (["hello", "--voice", "7"], "voices 0 to 1"),
        (["", "--voice", "1"], "nothing"),
    ],
)
def test_errors(
    options: list[str], words: str, voice: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.wav"
    assert main(["speak", *options, "--model", str(voice), "--save", str(path), "--device", "cpu"]) != 0
    assert words in capsys.readouterr().err
    assert not path.exists()
