"""Finding a loss, a metric, an optimizer or a class of a saved configuration by its name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from tallow.errors import ArgumentError


def find(name: str, table: Mapping[str, Any], kind: str) -> Any:
    """What `table` has under `name`, in its own spelling or in lower case.

    Raises:  ArgumentError with the names that come near
    """
    for spelling in (name, name.lower()):
        if spelling in table:
            return table[spelling]
    near = difflib.get_close_matches(name.lower(), table, n=3)
    raise ArgumentError(
        f"{name!r} is not the name of {kind}",
        mend=f"did you mean {' or '.join(map(repr, near))}?" if near else f"use one of: {', '.join(sorted(table))}",
    )
