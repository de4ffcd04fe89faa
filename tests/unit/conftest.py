from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import fuzz, subsuite
from support.guarded import poisoned_empty  # noqa: F401 - for tests to find

from tallow import kernels
from tallow.ops.table import OPS


@pytest.fixture(scope="session", autouse=True)
def _say_what_computes(record_testsuite_property: Callable[[str, object], None]) -> None:
    """For whoever reads the report of a run that is to be with other kernels."""
    found = kernels.info()
    record_testsuite_property(subsuite.KERNELS, found.library if found.enabled else "off")


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
