"""torch.testing: compare results with expected values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.core.creation import as_tensor
from tallow.core.tensor import Tensor
from tallow.devices import is_array
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.functions import sampling
from tallow.functions.complex_numbers import complex
from tallow.lazy_names import names_of

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

TOLERANCES = {  # rtol and atol, as in PyTorch; other dtypes are compared exactly
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
}
Message = str | Callable[[str], str] | None


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Assert |actual - expected| <= atol + rtol · |expected|.

    Compares tensors, arrays, numbers, and sequences and dicts of them. Arguments are as for torch.testing.assert_close;
    `rtol` and `atol` are by default those of the less precise dtype.

    Raises: AssertionError with the position and size of the difference, or if shapes, dtypes, devices, lengths or keys
        differ; ArgumentError for one tolerance without the other, ArgumentTypeError for other types.
    """
    if (rtol is None) != (atol is None):
        raise ArgumentError("assert_close: rtol and atol must both be given, or neither")
    checks = {"device": check_device, "dtype": check_dtype, "stride()": check_stride}
    if not allow_subclasses and type(actual) is not type(expected):
        raise AssertionError(f"Expected {type(expected).__name__}, got {type(actual).__name__}")
    for where, a, e in _pairs(actual, expected, ""):
        fault = _fault(a, e, rtol, atol, equal_nan, checks)
        if fault is not None:
            text = fault + (f"\n\nThe failure occurred for item {where}" if where else "")
            raise AssertionError(msg(text) if callable(msg) else msg or text)


def _pairs(actual: Any, expected: Any, where: str) -> Any:
    """Yield pairs to compare, with their position in the containers."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            raise AssertionError(f"The keys of the mappings differ: {[*actual]} and {[*expected]}")
        for key in expected:
            yield from _pairs(actual[key], expected[key], f"{where}[{key!r}]")
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise AssertionError(f"The lengths of the sequences differ: {len(actual)} and {len(expected)}")
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            yield from _pairs(a, e, f"{where}[{i}]")
    else:
        yield where, actual, expected


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _fault(
    actual: Any, expected: Any, rtol: float | None, atol: float | None, equal_nan: bool, checks: dict[str, bool]
) -> str | None:
    """Return how a pair differs, or None."""
    if actual is None and expected is None:
        return None
    kinds = (Tensor, np.generic, int, float)
    if not all(isinstance(x, kinds) or is_array(x) for x in (actual, expected)):
        raise ArgumentTypeError(f"assert_close: cannot compare {type(actual).__name__} with {type(expected).__name__}")
    kind = "Scalars" if isinstance(actual, int | float) and isinstance(expected, int | float) else "Tensor-likes"
    a, e = as_tensor(actual), as_tensor(expected)
    if a.shape != e.shape:
        return f"The values for attribute 'shape' do not match: {a.shape} != {e.shape}."
    for attribute, is_checked in checks.items():
        values = [t.stride() if attribute == "stride()" else getattr(t, attribute) for t in (a, e)]
        if is_checked and values[0] != values[1]:
            return f"The values for attribute '{attribute}' do not match: {values[0]} != {values[1]}."
    if rtol is None or atol is None:
        both = [TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (a, e)]
        rtol, atol = max(r for r, _ in both), max(t for _, t in both)
    return _difference(a._host(), e._host(), rtol, atol, equal_nan, kind)


def _difference(a: Any, e: Any, rtol: float, atol: float, equal_nan: bool, kind: str) -> str | None:
    """Return a description of the greatest differences, or None if the arrays are close."""
    if a.dtype.kind not in "fc" or e.dtype.kind not in "fc":  # so that differences of unsigned integers have a sign
        a, e = (x.astype(np.int64) if x.dtype.kind in "uib" else x for x in (a, e))
    far = ~np.isclose(a, e, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if not far.any():
        return None
    with np.errstate(all="ignore"):
        absolute = np.where(far, np.abs(a - e), 0)
        relative = absolute / np.abs(e)
    at = np.unravel_index(np.argmax(np.nan_to_num(absolute, nan=np.inf)), absolute.shape)
    at_relative = np.unravel_index(np.argmax(np.nan_to_num(relative, nan=-1.0)), relative.shape)
    return (
        f"{kind} are not close!\n\n"
        f"Mismatched elements: {far.sum()} / {far.size} ({far.sum() / far.size:.1%})\n"
        f"Greatest absolute difference: {absolute[at]} at index {tuple(map(int, at))} (up to {atol} allowed)\n"
        f"Greatest relative difference: {relative[at_relative]} at index {tuple(map(int, at_relative))} "
        f"(up to {rtol} allowed)"
    )


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: Message = "",
) -> None:
    """Assert that values are close; their dtypes and devices may differ. The former `assert_close`."""
    expected = as_tensor(expected)
    actual = as_tensor(actual)
    if rtol is None and atol is None:
        both = [TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = max(r for r, _ in both), max(a for _, a in both)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )


def make_tensor(
    *shape: Any,
    dtype: dtypes.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
) -> Tensor:
    """Return a tensor of numbers drawn evenly from `low` to `high`, without `high`.

    Args:
        low, high: by default -9 and 9 for floating and complex numbers, of which both parts are drawn; -9 and 10 for
            signed and 0 and 10 for unsigned integers; 0 and 2 for bool.
        noncontiguous: let the elements be every other one of a larger tensor.
        exclude_zero: replace zeros by the smallest positive number of the dtype, or by 1.

    Raises: ArgumentError unless low < high; and for `requires_grad` with integers
    """
    size = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
    fractional = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not fractional:
        raise ArgumentError(f"make_tensor: requires_grad=True for {dtype}")
    default = (-9, 9) if fractional else (0, 2) if dtype is dtypes.bool else (-9 if dtype.is_signed else 0, 10)
    low, high = (given if given is not None else d for given, d in zip((low, high), default, strict=True))
    if not low < high:
        raise ArgumentError(f"make_tensor: `low` must be less than `high`, but got {low} >= {high}")
    drawn = [*size[:-1], 2 * size[-1]] if noncontiguous and size else size

    def numbers(kind: dtypes.dtype) -> Tensor:
        if kind.is_floating_point:
            return sampling.rand(drawn, dtype=dtypes.float64).mul_(high - low).add_(low).to(kind)
        return sampling.randint(math.floor(low), math.ceil(high), drawn).to(kind)

    if dtype.is_complex:
        part = dtypes.float64 if dtype is dtypes.complex128 else dtypes.float32
        result = complex(numbers(part), numbers(part)).to(dtype)
    else:
        result = numbers(dtype)
    result = result.to(device)
    if noncontiguous and size:
        result = result[..., ::2]
    if exclude_zero:
        result[result == 0] = dtypes.finfo(dtype).tiny if fractional else 1
    return result.requires_grad_() if requires_grad else result


__getattr__, __dir__ = names_of(__name__)
