"""The examples in docstrings print the output shown."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import tallow as tl

PACKAGE = Path(tl.__file__).parent
WITH_EXAMPLES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.cpu("elsewhere the device is printed too")
@pytest.mark.usefixtures("forget_new_ops")
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_examples(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    outcome = doctest.testmod(module)
    assert outcome.attempted
    assert not outcome.failed
