"""Make a release: write its version and changelog, build and check its packages, and tag it. See `scripts/release`."""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = r"\d+\.\d+\.\d+"
# Where the version is written: paths, and patterns with the version between two groups.
WRITTEN: Sequence[tuple[str, str]] = (
    ("package/tallow/__init__.py", rf'(?m)^(__version__ = "){VERSION}(")'),
    ("web/npm/package.json", rf'(?m)^(  "version": "){VERSION}(")'),
    ("recipes/tallow/meta.yaml", rf"(?m)^(  version: ){VERSION}($)"),
    ("CITATION.cff", rf"(?m)^(version: ){VERSION}($)"),
    *((path, rf"(tallow-){VERSION}(-py3-none-any\.whl|\.tgz)") for path in ("README.md", "docs/browser.md")),
)
DATE = re.compile(r"(?m)^date-released: .*$")
KINDS = ("pure", "platform")  # of wheels: hatch_build.py says what is in them
SECTION = re.compile(rf"(?m)^## ({VERSION}) - \d{{4}}-\d\d-\d\d$")
SMOKE = """
import tallow as tl
x = tl.ones(2, 3, requires_grad=True)
(x @ x.mT).sum().backward()
assert x.grad.tolist() == [[4.0] * 3] * 2
print(tl.__version__, tl.kernels.info())
"""


def run(*command: str | Path, **environment: str) -> None:
    """Run a command in the checkout, after its line is printed.

    Raises:  SystemExit with the command's status
    """
    print("+", *command, flush=True)
    if status := subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False).returncode:
        sys.exit(status)


def git(*arguments: str) -> str:
    """Return what a command of git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def current_version() -> str:
    """Return the version that the package has."""
    path, pattern = WRITTEN[0]
    match = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"))
    assert match, path
    return match[0].removeprefix(match[1]).removesuffix(match[2])


def write_version(version: str, date: str) -> None:
    """Write the version wherever it stands, and the date of the release in CITATION.cff."""
    for name, pattern in WRITTEN:
        path = ROOT / name
        text, count = re.subn(pattern, rf"\g<1>{version}\g<2>", path.read_text(encoding="utf-8"))
        if not count:
            sys.exit(f"scripts/release: {name} does not have the version; look at WRITTEN in scripts/release.py")
        path.write_text(text, encoding="utf-8")
    citation = ROOT / "CITATION.cff"
    citation.write_text(DATE.sub(f"date-released: {date}", citation.read_text(encoding="utf-8")), encoding="utf-8")


def build(out: Path, kinds: Sequence[str]) -> None:
    """Build wheels in `out`, and beside the pure one the source archive; check all.

    They have the date of the commit, so that the same commit gives the same packages.
    """
    date = git("log", "-1", "--format=%ct")
    if "pure" in kinds:
        run(sys.executable, "-m", "build", "--sdist", "--outdir", out, SOURCE_DATE_EPOCH=date)
    for kind in kinds:
        run(sys.executable, "-m", "build", "--wheel", "--outdir", out, SOURCE_DATE_EPOCH=date, TALLOW_WHEEL=kind)
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(out.iterdir()))
    for wheel in sorted(out.glob("*.whl")):
        with tempfile.TemporaryDirectory() as scratch:
            venv.create(scratch, with_pip=True)
            python = Path(scratch, "Scripts" if os.name == "nt" else "bin", "python")
            run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
            run(python, "-c", SMOKE)


def untagged() -> dict[str, str]:
    """Return the commit of each version that has no tag: the one that wrote its section of the changelog."""
    headings = {match[1]: match[0] for match in SECTION.finditer((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))}
    tags = git("tag").split()
    commits = {}
    for version, heading in reversed(headings.items()):
        if f"v{version}" not in tags:
            found = git("log", f"-S{heading}", "--format=%H", "--", "CHANGELOG.md").split()
            if not found:
                sys.exit(f"scripts/release: the section of {version} in CHANGELOG.md is not committed: commit it first")
            commits[version] = found[-1]
    return commits


def tag() -> None:
    """Tag the versions without a tag, and say how to push them."""
    commits = untagged()
    for version, commit in commits.items():
        run("git", "tag", "--annotate", f"v{version}", "--message", f"tallow {version}", commit)
    if commits:
        print("Push:  git push origin HEAD", *(f"v{version}" for version in commits))


def release(version: str, kinds: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Write, commit, build and tag a version."""
    if not re.fullmatch(VERSION, version):
        parser.error(f"{version} is no version such as 0.3.0")
    if git("status", "--porcelain"):
        parser.error("the checkout has changes; commit them first")
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    write_version(version, date)
    run(sys.executable, "-m", "towncrier", "build", "--yes", "--version", version, "--date", date)
    run("git", "commit", "--all", "--message", f"release: {version}")
    build(ROOT / "dist", kinds)
    tag()


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/release", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("version", nargs="?", help="of the new release, such as 0.3.0")
    what.add_argument("--dry-run", action="store_true", help="build and check the present version, and change nothing")
    what.add_argument("--build", type=Path, metavar="FOLDER", help="the same, and keep the packages in a folder")
    what.add_argument("--tags", action="store_true", help="tag the versions of the changelog that have no tag")
    parser.add_argument("--wheel", choices=KINDS, action="append", help="build only this wheel; may be repeated")
    arguments = parser.parse_args()
    kinds = arguments.wheel or KINDS
    if arguments.tags:
        tag()
    elif arguments.build:
        build(arguments.build.resolve(), kinds)
    elif arguments.dry_run:
        with tempfile.TemporaryDirectory() as scratch:
            build(Path(scratch), kinds)
            print(*(f"{path.stat().st_size:>10,} {path.name}" for path in sorted(Path(scratch).iterdir())), sep="\n")
        run(sys.executable, "-m", "towncrier", "build", "--draft", "--version", current_version())
    else:
        release(arguments.version, kinds, parser)


if __name__ == "__main__":
    main()
