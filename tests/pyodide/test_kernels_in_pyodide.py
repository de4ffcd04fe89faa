"""The kernels' unit tests with the library that browsers load."""

from __future__ import annotations

import subprocess

import pytest
from support import subsuite
from tests.pyodide.conftest import SKIPS, InPyodide

KERNELS = (
    *("agree", "attention", "build", "channel_norm", "compiled", "convolution", "cross_decode_block", "decode_block"),
    *("decode_blocks", "encoder_blocks", "pooling", "quantized_linear", "recurrent", "softmax"),
)
# Node 20 supports relaxed SIMD only with a flag; newer versions need none.
RELAXED_SIMD = "--experimental-wasm-relaxed-simd"


@pytest.mark.parametrize("memory", ["plain", "shared"])
def test_kernels_with_relaxed_simd(memory: str, in_pyodide: InPyodide, account_for: subsuite.AccountFor) -> None:
    options = subprocess.run([in_pyodide.node, "--v8-options"], capture_output=True, text=True, check=True).stdout
    files = [f"tests/unit/kernels/test_{name}.py" for name in KERNELS]
    flags = [RELAXED_SIMD] if RELAXED_SIMD in options else []
    outcome = in_pyodide(*files, flags=flags, shared_memory=memory == "shared")
    account_for(f"of the kernels with relaxed SIMD on {memory} memory", outcome, SKIPS)
    assert outcome.kernels == "wasm relaxed-simd"
