#!/usr/bin/env python3
"""Write docs/ecosystem.md: the packages for PyTorch that were tried on tallow, and what came of it.

    scripts/ecosystem.py [--results FOLDER] [--checkouts FOLDER]

Each package of tests/compat/ecosystem is imported in a process of its own, and its cases are computed with PyTorch and
tallow. Results go to a folder; those that are there already are not computed again. The programs of
tests/compat/checkouts run if `--checkouts` names a folder with `examples` (github.com/pytorch/examples), `minGPT`
(github.com/karpathy/minGPT) and `LLMs-from-scratch` (github.com/rasbt/LLMs-from-scratch); they need gymnasium,
matplotlib and six too. Without it, their part of the page stays.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path

from fetch_packages import ECOSYSTEM, fetch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "compat"))
from checkouts import compare
from checkouts.compare import RTOL as PRINTED_RTOL
from checkouts.programs import PROGRAMS
from comparison import CASES, NOISE, RTOL, difference
from packages import load_ecosystem

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tests" / "compat" / "packages.py"
# The name of a distribution, where it is not that of the module.
DISTRIBUTIONS = {
    "esm": "fair-esm",
    "ignite": "pytorch-ignite",
    "neuralop": "neuraloperator",
    "open_clip": "open-clip-torch",
    "pyro": "pyro-ppl",
}
# Packages without a case: an older name of lightning.
IMPORTED = ("pytorch_lightning",)
IMPORT = "import tallow.compat, importlib, sys; tallow.compat.install_torch(); importlib.import_module(sys.argv[1])"
HEAD = """# Packages

The packages below are written for PyTorch. They were installed without it (`pip install --no-deps`) and run unchanged
on the stand-in, `tallow.compat.install_torch()`. "equal" means that each element of the outputs, of the gradient of
each parameter and of the output after a step of training agrees with PyTorch's, from the same weights: to {rtol:g} of
the largest element of its tensor, plus {noise:g} of the largest of all. `scripts/test tests/compat --ecosystem` repeats
that, and each run of the tests does for some packages. `scripts/ecosystem.py` writes this page. [In a
browser](browser.md#packages) has those that were tried in a tab.

{imports} of {packages} packages import, and {equal} of {cases} cases are equal.

| package | version | run | result |
| --- | --- | --- | --- |
"""
PROGRAMS_TITLE = "## Programs of repositories"
PROGRAMS_HEAD = f"""{PROGRAMS_TITLE}

Programs of [pytorch/examples](https://github.com/pytorch/examples) and
[minGPT](https://github.com/karpathy/minGPT) run unchanged on small made-up data, with the weights and draws that
PyTorch gets, and so do parts of [LLMs-from-scratch](https://github.com/rasbt/LLMs-from-scratch): notebooks (ch02,
dataloader, ch03, multihead-attention), a GPT-2 of full size, its variants with caches (grouped, latent and windowed
attention, experts), training, generation, a classifier, and in `pkg` variants of GPT-2, and of Llama 3 and Qwen 3 with
caches. There a program, `small.py`, sets small sizes. "equal" means
that all lines they print agree, their numbers to {PRINTED_RTOL:g}. "runs" means that only the end counts: the processes
of mnist_hogwild race, ch02 prints initial weights, the programs of fx print generated code, which is laid out
differently, and PyTorch draws the dropout of the Transformer's attention in C++. Not run: language_translation and
snli need torchtext, which has ended; the programs of the folder `distributed` need several devices;
vision_transformer is gone.

| program | arguments | result |
| --- | --- | --- |
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-W", "ignore", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1800, check=False)


def compute(packages: Path, results: Path) -> dict[str, str | None]:
    """Return for each case how the libraries differ. A library computes all cases in one process."""
    folders = results / "torch", results / "tallow"
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        left = [name for name in CASES if not (folder / f"{name}.npz").exists()]
        if left:
            run(packages, str(PROGRAM), folder.name, str(folder), *left)
    return {name: difference(*folders, name) for name in CASES}


def import_of(packages: Path, module: str) -> str:
    """Return "imports", or where the import stops."""
    done = run(packages, "-c", IMPORT, module)
    if done.returncode == 0:
        return "imports"
    reason = done.stderr.strip().splitlines()[-1].split(": ", 1)[-1].split(": tallow")[0]
    return f"stops at `{reason:.80}`"


def page(packages: Path, results: Path) -> str:
    """Return the text of the page."""
    versions = {d.name.lower().replace("_", "-"): d.version for d in distributions(path=[*sys.path, str(packages)])}
    different = compute(packages, results)
    rows: list[tuple[str, str, str]] = []  # module, what was run, result
    for name in CASES:
        what = (CASES[name].__doc__ or "").strip().removesuffix(".")
        reason = (different[name] or "").partition(" (/")[0]
        rows.append((name.partition("__")[0], what, f"**{reason:.80}**" if reason else "equal"))
    rows += [(module.partition(".")[0], "import", import_of(packages, module)) for module in IMPORTED]
    lines = []
    for module, what, result in sorted(rows):
        version = versions.get(DISTRIBUTIONS.get(module, module).replace("_", "-"), "?")
        lines.append(f"| {module} | {version} | {what} | {result} |")
    modules = {module for module, _, _ in rows}
    stopped = {module for module, what, result in rows if what == "import" and result != "imports"}
    numbers = {"imports": len(modules - stopped), "packages": len(modules), "cases": len(different)}
    equal = sum(reason is None for reason in different.values())
    return HEAD.format(rtol=RTOL, noise=NOISE, equal=equal, **numbers) + "\n".join(lines) + "\n"


def programs(packages: Path, checkouts: Path) -> str:
    """Return the part of the page about programs."""
    lines = []
    for program in PROGRAMS:
        reason = compare.difference(program, checkouts, str(packages))
        result = f"**{reason:.80}**" if reason else "equal" if program.compared else "runs"
        lines.append(f"| {compare.name_of(program)} | {program.arguments} | {result} |")
    return PROGRAMS_HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Write docs/ecosystem.md.")
    parser.add_argument("--results", type=Path, help="a folder for the results; a temporary one by default")
    parser.add_argument("--checkouts", type=Path, help="a folder with checkouts of the repositories")
    given = parser.parse_args()
    load_ecosystem()
    packages, path = fetch(ECOSYSTEM), ROOT / "docs" / "ecosystem.md"
    _, title, kept = path.read_text(encoding="utf-8").partition(PROGRAMS_TITLE)
    with tempfile.TemporaryDirectory() as temporary:
        text = page(packages, given.results or Path(temporary))
    rest = programs(packages, given.checkouts) if given.checkouts else title + kept
    path.write_text(text + "\n" + rest if rest else text, encoding="utf-8")


if __name__ == "__main__":
    main()
