"""The sample of the unit tests that other suites repeat: in Pyodide, and with kernels off.

The files below record, transform and call ops and layers, or read configurations, in plain Python. What computes, the
kernels, ops, layers and models, has tests of its own, and these are repeated whole; so are those of files, random
numbers and data. One case in `SAMPLE` of each file, always the same, shows that the part runs there.
"""

from __future__ import annotations

from collections.abc import Iterable

SAMPLE = 8
PURE_PYTHON = (
    *("compat", "compiler", "export", "fx", "generation", "keras", "peft", "tape"),
    *("core/test_short_way.py", "models/test_bounds.py", "models/test_config_entries.py"),
    *("models/gguf/test_gguf_config.py", "onnx/test_control_flow.py"),
    *("test_doctests.py", "test_examples.py", "test_vmap.py"),
    *("text/test_chat.py", "text/test_gguf.py", "text/test_llama2c.py"),
)


# Every op, natively: in a plan and in an exported graph.
NATIVE = ("compiler/test_cases.py", "export/test_every_op.py")


def sampled(parts: Iterable[str] = PURE_PYTHON) -> list[str]:
    """Return pytest's arguments to run a sample of these parts."""
    return [*(f"tests/unit/{part}" for part in parts), *ignored(NATIVE), f"--sample={SAMPLE}"]


def ignored(parts: Iterable[str] = PURE_PYTHON) -> list[str]:
    """Return pytest's arguments to leave these parts out."""
    return [f"--ignore=tests/unit/{part}" for part in parts]
