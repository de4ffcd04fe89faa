"""Run the programs with both libraries and compare what they print: `compare.py CHECKOUTS PACKAGES [NAME...]`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
from checkouts.programs import PROGRAMS, Program

ALIKE = Path(__file__).with_name("alike.py")
NUMBER = re.compile(r"(-?\d+\.\d*(?:e[-+]?\d+)?)")  # "1." and "1.0000" are rounded values of a tensor
RTOL = 1e-3  # a few steps of training; programs print four or five digits


def name_of(program: Program) -> str:
    """Return a name such as "mnist/main.py"."""
    return f"{program.folder.removeprefix('examples/')}/{program.path}"


def printed(program: Program, checkouts: Path, packages: str, library: str, to: Path) -> str | None:
    """Run a program in a copy of its folder. Return what it printed; None, with the reason on stderr, if it failed."""
    folder = to / library / Path(program.folder).name
    shutil.copytree(checkouts / program.folder, folder)
    if program.data:
        program.data(folder)
    paths = os.pathsep.join([packages, str(folder)])
    environment = {**os.environ, "PYTHONPATH": paths, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1", "MPLBACKEND": "agg"}
    runs = [("torch", 0, program.before.split())] if program.before else []
    runs += [(library, program.lines, [program.path, *program.arguments.split()])]
    text = ""
    for by, lines, words in runs:
        command = [sys.executable, "-W", "ignore", str(ALIKE), by, str(lines), *words]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
        if done.returncode:
            print(f"{name_of(program)} on {by}: {done.stderr[-1500:]}", file=sys.stderr)
            return None
        text = done.stdout
    return text


def difference(program: Program, checkouts: Path, packages: str) -> str | None:
    """Return how a program differs on tallow, or None."""
    with tempfile.TemporaryDirectory() as scratch:
        texts = {by: printed(program, checkouts, packages, by, Path(scratch)) for by in ("torch", "tallow")}
        if None in texts.values():
            return "fails on " + " and ".join(by for by, text in texts.items() if text is None)
        if program.compared and (reason := _different(str(texts["torch"]), str(texts["tallow"]))):
            return reason
        if program.picture:
            from PIL import Image

            places = [Path(scratch, by, Path(program.folder).name, program.picture) for by in texts]
            theirs, mine = (np.asarray(Image.open(place)).astype(int) for place in places)
            if np.abs(mine - theirs).max() > 1:
                return "the picture differs"
    return None


def _different(expected: str, found: str) -> str | None:
    theirs, mine = expected.splitlines(), found.splitlines()
    if not theirs:
        return None
    if len(mine) != len(theirs):
        return f"{len(mine)} lines for {len(theirs)}"
    for a, b in zip(mine, theirs, strict=True):
        ours, others = NUMBER.split(a), NUMBER.split(b)
        close = ours[::2] == others[::2] and np.allclose(
            [float(x) for x in ours[1::2]], [float(x) for x in others[1::2]], rtol=RTOL, atol=1e-4
        )
        if not close:
            return f"prints {a!r} for {b!r}"
    return None


if __name__ == "__main__":
    checkouts, packages, *names = sys.argv[1:]
    for program in PROGRAMS:
        if not names or any(name in name_of(program) + program.arguments for name in names):
            found = difference(program, Path(checkouts), packages) or "equal"
            print(f"{name_of(program)} {program.arguments}", found, sep="\t", flush=True)
