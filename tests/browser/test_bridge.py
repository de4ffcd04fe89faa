"""web/worker/bridge.py without a browser: cases that the servers of the other tests do not produce."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from support.paths import ROOT


class AnyFile:
    def check(self, name: str, head: bytes, size: int | None) -> None:
        """Accept any file, without knowing its size."""


def load_bridge() -> Any:
    spec = importlib.util.spec_from_file_location("bridge", ROOT / "web/worker/bridge.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_chunk_may_be_larger_than_all_memory_so_far() -> None:
    """For example a stored part of 16 MiB, of a file whose size the server does not send."""
    bridge = load_bridge()
    files = bridge.Files(AnyFile())
    data = np.arange(3 * bridge.INITIAL_BYTES, dtype=np.uint32).astype(np.uint8)
    files.begin("model", data[:5].tobytes())
    for chunk in (data[:5], data[5:]):
        files.extend(len(chunk))[...] = chunk
    np.testing.assert_array_equal(files.current(), data)
