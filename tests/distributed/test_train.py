"""`tallow train` in several processes: the weights of one process, also after an interruption; failures end the job."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.distributed.conftest import HERE, start

import tallow as tl
from tallow.cli import main

SIZES = "--width 16 --layers 1 --heads 2 --context 16 --batch-size 8 --learning-rate 0.01 --steps 8"
TOLERANCE = 2e-5  # float32 sums rounded in a different order, after eight steps of AdamW

Train = Callable[..., tuple["subprocess.CompletedProcess[str]", list[str]]]


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"Sentence {i} is followed by sentence {i + 1}. " for i in range(40)), encoding="utf-8")
    return ["train", str(text), *SIZES.split(), "--out"]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Run `programs/training.py`; return its exit status and each rank's output."""

    def run(processes: int, event: str, at: int, *arguments: str, launcher: bool = False) -> object:
        program, output_prefix = str(HERE / "programs" / "training.py"), tmp_path / "said"
        process = start(processes, program, str(output_prefix), event, str(at), *arguments, launcher=launcher)
        return process, [Path(f"{output_prefix}.{rank}").read_text(encoding="utf-8") for rank in range(processes)]

    return run  # type: ignore[return-value]


def loss_of_eval(said: str) -> float:
    found = re.search(r"validation loss (\S+),", said)
    assert found, said
    return float(found[1])


def test_two_processes_and_then_four_do_what_one_does(
    train: Train, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held_out = tmp_path / "held out.txt"
    held_out.write_text("Two rows, so that not each rank has one.", encoding="utf-8")
    options += [str(tmp_path / "one"), "--eval", str(held_out)]
    assert main(options) == 0
    evaluated = loss_of_eval(capsys.readouterr().err)
    options += ["--out", str(tmp_path / "several"), "--accumulate", "2"]
    process, output = train(2, "Ctrl-C", 3, *options)
    assert process.returncode == 130, (process, output)
    assert "several has the model of step 4; loss " in output[0]
    process, output = train(4, "nothing", 0, *options, "--resume", launcher=True)
    assert process.returncode == 0, (process, output)
    assert "in 4 processes; from step 4\n" in output[0]
    assert output[1:] == [""] * 3
    assert loss_of_eval(output[0]) == pytest.approx(evaluated, abs=1e-3)
    one, several = (tl.load(tmp_path / name / "model.safetensors") for name in ("one", "several"))
    assert one.keys() == several.keys()
    for name in one:
        np.testing.assert_allclose(several[name].numpy(), one[name].numpy(), atol=TOLERANCE, err_msg=name)


def test_an_error_of_one_rank_ends_the_job_and_leaves_the_checkpoint(
    train: Train, options: list[str], tmp_path: Path
) -> None:
    done, said = train(2, "error", 5, *options, str(tmp_path / "out"), "--save-every", "2")
    assert done.returncode != 0, (done, said)
    assert said[1] == "tallow train: error: data: the disk is gone\n"
    assert said[0].endswith("all_reduce: rank 1 has ended, but rank 0 waits for it\n")
    assert tl.load_checkpoint(tmp_path / "out" / "checkpoint.safetensors")["step"] == 4


def test_ranks_with_other_options_are_told(train: Train, options: list[str], tmp_path: Path) -> None:
    process, output = train(2, "options", 0, *options, str(tmp_path / "out"), launcher=True)
    assert process.returncode != 0, (process, output)
    assert "rank 1 has other settings than rank 0\n  clip_norm: 1.0 there, 2.0 here" in output[1]
