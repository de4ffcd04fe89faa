#!/usr/bin/env python3
"""Write the npm package `tallow`, tallow-VERSION.tgz, for `npm install ./tallow-VERSION.tgz` or `npm publish`.

It has the runtime of the pages, without the pages; npm must be on the PATH.

scripts/build_npm.py OUT                    load Pyodide from its CDN
scripts/build_npm.py OUT --pyodide local    include Pyodide: the package needs no other host, and starts twice as fast
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("index.js", "worker.js", "kernel-supervisor.js")  # the first module of the page and those of its workers
IMPORT = re.compile(r"""^(?:import|export) [^;]*?"\./([\w-]+\.js)";""", re.MULTILINE)
OTHERS = ("types.d.ts", "README.md", "package.json")


def pack(site: Path, out: Path) -> Path:
    """Pack the runtime of a site; return the path of the package."""
    with tempfile.TemporaryDirectory() as scratch:
        package = Path(scratch) / "package"
        (package / "web").mkdir(parents=True)
        for name in web_files(site / "web"):
            shutil.copyfile(site / "web" / name, package / "web" / name)
        for name in ("package.json", "README.md"):  # their paths are relative to the package
            (package / "web" / name).rename(package / name)
        for name in ("LICENSE-MIT", "LICENSE-APACHE"):
            shutil.copyfile(ROOT / name, package / name)
        shutil.copyfile(site / "site.json", package / "site.json")
        shutil.copytree(site / "runtime", package / "runtime")
        command = ["npm", "pack", "--json", "--pack-destination", str(out.resolve())]
        done = subprocess.run(command, cwd=package, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    (report,) = json.loads(done.stdout)
    return out / report["filename"]


def web_files(web: Path) -> set[str]:
    """Return the names of the files in `web` that the package needs."""
    found: set[str] = set()
    waiting = list(MODULES)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += IMPORT.findall((web / name).read_text(encoding="utf-8"))
    return found | {path.name for path in web.glob("*.py")} | set(OTHERS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for the package")
    parser.add_argument("--pyodide", choices=["cdn", "local"], default="cdn", help="default: %(default)s")
    arguments = parser.parse_args()
    if not shutil.which("npm"):
        print("build_npm: npm not found; install Node.js", file=sys.stderr)
        return 2
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch) / "site"
        command = [sys.executable, str(ROOT / "scripts/build_site.py"), str(site), "--pyodide", arguments.pyodide]
        if status := subprocess.run(command, stdout=sys.stderr).returncode:
            return status
        print(pack(site, arguments.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
