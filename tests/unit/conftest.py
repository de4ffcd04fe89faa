from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import fuzz
from support.guarded import poisoned_empty  # noqa: F401 - for tests to find

from tallow.ops.table import OPS


@pytest.fixture
def forget_new_ops() -> Iterator[None]:
    """Ops that a test files in the table are gone after it."""
    before = set(OPS)
    yield
    for name in set(OPS) - before:
        del OPS[name]


@pytest.fixture
def read_damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, fuzz.Reader], None]:
    """Read damaged files with a reader, of that name: a few, or for as long as `--fuzz-seconds` says."""

    def read(name: str, reader: fuzz.Reader) -> None:
        if reader.needs is not None:
            pytest.importorskip(reader.needs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that overflow, as those of a damaged file may
            fuzz.check(name, reader, tmp_path, request.config.getoption("--fuzz-seconds"))

    return read
