"""Broadcasting, empty and zero-dim tensors, and values at the limits of a dtype, where functions often differ.

`tests/parity/test_mutated_cases.py` draws inputs of this kind; this file has those it cannot reach by changing shapes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.agreement import assert_agree  # after the check


def n(*shape: int) -> Any:
    """Return standard normal values, the same at each call."""
    return np.random.default_rng(0).standard_normal(shape)


def z(*shape: int) -> Any:
    return np.random.default_rng(1).integers(0, 3, shape)


def lower(size: int) -> Any:
    return np.tril(n(size, size)) + 2 * np.eye(size)


def grads(m: Any, function: Callable[..., Any], *arrays: Any) -> Any:
    """Return the value of a function of tensors, and its gradients."""
    inputs = [m.tensor(a).requires_grad_() for a in arrays]
    value = function(*inputs)
    return value, m.autograd.grad(value.square().sum(), inputs)


def infinite(m: Any, function: Callable[..., Any]) -> Any:
    """Return the gradients of a function of two tensors, where that of its value is infinite."""
    inputs = [m.tensor(a).requires_grad_() for a in (4 * n(9), np.zeros(9))]
    value = function(*inputs)
    return m.autograd.grad(value, inputs, m.full(value.shape, np.inf, dtype=value.dtype), allow_unused=True)


EXPRESSIONS = """
    grads(m, lambda x: m.relu(x.mean() + 1) * 5, n(3))
    grads(m, lambda x: m.nn.functional.relu(x[0]) * x[1] + m.relu(x[0]), n(3))
    m.tensor(1.0).movedim(0, -1)
    m.zeros(3, 64).topk(1)
    m.tensor(z(5, 99)).topk(1, 1)
    m.tensor(z(99, 5)).topk(1, 0)
    m.tensor([1.0, float("nan"), 3.0, float("nan")] * 16).topk(1)
    copy.deepcopy(m.tensor(n(2, 3)).T).stride()
    m.nn.ReLU().train(m.ones(2))
    infinite(m, lambda x, y: m.where(x > 0, x, y))
    infinite(m, lambda x, y: x.masked_fill(x > 0, 1.0))
    infinite(m, lambda x, y: x.masked_scatter(x > 0, y))
    infinite(m, lambda x, y: x.clamp(-1, 1))
    infinite(m, lambda x, y: x.clamp(y, y + 1))
    infinite(m, lambda x, y: x.clamp(y, y - 1))
    infinite(m, lambda x, y: m.clamp_min(x, y) + m.clamp_max(y, x))
    infinite(m, lambda x, y: m.maximum(x, y))
    infinite(m, lambda x, y: m.minimum(x, y))
    infinite(m, lambda x, y: m.fmax(x, y))
    infinite(m, lambda x, y: m.fmin(x, y))
    infinite(m, lambda x, y: x.max() + y.median())
    infinite(m, lambda x, y: m.nn.functional.relu(x))
    infinite(m, lambda x, y: m.nn.functional.relu6(x))
    infinite(m, lambda x, y: m.nn.functional.hardtanh(x))
    infinite(m, lambda x, y: m.nn.functional.hardsigmoid(x))
    infinite(m, lambda x, y: m.nn.functional.hardswish(x))
    infinite(m, lambda x, y: m.nn.functional.hardshrink(x))
    infinite(m, lambda x, y: m.nn.functional.softshrink(x))
    infinite(m, lambda x, y: m.nn.functional.threshold(x, 0.5, 2.0))
    infinite(m, lambda x, y: m.nn.functional.max_pool1d(x[None], 3, 1))
    grads(m, lambda x: x.clamp(min=0).sqrt(), n(9))
    m.nn.functional.cosine_similarity(m.tensor(n(2, 3)), m.tensor(n(2, 1)), dim=1)
    m.nn.functional.cosine_similarity(m.tensor(n(3)), m.tensor(n(2, 3)), dim=0)
    m.nn.functional.cosine_similarity(m.tensor(z(2, 3)), m.tensor(z(2, 3)))
    m.nn.functional.cosine_similarity(m.tensor(n(2, 3)).float(), m.tensor(n(2, 3)))
    grads(m, lambda a, b: m.cosine_similarity(a, b, dim=1), n(2, 3), n(2, 1))
    grads(m, lambda a, b: m.cosine_similarity(1e-9 * a, b, dim=1), n(2, 3), n(2, 3))
    after(m.nn.BatchNorm1d(3), m.tensor(n(0, 3)).float())
    after(m.nn.BatchNorm1d(3), m.tensor(n(2, 3, 0)).float())
    after(m.nn.BatchNorm1d(3, momentum=None), m.tensor(n(0, 3)).float())
    after(m.nn.BatchNorm1d(3), m.tensor(n(1, 3)).float())
    m.nn.functional.batch_norm(m.tensor(n(0)), m.tensor(n(3)), m.tensor(n(3)))
    m.nn.functional.batch_norm(m.tensor(n(0)), None, None, training=True)
    m.nn.functional.batch_norm(m.tensor(n(2, 0)), None, None, training=True)
    m.nn.functional.batch_norm(m.tensor(n(1, 0)), None, None, training=True)
    m.nn.functional.batch_norm(m.tensor(n(0, 3)), None, None)
    grads(m, lambda x, w, b: m.nn.functional.batch_norm(x, None, None, w, b, True), n(0, 3), n(3), n(3))
    grads(m, lambda a, b: m.tensordot(a, b, dims=1), n(2, 1), n(3, 4))
    grads(m, lambda a, b: m.tensordot(a, b, dims=([1, 2], [0, 1])), n(2, 1, 3), n(4, 3, 2))
    m.tensordot(m.tensor(n(2, 2)), m.tensor(n(3, 4)), dims=1)
    m.inner(m.tensor(n(2, 1)), m.tensor(n(3, 4)))
    m.normal(m.tensor(n()), m.tensor(n()).abs()).shape
    m.normal(0.0, m.tensor(n()).abs()).shape
    m.normal(m.tensor(n(3, 1)), m.tensor(n(2)).abs()).shape
    m.tensor(n()).index_reduce(0, m.tensor(0), m.tensor(n()), "prod")
    m.tensor(n()).index_reduce(0, m.tensor([0]), m.tensor(n()), "mean")
    m.tensor(n()).index_reduce(0, m.tensor([0]), m.tensor(n(1)), "prod")
    m.tensor(n()).index_add(0, m.tensor([0]), m.tensor(n(1)))
    m.nn.functional.gaussian_nll_loss(m.tensor(n(4, 3)), m.tensor(n(4, 3)), m.tensor(n(1, 3)).abs())
    m.nn.functional.gaussian_nll_loss(m.tensor(n(2, 4, 3)), m.tensor(n(2, 4, 3)), m.tensor(n(2, 1, 3)).abs())
    m.nn.functional.gaussian_nll_loss(m.tensor(n(4, 3)), m.tensor(n(4, 3)), m.tensor(n(1, 1)).abs())
    m.nn.functional.gaussian_nll_loss(m.tensor(n(4, 3)), m.tensor(n(4, 3)), m.tensor(n()).abs())
    m.nn.MultiLabelSoftMarginLoss()(m.tensor(n(2, 3)), m.tensor(z(2, 3)))
    m.nn.functional.multilabel_soft_margin_loss(m.tensor(n(2, 3)), m.tensor(z(3)), reduction="none")
    m.nn.functional.multilabel_soft_margin_loss(m.tensor(n()), m.tensor(n()))
    m.cov(m.tensor(n(1, 5)))
    m.corrcoef(m.tensor(n(1, 5)))
    m.cov(m.tensor(n(2, 3)), fweights=m.tensor(n(3)))
    m.cov(m.tensor(n(2, 3)), fweights=m.tensor(z(3) - 3))
    m.cov(m.tensor(n(2, 3)), fweights=m.tensor(z(3) * 0))
    m.cov(m.tensor(n(2, 3)), fweights=m.tensor(z(2)))
    m.cov(m.tensor(n(2, 3)), aweights=m.tensor(-n(3) ** 2))
    m.gradient(m.tensor(n(4, 5)), spacing=None)
    m.gradient(m.tensor(n(4, 5)), dim=(0, 0))
    m.gradient(m.tensor(n(4)), spacing=(m.tensor(2.0),))
    grads(m, lambda x, q: m.quantile(x, q), n(5), np.array([0.1, 0.3, 0.77]))
    grads(m, lambda x, q: m.quantile(x, q, dim=1, keepdim=True), n(2, 5), np.array([0.1, 0.3, 0.77]))
    grads(m, lambda x, q: m.nanquantile(x, q, dim=0), np.where(n(4, 5) > 1, np.nan, n(4, 5)), np.array(0.3))
    m.quantile(m.tensor(n(5)).float(), m.tensor(np.array([0.3])))
    m.add(m.tensor([1], dtype=m.uint8), m.tensor([2], dtype=m.uint8), alpha=-1)
    m.sub(m.tensor([1], dtype=m.uint8), m.tensor([2], dtype=m.uint8), alpha=-1)
    m.add(m.tensor([1], dtype=m.uint8), m.tensor([2], dtype=m.uint8), alpha=300)
    m.add(m.tensor([1]), m.tensor([2]), alpha=True)
    m.add(m.tensor([True]), m.tensor([True]), alpha=2)
    m.addmm(*[m.ones(2, 2, dtype=m.uint8)] * 3, alpha=-1)
    m.addmm(*[m.ones(2, 2, dtype=m.uint8)] * 3, beta=-1)
    m.addcmul(*[m.ones(2, dtype=m.uint8)] * 3, value=-1)
    m.ones(2, dtype=m.uint8).index_add(0, m.tensor([0]), m.ones(1, dtype=m.uint8), alpha=-1)
    m.clamp(m.tensor([100], dtype=m.uint8), max=300)
    m.clamp(m.tensor([100], dtype=m.uint8), min=-1)
    m.ones(2, dtype=m.uint8).masked_fill(m.tensor([True, False]), -1)
    m.nn.functional.threshold(m.ones(2, dtype=m.uint8), 2, -1)
    m.ones(2, dtype=m.uint8) ** -1
    m.tensor([2], dtype=m.int8) ** m.tensor(-2)
    m.gather(m.tensor(n(3)), 0, m.tensor([1], dtype=m.uint8))
    m.tensor(n(3)).gather(0, m.tensor([1], dtype=m.int32))
