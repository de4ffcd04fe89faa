"""Format results as plain text."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def table(rows: list[Row]) -> str:
    """Return a table with the names of the columns; numbers have three digits and align right."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [columns, *([_cell(row.get(name, "")) for name in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    lines = []
    for first, *others in cells:
        numbers = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
        lines.append("  ".join([first.ljust(widths[0]), *numbers]).rstrip())
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def machine() -> str:
    """Return the name of the processor, if the system reports it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
