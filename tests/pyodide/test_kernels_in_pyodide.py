"""The unit tests of the kernels and of tensors on plain memory, in a Pyodide that starts from a snapshot."""

from __future__ import annotations

from support import repeated, subsuite
from tests.pyodide.conftest import SKIPS, InPyodide

FILES = (
    *("agree", "arrays", "attention", "build", "channel_norm", "compiled", "convolution", "pooling"),
    *("recurrent", "rows_apart", "softmax"),
)
BLOCKS = ("cross_decode_block", "decode_block", "decode_blocks", "encoder_blocks")


def test_kernels_on_plain_memory(in_pyodide: InPyodide, account_for: subsuite.AccountFor) -> None:
    files = [f"tests/unit/kernels/test_{name}.py" for name in FILES]
    files += [f"tests/unit/kernels/blocks/test_{name}.py" for name in BLOCKS]
    files.append("tests/unit/kernels/quantized/test_quantized_linear.py")
    outcome = in_pyodide(*files, "tests/unit/core", *repeated.ignored(), from_snapshot=True)
    account_for("of the kernels in Pyodide on plain memory", outcome, SKIPS)
    assert outcome.kernels == "wasm relaxed-simd"
