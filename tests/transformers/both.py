"""Run one program with transformers and PyTorch, and with tallow under both names; compare what it returns.

A program is a function of both libraries: `def program(tf, torch): ...`. It returns tensors, numbers, texts, and
containers of them, such as results of models and tokenizers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import tallow
import tallow.transformers


def both(program: Callable[..., Any], *args: Any, tol: float = 1e-4) -> None:
    """Check that `program(tf, torch, *args)` returns the same for both.

    Args:
        args: further arguments, such as the path of a folder.
        tol: the largest difference of floats, relative to the largest value of a tensor if that is more than 1.
    """
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    expected = plain(program(transformers, torch, *args))
    tallow.manual_seed(0)
    compare(plain(program(tallow.transformers, tallow, *args)), expected, tol)


def both_raise(program: Callable[..., Any], *args: Any, errors: Any = Exception) -> None:
    """Check that `program(tf, torch, *args)` raises for both: here an error of `errors`."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    with pytest.raises(Exception):  # noqa: B017 - transformers raises errors of many kinds
        program(transformers, torch, *args)
    with pytest.raises(errors):
        program(tallow.transformers, tallow, *args)


def plain(value: Any) -> Any:
    """Return a result as arrays, numbers, texts, lists and dictionaries."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        return (value if "bfloat16" not in str(value.dtype) else value.float()).numpy()
    if isinstance(value, Mapping) or (hasattr(value, "data") and isinstance(value.data, Mapping)):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if value is None or isinstance(value, bool | int | float | str | bytes | np.ndarray | np.generic):
        return value
    raise TypeError(f"a program returns {type(value)}; return tensors, numbers, texts and containers of them")


def compare(actual: Any, expected: Any, tol: float, path: str = "result") -> None:
    """Raise AssertionError where two plain results differ."""
    if isinstance(expected, np.ndarray | np.generic | float) and not isinstance(expected, str | bytes):
        actual, expected = np.asarray(actual), np.asarray(expected)
        assert actual.dtype.kind == expected.dtype.kind, f"{path}: {actual.dtype}, expected {expected.dtype}"
        if expected.dtype.kind == "f":
            finite = expected[np.isfinite(expected)]
            scale = max(1.0, float(np.abs(finite).max(initial=0)))
            np.testing.assert_allclose(actual, expected, rtol=0, atol=tol * scale, err_msg=path)
        else:
            np.testing.assert_array_equal(actual, expected, err_msg=path)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected), f"{path}: keys {list(actual)}, expected {list(expected)}"
        for key, value in expected.items():
            compare(actual[key], value, tol, f"{path}[{key!r}]")
    elif isinstance(expected, list):
        assert isinstance(actual, list), f"{path}: {actual!r}, expected {expected!r}"
        assert len(actual) == len(expected), f"{path}: {actual!r:.500}, expected {expected!r:.500}"
        for i, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
            compare(ours, theirs, tol, f"{path}[{i}]")
    else:
        assert type(actual) is type(expected), f"{path}: {actual!r}, expected {expected!r}"
        assert actual == expected, f"{path}: {actual!r}, expected {expected!r}"
