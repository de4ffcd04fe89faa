"""Imports run one way, without cycles, and `import tallow` costs NumPy and nothing more."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from support.places import ROOT

PACKAGE = ROOT / "package" / "tallow"

# Lowest first. A part imports only from its own row and the rows above it. `tallow` is the root package itself.
LAYERS = (
    ("installing",),
    ("errors",),
    ("deprecated", "names"),
    ("dtypes", "layout", "return_types"),
    ("devices",),
    ("kernels",),
    ("ops",),
    (
        "autograd",
        "tensor",
        "size",
        "printing",
        "apply",
        "arguments",
        "offer",
        "creation",
        "functions",
        "linalg",
        "meta",
        "precision",
        "random",
        "special",
        "typed_tensors",
    ),
    ("nn", "optim", "data", "distributed", "text", "audio", "io", "utils"),
    (
        "accelerator",
        "amp",
        "backends",
        "compiler",
        "cuda",
        "distributions",
        "jit",
        "plotting",
        "settings",
        "testing",
    ),
    ("models", "generation", "hub", "hub_in_browser"),
    ("training",),
    ("tallow",),
    ("keras", "cli", "compat", "__main__"),
)
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}

# Packages of the extras, which a user may lack; they are imported where they are used.
OPTIONAL = {"huggingface_hub", "jinja2", "matplotlib", "mpi4py", "pooch", "soundfile", "soxr", "tokenizers", "tqdm"}
OPTIONAL |= {"PIL", "h5py", "imageio_ffmpeg", "tensorboardX"}
OPTIONAL |= {"huggingface_tokenizers", "js", "pyodide"}  # there in a browser only

# Every other import inside a function: (module, what it imports) -> why it waits.
LATE = {
    ("tallow.kernels.library", "tallow.kernels.bindings"): "the bindings look up functions in the library just loaded",
    ("tallow.data.dataloader", "tallow.data.processes"): "only where there are workers; a browser has no processes",
    ("tallow.data.dataloader", "multiprocessing"): "only where there are workers",
    ("tallow.distributed.mpi", "tallow.distributed.mpich"): "only where mpi4py finds none; slow to import",
    ("tallow.installing", "importlib"): "importlib.metadata takes milliseconds to import; only for an error",
    ("tallow.text.chat", "tallow.text.template_sandbox"): "needs jinja2, of the extra `text`",
    ("tallow.cli.chat", "readline"): "not every Python has it, and importing it writes to some terminals",
}

# Modules that are written for an optional package, most of whose classes derive from its classes. Nothing else imports
# them but LATE.
AROUND = {
    "tallow.text.template_filters": "jinja2 markupsafe",
    "tallow.text.template_methods": "jinja2 markupsafe",
    "tallow.text.template_sandbox": "jinja2 markupsafe",
}


@dataclass(frozen=True)
class Import:
    """`source` imports `target`, a dotted name; `inside` a function, or only for type checkers."""

    source: str
    target: str
    line: int
    inside: bool
    typing_only: bool

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def imports_of(module: str) -> Iterator[Import]:
    tree = tree_of(module)

    def walk(node: ast.AST, inside: bool, typing_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(module, alias.name, child.lineno, inside, typing_only)
            elif isinstance(child, ast.ImportFrom):
                base = absolute(module, child)
                for alias in child.names:
                    submodule = f"{base}.{alias.name}"
                    target = submodule if submodule in MODULES else base
                    yield Import(module, target, child.lineno, inside, typing_only)
            else:
                is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                is_typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
                yield from walk(child, inside or is_function, typing_only or is_typing)

    return walk(tree, inside=False, typing_only=False)


def absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    is_package = MODULES[module].name == "__init__.py"
    anchor = module.split(".")[: len(module.split(".")) - node.level + is_package]
    return ".".join([*anchor, *([node.module] if node.module else [])])


ALL_IMPORTS = [found for module in MODULES for found in imports_of(module)]


def part_of(module: str) -> str:
    """`nn` of `tallow.nn.linear`."""
    return module.split(".")[1] if "." in module else "tallow"


def rank_of(module: str) -> int:
    return RANK[part_of(module)]


def test_every_module_has_a_layer() -> None:
    homeless = {module for module in MODULES if part_of(module) not in RANK}
    assert not homeless, f"add to LAYERS, and to the design: {sorted(homeless)}"


def test_imports_run_one_way() -> None:
    upward = [str(i) for i in ALL_IMPORTS if i.target in MODULES and rank_of(i.target) > rank_of(i.source)]
    assert not upward, "\n".join(upward)


def test_no_import_cycle() -> None:
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for found in ALL_IMPORTS:
        if found.target in MODULES and not found.inside and not found.typing_only and found.target != found.source:
            graph[found.source].add(found.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])), pytrace=False)


def test_imports_inside_functions_have_a_reason() -> None:
    late = {(i.source, i.target): i for i in ALL_IMPORTS if i.inside and i.target.split(".")[0] not in OPTIONAL}
    surprising = [str(found) for key, found in late.items() if key not in LATE]
    assert not surprising, "move to the top of the file, or list in LATE with the reason:\n" + "\n".join(surprising)
    assert not LATE.keys() - late.keys(), "no longer there"


def test_optional_packages_are_imported_where_used() -> None:
    at_top = [i for i in ALL_IMPORTS if not (i.inside or i.typing_only)]
    early = [i for i in at_top if i.target.split(".")[0] in OPTIONAL]
    early = [i for i in early if i.target.split(".")[0] not in AROUND.get(i.source, "").split()]
    early += [i for i in at_top if i.target in AROUND and i.source not in AROUND]
    assert not early, "\n".join(map(str, early))


def test_import_tallow_loads_numpy_and_nothing_more() -> None:
    code = "import sys, numpy; before = set(sys.modules); import tallow; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {name.split(".")[0] for name in done.stdout.split() if "cython" not in name}  # parts of numpy.random
    assert packages - sys.stdlib_module_names - {"numpy"} == {"tallow"}
