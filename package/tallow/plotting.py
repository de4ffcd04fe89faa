"""matplotlib, where it is installed."""

from __future__ import annotations

from typing import Any

from tallow.errors import MissingPackageError


def figure_class(what: str) -> Any:
    """matplotlib's class Figure. pyplot is left alone: it would keep each figure, and open windows.

    Args:  what: needs it.

    Raises:  MissingPackageError
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("matplotlib", what, "plot") from error
    return Figure
