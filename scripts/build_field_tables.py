#!/usr/bin/env python3
"""Write the tables of the fields of requests into docs/serving.md.

python scripts/build_field_tables.py
python scripts/build_field_tables.py --check   # write nothing; fail if the file would change
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "serving.md"
sys.path[:0] = [str(ROOT / "package")]

from tallow.serving.http import known_fields as known  # noqa: E402 - the path above comes first
from tallow.serving.http.known_fields import Refused  # noqa: E402

HEAD = "## Fields\n"
INTRODUCTION = """
What each endpoint reads. `P` is `/v1/completions`, `C` `/v1/chat/completions`, `R` `/v1/responses`, and `G` stands for
`parameters` of `/generate` and `/generate_stream`. Fields that are null count as missing.

"""
TEXTS = {"P": known.COMPLETIONS, "C": known.CHAT, "R": known.RESPONSES, "G": known.GENERATE}
OTHERS = {
    "/v1/embeddings": known.EMBEDDINGS,
    "/embed": known.EMBED,
    "/embed_all, /embed_sparse": known.EMBED_ALL,
    "/similarity": known.SIMILARITY,
    "/rerank": known.RERANK,
    "/predict": known.PREDICT,
    "/tokenize": known.TOKENIZE,
    "/decode": known.DECODE,
    "/v1/audio/speech": known.SPOKEN,
    "/v1/audio/transcriptions, /v1/audio/translations": known.SPEECH,
}
PREFIX = "parameters."


def section() -> str:
    """Return the section with its head."""
    rows: dict[tuple[str, str], str] = {}
    for letter, table in TEXTS.items():
        for name, text in table.read.items():
            if letter != "G" or name.startswith(PREFIX):
                key = (name.removeprefix(PREFIX), text)
                rows[key] = rows.get(key, "") + letter
    lines = ["| field | what it does | endpoints |", "| --- | --- | --- |"]
    lines += [f"| `{name}` | {text} | {letters} |" for (name, text), letters in rows.items()]
    lines += ["", "`/generate` reads `inputs`, the prompt, and `model` besides its parameters. Others:", ""]
    lines += ["| endpoint | fields |", "| --- | --- |"]
    lines += [f"| {_code(paths.split(', '))} | {_code(table.read)} |" for paths, table in OTHERS.items()]
    refused = {letter: _own(table.refused) for letter, table in TEXTS.items()}
    common = {name: entry for name, entry in refused["P"].items() if all(name in each for each in refused.values())}
    lines += ["", "Refused, unless the value is null, empty, or one of those in brackets, which have no effect:", ""]
    lines += [f"- all four: {_refused(common)}"]
    for letter, entries in refused.items():
        lines += [f"- `{letter}`: {_refused({name: each for name, each in entries.items() if name not in common})}"]
    for paths, table in OTHERS.items():
        lines += [f"- {_code(paths.split(', '))}: {_refused(table.refused)}"] if table.refused else []
    harmless = {letter: _own(dict.fromkeys(table.harmless)) for letter, table in TEXTS.items()}
    everywhere = set.intersection(*map(set, harmless.values()))
    lines += ["", "Without an effect on the answer:", "", f"- all four: {_code(sorted(everywhere))}"]
    rest = {letter: sorted(set(names) - everywhere) for letter, names in harmless.items()}
    lines += [f"- `{letter}`: {_code(names)}" for letter, names in rest.items() if names]
    lines += [f"- {_code(paths.split(', '))}: {_code(sorted(table.harmless))}" for paths, table in OTHERS.items()]
    return HEAD + INTRODUCTION + "\n".join([*lines, "", ""])


def _own(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(PREFIX): entry for name, entry in entries.items()}


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _refused(entries: Mapping[str, Refused]) -> str:
    return ", ".join(f"`{name}`{_values(entry)}" for name, entry in sorted(entries.items()))


def _values(entry: Refused) -> str:
    values = [json.dumps(value) for value in entry.without_effect if value not in ("", [], {})]
    return f" ({', '.join(values)})" if values else ""


def with_section(text: str) -> str:
    """Return the guide with the section in place of the one that it has."""
    start = text.index(HEAD)
    end = text.index("\n## ", start + len(HEAD)) + 1
    return text[:start] + section() + text[end:]


def main() -> int:
    """Write the section, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file would change")
    arguments = parser.parse_args()
    text = FILE.read_text()
    wanted = with_section(text)
    if arguments.check and text != wanted:
        print(f"{FILE} is out of date")
        return 1
    if not arguments.check:
        FILE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
