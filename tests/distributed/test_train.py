"""`tallow train` in several processes: the weights of one, whoever stops the run, and an end where one fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.distributed.conftest import HERE, start

import tallow as tl
from tallow.cli import main

OPTIONS = "--width 16 --layers 1 --heads 2 --context 16 --batch-size 8 --learning-rate 0.01 --steps 8"
TOLERANCE = 2e-5  # of sums in float32 that are rounded in another order, after eight steps of AdamW


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"Sentence {i} is followed by sentence {i + 1}. " for i in range(40)), encoding="utf-8")
    return path


def test_two_processes_and_then_four_do_what_one_does(text: Path, tmp_path: Path) -> None:
    options = ["train", str(text), "--eval", str(text), *OPTIONS.split()]
    assert main([*options, "--out", str(tmp_path / "one")]) == 0
    options += ["--out", str(tmp_path / "several"), "--accumulate", "2"]
    done = start(2, str(HERE / "programs" / "interrupted_training.py"), "3", *options)
    assert done.returncode == 130, done
    assert "several has the model of step 4\n" in done.stderr
    done = start(4, "-m", "tallow", *options, "--resume", launcher=True)
    assert done.returncode == 0, done
    assert "in 4 processes; from step 4\n" in done.stderr
    assert done.stderr.count("from step") == 1  # rank 0 alone speaks
    one, several = (tl.load(tmp_path / name / "model.safetensors") for name in ("one", "several"))
    assert one.keys() == several.keys()
    for name in one:
        np.testing.assert_allclose(several[name].numpy(), one[name].numpy(), atol=TOLERANCE, err_msg=name)


def test_what_rank_0_cannot_read_ends_the_job(text: Path, tmp_path: Path) -> None:
    text.write_bytes(b"\xff")
    done = start(2, "-m", "tallow", "train", str(text), "--out", str(tmp_path / "out"), *OPTIONS.split(), launcher=True)
    assert done.returncode == 2, done
    assert "text.txt is not UTF-8" in done.stderr
