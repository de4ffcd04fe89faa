"""A training step in half precision converts and copies no more than necessary, counted on the stand-in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
from support import cupy_like

import tallow as tl
from tallow import devices, kernels
from tallow.nn import functional as F
from tallow_cuda.bindings import casting

B, T, D, V = 2, 12, 16, 40  # of a language model's head


@pytest.fixture
def passes(cuda: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int, ...]]]:
    """Return passes over memory that convert or reorder an array: the operation and the shape."""
    if devices.get_backend("cuda").module is not cupy_like.MODULE:
        pytest.skip("counted on the stand-in")
    seen: list[tuple[str, tuple[int, ...]]] = []
    plain_launch, plain_copy = casting.launch_map, cupy_like.MODULE.ascontiguousarray

    def launch_map(kernel: Any, x: Any, y: Any) -> None:
        seen.append(("convert", x.shape))
        plain_launch(kernel, x, y)

    def ascontiguousarray(array: Any, *args: Any) -> Any:
        if not array.flags.c_contiguous:
            seen.append(("copy", array.shape))
        return plain_copy(array, *args)

    monkeypatch.setattr(casting, "launch_map", launch_map)
    monkeypatch.setattr(cupy_like.MODULE, "ascontiguousarray", ascontiguousarray)
    return seen


@pytest.mark.parametrize("product", ["linear", "matmul"])
@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16])
def test_a_gradient_is_rounded_once_for_both_products(
    product: str, dtype: tl.dtype, passes: list[tuple[str, tuple[int, ...]]]
) -> None:
    """For dx = g W and dW = gᵀ x, which reads x transposed in place."""
    rng = np.random.default_rng(0)
    x, w = (tl.tensor(rng.integers(-4, 5, shape), dtype=dtype, device="cuda") for shape in ((24, 16), (32, 16)))
    x.requires_grad_()
    w.requires_grad_()
    y = F.linear(x, w) if product == "linear" else x @ w.mT
    g = tl.tensor(rng.integers(-4, 5, (24, 32)), dtype=tl.float32, device="cuda")
    loss = (y.float() * g).sum()
    passes.clear()
    loss.backward()
    assert [entry for entry in passes if set(entry[1]) == {24, 32}] == [("convert", (24, 32))], passes
    g, x_, w_ = (t.detach().float().cpu() for t in (g, x, w))
    np.testing.assert_array_equal(x.grad.float().cpu().numpy(), (g @ w_).numpy())
    np.testing.assert_array_equal(w.grad.float().cpu().numpy(), (g.mT @ x_).numpy())


def test_a_transposed_matrix_keeps_its_strides_when_converted(
    cuda: str, passes: list[tuple[str, tuple[int, ...]]]
) -> None:
    x = tl.arange(24.0, device="cuda").reshape(2, 3, 4).permute(2, 0, 1)
    half = x.to(tl.bfloat16)
    assert passes == [("convert", (2, 3, 4))]
    assert half.stride() == x.stride() == (1, 12, 4)
    np.testing.assert_array_equal(half.float().cpu().numpy(), x.cpu().numpy())


class Head:
    """A head that computes logits from constant weights, the same in every instance."""

    def __init__(self, dtype: tl.dtype, autocast: bool = False, product: str = "linear", bias: bool = False) -> None:
        draw = np.random.default_rng(0)
        self.dtype, self.autocast, self.product = dtype, autocast, product
        storage = tl.float32 if autocast else dtype
        shapes = (B, T, D), (V, D), (V,)
        self.leaves = [
            tl.tensor(draw.standard_normal(shape), dtype=storage, device="cuda").requires_grad_() for shape in shapes
        ][: 3 if bias else 2]
        self.target = tl.tensor(draw.integers(0, V, (B, T)), device="cuda")

    def precision(self) -> AbstractContextManager[Any]:
        return tl.autocast("cuda", self.dtype) if self.autocast else nullcontext()

    def logits(self) -> tl.Tensor:
        hidden, weight, *bias = self.leaves
        return F.linear(hidden, weight, *bias) if self.product == "linear" else hidden @ weight.mT

    def loss_of(self, logits: tl.Tensor) -> tl.Tensor:
        return F.cross_entropy(logits.view(B * T, V), self.target.view(B * T), label_smoothing=0.125)

    def gradients(self) -> list[Any]:
        return [leaf.grad.float().cpu().numpy() for leaf in self.leaves if leaf.grad is not None]


def step(
    head: Head, see: Callable[[tl.Tensor], Any], also: Callable[[tl.Tensor], tl.Tensor | float] = lambda logits: 0.0
) -> list[Any]:
    """Return the gradients of a step that passes the logits to `see` and adds `also` of them to the loss."""
    with head.precision():
        logits = head.logits()
        see(logits)
        loss = head.loss_of(logits) * 1024 + also(logits)
    loss.backward()
    return head.gradients()


def in_float32(logits: tl.Tensor) -> None:
    """A hook receives the gradient in float32, so that only the product rounds it."""
    logits.register_hook(lambda g: None)


@pytest.mark.parametrize("product", ["linear", "matmul"])
@pytest.mark.parametrize("autocast", [False, True], ids=["halves", "autocast"])
@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
def test_logits_and_their_gradient_are_not_converted(
    dtype: tl.dtype, autocast: bool, product: str, passes: list[tuple[str, tuple[int, ...]]]
) -> None:
    head = Head(dtype, autocast, product)
    got = step(head, lambda logits: passes.clear())
    assert [entry for entry in passes if entry[1] in ((B, T, V), (B * T, V))] == []
    seen = step(Head(dtype, autocast, product), in_float32)
    assert [entry for entry in passes if entry[1] in ((B, T, V), (B * T, V))] == [("convert", (B, T, V))]
    for a, b in zip(got, seen, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(B * T, V), (B, T, V)], ids=["leaf", "view of a leaf"])
@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
def test_a_leaf_receives_its_gradient_in_its_dtype(
    dtype: tl.dtype, shape: tuple[int, ...], passes: list[tuple[str, tuple[int, ...]]]
) -> None:
    rng = np.random.default_rng(0)
    values, target = rng.standard_normal(shape), tl.tensor(rng.integers(0, V, B * T), device="cuda")
    got, seen = (tl.tensor(values, dtype=dtype, device="cuda").requires_grad_() for _ in range(2))
    passes.clear()
    F.cross_entropy(got.view(B * T, V), target).backward()
    assert [entry for entry in passes if np.prod(entry[1]) == B * T * V] == []
    F.cross_entropy(got.view(B * T, V), target).backward()  # adds to the first
    for _ in range(2):
        copy = seen.clone()
        in_float32(copy)
        F.cross_entropy(copy.view(B * T, V), target).backward()
    np.testing.assert_array_equal(got.grad.float().cpu().numpy(), seen.grad.float().cpu().numpy())
    (alone,) = tl.autograd.grad(F.cross_entropy(got.view(B * T, V), target), [got])
    assert alone is not None
    assert alone.dtype == dtype
    np.testing.assert_array_equal((alone * 2).float().cpu().numpy(), got.grad.float().cpu().numpy())


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize(
    "also",
    [lambda logits: logits.float().square().mean(), lambda logits: logits.view(-1).logsumexp(0) * 3],
    ids=["of a copy", "of a view"],
)
def test_logits_that_are_read_twice_have_gradients_in_float32(cuda: str, also: Any, bias: bool) -> None:
    """Two gradients for one tensor are added before they are rounded."""
    got, seen = (step(Head(tl.bfloat16, bias=bias), see, also) for see in (lambda logits: None, in_float32))
    for a, b in zip(got, seen, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
def test_the_gradient_of_a_bias_is_a_sum_in_float32(cuda: str, dtype: tl.dtype) -> None:
    got, seen = (step(Head(dtype, bias=True), see) for see in (lambda logits: None, in_float32))
    for a, b in zip(got, seen, strict=True):
        np.testing.assert_array_equal(a, b)


def test_functions_in_between_get_float32(cuda: str) -> None:
    """Soft-capped logits: the gradient is rounded when the product reads it."""

    class Capped(Head):
        def logits(self) -> tl.Tensor:
            return (super().logits() / 5).tanh() * 5

    got, seen = (step(Capped(tl.bfloat16), see) for see in (lambda logits: None, in_float32))
    for a, b in zip(got, seen, strict=True):
        np.testing.assert_array_equal(a, b)


def test_observed_gradients_are_unchanged(cuda: str) -> None:
    """By retain_grad, by autograd.grad, and with kernels off."""
    expected = step(Head(tl.bfloat16), in_float32)
    retained: list[tl.Tensor] = []

    def retain(logits: tl.Tensor) -> None:
        logits.retain_grad()
        retained.append(logits)

    for a, b in zip(step(Head(tl.bfloat16), retain), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    head = Head(tl.bfloat16)
    logits = head.logits()
    loss = head.loss_of(logits) * 1024
    (alone,) = tl.autograd.grad(loss, [logits], retain_graph=True)
    both = tl.autograd.grad(loss, [logits, *head.leaves])
    assert retained[0].grad is not None
    for g in (alone, both[0]):
        assert g is not None
        assert g.dtype == tl.bfloat16
        np.testing.assert_array_equal(g.float().cpu().numpy(), retained[0].grad.float().cpu().numpy())
    for g, b in zip(both[1:], expected, strict=True):
        assert g is not None
        np.testing.assert_array_equal(g.float().cpu().numpy(), b)
    with kernels.off():
        off = [step(Head(tl.bfloat16), see) for see in (lambda logits: None, in_float32)]
    for a, b in zip(*off, strict=True):
        np.testing.assert_array_equal(a, b)


def test_backward_twice_gives_the_same_twice(cuda: str) -> None:
    head = Head(tl.bfloat16)
    loss = head.loss_of(head.logits())
    loss.backward(retain_graph=True)
    once = head.gradients()
    for leaf in head.leaves:
        leaf.grad = None
    loss.backward()
    for a, b in zip(head.gradients(), once, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
def test_autocast_gives_a_loss_in_float32(cuda: str, dtype: tl.dtype) -> None:
    """As in PyTorch, for half-precision logits; outside of autocast for CUDA it has the dtype of the logits."""
    head = Head(dtype)
    logits = head.logits().detach()
    wide = logits.float().cpu()
    expected = F.cross_entropy(wide.view(B * T, V), head.target.cpu().view(B * T), label_smoothing=0.125)
    with tl.autocast("cuda", dtype):
        loss = head.loss_of(logits)
    assert loss.dtype == tl.float32
    np.testing.assert_allclose(loss.item(), expected.item(), rtol=1e-6)
    with tl.autocast("cpu", tl.bfloat16):
        assert head.loss_of(logits).dtype == dtype
