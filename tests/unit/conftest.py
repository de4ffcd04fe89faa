from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import fuzz, subsuite
from support.guarded_arrays import poisoned_empty  # noqa: F401 - registers the fixture

from tallow import kernels
from tallow.ops.table import OPS


@pytest.fixture(scope="session", autouse=True)
def _say_what_computes(record_testsuite_property: Callable[[str, object], None]) -> None:
    """Report which kernels run, for suites that must run with others."""
    info = kernels.info()
    record_testsuite_property(subsuite.KERNELS, info.library if info.enabled else "off")


@pytest.fixture
def forget_new_ops() -> Iterator[None]:
    """Remove ops that a test registers."""
    before = set(OPS)
    yield
    for name in set(OPS) - before:
        del OPS[name]


@pytest.fixture
def read_damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, fuzz.Reader], None]:
    """Return a function that fuzzes a reader by name: a few files, or as many as `--fuzz-seconds` allows."""

    def read(name: str, reader: fuzz.Reader) -> None:
        if reader.needs is not None:
            pytest.importorskip(reader.needs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # overflow of values in damaged files
            fuzz.check(name, reader, tmp_path, request.config.getoption("--fuzz-seconds"))

    return read
