"""InputExample: a sample of the older way to train."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class InputExample:
    """Texts with a label, or without one.

    Attributes:
        guid: a name, which nothing reads.
    """

    guid: str = ""
    texts: list[str] = field(default_factory=list)
    label: Any = 0
