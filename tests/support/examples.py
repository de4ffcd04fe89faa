"""Import the programs of `examples/` as modules, to call their functions."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from support.paths import ROOT

EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def load(name: str, folder: Path = EXAMPLES) -> ModuleType:
    """Import an example afresh. It may import other examples of its folder; none of them stays in `sys.modules`."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for example in NAMES:
            sys.modules.pop(example, None)
