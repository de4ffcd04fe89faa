"""torch._vendor.packaging._structures: the module of the package `packaging`."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Return a name of the module, where the package is installed."""
    return getattr(importlib.import_module("packaging._structures"), name)
