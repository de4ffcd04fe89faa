"""Packages with compiled parts that programs for PyTorch import, where they are not installed: a finder for them.

`tokenizers` and `safetensors` have no build for every platform; Pyodide has none, or an older one. A folder here has
what other packages use of each, on tallow's tokenizers and files.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any

# The release whose interface a package has.
VERSIONS = {"safetensors": "0.8.0", "tokenizers": "0.23.1"}


class PackageFinder(MetaPathFinder, Loader):
    """The last finder: it is asked for a package that is not installed."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module of these packages."""
        root = fullname.partition(".")[0]
        if root not in VERSIONS or (fullname != root and not _is_ours(sys.modules.get(root))):
            return None
        spec = find_spec(f"{__name__}.{fullname}")
        if spec is None:
            return None
        return ModuleSpec(fullname, self, origin="tallow", is_package=spec.submodule_search_locations is not None)

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module with the names of tallow's."""
        names = vars(importlib.import_module(f"{__name__}.{module.__name__}"))
        vars(module).update({name: value for name, value in names.items() if name not in vars(module)})

    def find_distributions(self, context: Any) -> Iterator[Any]:
        """Yield the metadata of the packages that are not installed: importlib.metadata and micropip ask for it."""
        for name in VERSIONS:
            if context.name in (None, name) and PathFinder.find_spec(name) is None:
                yield importlib.import_module("tallow.compat.metadata").StandInDistribution(name, VERSIONS[name])


def _is_ours(module: ModuleType | None) -> bool:
    return isinstance(getattr(getattr(module, "__spec__", None), "loader", None), PackageFinder)


def forget_packages() -> None:
    """Remove the modules that the finder has found."""
    for name in [name for name in sys.modules if name.partition(".")[0] in VERSIONS]:
        if _is_ours(sys.modules[name]):
            del sys.modules[name]
