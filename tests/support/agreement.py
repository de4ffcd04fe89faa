"""Check that tallow and PyTorch agree on an expression: same value, or both raise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

import tallow as tl

BUILTIN_ERRORS = (IndexError, KeyError, AttributeError, TypeError, ValueError, RuntimeError)


def evaluate(expression: str, module: Any, names: dict[str, Any]) -> Any:
    """Return the value of the expression, with the module as `m`, or the exception it raises."""
    try:
        return eval(expression, {"m": module, "np": np, **names})
    except Exception as error:
        return error


def assert_agree(expression: str, rtol: float = 1e-6, atol: float = 1e-7, **names: Any) -> None:
    """Check that both modules give the same value, dtype and shape, or that both raise.

    If PyTorch raises, tallow must raise a TallowError that derives from the same built-in exception.
    """
    theirs = evaluate(expression, torch, names)
    ours = evaluate(expression, tl, names)
    if isinstance(theirs, Exception):
        expected = next(kind for kind in BUILTIN_ERRORS if isinstance(theirs, kind))
        assert isinstance(ours, tl.errors.TallowError), f"PyTorch: {theirs!r}; tallow: {ours!r}"
        assert isinstance(ours, expected), f"PyTorch: {theirs!r}; tallow: {ours!r}"
        return
    if isinstance(ours, Exception):
        raise ours
    assert_same(ours, theirs, rtol, atol)


def assert_same(ours: Any, theirs: Any, rtol: float, atol: float) -> None:
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, tl.Tensor)
        assert str(ours.dtype).removeprefix("tallow.") == str(theirs.dtype).removeprefix("torch.")
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert ours.requires_grad == theirs.requires_grad
        if theirs.dtype == torch.bfloat16:
            ours, theirs = ours.detach().float(), theirs.detach().float()
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=atol)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            assert_same(our, their, rtol, atol)
    elif isinstance(theirs, float):
        assert ours == theirs or math.isclose(ours, theirs, rel_tol=rtol) or (math.isnan(ours) and math.isnan(theirs))
    elif isinstance(theirs, torch.dtype | torch.device | torch.Size):
        assert str(ours).replace("tallow.", "torch.") == str(theirs)
    else:
        assert ours == theirs
