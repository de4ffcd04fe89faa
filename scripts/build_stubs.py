#!/usr/bin/env python3
"""Write what type checkers and editors are told of the ops, which are hung on the package as it is imported.

    python scripts/build_stubs.py
    python scripts/build_stubs.py --check   # write nothing; fail if a file would change

It writes package/tallow/signatures/*.pyi: modules without code, which only `if TYPE_CHECKING` imports. They say of each
function and method what its own signature says; a test holds them to that.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "package" / "tallow" / "signatures"
sys.path[:0] = [str(ROOT / "package")]

from tallow import LATER, return_types  # noqa: E402 - the path above comes first
from tallow.offer import OFFERED  # noqa: E402
from tallow.ops.table import OPS, Op  # noqa: E402

HEADER = '''"""{summary} Written by scripts/build_stubs.py."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from tallow.devices import device as Device
from tallow.dtypes import dtype as Dtype
from tallow.layout import memory_format as MemoryFormat
from tallow.random import Generator
from tallow.signatures import results
from tallow.size import Size
from tallow.tensor import Tensor
'''
# How the annotations of the library are told to a user, word by word; a word that stands nowhere here makes it Any.
WORDS = {
    "Array": "Tensor",
    "Bias": "Tensor | None",
    "Device": "Any",  # "cpu", a device, or an index
    "Dims": "builtins.int | Sequence[builtins.int] | None",
    "Dtype": "Any",  # a dtype, NumPy's, or Python's float
    "Index": "Any",
    "IntOrInts": "builtins.int | Sequence[builtins.int]",
    "Ints": "Sequence[builtins.int]",
    "Number": "builtins.float",
    "OutputSize": "builtins.int | Sequence[builtins.int | None] | None",
    "Scalar": "builtins.float",
    "devices.device": "Device",
    "dtypes.dtype": "Dtype",
    "memory_format": "MemoryFormat",
}
KNOWN = {"Any", "Callable", "Generator", "None", "Sequence", "Size", "Tensor", "..."}
BUILTIN = {"bool", "complex", "float", "int", "list", "object", "str", "tuple"}
POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
# What the ops return that have no named result: everything else returns one tensor.
RETURNS = dict.fromkeys(("chunk", "split", "split_with_sizes", "tensor_split", "unbind"), "builtins.tuple[Tensor, ...]")
RETURNS |= dict.fromkeys(("unique", "unique_consecutive"), "Any")  # one tensor, or several if asked for


class Verbatim(str):
    """What a signature prints as it is, not as a string."""

    __repr__ = str.__str__


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    check = parser.parse_args().check
    files = {FOLDER / name: text for name, text in modules().items()}
    old = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    old += [path for path in FOLDER.glob("*") if path not in files] if check else []
    if check:
        print("".join(f"{path.relative_to(ROOT)} is not what the library says\n" for path in old), end="")
        return 1 if old else 0
    FOLDER.mkdir(exist_ok=True)
    for path in old:
        path.write_text(files[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def modules() -> dict[str, str]:
    """The files' names and texts."""
    functions = {
        "functions.pyi": ("Functions of the package.", "tl"),
        "functional.pyi": ("Functions of tallow.nn.functional.", "F"),
        "linalg.pyi": ("Functions of tallow.linalg.", "linalg"),
        "special.pyi": ("Functions of tallow.special.", "special"),
    }
    texts = {"__init__.pyi": '"""For type checkers only. Written by scripts/build_stubs.py."""\n'}
    for file, (summary, place) in functions.items():
        stubs = [stub(name, function, place) for name, function in sorted(OFFERED[place].items())]
        texts[file] = "\n".join([HEADER.format(summary=summary), _listed(OFFERED[place]), *stubs])
    methods = OFFERED["Tensor"] | OFFERED["Tensor_"]
    stubs = [stub(name, methods[name], "Tensor", indent="    ") for name in sorted(methods)]
    texts["methods.pyi"] = "\n".join([HEADER.format(summary="The ops that are methods."), "class Methods:", *stubs])
    texts["later.pyi"] = _later()
    texts["results.pyi"] = _results()
    return texts


def _listed(names: Iterable[str]) -> str:
    return "\n".join(["__all__ = [", *(f'    "{name}",' for name in sorted(names)), "]", ""])


def _later() -> str:
    """What the package imports when it is first asked for."""
    split = [(name, *target.partition(":")[::2]) for name, target in sorted(LATER.items())]
    lines = [
        f"from {module} import {attribute} as {name}" if attribute else f"from tallow import {name} as {name}"
        for name, module, attribute in split
    ]
    head = '"""What the package imports when it is first asked for. Written by scripts/build_stubs.py."""\n'
    return "\n".join([head, *lines, "", _listed(LATER)])


def _results() -> str:
    lines = ['"""Named results of several tensors. Written by scripts/build_stubs.py."""\n']
    lines += ["from typing import NamedTuple\n", "from tallow.tensor import Tensor\n"]
    for name, made in vars(return_types).items():
        if hasattr(made, "_fields"):
            lines += [f"class {name}(NamedTuple):", *(f"    {field}: Tensor" for field in made._fields), ""]
    return "\n".join(lines)


def stub(name: str, function: Callable[..., Any], place: str, indent: str = "") -> str:
    """`def name(...) -> ...: ...` with the first line of the docstring."""
    made = OPS.get(getattr(function, "__name__", "").removesuffix("_"))
    if made is not None and getattr(function, "__wrapped__", None) is not made.function:
        made = None  # a function that is composed of ops, and offered under an op's name
    signature = inspect.signature(function)
    if made is None:
        parameters = [_told(p, str(p.annotation)) for p in signature.parameters.values()]
        returned = translated(str(signature.return_annotation))
    else:
        parameters = [_told(*of_op) for of_op in _parameters(made, signature)]
        if not name.endswith("_") and place != "Tensor":
            _add_choices(parameters, inplace=place == "F" and "F_" in made.places)
        named = "Tensor" if made.result is None else f"results.{made.result.__name__}"
        returned = RETURNS.get(made.name, named)
    if place == "Tensor":
        parameters[0] = inspect.Parameter("self", POSITIONAL)
    told = signature.replace(parameters=parameters, return_annotation=Verbatim(returned))
    summary = (inspect.getdoc(function) or "").partition("\n")[0].replace("\\", "\\\\")
    body = f'\n{indent}    """{summary}"""\n' if summary else " ...\n"
    return f"{indent}def {name}{told}:{body}"


def _told(parameter: inspect.Parameter, annotation: str) -> inspect.Parameter:
    default = parameter.empty if parameter.default is parameter.empty else Verbatim("...")
    return parameter.replace(annotation=Verbatim(translated(annotation)), default=default)


def _parameters(made: Op, signature: inspect.Signature) -> Iterator[tuple[inspect.Parameter, str]]:
    """The parameters of an op's array function, and their annotations, as its public function takes them."""
    for index, (parameter, described) in enumerate(zip(signature.parameters.values(), made.parameters, strict=True)):
        if index == made.spread:
            yield parameter.replace(kind=parameter.VAR_POSITIONAL, default=parameter.empty), "IntOrInts"
        elif parameter.annotation is parameter.empty:
            yield parameter, "Array | Scalar" if described.is_operand else "Any"
        else:
            yield parameter, str(parameter.annotation)


def _add_choices(parameters: list[inspect.Parameter], inplace: bool) -> None:
    """The arguments that every function of its kind takes: `inplace`, the last by position, or `out`."""
    if inplace:
        last = sum(p.kind is POSITIONAL for p in parameters)
        name, kind, annotation = "inplace", POSITIONAL, "bool"
    else:
        last = len(parameters)
        name, kind, annotation = "out", inspect.Parameter.KEYWORD_ONLY, "Any"
    parameters.insert(last, _told(inspect.Parameter(name, kind, default=None), annotation))


def translated(annotation: str) -> str:
    """An annotation of the library in the words of the stub."""
    found = re.findall(r"[\w.]+", annotation)
    if not all(w in WORDS or w in KNOWN or w in BUILTIN for w in found):
        return "Any"
    return re.sub(r"[\w.]+", lambda m: WORDS.get(m[0], f"builtins.{m[0]}" if m[0] in BUILTIN else m[0]), annotation)


if __name__ == "__main__":
    raise SystemExit(main())
