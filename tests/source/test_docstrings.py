"""Public definitions of the package have docstrings, and summaries are plain statements."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from support.package_modules import MODULES, tree_of
from support.paths import ROOT

# A summary begins with a verb or a noun; these words begin a clause.
CLAUSE = re.compile(r"(What|Where|Which|How|Whether|When)\b(?! to\b)")
# Importing these modules runs a program.
NOT_IMPORTED = {"tallow.__main__", "tallow.compat.__main__"}


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the public classes, functions and methods below a node, with their dotted names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If | ast.Try):
            yield from definitions(child, prefix)
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or child.name.startswith("_"):
            continue
        decorators = [ast.unparse(decorator) for decorator in child.decorator_list]
        if any(name.endswith(("overload", ".setter")) for name in decorators):
            continue
        yield prefix + child.name, child
        if isinstance(child, ast.ClassDef):
            yield from definitions(child, f"{prefix}{child.name}.")


def is_inherited(module: str, name: str) -> bool:
    """Return whether a method overrides a documented one."""
    owner, _, method = name.rpartition(".")
    if not owner or module in NOT_IMPORTED:
        return False
    scope: Any = importlib.import_module(module)
    for part in owner.split("."):
        scope = vars(scope).get(part)
    bases = scope.__mro__[1:] if inspect.isclass(scope) else ()
    return any(getattr(vars(base).get(method), "__doc__", None) for base in bases)


def undocumented() -> Iterator[str]:
    for module in MODULES:
        for name, node in definitions(tree_of(module)):
            if ast.get_docstring(node) is None and not is_inherited(module, name):
                yield f"{module}.{name}"


def test_public_definitions_have_docstrings() -> None:
    missing = list(undocumented())
    assert not missing, f"{len(missing)} without a docstring:\n" + "\n".join(missing)


def test_summaries_do_not_begin_with_a_clause() -> None:
    wrong = []
    for folder in ("package", "native_gpu", "tests", "scripts", "examples", "wasm_examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    text = ast.get_docstring(node)
                    if text and CLAUSE.match(text):
                        wrong.append(f"{path.relative_to(ROOT)}: {text.splitlines()[0]}")
    assert not wrong, f"{len(wrong)} docstrings begin with a clause:\n" + "\n".join(wrong)
