"""Parts of passes."""

from tallow.lazy_names import names_of

LAZY = {"matcher_utils": "tallow.fx.passes.utils.matcher_utils"}

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
