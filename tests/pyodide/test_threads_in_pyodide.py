"""Kernels divided between two threads, on the shared memory of a stock Pyodide.

Node 20 has no relaxed SIMD unless asked: there, these are the kernels for browsers without it.
"""

from __future__ import annotations

from support import subsuite
from tests.pyodide.conftest import SKIPS, InPyodide

FILES = ("tests/unit/kernels", "tests/unit/fused", "tests/unit/nn", "tests/unit/optim")


def test_kernels_on_two_threads(in_pyodide: InPyodide, account_for: subsuite.AccountFor) -> None:
    """The files whose modules compute with kernels; test_threads.py fails if no other thread takes part."""
    outcome = in_pyodide(*FILES, threads=2)
    account_for("in Pyodide with two threads", outcome, SKIPS)
    assert outcome.kernels.startswith("wasm")
