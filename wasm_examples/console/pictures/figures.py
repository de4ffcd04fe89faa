"""The backend of matplotlib: figures become pictures of the page."""

from __future__ import annotations

import io

from app import Demo
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


class FigureManager(FigureManagerBase):
    """The figures of pyplot, which appear below the cell."""

    @classmethod
    def pyplot_show(cls, *, block: bool | None = None) -> None:
        """Show all open figures, and close them. `block` has no effect: the page shows the figures at once."""
        show_open(close=True, changed_only=False)


class FigureCanvas(FigureCanvasAgg):
    """The canvas of a figure."""

    manager_class = FigureManager


def show_open(*, close: bool, changed_only: bool = True) -> None:
    """Show the open figures; with `changed_only`, those that have changed since they were shown."""
    managers = Gcf.get_all_fig_managers()
    for manager in managers:
        if manager.canvas.figure.stale or not changed_only:
            Demo.session.display(manager.canvas.figure)
    if close:
        Gcf.destroy_all()


def png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=figure.dpi, bbox_inches="tight")
    figure.stale = False
    return file.getvalue()
