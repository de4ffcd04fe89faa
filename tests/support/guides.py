"""The guides of docs/ as programs."""

from __future__ import annotations

import re
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program(guide: Path) -> str:
    """All blocks, on the lines that they have in the guide, so that an error names the right one."""
    text = guide.read_text(encoding="utf-8")
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(1))
        for i, line in enumerate(block[1].splitlines()):
            lines[start + i] = line
    return "\n".join(lines)
