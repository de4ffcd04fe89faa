"""Damaged files: every reader returns a value or raises a tallow error, in bounded memory.

`pytest tests/unit/test_fuzz.py --fuzz-seconds 300` fuzzes each reader for five minutes, in place of a few cases.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.fuzz import Reader
from support.readers import NATIVE_TEXT, READERS

ReadDamaged = Callable[[str, Reader], None]


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(name: str, read_damaged: ReadDamaged) -> None:
    read_damaged(name, READERS[name])


@pytest.mark.native
@pytest.mark.parametrize("name", NATIVE_TEXT)
def test_damaged_tokenizers_are_read_or_refused(name: str, read_damaged: ReadDamaged) -> None:
    pytest.importorskip("tokenizers")
    read_damaged(name, NATIVE_TEXT[name])
