"""Print tensors the way PyTorch does.

All elements of a tensor share one format. Floats that are all whole numbers print as `1.`; others with four digits
after the point, or in scientific notation if the largest is more than 1000 times the smallest, or above 1e8, or the
smallest is below 1e-4. A tensor of more than 1000 elements is summarised by the first and last three along each dim.

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
    from tallow.core.tensor import Tensor


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
    """Set options for printing tensors. Options that are not given do not change, except `sci_mode`.

    Args:
        precision: digits after the point; 4 by default.
        threshold: summarise tensors of more elements than this; 1000 by default.
        edgeitems: number of elements that a summary shows at each end of each dim; 3 by default.
        linewidth: characters per line; 80 by default.
        profile: "default", "short" or "full"; applied before the other options.
        sci_mode: scientific notation always (True), never (False), or depending on the numbers (None).
    """
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes = {name: value for name, value in options.items() if value is not None}
    if profile is not None:
        if profile not in _PROFILES:
            raise ArgumentError(f"set_printoptions: no profile {profile!r}", hint=f"use one of {list(_PROFILES)}")
        changes = dataclasses.asdict(_PROFILES[profile]) | changes
    for name, value in (changes | {"sci_mode": sci_mode}).items():
        setattr(_options, name, value)


def get_printoptions() -> dict[str, Any]:
    """Return the current options, as keyword arguments of `set_printoptions`."""
    return dataclasses.asdict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set options as `set_printoptions` for the duration of a block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_repr(t: Tensor) -> str:
    """Return tensor([...], device=..., size=..., dtype=..., grad_fn=..., requires_grad=...) without the defaults."""
    kind = type(t)
    prefix = "tensor(" if kind.__module__.partition(".")[0] == "tallow" else f"{kind.__name__}("
    on_meta = t.device.type == "meta"
    empty = t.numel() == 0
    usual_dtypes = [dtypes.get_default_dtype(), dtypes.get_default_dtype().to_complex()]
    if not empty and not on_meta:
        usual_dtypes += [dtypes.int64, dtypes.bool]  # the elements show these
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
    """Append the attributes after the elements, each on its own line if it does not fit."""
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
    kind = _ComplexFormat if values.dtype.kind == "c" else _Format
    return _nested(values, indent, summarize, kind(_summary(values) if summarize else values))


def _summary(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the elements that a summary shows."""
    edge = _options.edgeitems
    for axis, n in enumerate(values.shape):
        if n > 2 * edge:
            ends = np.concatenate((np.arange(edge, dtype=np.int64), np.arange(n - edge, n, dtype=np.int64)))
            values = values[(slice(None),) * axis + (ends,)]
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
    """The format of all numbers of a tensor. `width`: of the widest number that is finite and not zero."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.spec: str | None = None  # None: as Python prints integers and bools
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


class _ComplexFormat(_Format):
    """The format of complex numbers: real and imaginary parts have one each."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.real, self.imag = _Format(values.real), _Format(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, number: Any) -> str:
        real, imag = self.real(number.real), self.imag(number.imag).lstrip()
        return real + (imag if imag.startswith("-") else "+" + imag) + "j"
