"""Every public function has a `def` that grep and an IDE find, or is declared as another name of one that has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from support.paths import ROOT

from tallow.core.public_api import PUBLIC
from tallow.ops.table import OPS

# Public names that neither have a `def` nor are declared, with the reason. Keep it empty.
EXCEPTIONS: dict[str, str] = {}


def definitions() -> Iterator[ast.FunctionDef]:
    """The functions at the top level of modules; those within others are not what a reader looks for."""
    for folder in ("autograd", "core", "functions", "ops"):
        for path in (ROOT / "package" / "tallow" / folder).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            yield from (node for node in tree.body if isinstance(node, ast.FunctionDef))
    tree = ast.parse((ROOT / "package" / "tallow" / "random.py").read_text(encoding="utf-8"))
    yield from (node for node in tree.body if isinstance(node, ast.FunctionDef))


def names(function: ast.FunctionDef) -> Iterator[str]:
    """The name of a function, and those that its decorator `@public(places, "alias", name="name")` declares."""
    yield function.name
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "public":
            given = [*decorator.args[1:], *(k.value for k in decorator.keywords if k.arg == "name")]
            yield from (node.value for node in given if isinstance(node, ast.Constant))


def names_of_ops() -> Iterator[str]:
    """The names that `@op` declares: its own, its aliases, and with an underscore where it works in place."""
    for op in OPS.values():
        for name in (op.name, *op.aliases):
            yield name
            if {"tl_", "Tensor_", "F_"} & set(op.places):
                yield name + "_"


def test_every_public_function_has_a_def() -> None:
    found = {name for function in definitions() for name in names(function)} | set(names_of_ops()) | set(EXCEPTIONS)
    found |= {name.removeprefix("linalg_") for name in found}
    missing = [
        f"{place}: {name}"
        for place, table in PUBLIC.items()
        for name, function in table.items()
        if name not in found and function.__module__.startswith("tallow.")  # other tests publish ops too
    ]
    assert not missing


def test_every_op_has_a_def_of_its_name() -> None:
    written = {function.name for function in definitions()}
    built_in = [name for name, op in OPS.items() if op.function.__module__.startswith("tallow.ops.")]
    assert not [name for name in built_in if name not in written]
