"""scripts/gpu_first_run without a GPU: how its workers handle tests that fail, die, hang or break the GPU."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from first_run import workers
from support.paths import ROOT

import tallow as tl

TESTS = """
import os, time
import tallow as tl

def test_a_passes(): pass
def test_b_fails(): assert 1 == 2
def test_c_dies(): os._exit(3)
def test_d_passes(): pass
def test_e_hangs(): time.sleep(600)
def test_f_breaks_the_gpu():
    def synchronize(): raise RuntimeError("cudaErrorIllegalAddress")
    tl.cuda.is_available, tl.cuda.synchronize = lambda: True, synchronize
def test_g_passes_in_a_process_that_is_whole():
    tl.cuda.is_available() or True
def test_h_is_skipped():
    import pytest
    pytest.skip("no reason")
"""
OUTCOMES = {
    "test_a_passes": "passed",
    "test_b_fails": "failed",
    "test_c_dies": "died",
    "test_d_passes": "passed",
    "test_e_hangs": "hung",
    "test_f_breaks_the_gpu": "broke the GPU",
    "test_g_passes_in_a_process_that_is_whole": "passed",
    "test_h_is_skipped": "skipped",
}


def run(folder: Path, source: str, seconds: float = 120.0, test_limit_s: float = 2.0) -> workers.Progress:
    path = folder / "test_these.py"
    path.write_text(source)
    return workers.run_tests(
        [str(path)],
        folder / "results.jsonl",
        folder / "log",
        deadline=time.monotonic() + seconds,
        test_limit_s=test_limit_s,
    )


def outcomes(progress: workers.Progress) -> dict[str, str]:
    return {name.rpartition("::")[2]: line["outcome"] for name, line in progress.outcomes.items()}


def test_every_test_is_accounted_for_even_if_its_process_dies(tmp_path: Path) -> None:
    progress = run(tmp_path, TESTS)
    assert outcomes(progress) == OUTCOMES, (tmp_path / "log").read_text()
    assert progress.counts()["not run"] == 0
    messages = {name.rpartition("::")[2]: line.get("message", "") for name, line in progress.outcomes.items()}
    assert "assert 1 == 2" in messages["test_b_fails"]
    assert "cudaErrorIllegalAddress" in messages["test_f_breaks_the_gpu"]
    assert "no reason" in messages["test_h_is_skipped"]


def test_results_before_the_deadline_are_kept(tmp_path: Path) -> None:
    source = "import time\ndef test_a(): pass\ndef test_b(): time.sleep(600)\ndef test_c(): pass\n"
    progress = run(tmp_path, source, seconds=5.0, test_limit_s=600.0)
    assert outcomes(progress) == {"test_a": "passed", "test_b": "not run"}
    assert progress.counts() == {"passed": 1, "not run": 2}


def test_collection_errors_end_the_run(tmp_path: Path) -> None:
    progress = run(tmp_path, "import a_module_that_is_missing")
    assert not progress.outcomes
    assert "a_module_that_is_missing" in (tmp_path / "log").read_text()


def test_a_truncated_line_is_not_a_result(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    lines = [{"collected": 2}, {"test": "a", "began": 1.0}, {"test": "a", "outcome": "passed", "seconds": 0.1}]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"test": "b", "outc')
    assert workers.read(results).counts() == {"passed": 1, "not run": 1}


@pytest.mark.skipif(tl.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_smoke_test_says_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "gpu_first_run"), "--out", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert process.returncode == 2
    assert "the GPU does not work yet" in process.stdout
    assert "device 'cuda' needs" in (tmp_path / "smoke.log").read_text()
    assert json.loads((tmp_path / "smoke.jsonl").read_text())["outcome"] == "failed"
