#!/usr/bin/env python3
"""Write type stubs of the ops, which are added to the package at import, for type checkers and editors.

    python scripts/build_stubs.py
    python scripts/build_stubs.py --check   # write nothing; fail if a file would change

It writes package/tallow/signatures/*.pyi: modules without code, imported only under `if TYPE_CHECKING`. A test compares
them with the signatures of the functions and methods.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, get_overloads

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "package" / "tallow" / "signatures"
sys.path[:0] = [str(ROOT / "package")]

import tallow.nn.functional  # noqa: E402 - the path above comes first; it registers functions of ops
from tallow import LAZY, return_types  # noqa: E402
from tallow.core.factories import KEYWORDS  # noqa: E402
from tallow.core.public_api import PUBLIC  # noqa: E402
from tallow.core.tensor import Tensor  # noqa: E402
from tallow.lazy_names import import_name  # noqa: E402
from tallow.ops.table import OPS, Op  # noqa: E402

HEADER = '''"""{summary} Written by scripts/build_stubs.py."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from tallow.autograd.api import GradStore
from tallow.devices import device as Device
from tallow.dtypes import dtype as Dtype
from tallow.ops.memory_format import memory_format as MemoryFormat
from tallow.random import Generator
from tallow.signatures import results
from tallow.core.size import Size
from tallow.core.tensor import Tensor
'''
# Replacements for names in the library's annotations. An annotation with any other name becomes Any.
WORDS = {
    "Array": "Tensor",
    "Bias": "Tensor | None",
    "Device": "Any",  # "cpu", a device, or an index
    "Dims": "builtins.int | Sequence[builtins.int] | None",
    "Dtype": "Any",  # a dtype, NumPy's, or Python's float
    "Index": "Any",
    "api.GradStore": "GradStore",
    "IntOrInts": "builtins.int | Sequence[builtins.int]",
    "Ints": "Sequence[builtins.int]",
    "Number": "builtins.float",
    "OutputSize": "builtins.int | Sequence[builtins.int | None] | None",
    "Scalar": "builtins.float",
    "devices.device": "Device",
    "dtypes.dtype": "Dtype",
    "memory_format": "MemoryFormat",
}
KNOWN = {"Any", "Callable", "False", "Generator", "Literal", "None", "Sequence", "Size", "Tensor", "True", "..."}
KNOWN |= {f"results.{name}" for name, kind in vars(return_types).items() if hasattr(kind, "_fields")}
BUILTIN = {"bool", "complex", "float", "int", "list", "object", "str", "tuple"}
PACKAGES = ("models", "transformers", "sentence_transformers", "trl")  # which import their names at first use
POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
# Return types of ops without a named result; all other ops return one tensor.
RETURNS = dict.fromkeys(("chunk", "split", "split_with_sizes", "unbind"), "builtins.tuple[Tensor, ...]")
RETURNS |= dict.fromkeys(("unique", "unique_consecutive"), "Any")  # one tensor, or several, depending on an argument


class Verbatim(str):
    """Text that a signature prints without quotes."""

    __repr__ = str.__str__


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    check = parser.parse_args().check
    files = {FOLDER / name: text for name, text in modules().items()}
    old = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    old += [path for path in FOLDER.glob("*") if path not in files] if check else []
    if check:
        print("".join(f"{path.relative_to(ROOT)} differs from the library\n" for path in old), end="")
        return 1 if old else 0
    FOLDER.mkdir(exist_ok=True)
    for path in old:
        path.write_text(files[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def modules() -> dict[str, str]:
    """Return the texts of the files by name."""
    functions = {
        "functions.pyi": ("Functions of the package.", "tl"),
        "functional.pyi": ("Functions of tallow.nn.functional.", "F"),
        "linalg.pyi": ("Functions of tallow.linalg.", "linalg"),
        "special.pyi": ("Functions of tallow.special.", "special"),
    }
    texts = {"__init__.pyi": '"""For type checkers only. Written by scripts/build_stubs.py."""\n'}
    for file, (summary, place) in functions.items():
        stubs = [stub(name, function, place) for name, function in sorted(PUBLIC[place].items())]
        texts[file] = "\n".join([HEADER.format(summary=summary), *stubs])
    methods = PUBLIC["Tensor"] | PUBLIC["Tensor_"]
    stubs = [stub(name, methods[name], "Tensor", indent="    ") for name in sorted(methods)]
    stubs += _properties()
    texts["methods.pyi"] = "\n".join([HEADER.format(summary="The ops that are methods."), "class Methods:", *stubs])
    texts["lazy.pyi"] = _lazy(LAZY)
    for package in PACKAGES:
        texts[f"lazy_{package}.pyi"] = _lazy(importlib.import_module(f"tallow.{package}")._LAZY)
    texts["results.pyi"] = _results()
    return texts


def _properties() -> Iterator[str]:
    """Yield the properties that other modules give Tensor, such as `T`."""
    for name, value in sorted(vars(Tensor).items()):
        if not name.startswith("_") and isinstance(value, property) and value.fget.__module__ != Tensor.__module__:
            returned = translated(str(value.fget.__annotations__.get("return")))
            summary = (inspect.getdoc(value) or "").partition("\n")[0]
            body = f'\n        """{summary}"""\n' if summary else " ...\n"
            yield f"    @property\n    def {name}(self) -> {returned}:{body}"


def _lazy(table: Mapping[str, str]) -> str:
    """Return the imports of names that a package imports on first use; of a class that a module makes, a subclass."""
    lines, made = list[str](), list[str]()
    for name, target in sorted(table.items()):
        module, _, attribute = target.partition(":")
        folder, _, last = module.rpartition(".")
        if not attribute:
            lines.append(f"from {folder} import {last} as {name}" if folder else f"import {module} as {name}")
        elif attribute in _written(home := getattr(value := import_name(target), "__module__", module)):
            lines.append(f"from {home} import {attribute} as {name}")
        elif not (bases := _written_bases(value)):
            lines.append(f"from {module} import {attribute} as {name}")
        else:
            # One of them: several might differ in the types of a name.
            base = next((each for each in bases if issubclass(each, tallow.nn.Module)), bases[0])
            lines.append(f"from {base.__module__} import {base.__name__} as _{base.__name__}")
            made.append(f"class {name}(_{base.__name__}): ...")
    head = '"""Names that a package imports on first use. Written by scripts/build_stubs.py."""\n'
    listed = ["__all__ = [", *(f'    "{name}",' for name in sorted(table)), "]", ""]
    return "\n".join([head, *dict.fromkeys(lines), "", *made, *listed])


def _written_bases(value: Any) -> list[type]:
    """Return the nearest bases of a class that are in the source of tallow."""
    found: list[type] = []
    for base in value.__bases__ if inspect.isclass(value) else ():
        is_own = base.__module__.startswith("tallow") and base.__name__ in _written(base.__module__)
        found += [base] if is_own else _written_bases(base)
    return list(dict.fromkeys(found))


@cache
def _written(module: str) -> frozenset[str]:
    """Return the names that the file of a module defines at its top level."""
    if (spec := importlib.util.find_spec(module)) is None or spec.origin in (None, "built-in", "frozen"):
        return frozenset()
    names: set[str] = set()
    for node in ast.parse(Path(str(spec.origin)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(names)


def _results() -> str:
    lines = ['"""Named results of several tensors. Written by scripts/build_stubs.py."""\n']
    lines += ["from typing import NamedTuple\n", "from tallow.core.tensor import Tensor\n"]
    for name, kind in vars(return_types).items():
        if hasattr(kind, "_fields"):
            lines += [f"class {name}(NamedTuple):", *(f"    {field}: Tensor" for field in kind._fields), ""]
    return "\n".join(lines)


def stub(name: str, function: Callable[..., Any], place: str, indent: str = "") -> str:
    """Return `def name(...) -> ...: ...` with the first line of the docstring, once for each of its overloads."""
    summary = (inspect.getdoc(function) or "").partition("\n")[0].replace("\\", "\\\\")
    overloads = get_overloads(inspect.unwrap(function)) or _by_indices(function)
    stubs = [_definition(name, each, place, indent, summary) for each in overloads or [function]]
    return "\n".join(f"{indent}@overload\n{text}" for text in stubs) if overloads else stubs[0]


def _by_indices(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Return the overloads of a function that returns indices too if its argument `return_indices` is true."""
    signature = inspect.signature(function)
    chosen = signature.parameters.get("return_indices")
    if chosen is None or signature.return_annotation != "Any":
        return []
    others = [each for each in signature.parameters.values() if each is not chosen]
    required = chosen.replace(annotation="Literal[True]", kind=inspect.Parameter.KEYWORD_ONLY, default=chosen.empty)
    without = chosen.replace(annotation="Literal[False]")
    forms = (
        ([without if each is chosen else each for each in signature.parameters.values()], "Tensor"),
        ([*others, required], "tuple[Tensor, Tensor]"),
        (list(signature.parameters.values()), "Any"),  # of a bool that is not known before the program runs
    )
    overloads = []
    for parameters, returned in forms:
        overload = partial(function)
        overload.__signature__ = signature.replace(parameters=parameters, return_annotation=returned)  # type: ignore[attr-defined]
        overloads.append(overload)
    return overloads


def _definition(name: str, function: Callable[..., Any], place: str, indent: str, summary: str) -> str:
    definition = OPS.get(getattr(function, "__name__", "").removesuffix("_"))
    if definition is not None and getattr(function, "__wrapped__", None) is not definition.function:
        definition = None  # a function composed of ops, published under an op's name
    signature = inspect.signature(function)
    if definition is None:
        parameters = [_shown(p, str(p.annotation)) for p in signature.parameters.values()]
        if hasattr(function, "takes_out"):
            optional = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None) for n in KEYWORDS]
            parameters += [_shown(p, "Any") for p in optional if p.name not in signature.parameters]
        returned = translated(str(signature.return_annotation))
    else:
        parameters = [_shown(*pair) for pair in _parameters(definition, signature)]
        if not name.endswith("_") and place != "Tensor":
            _add_choices(parameters, inplace=place == "F" and "F_" in definition.places)
        named = "Tensor" if definition.result is None else f"results.{definition.result.__name__}"
        returned = RETURNS.get(definition.name, named)
    if place == "Tensor":
        parameters[0] = inspect.Parameter("self", POSITIONAL)
    shown = signature.replace(parameters=parameters, return_annotation=Verbatim(returned))
    body = f'\n{indent}    """{summary}"""\n' if summary else " ...\n"
    return f"{indent}def {name}{shown}:{body}"


def _shown(parameter: inspect.Parameter, annotation: str) -> inspect.Parameter:
    default = parameter.empty if parameter.default is parameter.empty else Verbatim("...")
    return parameter.replace(annotation=Verbatim(translated(annotation)), default=default)


def _parameters(definition: Op, signature: inspect.Signature) -> Iterator[tuple[inspect.Parameter, str]]:
    """Return the parameters of an op's array function as its public function takes them."""
    for index, (parameter, described) in enumerate(
        zip(signature.parameters.values(), definition.parameters, strict=True)
    ):
        if index == definition.spread:
            yield parameter.replace(kind=parameter.VAR_POSITIONAL, default=parameter.empty), "IntOrInts"
        elif parameter.annotation is parameter.empty:
            yield parameter, "Array | Scalar" if described.is_operand else "Any"
        else:
            yield parameter, str(parameter.annotation)


def _add_choices(parameters: list[inspect.Parameter], inplace: bool) -> None:
    """Add the parameter common to functions of this kind: `inplace` (last by position) or `out`."""
    if inplace:
        last = sum(p.kind is POSITIONAL for p in parameters)
        name, kind, annotation = "inplace", POSITIONAL, "bool"
    else:
        last = len(parameters)
        name, kind, annotation = "out", inspect.Parameter.KEYWORD_ONLY, "Any"
    parameters.insert(last, _shown(inspect.Parameter(name, kind, default=None), annotation))


def translated(annotation: str) -> str:
    """Translate an annotation of the library for the stub."""
    names = re.findall(r"[\w.]+", annotation)
    if not all(w in WORDS or w in KNOWN or w in BUILTIN for w in names):
        return "Any"
    return re.sub(r"[\w.]+", lambda m: WORDS.get(m[0], f"builtins.{m[0]}" if m[0] in BUILTIN else m[0]), annotation)


if __name__ == "__main__":
    raise SystemExit(main())
