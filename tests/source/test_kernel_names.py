"""Each binding has the file name of the module with the array implementation of its kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.package_modules import PACKAGE
from support.paths import ROOT

BINDINGS = {
    "cpu": PACKAGE / "kernels" / "bindings",
    "cuda": ROOT / "native_gpu" / "tallow_cuda" / "bindings",
}
# Binding files that register no kernel -> why they are there.
HELPERS = {
    ("cpu", "arrays"): "checks and addresses of arrays, for every binding",
    ("cpu", "blas"): "products by NumPy's BLAS, for matmul and linear",
    ("cpu", "matrices"): "the matrices of fused blocks",
    ("cpu", "stages"): "the stages of fused decoder blocks, which threads share",
    ("cpu", "tab_threads"): "the workers of the tab, behind threads",
    ("cpu", "native_threads"): "Python's threads, behind threads",
    ("cpu", "tiles"): "products by matrix tiles, for linear",
    ("cpu", "threads"): "divides the work of every binding",
}


def registered(path: Path) -> Iterator[str]:
    """The name of every kernel that a file registers: `@kernel(name, backend, ...)`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "kernel"):
            continue
        if len(node.args) == 2 and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)


def homes() -> dict[str, str]:
    """The file name of the array implementation of each kernel."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        if BINDINGS["cpu"] not in path.parents:
            found.update(dict.fromkeys(registered(path), path.stem))
    return found


@pytest.mark.parametrize("device", BINDINGS)
def test_a_binding_is_named_as_the_array_implementation(device: str) -> None:
    home = homes()
    for path in sorted(BINDINGS[device].glob("[!_]*.py")):
        names = set(registered(path))
        assert (not names) == ((device, path.stem) in HELPERS), path
        assert {home[name] for name in names} <= {path.stem}, path


@pytest.mark.parametrize("device", BINDINGS)
def test_the_package_imports_every_binding(device: str) -> None:
    tree = ast.parse((BINDINGS[device] / "__init__.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    files = {path.stem for path in BINDINGS[device].glob("[!_]*.py")}
    assert imported == files - {name for where, name in HELPERS if where == device}
