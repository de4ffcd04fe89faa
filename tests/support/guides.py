"""Run the guides of docs/ as programs."""

from __future__ import annotations

import re
from pathlib import Path

RUNS_ANYWHERE = "python"
NEEDS_MORE = "py"  # a download, a file, a GPU or several processes


def blocks(guide: Path, *languages: str) -> list[str]:
    """Return the code blocks of these languages, in order."""
    return [block[2] for block in _matches(guide, languages)]


def program(guide: Path, *languages: str) -> str:
    """Join the code blocks of these languages, on the lines of the guide, so that tracebacks name the right line."""
    text = guide.read_text(encoding="utf-8")
    lines = [""] * text.count("\n")
    for block in _matches(guide, languages or (RUNS_ANYWHERE, NEEDS_MORE)):
        start = text.count("\n", 0, block.start(2))
        for i, line in enumerate(block[2].splitlines()):
            lines[start + i] = line
    return "\n".join(lines)


def commands(guide: Path) -> list[str]:
    """Return the lines of the blocks without a language, which hold commands, without their comments."""
    lines = "".join(blocks(guide, "")).splitlines()
    return [line for text in lines if (line := re.sub(r"\s+#.*", "", text).strip())]


def _matches(guide: Path, languages: tuple[str, ...]) -> list[re.Match[str]]:
    fences = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    found = fences.finditer(guide.read_text(encoding="utf-8"))
    return [block for block in found if block[1] in languages]
