"""Programs as graphs: record a module, look at what it does, change it, run it. The names are those of torch.fx."""

from tallow.errors import TraceError
from tallow.fx import graph, graph_module, immutable_collections, node, patching, proxy, tracer
from tallow.fx.graph import Graph
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node, map_arg
from tallow.fx.patching import has_side_effect, wrap
from tallow.fx.proxy import Proxy
from tallow.fx.tracer import PH, PHBase, Tracer, symbolic_trace
from tallow.lazy_names import names_of

__all__ = [
    "PH",
    "Graph",
    "GraphModule",
    "Node",
    "PHBase",
    "Proxy",
    "TraceError",
    "Tracer",
    "graph",
    "graph_module",
    "has_side_effect",
    "immutable_collections",
    "map_arg",
    "node",
    "patching",
    "proxy",
    "symbolic_trace",
    "tracer",
    "wrap",
]

LAZY = {
    "Interpreter": "tallow.fx.interpreter:Interpreter",
    "Transformer": "tallow.fx.interpreter:Transformer",
    "interpreter": "tallow.fx.interpreter",
    "passes": "tallow.fx.passes",
    "replace_pattern": "tallow.fx.subgraph_rewriter:replace_pattern",
    "subgraph_rewriter": "tallow.fx.subgraph_rewriter",
}
__all__ += list(LAZY)

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
