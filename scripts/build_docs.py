"""Build the documentation: the guides of docs/, and a reference of every public name from the docstrings.

    python scripts/build_docs.py OUT                write OUT/index.html and the rest, for any static host
    python scripts/build_docs.py OUT --site ../     the same, with a Run button on each block of Python that runs in a
                                                    tab; the folder above OUT is a site of scripts/build_site.py

It needs MkDocs and Pygments, from the extra `docs`. It writes the pages to a temporary folder and leaves the checkout
unchanged.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import reference_pages

import tallow
from tallow.io.whole_folder import replaced_folder
from tallow.site.build import ENTRY, LIBRARIES
from tallow.site.page_heads import ALL, policy

ROOT = Path(__file__).resolve().parent.parent
# The pages written by hand: section of the menu, title in the menu, source.
GUIDES = (
    (None, "tallow", "README.md"),
    ("Start", "Getting started", "docs/getting-started.md"),
    ("Start", "For PyTorch users", "docs/pytorch.md"),
    ("Start", "Packages", "docs/ecosystem.md"),
    ("Start", "Examples", "examples/README.md"),
    ("Guides", "Data", "docs/data.md"),
    ("Guides", "Training", "docs/training.md"),
    ("Guides", "Graphs", "docs/fx.md"),
    ("Guides", "Export", "docs/export.md"),
    ("Guides", "ONNX", "docs/onnx.md"),
    ("Guides", "Keras", "docs/keras.md"),
    ("Guides", "transformers", "docs/transformers.md"),
    ("Guides", "Language models", "docs/language-models.md"),
    ("Guides", "Models", "docs/models.md"),
    ("Guides", "Embeddings", "docs/embeddings.md"),
    ("Guides", "Speech", "docs/speech.md"),
    ("Guides", "Images", "docs/vision.md"),
    ("Guides", "Serving", "docs/serving.md"),
    ("Guides", "In the browser", "docs/browser.md"),
    ("Guides", "Shared memory in the tab", "docs/threads.md"),
    ("Guides", "Start from a snapshot", "docs/snapshot.md"),
    ("Guides", "Several processes", "docs/distributed.md"),
    ("Inside", "Architecture", "docs/architecture.md"),
    ("Inside", "Write a kernel", "docs/kernels.md"),
    ("Inside", "Port a model", "docs/porting.md"),
    ("Inside", "From candle", "docs/candle.md"),
    ("Inside", "Speed", "docs/speed.md"),
    ("Project", "Contributing", "CONTRIBUTING.md"),
    ("Project", "Tests and builds", "docs/developing.md"),
    ("Project", "Security", "SECURITY.md"),
    ("Project", "Changes", "CHANGELOG.md"),
)
# Modules of the reference, in the order of the menus.
CORE = (
    *(
        "tallow",
        "tallow.Tensor",
        "tallow.autograd",
        "tallow.autograd.forward_ad",
        "tallow.autograd.functional",
        "tallow.func",
        "tallow.random",
    ),
    *("tallow.linalg", "tallow.special", "tallow.fft", "tallow.signal.windows", "tallow.masked", "tallow.sparse"),
    *("tallow.nn", "tallow.nn.block_layers", "tallow.nn.functional", "tallow.nn.init", "tallow.nn.parallel"),
    "tallow.nn.quantization",
    *("tallow.nn.utils", "tallow.nn.utils.fusion", "tallow.nn.utils.parametrizations", "tallow.nn.utils.parametrize"),
    *("tallow.nn.utils.memory_format", "tallow.nn.utils.prune", "tallow.nn.utils.rnn"),
    *("tallow.optim", "tallow.optim.lr_scheduler", "tallow.optim.swa_utils", "tallow.data", "tallow.utils.data"),
    *("tallow.utils.checkpoint", "tallow.distributions", "tallow.distributions.constraint_registry"),
    *("tallow.distributions.transforms", "tallow.distributions.utils"),
    *("tallow.amp", "tallow.accelerator", "tallow.cuda"),
    *(
        "tallow.cuda.amp",
        "tallow.backends",
        "tallow.distributed",
        "tallow.distributed.optim",
        "tallow.distributed.stores",
        "tallow.testing",
    ),
    *("tallow.compiler", "tallow.jit"),
    *("tallow.export", "tallow.onnx"),
    *("tallow.fx", "tallow.fx.passes.graph_drawer", "tallow.fx.passes.shape_prop"),
    *("tallow.fx.passes.utils.matcher_utils", "tallow.fx.subgraph_rewriter"),
)
ABOVE = (
    *("tallow.models", "tallow.models.parallel", "tallow.models.built_in.spoken", "tallow.models.built_in.stories"),
    *("tallow.models.whisper", "tallow.generation", "tallow.generation.constrain", "tallow.generation.tools"),
    *("tallow.peft", "tallow.training", "tallow.serving", "tallow.text", "tallow.audio", "tallow.vision"),
    *("tallow.hub", "tallow.io", "tallow.kernels", "tallow.compat", "tallow.compat.symbols", "tallow.errors"),
)
KERAS = (
    *("activations", "backend", "callbacks", "config", "constraints", "datasets.cifar10", "datasets.fashion_mnist"),
    *("datasets.mnist", "dtype_policies", "initializers", "layers", "losses", "metrics", "mixed_precision", "models"),
    *("ops", "ops.image", "ops.linalg", "ops.nn", "ops.numpy", "optimizers", "optimizers.schedules"),
    *("preprocessing.image", "preprocessing.sequence", "random", "regularizers", "saving", "tree", "utils"),
)
MENUS = {
    "Tensors and layers": CORE,
    "Models and files": ABOVE,
    "Keras": ("tallow.keras", *(f"tallow.keras.{name}" for name in KERAS)),
    "transformers": (
        "tallow.transformers",
        *(f"tallow.transformers.{name}" for name in ("generation", "logging", "pipelines", "utils")),
    ),
    "sentence_transformers": (
        *("tallow.sentence_transformers", "tallow.sentence_transformers.util"),
        *("tallow.sentence_transformers.cross_encoder", "tallow.sentence_transformers.sparse_encoder"),
    ),
    "trl": ("tallow.trl",),
}
COMMANDS = "commands.md"
# The target of a link in Markdown, without its anchor.
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
# Lines that start with a space, or with a word such as Args or Shapes.
LAID_OUT = re.compile(r"^(\s|\w+:\s)", re.MULTILINE)
# A block of Python that runs anywhere. Blocks marked `py` need a download, a GPU or several processes.
RUNNABLE = re.compile(r"^```python$", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write; an existing one is replaced")
    parser.add_argument("--site", default="", help="the folder with site.json, relative to OUT (default: none)")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    with tempfile.TemporaryDirectory() as scratch, replaced_folder(out, ENTRY) as stage:
        settings = write_pages(Path(scratch), stage, arguments.site)
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", settings], check=True)
    print(out / ENTRY)


def write_pages(scratch: Path, out: Path, site: str) -> Path:
    """Write the Markdown pages, the theme and the settings of MkDocs; return the path of the settings.

    Guides and the files that they link to keep their places in the checkout, so that their links stay valid.
    """
    docs, theme = scratch / "docs", scratch / "theme"
    (docs / "api").mkdir(parents=True)
    copy_with_linked(docs, [source for _, _, source in GUIDES])
    for source in {source for _, _, source in GUIDES} if site else ():
        page = docs / source
        page.write_text(RUNNABLE.sub("``` { .python .runnable }", page.read_text(encoding="utf-8")), encoding="utf-8")
    subjects = {name: subject_of(name) for modules in MENUS.values() for name in modules}
    pages = {f"api/{name}.md": reference(name) for name in subjects}
    pages |= {COMMANDS: reference_pages.commands(), "api/index.md": reference_pages.index(MENUS, subjects)}
    for page_path, text in pages.items():
        (docs / page_path).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "theme", theme)
    for name in ("style.css", "flame.svg"):  # the same as on the demo pages
        shutil.copyfile(ROOT / "web" / "page" / name, theme / name)
    path = scratch / "mkdocs.yml"
    path.write_text(json.dumps(settings(docs, theme, out, site)), encoding="utf-8")  # YAML contains JSON
    return path


def settings(docs: Path, theme: Path, out: Path, site: str) -> dict[str, Any]:
    """Return the settings of MkDocs."""
    not_found = [] if site else ["404.html"]  # hosts serve the one at their root, which a folder of a site is not
    return {
        "site_name": "tallow",
        "site_description": "Deep learning in Python that runs in a browser tab and on CUDA from the same file",
        "docs_dir": str(docs),
        "site_dir": str(out),
        "theme": {"name": None, "custom_dir": str(theme), "static_templates": not_found},
        "plugins": [{"search": {"separator": r"[\s\-.()]+"}}],
        "markdown_extensions": [
            {"toc": {"toc_depth": 2, "permalink": "#", "permalink_title": "Link to this section"}},
            "fenced_code",
            {"tables": {"use_align_attribute": True}},  # the policy of the pages forbids inline styles
            "attr_list",
            {"codehilite": {"css_class": "highlight", "guess_lang": False}},
        ],
        "validation": {
            "omitted_files": "ignore",
            "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"},
        },
        "extra": {
            "site": site,
            "version": tallow.__version__,
            "folded": list(MENUS),
            "policy": policy({ALL, "demo", "tokenizers", "markdown"}, LIBRARIES),
        },
        "nav": menu(),
    }


def menu() -> list[dict[str, Any]]:
    """Return the menu in the form of MkDocs: pages as {title: source}, sections as {title: pages}."""
    entries: list[dict[str, Any]] = []
    for section, title, source in GUIDES:
        page = {title: source}
        if section is None:
            entries.append(page)
        elif section in entries[-1]:
            entries[-1][section].append(page)
        else:
            entries.append({section: [page]})
    references = [{name: [{module: f"api/{module}.md"} for module in modules]} for name, modules in MENUS.items()]
    return [*entries, {"Reference": [{"All modules": "api/index.md"}, {"Commands": COMMANDS}, *references]}]


def copy_with_linked(docs: Path, sources: list[str]) -> None:
    """Copy files of the checkout to the same places below `docs`, with the files they link to, recursively."""
    waiting = list(sources)
    while waiting:
        source = waiting.pop()
        target = docs / source
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, target)
        if source.endswith(".md"):
            text = (ROOT / source).read_text(encoding="utf-8")
            linked = ((ROOT / source).parent / link for link in LINK.findall(text))
            waiting += [os.path.relpath(path.resolve(), ROOT) for path in linked if path.is_file()]


def subject_of(name: str) -> Any:
    """Return the module or the class that a page of the reference is about."""
    return tallow.Tensor if name == "tallow.Tensor" else importlib.import_module(name)


def reference(name: str) -> str:
    """Return the page of a module or a class: its docstring, then the signature and docstring of each public name."""
    subject = subject_of(name)
    parts = [f"# {name}", described(subject)]
    for member, value in members(subject):
        shown = reference_pages.wrapped(member, signature(value))
        parts += [f"## {member}", f"```python\n{shown}\n```", described(value)]
        if inspect.isclass(value):
            parts += [
                f"### {member}.{method}\n\n```python\n{reference_pages.wrapped(method, signature(function))}\n```\n\n"
                f"{described(function)}"
                for method, function in sorted(vars(value).items())
                if not method.startswith("_") and inspect.isfunction(function) and function.__doc__
            ]
    return "\n\n".join(part for part in parts if part) + "\n"


def members(subject: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public functions and classes of a module, or the public methods and properties of a class."""
    names = getattr(subject, "__all__", None) or [name for name in dir(subject) if not name.startswith("_")]
    for name in sorted(set(names)):
        value = inspect.getattr_static(subject, name) if inspect.isclass(subject) else getattr(subject, name)
        if inspect.ismodule(value) or not (callable(value) or isinstance(value, property)):
            continue
        if inspect.ismodule(subject) and not str(getattr(value, "__module__", "")).startswith("tallow"):
            continue
        yield name, value


