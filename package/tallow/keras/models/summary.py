"""The table of `model.summary()`, in the style of Keras 3."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tallow.errors import ArgumentError
from tallow.keras.layers import Layer
from tallow.keras.messages import print_message
from tallow.keras.structure import map_structure

PLAIN = str.maketrans(dict.fromkeys("┏┳┓┡╇┩├┼┤└┴┘", "+") | dict.fromkeys("━─", "-") | dict.fromkeys("┃│", "|"))
UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def print_summary(
    model: Any,
    line_length: int | None,
    positions: Sequence[float] | None,
    print_fn: Callable[[str], Any] | None,
    expand_nested: bool,
    show_trainable: bool,
    layer_range: tuple[str, str] | None,
) -> None:
    """Print, or pass to `print_fn`, the summary of a model; see `Model.summary`."""
    is_chain = _is_chain(model)
    header = ["Layer (type)", "Output Shape", "Param #", *([] if is_chain else ["Connected to"])]
    positions = list(positions or ([0.45, 0.80, 1.0] if is_chain else [0.3, 0.56, 0.74, 1.0]))
    length = 88 if is_chain else 108
    if show_trainable:
        header.append("Trainable")
        positions = [p * 0.9 for p in positions] + [1.0]
        length += 12
    length = line_length or min(length, shutil.get_terminal_size().columns - 4)
    rows = []
    for layer in _in_range(model.layers, layer_range):
        rows += _rows(model, layer, is_chain, show_trainable, expand_nested, 0)
    alignments = ["<", "<", ">", *([] if is_chain else ["<"]), *(["^"] if show_trainable else [])]
    lines = [f'Model: "{model.name}"', *_table(header, rows, _widths(positions, length), alignments)]
    lines += _totals(model)
    text = "\n".join(lines)
    if print_fn is not None:
        print_fn(text)
        return
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:  # for example a Windows console
        text = text.translate(PLAIN).encode(encoding, "replace").decode(encoding)
    print_message(text)


def _is_chain(model: Any) -> bool:
    """Return whether each layer takes only the output of the previous one, so that connections need no column."""
    graph = model._graph
    if graph is None:
        return True
    calls = len({node.layer for node in graph.nodes})
    used = {id(tensor) for node in graph.nodes for tensor in node.inputs}
    return len(graph.inputs) == 1 and calls == len(graph.nodes) == sum(len(n.inputs) for n in graph.nodes) + 1 == (
        len(used) + 1
    )


def _in_range(layers: list[Layer], bounds: tuple[str, str] | None) -> list[Layer]:
    if bounds is None:
        return layers
    ends = [next((i for i, layer in enumerate(layers) if re.match(name, layer.name)), None) for name in bounds]
    if ends[0] is None or ends[1] is None:
        raise ArgumentError(f"layer_range={bounds!r}: no layers with these names")
    return layers[min(ends[0], ends[1]) : max(ends[0], ends[1]) + 1]


def _rows(model: Any, layer: Layer, is_chain: bool, show_trainable: bool, expand: bool, level: int) -> list[list[str]]:
    prefix = "   " * level + "└ " if level else ""
    kind = "Functional" if type(layer).__name__ == "Model" else type(layer).__name__
    count = f"{layer.count_params():,}" if layer.built else "0 (unbuilt)"
    row = [f"{prefix}{layer.name} ({kind})", output_shape(layer), count]
    if not is_chain:
        row.append(_connections(model, layer))
    if show_trainable:
        row.append(("Y" if layer.trainable else "N") if layer.weights else "-")
    rows = [row]
    for inner in getattr(layer, "layers", ()) if expand else ():
        rows += _rows(model, inner, is_chain, show_trainable, expand, level + 1)
    return rows


def output_shape(layer: Layer) -> str:
    """Return the output shape of a layer as text; "?" if it was not called."""
    if not layer.inbound_nodes:
        return "?"
    shapes = map_structure(lambda tensor: str(tensor.shape), layer.inbound_nodes[-1].outputs)
    return shapes if isinstance(shapes, str) else str(shapes).replace("'", "")


def _connections(model: Any, layer: Layer) -> str:
    nodes = set(model._graph.nodes)
    histories = [t.history for node in layer.inbound_nodes if node in nodes for t in node.inputs]
    return ", ".join(f"{h.layer.name}[{h.node_index}][{h.tensor_index}]" for h in histories) or "-"


def _widths(positions: Sequence[float], length: int) -> list[int]:
    """Return the widths of the columns with one space on each side; the border lines reduce all columns evenly."""
    ends = [int(position * length) for position in positions]
    widths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    if min(widths) < 4:
        raise ArgumentError(f"summary: {length} characters are not enough", hint="pass a larger line_length")
    lines = len(widths) + 1
    for index, remaining in enumerate(range(len(widths), 0, -1)):
        share = round((lines + 2 * remaining) / remaining)
        widths[index] += 2 - share
        lines -= share - 2
    return widths


def _table(header: list[str], rows: list[list[str]], widths: list[int], alignments: list[str]) -> list[str]:
    def rule(left: str, middle: str, right: str, line: str) -> str:
        return left + middle.join(line * width for width in widths) + right

    def cells(row: list[str], edge: str) -> list[str]:
        columns = [_wrap_text(text, width - 2) for text, width in zip(row, widths, strict=True)]
        height = max(map(len, columns))
        lines = zip(*(column + [""] * (height - len(column)) for column in columns), strict=True)
        return [
            edge + edge.join(f" {t:{a}{w - 2}} " for t, a, w in zip(line, alignments, widths, strict=True)) + edge
            for line in lines
        ]

    table_lines = [rule("┏", "┳", "┓", "━"), *cells(header, "┃")]
    for index, row in enumerate(rows):
        table_lines += [rule("├", "┼", "┤", "─") if index else rule("┡", "╇", "┩", "━"), *cells(row, "│")]
    return [*table_lines, rule("└", "┴", "┘", "─")]


def _wrap_text(text: str, width: int) -> list[str]:
    """Wrap the words of a cell to lines of at most `width`; truncate longer words."""
    lines = [""]
    for word in re.findall(r"\s*\S+\s*", text):
        if lines[-1] and len(lines[-1]) + len(word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
    lines = [line.rstrip() for line in lines]
    return [line if len(line) <= width else line[: width - 1] + "…" for line in lines]


def _totals(model: Any) -> list[str]:
    trainable, frozen = model.trainable_weights, model.non_trainable_weights
    kinds = [("Total", [*trainable, *frozen]), ("Trainable", trainable), ("Non-trainable", frozen)]
    return [f" {kind} params: {_count(weights):,} ({_memory(weights)})" for kind, weights in kinds]


def _count(weights: list[Any]) -> int:
    return sum(weight.numel() for weight in weights)


def _memory(weights: list[Any]) -> str:
    size = float(sum(weight.numel() * weight.element_size() for weight in weights))
    unit = 0
    while size >= 1024 and unit + 1 < len(UNITS):
        size, unit = size / 1024, unit + 1
    return f"{size:.2f} {UNITS[unit]}"
