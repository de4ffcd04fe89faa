"""The table of `bench.py --gpu` with a stubbed GPU: every workload runs for both libraries, and none is lost."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from bench import gpu
from bench.gpu_workloads import TINY, Sizes, Work
from support import cupy_like
from support.paths import ROOT

import tallow as tl
from tallow import devices


class Event:
    """A point in time by the host's clock."""

    def record(self) -> None:
        self.at_ms = time.perf_counter() * 1e3

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: Event) -> float:
        return end.at_ms - self.at_ms


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> gpu.Side:
    backend = cupy_like.Backend()
    monkeypatch.setitem(devices._BY_TYPE, backend.type, backend)
    monkeypatch.setitem(devices._BY_ARRAY, backend.array_type, backend)
    monkeypatch.setattr("tallow.cuda.device_count", lambda: 1)
    monkeypatch.setattr(gpu, "BUDGET_S", 0.0)
    monkeypatch.setattr(gpu, "SAMPLE_MS", 0.0)
    return gpu.Side(tl, "cuda", Event, lambda: None)


@pytest.fixture
def theirs() -> gpu.Side:
    return gpu.Side(torch, "cpu", Event, lambda: None)


def here(ours: gpu.Side, theirs: gpu.Side | str) -> Callable[[gpu.Line], gpu.Results]:
    return lambda line: gpu.measure_line(line, ours, theirs, TINY)


def test_every_workload_runs_on_both_sides(ours: gpu.Side, theirs: gpu.Side) -> None:
    rows, notes = gpu.measure_all(here(ours, theirs), gpu.LINES)
    assert [row[""] for row in rows] == [line.name for line in gpu.LINES]
    assert len(notes) == 1, notes  # the bandwidth; any other note is about a failure
    for row, line in zip(rows, gpu.LINES, strict=True):
        assert row["tallow, ms"] > 0
        assert row["PyTorch, ms"] > 0
        assert ("goal" in row["speed, PyTorch = 1"]) == (line.goal is not None)
        assert ("goal" in row["of the bandwidth"]) == (line.share is not None)


def test_a_failure_is_a_note_and_the_rest_still_runs(ours: gpu.Side) -> None:
    def too_large(library: Any, device: str, sizes: Sizes) -> Work:
        raise tl.OutOfMemoryError("CUDA out of memory: 5 bytes")

    def quick(library: Any, device: str, sizes: Sizes) -> Work:
        return Work(lambda: None, bytes=8)

    lines = (gpu.Line("large", too_large, goal=2.0), gpu.Line("quick", quick, share=0.0))
    rows, notes = gpu.measure_all(here(ours, "it is not there"), lines)
    assert notes[1:] == [
        "large: tallow: OutOfMemoryError: CUDA out of memory: 5 bytes",
        "large: PyTorch: it is not there",
        "quick: PyTorch: it is not there",
    ]
    assert rows[0]["speed, PyTorch = 1"] == "?, goal 2"
    assert rows[1]["of the bandwidth"].endswith("goal 0: met")
    rows, notes = gpu.measure_all(here(ours, "it is not there"), lines, limit_s=-1)
    assert not rows
    assert notes[1:] == ["large: no time left", "quick: no time left"]


def test_ratios_of_known_times() -> None:
    """tallow takes 2 ms for 3 GB, 4 TFLOP and 6 tokens, PyTorch 1 ms; copying a GB takes 1 ms."""
    work = {"bytes": 3 * 10**9, "flops": 4 * 10**12, "tokens": 6}
    known = {"tallow": gpu.Result(2.0, **work), "PyTorch": gpu.Result(1.0, **work)}
    make: Any = SimpleNamespace()
    (row,), notes = gpu.measure_all(
        lambda line: {"tallow": gpu.Result(1.0, 10**9)} if line is gpu.COPY else known,
        [gpu.Line("x", make, goal=0.6, share=0.85)],
    )
    assert notes == ["copying: 1,000 GB/s, read and written"]
    assert row == {
        "": "x",
        "tallow, ms": 2.0,
        "PyTorch, ms": 1.0,
        "TFLOP/s": 2000.0,
        "tokens/s": 3000.0,
        "speed, PyTorch = 1": "0.50, goal 0.6: missed",
        "of the bandwidth": "1.50, goal 0.85: met",
    }


@pytest.mark.parametrize(
    ("program", "results"),
    [
        ('print(\'warming up\'); print(\'{"tallow": {"median_ms": 2.5}, "PyTorch": "none"}\')', None),
        ("import os; os.abort()", "its process ended with -6"),
        ("import time; time.sleep(60)", "not finished after 0.5 s"),
    ],
)
def test_a_row_in_a_process_of_its_own(program: str, results: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    run = subprocess.run

    def instead(command: list[str], **options: Any) -> Any:
        assert command[-2:] == ["--gpu-row", "matmul"]
        return run([sys.executable, "-c", program], **options)

    monkeypatch.setattr(subprocess, "run", instead)
    if results and "after" in results:
        monkeypatch.setattr(gpu, "ROW_LIMIT_S", 0.5)
    expected = {"tallow": gpu.Result(2.5), "PyTorch": "none"} if results is None else {"tallow": results}
    assert gpu.in_a_process(gpu.LINES[0]) == expected


@pytest.mark.skipif(tl.cuda.is_available(), reason="there is a GPU")
def test_error_without_a_gpu() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "bench.py"), "--gpu"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert process.returncode == 1
    assert process.stdout == ""
    assert process.stderr.startswith("bench.py --gpu: device 'cuda' needs ")
    assert "hint:" in process.stderr
