"""Layers raise errors that the same `except` clause catches as for PyTorch's layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

Call = Callable[[Any, Any], Any]


def o(m: Any, *shape: int) -> Any:
    return m.ones(shape)


def i(m: Any, *values: int, shape: tuple[int, ...] | None = None) -> Any:
    tensor = m.tensor(list(values), dtype=m.int64)
    return tensor if shape is None else tensor.reshape(shape)


REFUSED: list[Call] = [
    lambda m, F: F.binary_cross_entropy(o(m, 2) * 1.5, o(m, 2)),
    lambda m, F: F.binary_cross_entropy(o(m, 2), o(m, 2) * 1.5),
    lambda m, F: F.binary_cross_entropy(o(m, 2) * float("nan"), o(m, 2)),
    lambda m, F: F.layer_norm(o(m, 2, 3), (3,), o(m, 3).half()),
    lambda m, F: F.linear(o(m, 2, 3), o(m, 4, 5)),
    lambda m, F: F.linear(o(m, 2, 3), o(m, 4, 3), o(m, 5)),
    lambda m, F: F.linear(o(m, 2, 3), o(m, 4, 3).double()),
    lambda m, F: F.linear(o(m, 2, 3).bool(), o(m, 4, 3).bool()),
    lambda m, F: F.bilinear(o(m, 2, 3), o(m, 3, 4), o(m, 5, 3, 4)),
    lambda m, F: F.bilinear(o(m, 2, 3), o(m, 2, 5), o(m, 5, 3, 4)),
    lambda m, F: F.embedding(i(m, 4), o(m, 4, 3)),
    lambda m, F: F.embedding(i(m, -1), o(m, 4, 3)),
    lambda m, F: F.embedding(o(m, 2), o(m, 4, 3)),
    lambda m, F: F.embedding_bag(i(m, 1, 2), o(m, 4, 3)),
    lambda m, F: F.embedding_bag(i(m, 1, 2), o(m, 4, 3), i(m, 1)),
    lambda m, F: F.embedding_bag(i(m, 1, 2), o(m, 4, 3), i(m, 0, 3)),
    lambda m, F: F.embedding_bag(i(m, 1, 2, shape=(1, 2)), o(m, 4, 3), i(m, 0)),
    lambda m, F: F.embedding_bag(i(m, 1, 2), o(m, 4, 3), i(m, 0), mode="median"),
    lambda m, F: F.one_hot(i(m, 1, 2), 2),
    lambda m, F: F.one_hot(i(m, -1, 2)),
    lambda m, F: F.one_hot(i(m)),
    lambda m, F: F.one_hot(i(m, 1).byte()),
    lambda m, F: F.conv2d(o(m, 4, 6), o(m, 3, 4, 3, 3)),
    lambda m, F: F.conv2d(o(m, 1, 5, 6, 6), o(m, 3, 4, 3, 3)),
    lambda m, F: F.conv2d(o(m, 1, 4, 2, 6), o(m, 3, 4, 3, 3)),
    lambda m, F: F.conv2d(o(m, 1, 4, 6, 6), o(m, 3, 4, 3, 3), o(m, 4)),
    lambda m, F: F.conv2d(o(m, 1, 4, 6, 6), o(m, 3, 2, 3, 3), groups=2),
    lambda m, F: F.conv2d(o(m, 1, 4, 6, 6), o(m, 3, 4, 3, 3), stride=0),
    lambda m, F: F.conv2d(o(m, 1, 4, 6, 6), o(m, 3, 4, 3, 3), padding=-1),
    lambda m, F: F.conv2d(o(m, 1, 4, 6, 6), o(m, 3, 4, 3, 3), dilation=0),
    lambda m, F: F.conv2d(o(m, 1, 4, 6, 6), o(m, 3, 4, 3, 3), padding="same", stride=2),
    lambda m, F: F.conv2d(o(m, 1, 4, 6, 6), o(m, 3, 4, 3, 3), padding="full"),
    lambda m, F: F.conv2d(o(m, 1, 4, 6, 6), o(m, 3, 4, 3, 3).double()),
    lambda m, F: F.conv_transpose1d(o(m, 1, 4, 6), o(m, 3, 4, 3)),
    lambda m, F: F.conv_transpose1d(o(m, 1, 4, 6), o(m, 4, 4, 3), output_padding=1),
    lambda m, F: F.unfold(o(m, 1, 2, 3, 4, 5), 2),
    lambda m, F: F.unfold(o(m, 1, 1, 2, 2), 3),
    lambda m, F: F.fold(o(m, 1, 5, 4), (3, 3), 2),
    lambda m, F: F.fold(o(m, 1, 8, 5), (3, 3), 2),
    lambda m, F: F.max_pool2d(o(m, 1, 1, 4, 4), 2, padding=2),
    lambda m, F: F.max_pool2d(o(m, 1, 1, 8, 8), 3, padding=2, dilation=2),
    lambda m, F: F.max_pool2d(o(m, 1, 1, 2, 2), 3),
    lambda m, F: F.max_pool2d(o(m, 4, 4), 2),
    lambda m, F: F.max_pool2d(o(m, 1, 1, 4, 4), 2, stride=0),
    lambda m, F: F.max_pool2d(o(m, 1, 1, 4, 4), (2, 2, 2)),
    lambda m, F: F.avg_pool2d(o(m, 1, 1, 4, 4), 2, divisor_override=0),
    lambda m, F: F.avg_pool2d(o(m, 1, 1, 2, 2), 3),
    lambda m, F: F.adaptive_avg_pool2d(o(m, 4, 4), 2),
    lambda m, F: F.adaptive_max_pool2d(o(m, 1, 1, 0, 4), 2),
    lambda m, F: F.max_unpool2d(o(m, 1, 1, 2, 2), i(m, 0, 1, 2, 99, shape=(1, 1, 2, 2)), 2),
    lambda m, F: F.max_unpool2d(o(m, 1, 1, 2, 2), i(m, 0, 1, 2, 3, shape=(1, 1, 2, 2)), 2, output_size=(9, 9)),
    lambda m, F: F.layer_norm(o(m, 3, 4), (3,)),
    lambda m, F: F.layer_norm(o(m, 3, 4), (4,), o(m, 3)),
    lambda m, F: F.rms_norm(o(m, 3, 4), (3,)),
    lambda m, F: F.group_norm(o(m, 3, 4), 3),
    lambda m, F: F.group_norm(o(m, 3, 4), 2, o(m, 3)),
    lambda m, F: F.batch_norm(o(m, 1, 4), None, None, training=True),
    lambda m, F: F.batch_norm(o(m, 3, 4), o(m, 3), o(m, 3), training=True),
    lambda m, F: F.instance_norm(o(m, 2, 4, 1)),
    lambda m, F: F.local_response_norm(o(m, 3, 4), 2),
    lambda m, F: F.pad(o(m, 3, 4), (1, 2, 3)),
    lambda m, F: F.pad(o(m, 3), (1, 2, 3, 4)),
    lambda m, F: F.pad(o(m, 3), (-3, -1)),
    lambda m, F: F.pad(o(m, 1), (-2, 2)),
    lambda m, F: F.pad(o(m, 1, 3), (3, 0), mode="reflect"),
    lambda m, F: F.pad(o(m, 1, 3), (4, 0), mode="circular"),
    lambda m, F: F.pad(o(m, 1, 3), (1, 0), mode="reflect", value=1.0),
    lambda m, F: F.interpolate(o(m, 1, 1, 4, 4)),
    lambda m, F: F.interpolate(o(m, 1, 1, 4, 4), size=2, scale_factor=2),
    lambda m, F: F.interpolate(o(m, 1, 1, 4, 4), size=(2,)),
    lambda m, F: F.interpolate(o(m, 1, 1, 4, 4), size=0),
    lambda m, F: F.interpolate(o(m, 1, 1, 4, 4), size=2, align_corners=True),
    lambda m, F: F.interpolate(o(m, 1, 1, 4, 4), size=2, recompute_scale_factor=True),
    lambda m, F: F.interpolate(o(m, 1, 1, 4, 4), size=2, mode="nearest", antialias=True),
    lambda m, F: F.pixel_shuffle(o(m, 1, 3, 4, 4), 2),
    lambda m, F: F.pixel_unshuffle(o(m, 1, 3, 4, 5), 2),
    lambda m, F: F.channel_shuffle(o(m, 1, 3, 4), 2),
    lambda m, F: F.grid_sample(o(m, 1, 2, 4, 5), o(m, 1, 3, 3, 3)),
    lambda m, F: F.grid_sample(o(m, 1, 2, 4, 5), o(m, 2, 3, 3, 2)),
    lambda m, F: F.grid_sample(o(m, 1, 2, 4, 5), o(m, 1, 3, 3, 2), mode="cubic"),
    lambda m, F: F.grid_sample(o(m, 1, 2, 4, 5), o(m, 1, 3, 3, 2), padding_mode="ones"),
    lambda m, F: F.affine_grid(o(m, 1, 3, 3), (1, 1, 4, 4)),
    lambda m, F: F.dropout(o(m, 3), 1.5),
    lambda m, F: F.dropout(o(m, 3), -0.1),
    lambda m, F: F.dropout1d(o(m, 3)),
    lambda m, F: F.alpha_dropout(o(m, 3), 2.0),
    lambda m, F: F.scaled_dot_product_attention(o(m, 2, 3), o(m, 2, 4), o(m, 2, 4)),
    lambda m, F: F.scaled_dot_product_attention(o(m, 2, 3), o(m, 2, 3), o(m, 4, 3)),
    lambda m, F: F.scaled_dot_product_attention(o(m, 2, 3), o(m, 2, 3), o(m, 2, 3).double()),
    lambda m, F: F.scaled_dot_product_attention(o(m, 2, 3), o(m, 2, 3), o(m, 2, 3), o(m, 3, 3)),
    lambda m, F: F.scaled_dot_product_attention(o(m, 2, 3), o(m, 2, 3), o(m, 2, 3), o(m, 2, 2).long()),
    lambda m, F: F.scaled_dot_product_attention(o(m, 1, 3, 2, 4), o(m, 1, 2, 2, 4), o(m, 1, 2, 2, 4)),
    lambda m, F: F.scaled_dot_product_attention(o(m, 1, 3, 2, 4), o(m, 1, 2, 2, 4), o(m, 1, 2, 2, 4), enable_gqa=True),
    lambda m, F: F.cross_entropy(o(m, 3, 4), i(m, 0, 1, 4)),
    lambda m, F: F.cross_entropy(o(m, 3, 4), i(m, 0, 1, -1)),
    lambda m, F: F.cross_entropy(o(m, 3, 4), i(m, 0, 1)),
    lambda m, F: F.cross_entropy(o(m, 3, 4), i(m, 0, 1, 2).short()),
    lambda m, F: F.cross_entropy(o(m, 3, 4), i(m, 0, 1, 2), o(m, 3)),
    lambda m, F: F.cross_entropy(o(m, 3, 4).long(), i(m, 0, 1, 2)),
    lambda m, F: F.binary_cross_entropy_with_logits(o(m, 3).long(), o(m, 3).long()),
    lambda m, F: F.binary_cross_entropy_with_logits(o(m, 3), o(m, 3).long()),
    lambda m, F: F.conv2d(o(m, 1, 1, 2, 2).bool(), o(m, 1, 1, 2, 2).bool()),
    lambda m, F: F.cross_entropy(o(m, 3, 4), i(m, 0, 1, 2), reduction="max"),
    lambda m, F: F.cross_entropy(o(m, 3, 4), o(m, 3, 5)),
    lambda m, F: F.cross_entropy(o(m, 3, 4), i(m, 0, 1, 2), label_smoothing=2.0),
    lambda m, F: F.cross_entropy(o(m, 3, 4), o(m, 3, 4), ignore_index=1),
    lambda m, F: F.nll_loss(o(m, 3, 4), i(m, 0, 1, 4)),
    lambda m, F: F.nll_loss(o(m, 3, 4), i(m, 0, 1)),
    lambda m, F: F.mse_loss(i(m, 1, 2), i(m, 1, 2)),
    lambda m, F: F.mse_loss(o(m, 3), o(m, 3), reduction="max"),
    lambda m, F: F.mse_loss(o(m, 3), o(m, 3), weight=o(m, 2)),
    lambda m, F: F.smooth_l1_loss(o(m, 3), o(m, 3), beta=-1.0),
    lambda m, F: F.huber_loss(o(m, 3), o(m, 3), delta=0.0),
    lambda m, F: F.binary_cross_entropy(2 * o(m, 3), o(m, 3)),
    lambda m, F: F.binary_cross_entropy(o(m, 3, 4), o(m, 4)),
    lambda m, F: F.binary_cross_entropy_with_logits(o(m, 3, 4), o(m, 4)),
    lambda m, F: F.gaussian_nll_loss(o(m, 3), o(m, 3), -o(m, 3)),
    lambda m, F: F.gaussian_nll_loss(o(m, 3), o(m, 3), o(m, 2)),
    lambda m, F: F.margin_ranking_loss(o(m, 3, 4), o(m, 4), o(m, 3, 4)),
    lambda m, F: F.multi_margin_loss(o(m, 3, 4), i(m, 0, 1, 4)),
    lambda m, F: F.multi_margin_loss(o(m, 3, 4), i(m, 0, 1, 2), p=3),
    lambda m, F: F.multilabel_margin_loss(o(m, 2, 3), i(m, 0, 1, 2, 0, 1, 3, shape=(2, 3))),
    lambda m, F: F.cosine_embedding_loss(o(m, 3, 4), o(m, 3, 4), o(m, 2)),
    lambda m, F: F.triplet_margin_loss(o(m, 3, 4), o(m, 4), o(m, 3, 4)),
    lambda m, F: F.triplet_margin_loss(o(m, 3, 4), o(m, 3, 4), o(m, 3, 4), margin=-1.0),
    lambda m, F: F.ctc_loss(o(m, 5, 2, 3), i(m, 1, 1, shape=(2, 1)), i(m, 5, 6), i(m, 1, 1)),
    lambda m, F: F.ctc_loss(o(m, 5, 2, 3), i(m, 1, 1, shape=(2, 1)), i(m, 5, 5), i(m, 1, 2)),
    lambda m, F: F.ctc_loss(o(m, 5, 2, 3), i(m, 1, 1, shape=(2, 1)), i(m, 5, 5), i(m, 1, 1), blank=3),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")  # both warn about some arguments before they raise
@pytest.mark.parametrize("call", REFUSED, ids=lambda call: f"line {call.__code__.co_firstlineno}")
def test_refused_alike(call: Call) -> None:
    with pytest.raises((RuntimeError, ValueError, TypeError, IndexError)) as theirs:
        call(torch, torch.nn.functional)
    with pytest.raises(tl.errors.TallowError) as ours:
        call(tl, tl.nn.functional)
    builtin = next(c for c in (IndexError, TypeError, ValueError, RuntimeError) if issubclass(theirs.type, c))
    assert issubclass(ours.type, builtin), f"PyTorch: {theirs.value!r}\ntallow: {ours.value!r}"
