"""Import matplotlib, if it is installed."""

from __future__ import annotations

from typing import Any

from tallow.errors import MissingPackageError


def figure_class(what: str) -> Any:
    """Return matplotlib's class Figure. pyplot is not used: it would keep every figure and open windows.

    Args:  what: description of what needs it, for the error.

    Raises:  MissingPackageError
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("matplotlib", what, "plot") from error
    return Figure
