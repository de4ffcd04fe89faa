"""Run a pytest suite in another process and account for every one of its tests in this one.

The unit tests run three times: here, with the kernels off, and inside Pyodide. The latter two are processes of their
own; what they report comes back as JUnit XML, so a count can be shown and no failure is lost. What they skip must be
for a reason that the caller names, and a small part: a suite that skips everything has not run.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree

KERNELS = "kernels"  # the property of a report that says what computed


@dataclass(frozen=True)
class Outcome:
    """What a suite reported.

    Attributes:
        skips: how many tests were skipped for which reason.
        failures: the traceback of each test that failed.
        kernels: the library that computed, or "off"; "" where the suite does not say.
    """

    passed: int
    skips: Mapping[str, int]
    failures: dict[str, str]
    kernels: str

    @property
    def skipped(self) -> int:
        return sum(self.skips.values())

    def unexpected_skips(self, allowed: Mapping[str, float]) -> list[str]:
        """What was skipped for no reason in `allowed`, or beyond the share of all tests that it has there.

        Args:  allowed: what a reason begins with, and the share, from 0 to 1
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
    """The fixture of this name in tests/conftest.py."""

    def __call__(self, name: str, outcome: Outcome, skips: Mapping[str, float] | None = None) -> None: ...


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
    said = {each.get("name"): each.get("value", "") for each in report.iter("property")}
    return Outcome(passed, skips, failures, said.get(KERNELS, ""))


def describe_failures(outcome: Outcome) -> str:
    """All failures with their tracebacks, as one text."""
    return "\n\n".join(f"{name}\n{traceback}" for name, traceback in outcome.failures.items())
