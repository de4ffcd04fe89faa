from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.guarded import poisoned_empty  # noqa: F401 - for tests to find

from tallow.ops.table import OPS


@pytest.fixture
def forget_new_ops() -> Iterator[None]:
    """Ops that a test files in the table are gone after it."""
    before = set(OPS)
    yield
    for name in set(OPS) - before:
        del OPS[name]
