"""The lines of `tallow inspect` about an ONNX file, besides its metadata and its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tallow.cli.terminal import size_text
from tallow.errors import escaped_line
from tallow.onnx.summary import OnnxContents, Value

MOST_LAYERS = 60  # in the text; --json has all


def lines(summary: OnnxContents) -> Iterator[str]:
    """Yield the operator sets, inputs, outputs, operators, sizes of layers, what is quantised and what is missing."""
    yield f"opset   {', '.join(f'{escaped_line(domain)} {version}' for domain, version in summary.opsets.items())}"
    yield from _table("inputs", _values(summary.inputs))
    yield from _table("outputs", _values(summary.outputs))
    yield from _table(f"{sum(summary.operators.values()):,} operators", _counts(summary.operators))
    shown = dict([*summary.layers.items()][:MOST_LAYERS])
    yield from _table("layers", [(name, size_text(size)) for name, size in shown.items()])
    if more := len(summary.layers) - len(shown):
        yield f"  and {more:,} more; --json lists all"
    yield from _table("quantised", _counts(summary.quantisation))
    yield from _table("not supported", _counts(summary.unsupported))


def _values(values: Sequence[Value]) -> list[tuple[str, str]]:
    return [(value.name, f"{value.dtype}  {_shape(value.shape)}") for value in values]


def _shape(shape: Sequence[int | str | None] | None) -> str:
    if shape is None:
        return "any shape"
    return " x ".join("?" if dim is None else str(dim) for dim in shape) or "scalar"


def _counts(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(name, f"{count:,}") for name, count in counts.items()]


def _table(title: str, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a title and indented rows of two columns, numbers and sizes to the right; nothing without rows."""
    if not rows:
        return
    cells = [(escaped_line(first), escaped_line(second)) for first, second in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(2)]
    side = ">" if cells[0][1][0].isdecimal() else "<"
    yield f"\n{title}"
    yield from (f"  {first:<{widths[0]}}  {second:{side}{widths[1]}}".rstrip() for first, second in cells)
