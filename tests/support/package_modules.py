"""The modules of the package, as tests that read their source see them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from support.paths import ROOT

PACKAGE = ROOT / "package" / "tallow"


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module, by its dotted name."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))