class Plain:
    """An annotation whose repr is its source text, without quotes."""

    def __init__(self, annotation: Any) -> None:
        self.text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)

    def __repr__(self) -> str:
        return self.text


def signature(value: Any) -> str:
    """Return the signature of a function or a class as text; an empty string for a property."""
    if isinstance(value, property):
        return ""
    try:
        written = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    empty = inspect.Signature.empty
    parameters = [
        p if p.annotation is empty else p.replace(annotation=Plain(p.annotation)) for p in written.parameters.values()
    ]
    returned = written.return_annotation
    returned = empty if returned is empty or inspect.isclass(value) else Plain(returned)
    return str(written.replace(parameters=parameters, return_annotation=returned))


def described(value: Any) -> str:
    """Return a docstring as Markdown. Args and the like become lists, other paragraphs with a layout keep it."""
    own = getattr(value, "__doc__", None)
    if not own or (not inspect.isclass(value) and own == type(value).__doc__):
        return ""
    parts: list[str] = []
    laid_out: list[str] = []
    for paragraph in [*re.split(r"\n\s*\n", inspect.cleandoc(own)), ""]:
        fields = reference_pages.fields(paragraph)
        if fields is None and LAID_OUT.search(paragraph):
            laid_out.append(paragraph)
            continue
        if laid_out:
            parts.append("```text\n" + "\n\n".join(laid_out) + "\n```")
            laid_out = []
        parts.append(paragraph if fields is None else fields)
    return "\n\n".join(part for part in parts if part)


if __name__ == "__main__":
    main()
