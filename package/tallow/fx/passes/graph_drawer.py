"""FxGraphDrawer: draw a graph as SVG, or write it for Graphviz. Neither needs a package."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from tallow.fx.graph_module import GraphModule
from tallow.fx.names import shown_name
from tallow.fx.node import Node
from tallow.fx.passes.shape_prop import TensorMetadata

__all__ = ["Drawing", "FxGraphDrawer"]

COLORS = {
    "placeholder": "#f4e3c1",
    "get_attr": "#f7d4d4",
    "call_function": "#d9ead3",
    "call_method": "#cfe2f3",
    "call_module": "#e1d5ee",
    "output": "#f4e3c1",
}
CHARACTER, LINE, GAP, PAD = 7.2, 16, 28, 8  # pixels: width and height of text at 12 px, between boxes, inside of them


class FxGraphDrawer:
    """Draws the graph of a module: a box for each node, with its shape and dtype after `ShapeProp`.

    Args:
        graph_module: the module.
        name: the title.

    Example:
        >>> import tallow as tl
        >>> from tallow.fx.passes.graph_drawer import FxGraphDrawer
        >>> traced = tl.fx.symbolic_trace(lambda x: tl.relu(x))
        >>> FxGraphDrawer(traced, "relu").get_dot_graph().create_svg().count(b"<rect")
        3
    """

    def __init__(self, graph_module: GraphModule, name: str) -> None:
        self._drawings = {name: Drawing(graph_module, name)}
        self._name = name
        for path, module in graph_module.named_modules():
            if path and isinstance(module, GraphModule):
                self._drawings[f"{name}_{path}"] = Drawing(module, f"{name}_{path}")

    def get_dot_graph(self, submod_name: str | None = None) -> Drawing:
        """Return the drawing; or that of a graph module below, by its path."""
        return self._drawings[self._name if submod_name is None else f"{self._name}_{submod_name}"]

    def get_main_dot_graph(self) -> Drawing:
        """Return the drawing of the module itself."""
        return self.get_dot_graph()

    def get_submod_dot_graph(self, submod_name: str) -> Drawing:
        """Return the drawing of a graph module below, by its path."""
        return self.get_dot_graph(submod_name)

    def get_all_dot_graphs(self) -> dict[str, Drawing]:
        """Return all drawings by their names."""
        return dict(self._drawings)


class Drawing:
    """A drawing of a graph. Its methods have the names of pydot's."""

    def __init__(self, module: GraphModule, name: str) -> None:
        self._nodes = list(module.graph.nodes)
        self._name = name
        self._labels = {node: _label(module, node) for node in self._nodes}

    def to_string(self) -> str:
        """Return the graph in the language of Graphviz."""
        lines = [f'digraph "{self._name}" {{', '  node [shape=box, style=filled, fontname="monospace"];']
        for node in self._nodes:
            label = "\\l".join(text.replace("\\", "\\\\").replace('"', '\\"') for text in self._labels[node])
            lines.append(f'  "{node.name}" [label="{label}\\l", fillcolor="{COLORS[node.op]}"];')
        lines += [f'  "{source.name}" -> "{node.name}";' for node in self._nodes for source in node.all_input_nodes]
        return "\n".join([*lines, "}\n"])

    def create_svg(self) -> bytes:
        """Return the drawing as an SVG file: inputs on top, each node below what it uses."""
        places = self._places()
        width = max((x + w / 2 for x, _, w, _ in places.values()), default=0) + GAP
        height = max((y + h for _, y, _, h in places.values()), default=0) + GAP
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="monospace" font-size="12"><title>{escape(self._name)}</title>'
        )
        parts = [head]
        for node in self._nodes:
            x, y, *_ = places[node]
            for source in node.all_input_nodes:
                x0, y0, _, h0 = places[source]
                top, middle = y0 + h0, (y0 + h0 + y) / 2
                path = f"M{x0:.0f} {top:.0f} C{x0:.0f} {middle:.0f} {x:.0f} {middle:.0f} {x:.0f} {y:.0f}"
                parts.append(f'<path d="{path}" fill="none" stroke="#888"/>')
        for node in self._nodes:
            x, y, w, h = places[node]
            left = x - w / 2
            parts.append(
                f'<rect x="{left:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="4" fill="{COLORS[node.op]}" '
                'stroke="#555"/>'
            )
            for i, text in enumerate(self._labels[node]):
                baseline = y + PAD + LINE * (i + 0.75)
                parts.append(f'<text x="{left + PAD:.0f}" y="{baseline:.0f}">{escape(text)}</text>')
        return "\n".join([*parts, "</svg>\n"]).encode()

    def write_svg(self, path: Any) -> None:
        """Write the drawing to an SVG file."""
        Path(path).write_bytes(self.create_svg())

    def _places(self) -> dict[Node, tuple[float, float, float, float]]:
        """Return node -> (x of its middle, y of its top, width, height), in pixels.

        A node is one row below the lowest one that it uses, and in its row from left to right by the mean of those.
        """
        rows: dict[int, list[Node]] = {}
        row_of: dict[Node, int] = {}
        for node in self._nodes:
            row_of[node] = max((row_of[source] + 1 for source in node.all_input_nodes), default=0)
            rows.setdefault(row_of[node], []).append(node)
        widths = {n: 2 * PAD + CHARACTER * max(map(len, self._labels[n])) for n in self._nodes}
        total = max((sum(widths[n] + GAP for n in row) for row in rows.values()), default=0)
        places: dict[Node, tuple[float, float, float, float]] = {}
        y = float(GAP)
        for _, row in sorted(rows.items()):
            row.sort(key=lambda node: _mean([places[source][0] for source in node.all_input_nodes]))
            x = (total - sum(widths[n] + GAP for n in row)) / 2 + GAP
            for node in row:
                height = 2 * PAD + LINE * len(self._labels[node])
                places[node] = x + widths[node] / 2, y, widths[node], height
                x += widths[node] + GAP
            y += max(places[node][3] for node in row) + GAP
        return places


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _label(module: GraphModule, node: Node) -> list[str]:
    """Return the lines of text in a node's box."""
    target = node.target if isinstance(node.target, str) else shown_name(node.target)
    lines = [f"%{node.name}", node.op if target == node.op else f"{node.op}: {target}"]
    if node.op == "call_module":
        lines.append(module.get_submodule(str(node.target))._get_name())
    meta = node.meta.get("tensor_meta")
    if isinstance(meta, TensorMetadata):
        lines.append(f"{tuple(meta.shape)} {meta.dtype.name}")
    return lines
