"""The version and its date agree wherever they are written."""

from __future__ import annotations

import json
import re

from support.paths import ROOT

import tallow

SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def test_changelog_starts_with_the_current_version() -> None:
    latest, *_ = SECTION.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    version, _, date = latest.partition(" - ")
    assert version == tallow.__version__
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date)


def test_citation_names_the_current_version_and_its_date() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    latest, *_ = SECTION.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert f"version: {tallow.__version__}\n" in citation
    assert f"date-released: {latest.partition(' - ')[2]}\n" in citation


def test_npm_package_has_the_current_version() -> None:
    package = json.loads((ROOT / "web" / "npm" / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == tallow.__version__


def test_guides_name_the_current_wheel() -> None:
    guides = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(guide.read_text(encoding="utf-8") for guide in guides)
    assert set(re.findall(r"tallow-[\w.]+-py3-none-any\.whl", text)) == {
        f"tallow-{tallow.__version__}-py3-none-any.whl"
    }
    assert set(re.findall(r"tallow-[\w.]+\.tgz", text)) == {f"tallow-{tallow.__version__}.tgz"}
