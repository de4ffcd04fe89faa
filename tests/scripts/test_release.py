"""The script of releases: it writes the version everywhere, and tags where the sections of versions were written."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import release
from support.paths import ROOT

KINDS = "added|changed|fixed|removed|security"


def test_the_version_is_written_wherever_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = release.current_version()
    names = {name for name, _ in release.WRITTEN}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    release.write_version("98.7.6", "2098-07-06")
    assert release.current_version() == "98.7.6"
    for name in names:
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "98.7.6" in text
        assert f"tallow-{old}" not in text
    assert "date-released: 2098-07-06\n" in (tmp_path / "CITATION.cff").read_text(encoding="utf-8")


def test_a_file_without_the_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "WRITTEN", [("a.txt", r"(version )\d(;)")])
    (tmp_path / "a.txt").write_text("no number")
    with pytest.raises(SystemExit, match=r"a\.txt does not have the version"):
        release.write_version("2.0.0", "2030-01-01")


def test_tags_stand_where_the_sections_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    def commit(text: str) -> str:
        (tmp_path / "CHANGELOG.md").write_text(text)
        git("add", ".")
        git("commit", "--quiet", "--message", "a change")
        return git("rev-parse", "HEAD")

    git("init", "--quiet")
    first = commit("## 0.1.0 - 2030-01-01\n")
    commit("## 0.1.0 - 2030-01-01\n\n- a\n")
    second = commit("## 0.2.0 - 2030-02-01\n\n## 0.1.0 - 2030-01-01\n\n- a\n")
    commit("## 0.2.0 - 2030-02-01\n\n- b\n\n## 0.1.0 - 2030-01-01\n\n- a\n")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    assert release.untagged() == {"0.1.0": first, "0.2.0": second}
    git("tag", "v0.1.0", first)
    assert release.untagged() == {"0.2.0": second}


def test_each_change_has_a_kind() -> None:
    names = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    assert [name for name in names if not re.fullmatch(rf"\+[\w-]+\.({KINDS})\.md", name)] == []
