"""Imports go one way, without cycles, and `import tallow` loads only NumPy besides itself."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest
from support.package_modules import MODULES, tree_of
from support.paths import ROOT

# Lowest layer first. A part imports only from its own row and the rows above it. `tallow` is the root package.
LAYERS = (
    ("devices", "dtypes", "errors", "extras", "float8", "lazy_names", "return_types"),
    ("kernels",),
    ("ops",),
    ("tape",),
    ("core",),
    ("autograd", "fft", "functions", "linalg", "masked", "random", "signal", "sparse", "special"),
    ("nn", "optim", "data", "distributed", "text", "audio", "io", "utils", "vision"),
    (
        *("accelerator", "amp", "backends", "compiler", "cuda", "distributions", "export", "func", "fused", "fx"),
        *("generation", "hub", "jit", "testing"),
    ),
    ("models",),
    ("peft", "training"),
    ("tallow",),
    (
        *("keras", "onnx", "optimum", "serving", "transformers", "sentence_transformers", "trl"),
        *("cli", "compat", "site", "__main__"),
    ),
)
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}

# Packages of the extras, which may be missing; modules import them where they use them.
OPTIONAL = {"huggingface_hub", "jinja2", "matplotlib", "mpi4py", "pooch", "soundfile", "soxr", "tokenizers", "tqdm"}
OPTIONAL |= {"h11", "prometheus_client", "starlette", "uvicorn"}
OPTIONAL |= {"IPython", "PIL", "pillow_heif", "h5py", "imageio_ffmpeg", "tensorboardX", "yaml"}
OPTIONAL |= {"huggingface_tokenizers", "js", "pyodide"}  # exist in a browser only

# Every other import inside a function: (module, imported module) -> reason.
LATE = {
    ("tallow.autograd.api", "tallow.autograd.second_order"): "only for create_graph; programs start without it",
    ("tallow.core.subclasses", "tallow.core.dispatch"): "only for classes with __torch_dispatch__; it imports Tensor",
    ("tallow.functions.storage", "tallow.core.shared_memory"): "pages have no processes, and start without it",
    ("tallow.kernels.library", "tallow.kernels.bindings"): "bindings look up functions in the loaded library",
    ("tallow.data.dataloader", "tallow.data.processes"): "only where there are workers; a browser has no processes",
    ("tallow.data.dataloader", "multiprocessing"): "only where there are workers",
    ("tallow.distributed.mpi", "tallow.distributed.mpich"): "only where mpi4py finds none; slow to import",
    ("tallow.audio.decoders", "resource"): "Windows has none; only for files that ffmpeg reads",
    ("tallow.keras.saving.hdf5_tree", "resource"): "Windows has none",
    ("tallow.extras", "importlib"): "importlib.metadata takes milliseconds to import; only for an error",
    ("tallow.fx.graph", "tabulate"): "optional; without it the columns are plain",
    ("tallow.fx.proxy", "opcode"): "only where a proxy is unpacked",
    ("tallow.cli.serve", "tallow.transformers.speaking"): "only with --speak; other servers start without it",
    ("tallow.transformers.trainer_search", "optuna"): "optional; only for a search by it",
    ("tallow.transformers.tokenization_vits", "uroman"): "optional; only for texts in another script",
    ("tallow.transformers.tokenization_vits", "phonemizer"): "optional; only for models of phonemes",
    ("tallow.cli.completion", "shtab"): "optional; of the extra `completion`",
    ("tallow.cli.parser", "difflib"): "only for the text of an error",
    ("tallow.errors", "difflib"): "only for the text of an error, on Python 3.11",
    ("tallow.hub.in_browser", "urllib.parse"): "pages start without it",
    ("tallow.models.causal_lm", "tallow.generation.harmony"): "imports grammars; only for models with channels",
    (
        "tallow.models.encoders.text_classifier",
        "tallow.models.encoders.token_scorer",
    ): "a subclass, which it returns for folders of language models",
    ("tallow.text.chat", "tallow.text.template_sandbox"): "needs jinja2, of the extra `text`",
    ("tallow.text.tokenizer_engines", "tallow.text.charsmap"): "pages start without it",
    (
        "tallow.transformers.tokenization_files",
        "tallow.compat.packages.tokenizers",
    ): "only where `tokenizers` is not installed",
    ("tallow.transformers.generation.streamers", "asyncio"): "slow to import; only for asynchronous streamers",
    ("tallow.transformers.adapters", "tallow.peft.peft_model"): "only for models with adapters",
    ("tallow.transformers.adapters", "tallow.peft.state"): "only for models with adapters",
    ("tallow.transformers.tokenization_chat", "tallow.text.response_parser"): "only for answers that are read in parts",
    ("tallow.transformers.utils", "importlib.metadata"): "slow to import; training scripts alone check versions",
    ("tallow.models.text_generation", "tallow.generation.constrain"): "pages start without it",
    ("tallow.cli.constraint", "tallow.generation.constrain"): "commands without a form start without it, 30 ms sooner",
    ("tallow.cli.train", "tallow.cli.train_samples"): "runs on texts start without trainers of samples",
    ("tallow.cli.serve", "tallow.cli.divided"): "one process starts without it, 100 ms sooner",
    ("tallow.cli.serve", "tallow.serving.divided"): "one process starts without it",
    ("tallow.cli.serve", "tallow.serving.http.app"): "needs Starlette, of the extra `serve`",
    ("tallow.cli.serve", "tallow.serving.http.application"): "needs Starlette, of the extra `serve`",
    ("tallow.cli.serve", "tallow.serving.http.front"): "needs Starlette, of the extra `serve`",
    ("tallow.cli.serve", "tallow.serving.http.pages"): "needs Starlette, of the extra `serve`",
    ("tallow.cli.serve", "tallow.serving.http.server"): "needs uvicorn, of the extra `serve`",
    ("tallow.serving.http.limits", "resource"): "Windows has none",
    ("tallow.cli.chat", "readline"): "not every Python has it, and importing it writes to some terminals",
}

# Modules written for an optional package: most of their classes derive from its classes. Only the imports in LATE
# import them.
AROUND = {
    "tallow.text.template_filters": "jinja2 markupsafe",
    "tallow.text.template_methods": "jinja2 markupsafe",
    "tallow.text.template_sandbox": "jinja2 markupsafe",
    "tallow.text.template_tree": "jinja2",
    "tallow.hub.package_client": "httpx2 huggingface_hub",
    "tallow.serving.http.app": "starlette prometheus_client",
    "tallow.serving.http.application": "starlette",
    "tallow.serving.http.body": "starlette",
    "tallow.serving.http.chat": "",
    "tallow.serving.http.clients": "starlette",
    "tallow.serving.http.completions": "starlette",
    "tallow.serving.http.connections": "h11 uvicorn",
    "tallow.serving.http.embeddings_inference": "starlette",
    "tallow.serving.http.encoding": "starlette",
    "tallow.serving.http.errors": "starlette",
    "tallow.serving.http.fields": "",
    "tallow.serving.http.forwarding": "h11",
    "tallow.serving.http.front": "starlette prometheus_client",
    "tallow.serving.http.grammars": "starlette",
    "tallow.serving.http.known_fields": "",
    "tallow.serving.http.large_json": "starlette",
    "tallow.serving.http.metrics": "prometheus_client",
    "tallow.serving.http.middleware": "starlette",
    "tallow.serving.http.open_inference": "starlette",
    "tallow.serving.http.openapi": "starlette",
    "tallow.serving.http.origins": "starlette",
    "tallow.serving.http.pages": "starlette",
    "tallow.serving.http.responses": "starlette",
    "tallow.serving.http.rules": "",
    "tallow.serving.http.running": "starlette",
    "tallow.serving.http.sampling": "",
    "tallow.serving.http.server": "starlette uvicorn",
    "tallow.serving.http.speaking": "starlette",
    "tallow.serving.http.speech": "starlette",
    "tallow.serving.http.streaming": "starlette",
    "tallow.serving.http.text_generation": "starlette",
    "tallow.serving.http.tools": "",
    "tallow.serving.http.vectors": "starlette",
    "tallow.serving.http.watching": "",
}


@dataclass(frozen=True)
class Import:
    """`source` imports `target`, a dotted name; `inside` says whether inside a function or for type checkers only."""

    source: str
    target: str
    line: int
    inside: bool
    typing_only: bool

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"


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


@cache
def all_imports() -> list[Import]:
    """Return the imports of all modules: when a test asks, not in every process that collects this file."""
    return [found for module in MODULES for found in imports_of(module)]


def part_of(module: str) -> str:
    """Return the part of a module: `nn` of `tallow.nn.linear`, `tallow` of the root package."""
    return module.split(".")[1] if "." in module else module


def rank_of(module: str) -> int:
    return RANK[part_of(module)]


def test_a_few_rows_with_each_part_once() -> None:
    assert len(LAYERS) <= 12
    assert len(RANK) == sum(map(len, LAYERS))


def test_every_module_has_a_layer() -> None:
    homeless = {module for module in MODULES if part_of(module) not in RANK}
    assert not homeless, f"add to LAYERS, and to the design: {sorted(homeless)}"


def test_contributing_lists_the_layers() -> None:
    listed = "\n".join("  ".join(row) for row in reversed(LAYERS))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"```text\n{listed}\n```" in text, f"CONTRIBUTING.md should list, highest first:\n{listed}"


def test_imports_run_one_way() -> None:
    upward = [str(i) for i in all_imports() if i.target in MODULES and rank_of(i.target) > rank_of(i.source)]
    assert not upward, "\n".join(upward)


def test_no_import_cycle() -> None:
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for entry in all_imports():
        if entry.target in MODULES and not entry.inside and not entry.typing_only and entry.target != entry.source:
            graph[entry.source].add(entry.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])), pytrace=False)


def test_imports_inside_functions_have_a_reason() -> None:
    late = {(i.source, i.target): i for i in all_imports() if i.inside and i.target.split(".")[0] not in OPTIONAL}
    surprising = [str(entry) for key, entry in late.items() if key not in LATE]
    assert not surprising, "move to the top of the file, or list in LATE with the reason:\n" + "\n".join(surprising)
    assert not LATE.keys() - late.keys(), "no longer in the source"


def test_optional_packages_are_imported_where_used() -> None:
    at_top = [i for i in all_imports() if not (i.inside or i.typing_only)]
    early = [i for i in at_top if i.target.split(".")[0] in OPTIONAL]
    early = [i for i in early if i.target.split(".")[0] not in AROUND.get(i.source, "").split()]
    early += [i for i in at_top if i.target in AROUND and i.source not in AROUND]
    assert not early, "\n".join(map(str, early))


def test_import_tallow_loads_numpy_and_nothing_more() -> None:
    code = "import sys, numpy; before = set(sys.modules); import tallow; print(*(set(sys.modules) - before))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {name.split(".")[0] for name in process.stdout.split() if "cython" not in name}  # parts of numpy.random
    assert packages - sys.stdlib_module_names - {"numpy"} == {"tallow"}
