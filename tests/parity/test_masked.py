"""Reductions of masked tensors, compared with PyTorch: values, dtypes and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")
masked = pytest.importorskip("torch.masked")

X = np.random.default_rng(0).standard_normal((3, 4, 2))
MASK = np.array([[[True], [False], [True], [True]], [[False]] * 4, [[True]] * 4])  # broadcast; a row has no elements
REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "norm", "var", "std", "logsumexp"]
ALONG = ["cumsum", "cumprod", "argmax", "argmin", "median", "softmax", "log_softmax", "softmin"]


def compare(call: Any, dtype: Any = np.float64) -> None:
    mine, theirs = tl.tensor(X).to(tl.as_tensor(np.zeros(0, dtype)).dtype), torch.tensor(X.astype(dtype))
    is_float = np.dtype(dtype).kind == "f"
    y = call(tl, mine.requires_grad_(is_float), tl.tensor(MASK))
    expected = call(torch, theirs.requires_grad_(is_float), torch.tensor(MASK))
    assert str(y.dtype).removeprefix("tallow.") == str(expected.dtype).removeprefix("torch.")
    np.testing.assert_allclose(
        y.detach().numpy(), expected.detach().numpy(), rtol=1e-6 if dtype != np.float64 else 1e-12
    )
    if expected.requires_grad:
        kept = MASK.any(axis=1, keepdims=True) & np.ones_like(X, bool)
        y.nan_to_num(0, 0, 0).sum().backward()
        expected.nan_to_num(0, 0, 0).sum().backward()
        np.testing.assert_allclose(mine.grad.numpy()[kept], theirs.grad.numpy()[kept], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.int64], ids=["float64", "int64"])
@pytest.mark.parametrize("name", [n for n in REDUCTIONS if n != "norm"])
def test_reductions(name: str, dtype: Any) -> None:
    if name == "mean" and dtype is np.int64:
        with pytest.raises(ValueError, match="Could not infer output dtype"):
            tl.masked.mean(tl.tensor([1, 2]))
        return
    compare(lambda m, x, mask: getattr(m.masked, name)(x, (1, 2), keepdim=True, mask=mask), dtype)
    compare(lambda m, x, mask: getattr(m.masked, name)(x), dtype)


@pytest.mark.parametrize("name", ALONG)
def test_functions_along_a_dim(name: str) -> None:
    compare(lambda m, x, mask: getattr(m.masked, name)(x, 1, mask=mask))


@pytest.mark.parametrize("order", [1, 2, 3.5, -np.inf])
def test_norms(order: float) -> None:
    compare(lambda m, x, mask: m.masked.norm(x[::2], order, 1, mask=mask[::2]))
    compare(lambda m, x, mask: m.masked.normalize(x[::2], abs(order), 1, mask=mask[::2]))


def test_logaddexp_and_corrections() -> None:
    compare(lambda m, x, mask: m.masked.logaddexp(x[::2], x[::2] * 2, input_mask=mask[::2], other_mask=~mask[::2]))
    compare(lambda m, x, mask: m.masked.var(x[::2], 1, correction=2, mask=mask[::2]))
    compare(lambda m, x, mask: m.masked.std(x[::2], 1, False, mask=mask[::2]))


def test_tensors_that_carry_a_mask_are_refused() -> None:
    with pytest.raises(tl.errors.UnsupportedError, match="masked_tensor"):
        tl.masked.masked_tensor(tl.ones(2), tl.ones(2).bool())
