"""Build the documentation: the guides of docs/ and a reference of every public name, from the docstrings.

    python scripts/build_docs.py OUT          OUT/index.html and the rest, for any static host

It needs MkDocs, of the extra `docs`. The pages are written into a temporary folder; nothing in the checkout changes.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tallow

ROOT = Path(__file__).resolve().parent.parent
GUIDES = {
    "Home": "README.md",
    "Examples": "examples/README.md",
    "Contributing": "CONTRIBUTING.md",
    "Changes": "CHANGELOG.md",
}
# In the order of the menus. Of `tallow` itself, the tensors and what they can do.
CORE = (
    *("tallow", "tallow.Tensor", "tallow.autograd", "tallow.random", "tallow.linalg", "tallow.special"),
    *("tallow.nn", "tallow.nn.functional", "tallow.nn.init", "tallow.nn.parallel", "tallow.nn.quantization"),
    *("tallow.nn.utils", "tallow.nn.utils.parametrizations", "tallow.nn.utils.parametrize", "tallow.nn.utils.rnn"),
    *("tallow.optim", "tallow.optim.lr_scheduler", "tallow.optim.swa_utils", "tallow.data", "tallow.utils.data"),
    *("tallow.utils.checkpoint", "tallow.distributions", "tallow.amp", "tallow.accelerator", "tallow.cuda"),
    *("tallow.cuda.amp", "tallow.backends", "tallow.distributed", "tallow.testing", "tallow.compiler", "tallow.jit"),
)
ABOVE = (
    *("tallow.models", "tallow.models.parallel", "tallow.models.spoken", "tallow.models.stories"),
    *("tallow.models.whisper", "tallow.generation", "tallow.training", "tallow.text", "tallow.audio", "tallow.hub"),
    *("tallow.io", "tallow.kernels", "tallow.compat", "tallow.errors"),
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
}
# The target of a link in Markdown, without its anchor.
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
# Lines that start with a space, or with a word such as Args or Shapes.
LAID_OUT = re.compile(r"^(\s|\w+:\s)", re.MULTILINE)
SETTINGS = """\
site_name: tallow
site_description: Deep learning in Python that runs in a browser tab and on CUDA from the same file
docs_dir: {docs}
site_dir: {site}
theme: {{name: mkdocs, color_mode: auto, user_color_mode_toggle: true, highlightjs: false, navigation_depth: 3}}
extra_css: [docs/style.css]
markdown_extensions: [toc: {{toc_depth: 2}}, fenced_code, tables]
validation: {{omitted_files: ignore, links: {{not_found: warn, anchors: warn, unrecognized_links: warn}}}}
nav:
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder to write, which is replaced")
    out = parser.parse_args().out.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        settings = write_pages(Path(scratch), out)
        subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--clean", "-f", settings], check=True
        )
    print(out / "index.html")


def write_pages(scratch: Path, out: Path) -> Path:
    """Write the pages in Markdown and the settings of MkDocs; return the settings' path.

    Guides keep their places in the checkout, and what they link to comes along, so their links hold as they are.
    """
    docs = scratch / "docs"
    (docs / "api").mkdir(parents=True)
    guides = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
    copy_with_linked(docs, [*GUIDES.values(), *guides])
    (docs / "docs").mkdir(exist_ok=True)
    shutil.copyfile(ROOT / "docs" / "style.css", docs / "docs" / "style.css")
    nav = [f"  - {title}: {source}" for title, source in GUIDES.items()]
    nav[-2:-2] = [f"  - {title_of(ROOT / guide)}: {guide}" for guide in guides]
    for menu, modules in MENUS.items():
        nav.append(f"  - {menu}:")
        for name in modules:
            (docs / "api" / f"{name}.md").write_text(reference(name), encoding="utf-8")
            nav.append(f"      - {name}: api/{name}.md")
    settings = scratch / "mkdocs.yml"
    settings.write_text(SETTINGS.format(docs=docs, site=out) + "\n".join(nav) + "\n", encoding="utf-8")
    return settings


def copy_with_linked(docs: Path, sources: list[str]) -> None:
    """Copy files of the checkout to their places below `docs`, and the files that they link to, and so on."""
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


def title_of(guide: Path) -> str:
    return guide.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def reference(name: str) -> str:
    """The page of a module or a class: what it is, then each public name with its signature and its docstring."""
    subject = tallow.Tensor if name == "tallow.Tensor" else importlib.import_module(name)
    parts = [f"# {name}", described(subject)]
    for called, thing in members(subject):
        parts += [f"## {called}", f"```python\n{called}{signature(thing)}\n```", described(thing)]
        if inspect.isclass(thing):
            parts += [
                f"### {called}.{method}\n\n```python\n{method}{signature(function)}\n```\n\n{described(function)}"
                for method, function in sorted(vars(thing).items())
                if not method.startswith("_") and inspect.isfunction(function) and function.__doc__
            ]
    return "\n\n".join(part for part in parts if part) + "\n"


def members(subject: Any) -> Iterator[tuple[str, Any]]:
    """The public names of a module or a class that are functions or classes, without modules and plain values."""
    names = getattr(subject, "__all__", None) or [name for name in dir(subject) if not name.startswith("_")]
    for name in sorted(set(names)):
        thing = inspect.getattr_static(subject, name) if inspect.isclass(subject) else getattr(subject, name)
        if inspect.ismodule(thing) or not (callable(thing) or isinstance(thing, property)):
            continue
        if inspect.ismodule(subject) and not str(getattr(thing, "__module__", "")).startswith("tallow"):
            continue
        yield name, thing


class Plain:
    """An annotation that is shown as it is written, without quotes."""

    def __init__(self, annotation: Any) -> None:
        self.text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)

    def __repr__(self) -> str:
        return self.text


def signature(thing: Any) -> str:
    if isinstance(thing, property):
        return ""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    empty = inspect.Signature.empty
    parameters = [
        p if p.annotation is empty else p.replace(annotation=Plain(p.annotation)) for p in found.parameters.values()
    ]
    returned = found.return_annotation
    returned = empty if returned is empty or inspect.isclass(thing) else Plain(returned)
    return str(found.replace(parameters=parameters, return_annotation=returned))


def described(thing: Any) -> str:
    """A docstring in Markdown: paragraphs as they are, but those that are laid out keep their lines."""
    own = getattr(thing, "__doc__", None)
    if not own or (not inspect.isclass(thing) and own == type(thing).__doc__):
        return ""
    parts: list[str] = []
    laid_out: list[str] = []
    for paragraph in [*re.split(r"\n\s*\n", inspect.cleandoc(own)), ""]:
        if LAID_OUT.search(paragraph):
            laid_out.append(paragraph)
            continue
        if laid_out:
            parts.append("```text\n" + "\n\n".join(laid_out) + "\n```")
            laid_out = []
        parts.append(paragraph)
    return "\n\n".join(part for part in parts if part)


if __name__ == "__main__":
    main()
