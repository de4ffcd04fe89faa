"""Run tests in a process that is replaced when a test kills it, hangs, or breaks the GPU.

The process is pytest with the plugin tests/support/gpu_worker.py, whose file of results names the current test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "support.gpu_worker"
FOUND = 87  # exit status of compute-sanitizer when it finds something
POLL_S = 0.2
START_LIMIT_S = 120.0  # for imports, collection, and the start of the first test
FAILURES = ("failed", "broke the GPU", "hung", "died")


@dataclass
class Progress:
    """The contents of a file of results so far."""

    collected: int = 0
    running: str | None = None
    since: float = 0.0
    begun: int = 0
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def counts(self) -> Counter[str]:
        counter = Counter(line["outcome"] for line in self.outcomes.values())
        counter["not run"] += max(0, self.collected - self.begun)
        return counter


def read(results: Path) -> Progress:
    progress = Progress()
    if not results.exists():
        return progress
    for text in results.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue  # truncated when its process was killed
        if "collected" in line:
            progress.collected = max(progress.collected, progress.begun + line["collected"])
        elif "began" in line:
            progress.running, progress.since = line["test"], line["began"]
            progress.begun += 1
        else:
            progress.outcomes[line["test"]] = line
            progress.running = None
    return progress


def run_tests(
    arguments: Sequence[str],
    results: Path,
    log: Path,
    *,
    deadline: float,
    test_limit_s: float,
    under: Sequence[str] = (),
) -> Progress:
    """Run pytest with `arguments` until all tests have ended or `time.monotonic()` reaches `deadline`.

    Args:
        results: the file of results; tests that it contains are not run again.
        log: the output of the processes is appended to it.
        under: a program that runs pytest, such as a debugger, with its arguments.

    If a test takes longer than `test_limit_s` or kills its process, this is recorded, and a new process continues with
    the next test. The run ends when two processes in a row start no test.
    """
    pytest = [sys.executable, "-m", "pytest", "-p", PLUGIN, f"--results={results}", "--continue-on-collection-errors"]
    idle = 0
    while time.monotonic() < deadline and idle < 2:
        before = read(results).begun
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*under, *pytest, *arguments],
                cwd=ROOT,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            ended_by = _watch(process, results, before, deadline, test_limit_s)
        progress = read(results)
        if progress.running is not None:
            _write(results, progress.running, ended_by, time.time() - progress.since)
        elif process.returncode == FOUND:
            _write(results, under[0], "failed", 0.0)
            break
        elif process.returncode in (0, 1, 5):  # all passed, some failed, no tests left
            break
        idle = 0 if progress.begun > before else idle + 1
    return read(results)


def _watch(process: subprocess.Popen[bytes], results: Path, before: int, deadline: float, test_limit_s: float) -> str:
    """Wait for the process; kill it if a test takes too long. Return the outcome of a test that did not finish."""
    started = time.time()
    while process.poll() is None:
        progress = read(results)
        late = progress.running is not None and time.time() - progress.since > test_limit_s
        stuck = progress.begun == before and time.time() - started > START_LIMIT_S
        out_of_time = time.monotonic() > deadline
        if late or stuck or out_of_time:
            process.kill()
            process.wait()
            return "hung" if late else "not run"
        time.sleep(POLL_S)
    return "died"


def _write(results: Path, test: str, outcome: str, seconds: float) -> None:
    """Append the outcome of a test that could not report it itself, after a possibly unfinished line."""
    with results.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps({"test": test, "outcome": outcome, "seconds": seconds}) + "\n")


def environment() -> dict[str, str]:
    """Return the environment of the caller, with the checkout first on PYTHONPATH and without pytest plugins."""
    folders = [str(ROOT / name) for name in ("package", "native_gpu", "scripts", "tests")]
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([*folders, *([inherited] if inherited else [])])
    return os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
