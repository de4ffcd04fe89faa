"""Passes over graphs."""

from tallow.lazy_names import names_of

LAZY = {
    "graph_drawer": "tallow.fx.passes.graph_drawer",
    "shape_prop": "tallow.fx.passes.shape_prop",
    "utils": "tallow.fx.passes.utils",
}

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
