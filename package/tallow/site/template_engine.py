"""Jinja for web pages, which renders the chat templates of models: an archive of the installed packages."""

from __future__ import annotations

import importlib.metadata
import zipfile
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("markupsafe", "jinja2")  # Jinja needs MarkupSafe, whose compiled part is optional


def pack_template_engine(folder: Path) -> Path | None:
    """Write Jinja and MarkupSafe, with their licences, to an archive in `folder`. The output is reproducible.

    Returns:  its path; None if Jinja is not installed
    """
    try:
        distributions = [importlib.metadata.distribution(name) for name in PACKAGES]
    except importlib.metadata.PackageNotFoundError:
        return None
    archive = folder / f"{PACKAGES[-1]}-{distributions[-1].version}.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for distribution in distributions:
            for name, path in _files(distribution):
                out.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)  # with a fixed date
    return archive


def _files(distribution: importlib.metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the Python files, the metadata and the licences of a distribution, sorted by name."""
    for file in sorted(distribution.files or []):
        top, name = file.parts[0], file.as_posix()
        is_about = top.endswith(".dist-info") and (file.name == "METADATA" or "license" in name.lower())
        if is_about or (top in PACKAGES and file.suffix == ".py"):
            yield name, Path(str(file.locate()))
