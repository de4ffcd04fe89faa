#!/usr/bin/env python3
"""Write the static site, for any static host: the pages, tallow's wheel, and Pyodide or the address of its CDN.

Hugging Face's tokenizers, which some pages load, come from where Pyodide does.

scripts/build_site.py OUT                    Pyodide comes from its CDN
scripts/build_site.py OUT --pyodide local    a copy of it is part of the site, which then needs no other host, and
                                             pages start a third sooner (Node 20 or later must be on the PATH)
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "package"))

from tallow.cli.site import build_site  # noqa: E402  the checkout's, whatever is installed
from tallow.errors import TallowError  # noqa: E402


def build_wheel(folder: Path) -> Path:
    """The py3-none-any wheel of this checkout, as a release builds it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"TALLOW_WHEEL": "pure"}, stdout=sys.stderr, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def fetch(script: str) -> Path:
    """What a script of this folder puts into the cache."""
    command = [sys.executable, str(ROOT / "scripts" / script)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return Path(output.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write: new, empty, or an earlier site")
    parser.add_argument("--pyodide", choices=["cdn", "local"], default="cdn", help="default: %(default)s")
    parser.add_argument("--wheel", type=Path, help="a wheel of tallow, of any kind (default: built from this checkout)")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            wheel = arguments.wheel or build_wheel(Path(scratch))
            local = arguments.pyodide == "local"
            pyodide = fetch("fetch_pyodide.py") if local else None
            tokenizers = fetch("fetch_tokenizers.py") if local else None
            compiled = build_site(arguments.out, wheel=wheel, pyodide=pyodide, tokenizers=tokenizers)
            if local and not compiled:
                print("without Node 20 or later the site has no bytecode: pages start slower", file=sys.stderr)
    except TallowError as error:
        print(f"build_site: {error}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        return error.returncode  # it has said why
    print(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
