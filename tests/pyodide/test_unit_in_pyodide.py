"""The unit tests pass unchanged inside Pyodide, on the wheel that a browser installs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from support import subsuite
from tests.pyodide.conftest import InPyodide


def test_unit_suite_in_pyodide(in_pyodide: InPyodide, record_subsuite: Callable[[str, subsuite.Outcome], None]) -> None:
    outcome = in_pyodide("tests/unit")
    record_subsuite("in Pyodide", outcome)
    if outcome.failures:
        pytest.fail(f"{outcome}\n\n{subsuite.describe_failures(outcome)}", pytrace=False)


def test_kernels_with_relaxed_simd(
    in_pyodide: InPyodide, record_subsuite: Callable[[str, subsuite.Outcome], None]
) -> None:
    """The library that browsers take. Node 20 knows its instructions only when told to; newer ones always do."""
    flag = "--experimental-wasm-relaxed-simd"
    known = subprocess.run([in_pyodide.node, "--v8-options"], capture_output=True, text=True, check=True).stdout
    names = (
        "agree",
        "attention",
        "build",
        "channel_norm",
        "compiled",
        "convolution",
        "cross_decode_block",
        "decode_block",
        "encoder_blocks",
        "pooling",
        "recurrent",
        "softmax",
    )
    tests = [f"tests/unit/test_kernels_{name}.py" for name in names]
    outcome = in_pyodide(*tests, flags=(flag,) if flag in known else ())
    record_subsuite("of the kernels with relaxed SIMD", outcome)
    if outcome.failures:
        pytest.fail(f"{outcome}\n\n{subsuite.describe_failures(outcome)}", pytrace=False)