"""


def after(module: Any, x: Any) -> Any:
    """Return a layer's output and its state."""
    return module(x), module.running_mean, module.running_var, module.num_batches_tracked


NAMES = {"copy": copy, "n": n, "z": z, "grads": grads, "infinite": infinite, "after": after}


@pytest.mark.filterwarnings(r"ignore:index_reduce\(\) is in beta")  # raised by PyTorch
@pytest.mark.parametrize("expression", [line.strip() for line in EXPRESSIONS.strip().splitlines()])
def test_edge_inputs_are_as_in_pytorch(expression: str) -> None:
    assert_agree(expression, rtol=1e-5, atol=1e-6, **NAMES)


@pytest.mark.parametrize("upper", [False, True])
def test_gradients_of_triangular_factors_are_pytorchs_within_the_triangle(upper: bool) -> None:
    """Outside the triangle the factor is not read, so its gradient is zero; PyTorch's is not."""
    import torch

    import tallow as tl

    factor = lower(3).T.copy() if upper else lower(3)
    for m in (torch, tl):
        solved = grads(m, lambda b, a, m=m: m.cholesky_solve(b, a, upper=upper), n(3, 2), factor)[1]
        inverse = grads(m, lambda a, m=m: m.cholesky_inverse(a, upper=upper), factor)[1]
        if m is torch:
            expected = solved[0], solved[1], inverse[0]
    np.testing.assert_allclose(solved[0].numpy(), expected[0].numpy(), rtol=1e-9)
    triangle = np.triu if upper else np.tril
    for ours, theirs in zip((solved[1], inverse[0]), expected[1:], strict=True):
        np.testing.assert_allclose(ours.numpy(), triangle(theirs.numpy()), rtol=1e-9)
