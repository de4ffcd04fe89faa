"""No text installs `tallow` by name, which an index might give to another project; extras have the right contents."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from support.paths import ROOT

from tallow import extras
from tallow.errors import MissingPackageError

# `pip install "tallow[x] @ ..."` and a wheel's file name say where it comes from.
BY_NAME = re.compile(r"""pip install (?:-\S+ +)*['"]?tallow(?:\[[\w,]*\])?['"]?(?![\w./-]|\[| @)""")
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        ("pip install tallow", True),
        ("`pip install tallow`, then", True),
        ("pip install -U 'tallow[cuda12]' or", True),
        ("pip install ./tallow", False),
        ("pip install 'tallow[hub] @ git+https://host/tallow'", False),
        ("pip install tallow-0.1.0-py3-none-any.whl", False),
    ],
)
def test_the_pattern(text: str, is_match: bool) -> None:
    assert bool(BY_NAME.search(text)) == is_match


def test_no_text_installs_tallow_by_name() -> None:
    tracked_files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    mine = "tests/source/test_install_texts.py"
    for name in filter(None, tracked_files.split("\0")):
        path = ROOT / name
        if name == mine or not path.is_file():
            continue
        match = BY_NAME.search(path.read_bytes().decode(errors="ignore"))
        assert not match, f"{name}: {match[0]}: name a folder, a git address, or the extra alone"


def test_all_has_every_extra_that_users_have() -> None:
    first, *others = EXTRAS["all"]
    included = set(re.findall(r"\w+", first)) - {"tallow"}
    assert included == EXTRAS.keys() - {"all", "cuda12", "cuda13", "docs", "mpi", "test"}
    assert [line.partition(";")[0] for line in others] == EXTRAS["mpi"]


@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - {"all", "test"}))
def test_command_names_what_the_extra_requires(extra: str) -> None:
    line = extras.install_command(extra, otherwise="nothing")
    for requirement in EXTRAS[extra]:
        assert requirement.lower().replace("_", "-") in line.replace("_", "-")  # as metadata spells names
    assert line.startswith("pip install ")


def test_command_without_metadata_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    assert extras.install_command("audio", otherwise="soundfile") == "pip install soundfile"


def test_command_in_a_browser_tab_is_micropips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "emscripten")
    command = "import micropip; await micropip.install(['matplotlib>=3.8'])"
    assert extras.install_command("plot", otherwise="matplotlib") == command


def test_error_has_the_command() -> None:
    error = MissingPackageError("soundfile", "reading a.ogg", "audio")
    assert str(error) == (
        'reading a.ogg needs the package soundfile\n  hint: install it: pip install "soundfile>=0.13" "soxr>=0.5"'
    )
