"""Attention: blocks, memory, and fully masked queries."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import tallow as tl
import tallow.nn.functional as F
from tallow import kernels
from tallow.kernels.table import Entry
from tallow.ops import attention

RNG = np.random.default_rng(0)


def normal(*shape: int) -> tl.Tensor:
    return tl.tensor(RNG.standard_normal(shape), requires_grad=True)


def value_and_gradients(inputs: list[tl.Tensor], **options: Any) -> list[Any]:
    y = F.scaled_dot_product_attention(*inputs, **options)
    g = np.random.default_rng(1).standard_normal(y.array.shape)
    return [y.detach().numpy(), *(d.numpy() for d in tl.autograd.grad(y, inputs, tl.tensor(g)))]


@pytest.mark.parametrize("rows", [1, 3, 7])
@pytest.mark.parametrize(
    ("shapes", "options"),
    [
        ([(2, 4, 7, 3), (2, 4, 5, 3), (2, 4, 5, 6)], {}),
        ([(2, 4, 7, 3), (2, 4, 9, 3), (2, 4, 9, 6)], {"is_causal": True}),
        ([(2, 4, 7, 3), (2, 2, 5, 3), (2, 2, 5, 6)], {"enable_gqa": True, "is_causal": True}),
        ([(2, 4, 7, 3), (2, 4, 5, 3), (2, 4, 5, 6), (4, 7, 5)], {}),
        ([(2, 4, 7, 3), (2, 4, 5, 3), (2, 4, 5, 6), (2, 1, 1, 5)], {}),
    ],
    ids=["plain", "causal", "grouped", "bias", "broadcast bias"],
)
def test_blocks_change_nothing(
    monkeypatch: pytest.MonkeyPatch, rows: int, shapes: list[tuple[int, ...]], options: dict[str, bool]
) -> None:
    inputs = [normal(*shape) for shape in shapes]
    expected = value_and_gradients(inputs, **options)
    monkeypatch.setattr(attention, "CAUSAL_ROWS", rows)
    monkeypatch.setattr(attention, "BLOCK_SCORES", rows * 8 * shapes[1][-2])
    for a, b in zip(value_and_gradients(inputs, **options), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.cpu("memory that NumPy asks for")
def test_scores_are_never_materialized() -> None:
    length, heads = 2048, 4
    q, k, v = (
        tl.tensor(RNG.standard_normal((1, heads, length, 8)), dtype=tl.float32, requires_grad=True) for _ in "qkv"
    )
    scores_bytes = heads * length * length * 4
    tracemalloc.start()
    F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 0.7 * scores_bytes


def test_one_query_equals_the_last_of_many() -> None:
    q, k, v = normal(2, 4, 6, 8), normal(2, 2, 6, 8), normal(2, 2, 6, 8)
    with tl.no_grad():
        many = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        for dtype, atol in ((tl.float64, 1e-12), (tl.float32, 1e-6)):
            last = F.scaled_dot_product_attention(q[:, :, 5:].to(dtype), k.to(dtype), v.to(dtype), enable_gqa=True)
            np.testing.assert_allclose(last.numpy(), many[:, :, 5:].numpy(), rtol=1e-5, atol=atol)


def test_one_query_goes_to_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def spy(q: Any, k: Any, v: Any, scale: float) -> Any:
        calls.append((q.shape, k.shape, scale))
        return attention.attention_decode_array(q, k, v, scale)

    monkeypatch.setitem(kernels.KERNELS, ("attention_decode", "array"), Entry("array", spy, None))
    q, k, v = normal(1, 4, 1, 8), normal(1, 2, 5, 8), normal(1, 2, 5, 8)
    with kernels.off():  # the kernel is looked up again in forward and in backward
        F.scaled_dot_product_attention(q, k, v, scale=0.5, enable_gqa=True)
    assert set(calls) == {((1, 4, 1, 8), (1, 2, 5, 8), 0.5)}  # compiled, there are two calls


def test_a_fully_masked_query_gets_zeros_and_finite_gradients() -> None:
    q, k, v = normal(3, 4), normal(5, 4), normal(5, 2)
    allowed = np.ones((3, 5), bool)
    allowed[1] = False
    y = F.scaled_dot_product_attention(q, k, v, tl.tensor(allowed))
    assert not y[1].detach().numpy().any()
    y.sum().backward()
    assert not q.grad.numpy()[1].any()
    assert all(np.isfinite(t.grad.numpy()).all() for t in (q, k, v))


def test_no_keys_give_zeros() -> None:
    y = F.scaled_dot_product_attention(normal(2, 3, 4), normal(2, 0, 4), normal(2, 0, 5))
    assert tuple(y.shape) == (2, 3, 5)
    assert not y.detach().numpy().any()


def test_dropout_keeps_the_mean() -> None:
    q, k, v = tl.zeros(1, 400, 4), tl.zeros(1, 50, 4), tl.ones(1, 50, 3)
    tl.manual_seed(0)
    y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.3)
    weights = y.numpy()[0, :, 0]  # 50 equal weights, of which 35 are kept on average, times 1 / 0.7
    assert abs(weights.mean() - 1) < 0.02
    assert 0.06 < weights.std() < 0.12  # sqrt(0.3 / 0.7 / 50) = 0.093
    assert not F.scaled_dot_product_attention(q, k, v, dropout_p=1.0).numpy().any()


def test_dropout_drops_the_same_in_backward() -> None:
    """With q = k = 0 the output is linear in v, so its gradient gives the output."""
    q, k, v = tl.zeros(1, 6, 4), tl.zeros(1, 5, 4), normal(1, 5, 3)
    y = F.scaled_dot_product_attention(q.double(), k.double(), v, dropout_p=0.5)
    (d,) = tl.autograd.grad(y.sum(), v)
    np.testing.assert_allclose((d.detach() * v.detach()).sum().item(), y.sum().item(), rtol=1e-12)


def test_a_query_overwritten_before_backward_is_noticed() -> None:
    q, k, v = normal(3, 4), normal(5, 4), normal(5, 2)
    hidden = q * 1
    y = F.scaled_dot_product_attention(hidden, k, v)
    hidden.add_(1)
    with pytest.raises(tl.errors.GraphError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16])
def test_dropout_of_sixteen_bit_numbers(dtype: tl.dtype) -> None:
    q = tl.ones(1, 2, 8, 4).to(dtype)
    tl.manual_seed(0)
    y = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
    assert y.dtype is dtype
    assert 0.5 < y.float().mean().item() < 1.5  # each element is 1 on average
