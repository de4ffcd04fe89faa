"""scripts/build_site.py says at once which packages it lacks."""

from __future__ import annotations

import build_site
import pytest


def test_missing_packages_are_named_as_pip_takes_them() -> None:
    groups = [["numpy>=2", "no-such-package-of-tallow[extra]>=1; python_version > '3'"], ["also-none==1.2"]]
    assert build_site.missing_packages(groups) == [groups[0][1], groups[1][0]]


def test_the_script_ends_before_it_builds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(build_site, "requirements", lambda **needs: ["also-none==1.2", "a b"])
    monkeypatch.setattr("sys.argv", ["build_site.py", "out"])
    assert build_site.main() == 2
    assert "pip install also-none==1.2 'a b'" in capsys.readouterr().err
