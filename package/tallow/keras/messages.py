"""Print messages of training, or send them to a logger; see `keras.config.disable_interactive_logging`."""

from __future__ import annotations

import logging

from tallow.keras.settings import is_interactive_logging_enabled

LOGGER = logging.getLogger("tallow.keras")


def print_message(text: str) -> None:
    """Print a message of one or several lines, or log it."""
    if is_interactive_logging_enabled():
        print(text)
    else:
        LOGGER.info(text.strip("\n"))
