"""The text that `model.explain()` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class LayerReport(NamedTuple):
    """The way one layer runs.

    Attributes:
        kernel: the fused kernel and its backend, such as "decode_block, native"; None if the modules run.
        reason: why the modules run; None if the layer runs fused.
    """

    name: str
    kernel: str | None = None
    reason: str | None = None


def explanation(title: str, layers: Sequence[LayerReport], notes: Sequence[str] = ()) -> str:
    """Return a title, a line for each layer, and a line for each note.

    Example:
        >>> print(explanation("Llama on cpu", [LayerReport("model.layers.0", "decode_block, native")]))
        Llama on cpu
          model.layers.0  fused: decode_block, native
    """
    width = max((len(layer.name) for layer in layers), default=0)
    ways = [f"fused: {layer.kernel}" if layer.reason is None else f"modules: {layer.reason}" for layer in layers]
    return "\n".join(
        [
            title,
            *(f"  {layer.name:<{width}}  {way}" for layer, way in zip(layers, ways, strict=True)),
            *(f"  {note}" for note in notes),
        ]
    )
