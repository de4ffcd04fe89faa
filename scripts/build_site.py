#!/usr/bin/env python3
"""Write the static site, for any static host: the pages, tallow's wheel, and Pyodide or the address of its CDN.

Hugging Face's tokenizers and the Markdown libraries, which some pages load, come from the same place as Pyodide.

scripts/build_site.py OUT                    load Pyodide from its CDN
scripts/build_site.py OUT --pyodide local    copy Pyodide into the site: it needs no other host, and its pages start
                                             twice as fast (Node 20 or later must be on the PATH)
scripts/build_site.py OUT --pyodide local --packages scipy,pandas,regex
                                             copy these packages of Pyodide too, for the console; those that the copy
                                             of fetch_pyodide.py lacks load from the CDN (its --official has all)
scripts/build_site.py OUT --docs             add the documentation as OUT/docs, with Run buttons (extra docs)
python -m http.server -d OUT                 show it at http://127.0.0.1:8000/
scripts/build_site.py OUT --address URL --repository URL
                                             for the picture that links to the site show, and the link to the source
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urljoin

ROOT = Path(__file__).resolve().parents[1]
DOCS = "docs"  # in OUT
CARD = "web/pictures/card.png"
HEADER_LINK = '<a href="../../">All demos</a>'
UNKNOWN = "<i>address of the repository</i>"  # in the front page
sys.path.insert(0, str(ROOT / "package"))

from tallow.errors import TallowError  # noqa: E402
from tallow.site.browser_wheel import SiteError  # noqa: E402
from tallow.site.build import ENTRY, build_site, fill_place, replaced_site  # noqa: E402  the checkout's, whatever is installed


def missing_packages(groups: Iterable[Iterable[str]]) -> list[str]:
    """Return the requirements, as in pyproject.toml, whose packages are not installed."""
    missing = []
    for requirement in (each for group in groups for each in group):
        try:
            distribution(re.split(r"[ ;=<>!~\[]", requirement)[0])
        except PackageNotFoundError:
            missing.append(requirement)
    return missing


def requirements(*, builds_wheel: bool, builds_docs: bool) -> list[str]:
    """Return the packages that are missing in this environment."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    build, docs = project["build-system"]["requires"], project["project"]["optional-dependencies"]["docs"]
    return missing_packages([build if builds_wheel else [], docs if builds_docs else []])


def build_wheel(folder: Path) -> Path:
    """Build the py3-none-any wheel of this checkout, as a release does; return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"TALLOW_WHEEL": "pure"}, stdout=sys.stderr, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def build_docs(site: Path) -> None:
    """Build the documentation in a folder of the site, and link to it from the front page."""
    command = [sys.executable, str(ROOT / "scripts" / "build_docs.py"), str(site / DOCS), "--site", "../"]
    path = os.pathsep.join([str(ROOT / "package"), str(ROOT / "native_gpu")])
    subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, stdout=sys.stderr, check=True)
    link_docs(site / ENTRY)
    add_to_headers(site, f"../../{DOCS}/", "Documentation")


def link_docs(front_page: Path) -> None:
    """Add a link to the documentation."""
    fill_place(front_page, "documentation", f'<a href="{DOCS}/">Documentation</a>')


def link_repository(front_page: Path, repository: str) -> None:
    """Add links to the source."""
    address = html.escape(repository)
    fill_place(front_page, "repository", f'<a href="{address}">Source</a>')
    front_page.write_text(front_page.read_text(encoding="utf-8").replace(UNKNOWN, address), encoding="utf-8")


def add_to_headers(site: Path, address: str, text: str) -> None:
    """Add a link to the header of each demo."""
    for page in sorted(site.glob("wasm_examples/*/index.html")):
        before, place, after = page.read_text(encoding="utf-8").partition(HEADER_LINK)
        if not place:
            raise SiteError(f"{page} has no {HEADER_LINK}")
        link = f'<a href="{html.escape(address)}">{text}</a>'
        page.write_text(f"{before}{place}\n      {link}{after}", encoding="utf-8")


def set_address(front_page: Path, address: str) -> None:
    """Make the address of the picture absolute, as programs that show links need it."""
    absolute = html.escape(urljoin(f"{address.rstrip('/')}/", CARD))
    text = front_page.read_text(encoding="utf-8").replace(f'content="{CARD}"', f'content="{absolute}"')
    front_page.write_text(text, encoding="utf-8")


def web_address(text: str) -> str:
    if not text.startswith(("https://", "http://")):
        raise argparse.ArgumentTypeError(f"{text!r}; expected an address that begins with https://")
    return text


def fetch(script: str, *names: str) -> Path:
    """Run a script of this folder that downloads to the cache; return the path of the download."""
    command = [sys.executable, str(ROOT / "scripts" / script), *names]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return Path(output.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write: new, empty, or an earlier site")
    parser.add_argument("--pyodide", choices=["cdn", "local"], default="cdn", help="default: %(default)s")
    parser.add_argument("--wheel", type=Path, help="a wheel of tallow, of any kind (default: built from this checkout)")
    parser.add_argument("--packages", default="", metavar="NAMES", help="of Pyodide to copy, with --pyodide local")
    parser.add_argument("--docs", action="store_true", help="also build the documentation, in OUT/docs")
    parser.add_argument("--address", type=web_address, metavar="URL", help="where the site will be published")
    parser.add_argument("--repository", type=web_address, metavar="URL", help="of the source code, to link to")
    arguments = parser.parse_args()
    packages = [name for name in arguments.packages.split(",") if name]
    if packages and arguments.pyodide != "local":
        parser.error("--packages needs --pyodide local: Pyodide's CDN has all packages")
    if missing := requirements(builds_wheel=arguments.wheel is None, builds_docs=arguments.docs):
        print(f"build_site: packages are missing; install them: pip install {shlex.join(missing)}", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory() as scratch:
            wheel = arguments.wheel or build_wheel(Path(scratch))
            local = arguments.pyodide == "local"
            pyodide = fetch("fetch_pyodide.py") if local else None
            tokenizers = fetch("fetch_npm.py", "tokenizers") if local else None
            markdown = fetch("fetch_npm.py", "markdown") if local else None
            libraries = {"tokenizers": tokenizers, "markdown": markdown}
            with replaced_site(arguments.out) as site:
                if not build_site(site, wheel=wheel, pyodide=pyodide, packages=packages, **libraries) and local:
                    print("without Node 20 or later the site has no bytecode and no snapshot", file=sys.stderr)
                if arguments.address:
                    set_address(site / ENTRY, arguments.address)
                if arguments.repository:
                    link_repository(site / ENTRY, arguments.repository)
                    add_to_headers(site, arguments.repository, "Source")
                if arguments.docs:
                    build_docs(site)
    except TallowError as error:
        print(f"build_site: {error}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        return error.returncode  # the command has printed why
    print(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
