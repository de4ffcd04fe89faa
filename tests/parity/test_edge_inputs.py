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
    m.cov(m.tensor([1.0, -1.0] * 129, dtype=m.bfloat16))
    m.nn.functional.rrelu(m.tensor(n(3)).half())
    m.nn.functional.rrelu(m.tensor(n(3)).bfloat16(), inplace=True)
    m.nn.RReLU(0.1, 0.2).eval()(m.tensor(n(2, 3)).half())
    m.ldexp(m.tensor(n(3)).half(), m.tensor([1, -2, 30]))
    m.ldexp(m.tensor([1e-30, 1.0, 1e30]), m.tensor([150, -200, -180], dtype=m.int32))
    m.tensor([1, 2]).ldexp(m.tensor([3, -1]))
    m.arange(12).reshape(3, 4)[m.zeros(2, 1).shape]
    m.arange(12).reshape(3, 4)[m.zeros(5, 2).shape[1:]]
    m.tensor(3, dtype=m.int32).sum_to_size(())
    m.ones(2, dtype=m.int32).sum_to_size(())
    m.ones(2, 3, dtype=m.int32).sum_to_size(2, 3)
    m.ones(2, 3, dtype=m.int8).sum_to_size(3)
    m.ones(2).imag
    m.ones(2).coalesce()
    m.ones(2).indices()
    m.ones(2).values()
    m.ones(2).crow_indices()
    m.ones(2, 2).row_indices()
    m.eig(m.ones(2, 2))
    m.ones(2, 2).lstsq(m.ones(2, 2))
    m.matrix_rank(m.ones(2, 2))
    str(m.iinfo(m.int32))
    repr(m.iinfo(m.int64))
    repr(m.nn.Linear(1, 1).load_state_dict({"x": m.ones(1)}, strict=False))
    m.optim.lr_scheduler.ReduceLROnPlateau(m.optim.SGD([m.ones(1)], lr=0.1), "max").state_dict()
    m.linspace(0.5, 3.7, 7, dtype=m.int32)
    m.linspace(2.6, 0.9, 6, dtype=m.uint8)
    m.logspace(0.5, 3.7, 7, base=3, dtype=m.int32)
    m.logspace(3.9, -0.9, 5, base=2.5, dtype=m.int64)
    m.logspace(1.4, 4.7, 1, dtype=m.int32)
    m.histogram(m.tensor([]), 4)
    m.histogram(m.tensor([]), 4, range=(1.0, 2.0))
    m.randperm(3, dtype=None).dtype
    m.tril_indices(2, 3, dtype=None)
    m.triu_indices(2, 3, dtype=None)
    m.zeros(3).to(None)
    m.frombuffer(bytearray(8), dtype=None)
    m.linalg.cholesky_ex(m.tensor([[1.0, 2], [2, 1]]))
    m.linalg.cholesky_ex(m.tensor([[0.0, 2], [2, 1]]))
    m.linalg.cholesky_ex(m.tensor([[4.0, 2, 1], [2, 1, 7], [1, 0, 9]]))
    m.linalg.cholesky_ex(m.tensor([[4.0, 2, 1], [2, 1, 7], [1, 0, 9]]), upper=True)
    m.linalg.cholesky_ex(m.tensor([[[4.0, 2, 1], [2, 1, 0], [1, 0, 9]], [[4.0, 2, 1], [2, 9, 0], [1, 0, 9]]]))
    m.linalg.inv_ex(m.tensor([[1.0, 2], [2, 4]]))
    m.linalg.inv_ex(m.tensor([[1.0, 2, 0], [2, 4, 0], [0, 1, 0]]))
    m.linalg.inv_ex(m.tensor([[0.0, 2, 0], [0, 4, 0], [0, 1, 0]]))
    m.linalg.inv_ex(m.tensor([[[0.0, 2], [0, 4]], [[1.0, 2], [3, 4]]]))
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
