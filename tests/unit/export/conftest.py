"""Exports among few objects."""

from __future__ import annotations

import gc
import sys

import pytest


@pytest.fixture(scope="module", autouse=True)
def few_objects() -> None:
    """Exempt what earlier tests have left: an export looks for tensors among all objects that the collector tracks."""
    if sys.platform != "emscripten":  # as in tests/conftest.py
        gc.collect()
        gc.freeze()
