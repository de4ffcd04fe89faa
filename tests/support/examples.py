"""The programs of `examples/` as modules, to call their parts."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from support.places import ROOT

EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def load(name: str, folder: Path = EXAMPLES) -> ModuleType:
    """Import an example anew. It may import others of the same folder; none of them stays among the modules."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for other in NAMES:
            sys.modules.pop(other, None)
