"""Tensors as text, the way PyTorch prints them, so that what is learned from one is read in the other.

All elements of a tensor share one format. Floats that are all whole numbers are printed as `1.`; others with four
digits after the point, or in scientific notation where the largest is more than 1000 times the smallest, above 1e8, or
the smallest below 1e-4. More than 1000 elements are summarised by the first and last three along each dim.

Source: PyTorch's documentation, torch.set_printoptions.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tallow import dtypes
from tallow.errors import ArgumentError

if TYPE_CHECKING:
    from tallow.tensor import Tensor


@dataclass
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=math.inf),
}
_options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed. What is not given stays, except `sci_mode`: None makes it automatic again.

    Args:
        precision: digits after the point; 4 at first.
        threshold: summarise tensors of more elements than this; 1000 at first.
        edgeitems: how many elements a summary shows at each end of each dim; 3 at first.
        linewidth: characters a line; 80 at first.
        profile: "default", "short" or "full", before the others are applied.
        sci_mode: scientific notation always, never, or (None) by the numbers.
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen = {name: value for name, value in given.items() if value is not None}
    if profile is not None:
        if profile not in _PROFILES:
            raise ArgumentError(f"set_printoptions: no profile {profile!r}", mend=f"use one of {list(_PROFILES)}")
        chosen = dataclasses.asdict(_PROFILES[profile]) | chosen
    for name, value in (chosen | {"sci_mode": sci_mode}).items():
        setattr(_options, name, value)


def get_printoptions() -> dict[str, Any]:
    """The options now, as keyword arguments of `set_printoptions`."""
    return dataclasses.asdict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """`set_printoptions` for the length of a block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_repr(t: Tensor) -> str:
    """tensor([...], device=..., size=..., dtype=..., grad_fn=..., requires_grad=...), as much of it as is not usual."""
    kind = type(t)
    prefix = "tensor(" if kind.__module__.partition(".")[0] == "tallow" else f"{kind.__name__}("
    on_meta = t.device.type == "meta"
    empty = t.numel() == 0
    usual_dtypes = [dtypes.get_default_dtype()]
    if not empty and not on_meta:
        usual_dtypes += [dtypes.int64, dtypes.bool]  # the elements tell
    suffixes = []
    if t.device.type != "cpu":
        suffixes.append(f"device='{t.device}'")
    if on_meta or (empty and t.ndim != 1) or (not empty and not _options.edgeitems):
        suffixes.append(f"size={tuple(t.shape)}")
    if t.dtype not in usual_dtypes:
        suffixes.append(f"dtype={t.dtype}")
    if t.grad_fn is not None:
        suffixes.append(f"grad_fn=<{t.grad_fn.name()}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    elements = "..." if on_meta else "[]" if empty else _elements(t._host(), len(prefix))
    return _with_suffixes(prefix + elements, suffixes, len(prefix))


def _with_suffixes(text: str, suffixes: Sequence[str], indent: int) -> str:
    """Append what follows the elements, each on a line of its own if it does not fit."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _elements(values: np.ndarray[Any, Any], indent: int) -> str:
    summarize = values.size > _options.threshold
    return _nested(values, indent, summarize, _Format(_shown(values) if summarize else values))


def _shown(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements that a summary shows."""
    edge = _options.edgeitems
    for axis, n in enumerate(values.shape):
        if n > 2 * edge:
            kept = np.concatenate((np.arange(edge, dtype=np.int64), np.arange(n - edge, n, dtype=np.int64)))
            values = values[(slice(None),) * axis + (kept,)]
    return values


def _nested(values: np.ndarray[Any, Any], indent: int, summarize: bool, form: _Format) -> str:
    if values.ndim == 0:
        return form(values.item())
    edge = _options.edgeitems
    shortened = summarize and len(values) > 2 * edge
    if values.ndim == 1:
        if shortened and not edge:
            words = ["..."]
        elif shortened:
            words = [*map(form, values[:edge].tolist()), " ...", *map(form, values[-edge:].tolist())]
        else:
            words = [*map(form, values.tolist())]
        a_line = max(1, (_options.linewidth - indent) // (form.width + 2))
        lines = [", ".join(words[i : i + a_line]) for i in range(0, len(words), a_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = [*values[:edge], *values[len(values) - edge :]] if shortened else list(values)
    parts = [_nested(row, indent + 1, summarize, form) for row in rows]
    if shortened:
        parts.insert(edge, "...")
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


class _Format:
    """One format for all the numbers of a tensor. `width`: of the widest that is finite and not zero."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.spec: str | None = None  # None: as Python prints integers and truth values
        self.width = 1
        numbers = values.ravel()
        if values.dtype.kind == "f":
            self.spec = ".0f"
            numbers = numbers[np.isfinite(numbers) & (numbers != 0)]
            if numbers.size:
                self.spec = self._spec_for(numbers)
        self.width = max((len(self._word(number)) for number in numbers.tolist()), default=1)

    @staticmethod
    def _spec_for(numbers: np.ndarray[Any, Any]) -> str:
        sizes = np.abs(numbers.astype(np.float64))
        low, high = float(sizes.min()), float(sizes.max())
        scientific = _options.sci_mode
        if scientific is None:
            scientific = high / low > 1000 or high > 1e8 or low < 1e-4
        if scientific:
            return f".{_options.precision}e"
        return ".0f" if bool((numbers == np.ceil(numbers)).all()) else f".{_options.precision}f"

    def _word(self, number: Any) -> str:
        if self.spec is None:
            return str(number)
        word = format(number, self.spec)
        return word + "." if self.spec == ".0f" and math.isfinite(number) else word

    def __call__(self, number: Any) -> str:
        return self._word(number).rjust(self.width)
