"""Loss functions: definitions written out, extreme inputs, and memory."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

import tallow as tl
import tallow.nn.functional as F
from tallow.errors import ArgumentTypeError

RNG = np.random.default_rng(0)


def test_cross_entropy_is_minus_log_softmax() -> None:
    x = RNG.standard_normal((4, 3))
    y = np.array([0, 2, 1, 1])
    p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    expected = -np.log(p[np.arange(4), y]).mean()
    np.testing.assert_allclose(F.cross_entropy(tl.tensor(x), tl.tensor(y)).item(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [tl.int64, tl.int32, tl.uint8])
def test_classes_may_come_in_the_integers_of_any_platform(dtype: tl.dtype) -> None:
    x = tl.tensor(RNG.standard_normal((3, 4)))
    expected = F.cross_entropy(x, tl.tensor([0, 3, 1])).item()
    assert F.cross_entropy(x, tl.tensor([0, 3, 1], dtype=dtype)).item() == expected


def test_cross_entropy_of_equal_logits_is_log_of_classes() -> None:
    assert F.cross_entropy(tl.zeros(5, 7), tl.zeros(5, dtype=tl.int64)).item() == pytest.approx(math.log(7))


@pytest.mark.parametrize("rows", [32, 33, 300])
@pytest.mark.parametrize("ignore_index", [-100, 2])
@pytest.mark.parametrize("ignored", [True, False])
def test_cross_entropy_of_few_and_of_many_rows(rows: int, ignore_index: int, ignored: bool) -> None:
    rng = np.random.default_rng(rows)
    logits, classes = rng.standard_normal((rows, 5), dtype=np.float32), rng.choice([0, 1, 3, 4], rows)
    if ignored:
        classes[rows // 2] = ignore_index
    counts = classes != ignore_index
    exponentials = np.exp(logits.astype(np.float64))
    chances = exponentials / exponentials.sum(axis=1, keepdims=True)
    expected = -np.log(chances[counts, classes[counts]]).mean()
    gradient = np.where(counts[:, None], chances - np.eye(5)[np.where(counts, classes, 0)], 0) / counts.sum()
    x = tl.tensor(logits, requires_grad=True)
    loss = F.cross_entropy(x, tl.tensor(classes), ignore_index=ignore_index)
    loss.backward()
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), gradient, rtol=1e-5, atol=1e-7)


@pytest.mark.cpu("on a GPU such a loss is NaN, without waiting for the device")
@pytest.mark.parametrize("rows", [32, 33])
@pytest.mark.parametrize("wrong", [-1, 5])
def test_cross_entropy_refuses_a_class_out_of_range(rows: int, wrong: int) -> None:
    classes = np.zeros(rows, np.int64)
    classes[-1] = wrong
    with pytest.raises(tl.errors.DimensionError, match="out of bounds"):
        F.cross_entropy(tl.zeros(rows, 5), tl.tensor(classes))


def test_cross_entropy_refuses_arrays_as_the_target() -> None:
    with pytest.raises(ArgumentTypeError, match="target must be a Tensor, not ndarray"):
        F.cross_entropy(tl.zeros(2, 3), np.array([0, 1]))


def test_cross_entropy_survives_large_logits() -> None:
    x = tl.tensor([[1e4, 0.0], [0.0, 1e4]], requires_grad=True)
    loss = F.cross_entropy(x, tl.tensor([0, 0]), reduction="none")
    np.testing.assert_array_equal(loss.detach().numpy(), [0, 1e4])
    loss.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[0, 0], [-1, 1]])


def test_all_ignored_is_nan_as_a_mean_and_zero_as_a_sum() -> None:
    x, y = tl.zeros(2, 3, requires_grad=True), tl.tensor([-100, -100])
    assert math.isnan(F.cross_entropy(x, y).item())
    assert F.cross_entropy(x, y, reduction="sum").item() == 0
    for options in ({}, {"reduction": "sum"}, {"label_smoothing": 0.1}):
        F.cross_entropy(x, y, **options).backward()
    F.nll_loss(x, y).backward()
    assert not x.grad.numpy().any()


def test_an_ignored_position_may_hold_anything() -> None:
    x = tl.tensor([[math.inf, math.nan], [1.0, 1.0]], requires_grad=True)
    loss = F.cross_entropy(x, tl.tensor([-100, 0]))
    assert loss.item() == pytest.approx(math.log(2))


def test_cross_entropy_keeps_nothing_of_the_size_of_logits() -> None:
    x = tl.tensor(RNG.standard_normal((256, 4000)), dtype=tl.float32, requires_grad=True)
    y = tl.zeros(256, dtype=tl.int64)
    tracemalloc.start()
    loss = F.cross_entropy(x, y)
    held_bytes, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < 0.05 * x.nbytes
    assert peak_bytes < 1.1 * x.nbytes
    loss.backward()


def test_probabilities_of_one_class_are_that_class() -> None:
    x, y = tl.tensor(RNG.standard_normal((4, 3))), tl.tensor([0, 2, 1, 1])
    one_hot = F.one_hot(y, 3).to(tl.float64)
    for options in ({}, {"label_smoothing": 0.2}, {"reduction": "sum"}):
        a, b = F.cross_entropy(x, y, **options), F.cross_entropy(x, one_hot, **options)
        np.testing.assert_allclose(a.item(), b.item(), rtol=1e-12)


def test_logits_and_probabilities_agree() -> None:
    x, t = tl.tensor(RNG.standard_normal(9)), tl.tensor(RNG.random(9))
    a = F.binary_cross_entropy_with_logits(x, t)
    np.testing.assert_allclose(a.item(), F.binary_cross_entropy(x.sigmoid(), t).item(), rtol=1e-12)


def test_binary_cross_entropy_is_finite_at_both_ends() -> None:
    p, t = tl.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True), tl.tensor([0.0, 1.0, 1.0, 0.0])
    loss = F.binary_cross_entropy(p, t, reduction="none")
    np.testing.assert_array_equal(loss.detach().numpy(), [0, 0, 100, 100])
    loss.sum().backward()
    assert np.isfinite(p.grad.numpy()).all()


def test_binary_cross_entropy_with_logits_survives_large_ones() -> None:
    x = tl.tensor([1000.0, -1000.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, tl.tensor([0.0, 0.0]), reduction="none")
    np.testing.assert_array_equal(loss.detach().numpy(), [1000, 0])
    loss.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 0])


def test_kl_div_of_a_distribution_from_itself_is_zero() -> None:
    p = tl.tensor([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    log_p = p.clamp_min(1e-30).log()
    assert F.kl_div(log_p, p, reduction="batchmean").item() == pytest.approx(0, abs=1e-7)


def test_size_average_and_reduce() -> None:
    a, b = tl.tensor([1.0, 2.0]), tl.tensor([3.0, 5.0])
    assert F.mse_loss(a, b, size_average=False).item() == 13
    assert F.mse_loss(a, b, size_average=True).item() == 6.5
    assert F.mse_loss(a, b, reduce=False).tolist() == [4, 9]


def test_broadcast_sizes_warn() -> None:
    with pytest.warns(UserWarning, match="broadcast"):
        F.mse_loss(tl.ones(3, 2), tl.ones(3, 1))


def ctc_by_enumeration(log_probs: Any, target: list[int], blank: int) -> float:
    """Return -log of the total probability of all paths that collapse to the target."""
    total = 0.0
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        collapsed = [label for label, _ in itertools.groupby(path) if label != blank]
        if collapsed == target:
            total += math.exp(sum(log_probs[t, label] for t, label in enumerate(path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("target", [[], [1], [1, 2], [1, 1], [2, 1, 2], [1, 1, 2], [1, 1, 1]])
@pytest.mark.parametrize("blank", [0, 3])
def test_ctc_sums_over_all_alignments(target: list[int], blank: int) -> None:
    logits = tl.tensor(RNG.standard_normal((4, 1, 4)))
    log_probs = logits.log_softmax(-1)
    targets = tl.tensor([target], dtype=tl.int64)
    loss = F.ctc_loss(log_probs, targets, [4], [len(target)], blank=blank, reduction="sum").item()
    assert loss == pytest.approx(ctc_by_enumeration(log_probs.numpy()[:, 0], target, blank), rel=1e-10)


def test_ctc_targets_in_a_row_or_padded() -> None:
    log_probs = tl.tensor(RNG.standard_normal((6, 3, 5))).log_softmax(-1)
    padded, row = tl.tensor([[1, 2, -7], [3, 3, 3], [4, 99, 99]]), tl.tensor([1, 2, 3, 3, 3, 4])
    a, b = (F.ctc_loss(log_probs, t, (6, 5, 6), (2, 3, 1), reduction="none").numpy() for t in (padded, row))
    np.testing.assert_array_equal(a, b)


def test_ctc_of_too_long_a_target_is_infinite_or_zero() -> None:
    logits = tl.tensor(RNG.standard_normal((2, 1, 4)), requires_grad=True)
    targets = tl.tensor([[1, 2, 3]])
    assert F.ctc_loss(logits.log_softmax(-1), targets, [2], [3]).item() == math.inf
    loss = F.ctc_loss(logits.log_softmax(-1), targets, [2], [3], zero_infinity=True)
    loss.backward()
    assert loss.item() == 0
    assert not logits.grad.numpy().any()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, w: F.cross_entropy(x, tl.tensor([0, 1]), w),
        lambda x, w: F.nll_loss(x, tl.tensor([0, 1]), w),
        lambda x, w: F.multi_margin_loss(x, tl.tensor([0, 1]), weight=w),
        lambda x, w: F.binary_cross_entropy_with_logits(x, tl.ones(2, 3), pos_weight=w),
    ],
)
def test_a_weight_that_requires_grad_raises(call: Any) -> None:
    x, w = tl.zeros(2, 3, requires_grad=True), tl.ones(3, requires_grad=True)
    with pytest.raises(tl.errors.GraphError, match="derivative"):
        call(x, w)
    call(x, w.detach())
    with tl.no_grad():
        call(x, w)
