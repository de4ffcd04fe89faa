"""transformers' functions about its log and progress bars, over Python's `logging`."""

from __future__ import annotations

import logging as python_logging
from logging import CRITICAL, DEBUG, ERROR, FATAL, INFO, NOTSET, WARN, WARNING

__all__ = [
    "CRITICAL",
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "NOTSET",
    "WARN",
    "WARNING",
    "disable_default_handler",
    "disable_progress_bar",
    "enable_default_handler",
    "enable_explicit_format",
    "enable_progress_bar",
    "get_logger",
    "get_verbosity",
    "is_progress_bar_enabled",
    "set_verbosity",
    "set_verbosity_debug",
    "set_verbosity_error",
    "set_verbosity_info",
    "set_verbosity_warning",
]

ROOT = "transformers"
_bars = {"shown": True}


def get_logger(name: str | None = None) -> python_logging.Logger:
    """Return the logger of a module; None means that of the package."""
    return python_logging.getLogger(name or ROOT)


def get_verbosity() -> int:
    """Return the level of the package's log."""
    return python_logging.getLogger(ROOT).getEffectiveLevel()


def set_verbosity(verbosity: int) -> None:
    """Set the level of the package's log.  tallow's warnings are Python's: see `warnings`"""
    python_logging.getLogger(ROOT).setLevel(verbosity)


def set_verbosity_error() -> None:
    """Log errors only."""
    set_verbosity(ERROR)


def set_verbosity_warning() -> None:
    """Log warnings and errors."""
    set_verbosity(WARNING)


def set_verbosity_info() -> None:
    """Log information too."""
    set_verbosity(INFO)


def set_verbosity_debug() -> None:
    """Log everything."""
    set_verbosity(DEBUG)


def enable_default_handler() -> None:
    """Write the package's log to the terminal, as Python does by default."""
    python_logging.getLogger(ROOT).propagate = True


def disable_default_handler() -> None:
    """Write no log to the terminal."""
    python_logging.getLogger(ROOT).propagate = False


def enable_explicit_format() -> None:
    """Let the handlers of the package's log show the level, the file and the time of an entry."""
    form = python_logging.Formatter("[%(levelname)s|%(filename)s:%(lineno)s] %(asctime)s >> %(message)s")
    for handler in python_logging.getLogger(ROOT).handlers:
        handler.setFormatter(form)


def is_progress_bar_enabled() -> bool:
    """Return whether progress bars are wanted."""
    return _bars["shown"]


def disable_progress_bar() -> None:
    """Show no progress bars of downloads."""
    _set_bars(False)


def enable_progress_bar() -> None:
    """Show progress bars of downloads."""
    _set_bars(True)


def _set_bars(shown: bool) -> None:
    _bars["shown"] = shown
    try:
        from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars  # optional: the extra `hub`
    except ImportError:
        return
    enable_progress_bars() if shown else disable_progress_bars()
