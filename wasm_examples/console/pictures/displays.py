"""The looks of values: data that the page shows, by media type, as in the outputs of a notebook (nbformat 4)."""

from __future__ import annotations

import binascii
import sys
from collections.abc import Callable
from typing import Any

import heat_maps

# What IPython calls, in the order of the page's preference.
METHODS = {
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "image/svg+xml": "_repr_svg_",
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
}
TEXT = "text/plain"
MAX_BYTES = 20_000_000  # of one value
MAX_TEXT = 100_000  # characters; the page does not show more either

Data = dict[str, str]


def data_of(value: Any, *, tensors: bool, complain: Callable[[str], None]) -> Data:
    """Return what the page can show of a value, with its repr as the type TEXT.

    Args:
        tensors: matrices and images among the tensors are pictures too.
        complain: receives a line for each method of the value that fails, and for data that is too large.
    """
    text = repr(value)
    data = {TEXT: text}
    for kind, content in _contents(value, tensors, complain):
        encoded = binascii.b2a_base64(content, newline=False).decode() if isinstance(content, bytes) else content
        if not isinstance(encoded, str):
            complain(f"{METHODS[kind]} returned {type(content).__name__}, not text or bytes\n")
        elif len(encoded) > MAX_BYTES:
            size = f"{len(encoded) / 1e6:.0f} MB"
            complain(f"{kind} of {size} is not shown: the page shows up to {MAX_BYTES / 1e6:.0f} MB\n")
        else:
            data[kind] = encoded
    if len(data) > 1 and len(text) > MAX_TEXT:
        data[TEXT] = f"{text[:MAX_TEXT]}\n… {len(text) - MAX_TEXT:,} characters omitted …"
    return data


def _contents(value: Any, tensors: bool, complain: Callable[[str], None]) -> list[tuple[str, Any]]:
    if isinstance(value, type):
        return []
    if is_figure(value):
        import figures

        return [("image/png", figures.png(value))]
    if tensors and (picture := heat_maps.picture(value, unasked=True)):
        return [("image/png", picture)]
    contents = []
    for kind, method in METHODS.items():
        try:
            content = getattr(value, method)() if hasattr(type(value), method) else None
        except NotImplementedError:
            continue
        except Exception as error:  # the value's own code; the other methods may work
            complain(f"{type(value).__name__}.{method} failed: {type(error).__name__}: {error}\n")
            continue
        if isinstance(content, tuple):  # with metadata, as IPython allows
            content = content[0]
        if content is not None:
            contents.append((kind, content))
    return contents


def is_figure(value: Any) -> bool:
    """Return whether a value is a figure of matplotlib, without importing matplotlib."""
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)
