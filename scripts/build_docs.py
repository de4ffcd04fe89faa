"""Build the documentation: the guides of docs/ and a reference of every public name, from the docstrings.

    python scripts/build_docs.py OUT          OUT/index.html and the rest, for any static host

It needs MkDocs, of the extra `docs`. The pages are written into a temporary folder; nothing in the checkout changes.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
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
# In the order of the menu. Of `tallow` itself, the tensors and what they can do.
MODULES = (
    *("tallow", "tallow.Tensor", "tallow.autograd", "tallow.linalg", "tallow.special", "tallow.nn"),
    *("tallow.nn.functional", "tallow.nn.init", "tallow.nn.utils", "tallow.optim", "tallow.optim.lr_scheduler"),
    *("tallow.data", "tallow.distributions", "tallow.amp", "tallow.keras", "tallow.keras.layers"),
    *("tallow.keras.losses", "tallow.keras.metrics", "tallow.keras.optimizers", "tallow.keras.callbacks"),
    *("tallow.models", "tallow.generation", "tallow.text", "tallow.hub", "tallow.io", "tallow.kernels"),
    *("tallow.cuda", "tallow.distributed"),
    *("tallow.compat", "tallow.errors"),
)
# Lines that start with a space, or with a word such as Args or Shapes.
LAID_OUT = re.compile(r"^(\s|\w+:\s)", re.MULTILINE)
SETTINGS = """\
site_name: tallow
site_description: Deep learning in Python that runs in a browser tab and on CUDA from the same file
docs_dir: {docs}
site_dir: {site}
theme: {{name: mkdocs, color_mode: auto, user_color_mode_toggle: true, highlightjs: false, navigation_depth: 3}}
markdown_extensions: [toc: {{toc_depth: 2}}, fenced_code, tables]
validation: {{links: {{not_found: info, unrecognized_links: info}}}}
nav:
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder to write, which is replaced")
    out = parser.parse_args().out.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        settings = write_pages(Path(scratch), out)
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--clean", "-f", settings], check=True)
    print(out / "index.html")


def write_pages(scratch: Path, out: Path) -> Path:
    """Write the pages in Markdown and the settings of MkDocs; return the settings' path."""
    docs = scratch / "docs"
    (docs / "api").mkdir(parents=True)
    nav = []
    for title, source in GUIDES.items():
        name = "index.md" if title == "Home" else f"{title.lower()}.md"
        shutil.copyfile(ROOT / source, docs / name)
        nav.append(f"  - {title}: {name}")
    for guide in sorted((ROOT / "docs").glob("*.md")):
        shutil.copyfile(guide, docs / guide.name)
        title = guide.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        nav.insert(-2, f"  - {title}: {guide.name}")
    nav.append("  - Reference:")
    for name in MODULES:
        (docs / "api" / f"{name}.md").write_text(reference(name), encoding="utf-8")
        nav.append(f"      - {name}: api/{name}.md")
    settings = scratch / "mkdocs.yml"
    settings.write_text(SETTINGS.format(docs=docs, site=out) + "\n".join(nav) + "\n", encoding="utf-8")
    return settings


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
