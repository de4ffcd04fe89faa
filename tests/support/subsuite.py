"""Run a pytest suite in another process and account for each of its tests in this one.

The unit tests run in this process, and most of them also with kernels off and inside Pyodide. These are separate
processes that report JUnit XML, so that their counts are shown and no failure is lost. The caller names the allowed
reasons for skips and their share: a suite that skips everything has tested nothing.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree

KERNELS = "kernels"  # report property that names the kernel library


@dataclass(frozen=True)
class Outcome:
    """The results of a suite.

    Attributes:
        skips: number of skipped tests by reason.
        failures: traceback of each failed test.
        kernels: the kernel library, or "off"; "" if the suite does not report it.
    """

    passed: int
    skips: Mapping[str, int]
    failures: dict[str, str]
    kernels: str

    @property
    def skipped(self) -> int:
        return sum(self.skips.values())

    def unexpected_skips(self, allowed: Mapping[str, float]) -> list[str]:
        """Return skips for a reason that is not in `allowed`, or beyond the share of all tests allowed for it.

        Args:
            allowed: maps the beginning of a reason to a share from 0 to 1.
        """
        total = self.passed + self.skipped + len(self.failures)
        counts = Counter[str]()
        for reason, count in self.skips.items():
            counts[next((begin for begin in allowed if reason.startswith(begin)), reason)] += count
        return [
            f"{count} of {total} tests are skipped: {reason}"
            for reason, count in counts.items()
            if count > allowed.get(reason, 0) * total
        ]

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.skipped} skipped, {len(self.failures)} failed"


class AccountFor(Protocol):
    """Type of the fixture `account_for` in tests/conftest.py."""

    def __call__(self, name: str, outcome: Outcome, skips: Mapping[str, float] | None = None) -> None: ...


def run(command: Sequence[str], junit: Path, *, env: Mapping[str, str], cwd: Path, timeout_s: float) -> Outcome:
    """Run `command`, which writes the JUnit file `junit`, and return the results.

    Raises:
        AssertionError: the process wrote no report, reported no test, or its exit status contradicts its report.
    """
    process = subprocess.run(
        command, env=dict(env), cwd=cwd, timeout=timeout_s, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    output = f"{command}\n{process.stdout[-20_000:]}{process.stderr[-20_000:]}"
    assert junit.exists(), f"exit status {process.returncode} and no report from\n{output}"
    outcome = read_junit(junit)
    assert outcome.passed + len(outcome.failures) > 0, f"no test ran in\n{output}"
    assert (process.returncode == 0) == (not outcome.failures), (
        f"exit status {process.returncode} but {outcome} in\n{output}"
    )
    return outcome


def read_junit(path: Path) -> Outcome:
    """Read pytest's report. Errors of fixtures and of collection count as failures."""
    passed, skips, failures = 0, Counter[str](), {}
    report = ElementTree.parse(path)
    for case in report.iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        problems = [*case.findall("failure"), *case.findall("error")]
        if problems:
            failures[name] = "\n".join(p.text or p.get("message", "") for p in problems)
        elif (skipped := case.find("skipped")) is not None:
            skips[skipped.get("message", "")] += 1
        else:
            passed += 1
    properties = {each.get("name"): each.get("value", "") for each in report.iter("property")}
    return Outcome(passed, skips, failures, properties.get(KERNELS, ""))


def describe_failures(outcome: Outcome) -> str:
    """Return all failures with their tracebacks as one text."""
    return "\n\n".join(f"{name}\n{traceback}" for name, traceback in outcome.failures.items())
