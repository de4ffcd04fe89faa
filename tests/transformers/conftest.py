"""Fixtures of the tests that run programs under both libraries."""

from __future__ import annotations

import pytest
from tests.transformers.folders import Folders


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Small random models as folders of the Hub: `folders("BertForMaskedLM")` returns a path."""
    return Folders(tmp_path_factory.mktemp("hub"))
