"""The small files of repositories on the Hugging Face Hub, from the folder `hub` of the real data."""

from __future__ import annotations

import json
from typing import Any

from support.paths import data_dir

HUB = data_dir() / "hub"


def records(name: str) -> list[dict[str, Any]]:
    """Return the lines of a file of that folder, such as "configs"; none where the data is absent."""
    path = HUB / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def folders_of(record: dict[str, Any]) -> list[str]:
    """Return the folders that have the file of a record: its own first, then those with an equal one."""
    return [record["folder"], *record.get("also", [])]


def folders(*names: str) -> dict[str, dict[str, Any]]:
    """Return the contents of the files of each folder in these collections, by the names of the files."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        for record in records(name):
            for folder in folders_of(record):
                file = record["file"].removesuffix(" without vocabulary")
                found.setdefault(folder, {})[file] = record["content"]
    return found
