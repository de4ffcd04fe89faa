"""Run a pytest suite in another process and account for every one of its tests in this one.

The unit tests run three times: here, with the kernels off, and inside Pyodide. The latter two are processes of their
own; what they report comes back as JUnit XML, so a count can be shown and no failure is lost.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True)
class Outcome:
    """What a suite reported. `failures` maps a test's name to its traceback."""

    passed: int
    skipped: int
    failures: dict[str, str]

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.skipped} skipped, {len(self.failures)} failed"


def run(command: Sequence[str], junit: Path, *, env: Mapping[str, str], cwd: Path, timeout_s: float) -> Outcome:
    """Run `command`, which is to write `junit`, and return what it reports.

    Raises:
        AssertionError: the process wrote no report, reported no test, or its exit status contradicts its report.
    """
    done = subprocess.run(
        command, env=dict(env), cwd=cwd, timeout=timeout_s, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    output = f"{command}\n{done.stdout[-20_000:]}{done.stderr[-20_000:]}"
    assert junit.exists(), f"exit status {done.returncode} and no report from\n{output}"
    outcome = read_junit(junit)
    assert outcome.passed + len(outcome.failures) > 0, f"no test ran in\n{output}"
    assert (done.returncode == 0) == (not outcome.failures), f"exit status {done.returncode} but {outcome} in\n{output}"
    return outcome


def read_junit(path: Path) -> Outcome:
    """Read pytest's report. Errors of fixtures and of collection count as failures."""
    passed, skipped, failures = 0, 0, {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        problems = [*case.findall("failure"), *case.findall("error")]
        if problems:
            failures[name] = "\n".join(p.text or p.get("message", "") for p in problems)
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return Outcome(passed, skipped, failures)


def describe_failures(outcome: Outcome) -> str:
    """All failures with their tracebacks, as one text."""
    return "\n\n".join(f"{name}\n{traceback}" for name, traceback in outcome.failures.items())
