"""The unit tests pass unchanged inside Pyodide, which starts as a page does: from a snapshot, on shared memory.

Parts in plain Python are repeated as a sample, see `support.repeated`. test_kernels_in_pyodide.py repeats some tests on
plain memory, and test_threads_in_pyodide.py on two threads, after a plain start. That is also how everything else in
this folder starts.
"""

from __future__ import annotations

from support import repeated, subsuite
from tests.pyodide.conftest import SKIPS, InPyodide


def test_unit_suite_in_pyodide(in_pyodide: InPyodide, account_for: subsuite.AccountFor) -> None:
    outcome = in_pyodide("tests/unit", *repeated.ignored(), from_snapshot=True, shared_memory=True)
    account_for("in Pyodide", outcome, SKIPS)
    assert outcome.kernels == "wasm relaxed-simd"


def test_sample_of_parts_in_plain_python(in_pyodide: InPyodide, account_for: subsuite.AccountFor) -> None:
    outcome = in_pyodide(*repeated.sampled(), from_snapshot=True, shared_memory=True)
    account_for("of parts in plain Python in Pyodide", outcome, SKIPS | {"collection skipped": 0.01})
    assert outcome.passed > 300
