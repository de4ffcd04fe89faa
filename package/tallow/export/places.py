"""The line of the program that runs, for messages of the recorder."""

from __future__ import annotations

import inspect
import linecache

from tallow.core.overrides import is_array_code
from tallow.export.sizes import INSIDE

LAYERS = "tallow.nn."  # named only if no module of the program is left


def line_of_program(runs: str) -> str:
    """Return the innermost line that is not tallow's own, in brackets; nothing if there is none.

    Args:    runs: the name of the module that calls the program
    """
    frame, innermost = inspect.currentframe(), None
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module == runs:
            frame = innermost  # nothing but layers of tallow
            break
        if module.startswith(LAYERS):
            innermost = innermost or frame
        elif not is_array_code(frame) and not module.startswith(INSIDE):
            break
        frame = frame.f_back
    if frame is None:
        return ""
    path = frame.f_code.co_filename
    line = linecache.getline(path, frame.f_lineno).strip()
    where = f"{path.rpartition('/')[2]}:{frame.f_lineno}, in {frame.f_code.co_name}"
    return f" ({where}{f': {line}' if line else ''})"
