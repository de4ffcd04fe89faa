"""Models: one file for each architecture."""

from tallow.names import names_of

__getattr__, __dir__ = names_of(__name__)
