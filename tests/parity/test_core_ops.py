"""Ops of PyTorch's core without a public function, which the graphs that it exports call."""

from __future__ import annotations

import pytest

import tallow as tl
from tallow.compat.torch import _ops
from tallow.errors import ArgumentError, DtypeError, ShapeError

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.agreement import assert_same  # noqa: E402 - imports torch

CALLS = """
a._softmax_backward_data(x, x.softmax(1), 1, m.float32)
a._log_softmax_backward_data(x, x.log_softmax(1), 1, m.float32)
a._safe_softmax(x.masked_fill(x < .9, -float("inf")), 1)
a.native_dropout_backward(x, x > .5, 2.)
a.max_pool2d_with_indices_backward(x[None, :, :3], x[None], [1, 2], [1, 1], [0, 0], [1, 1], False, j)
a._native_batch_norm_legit(x, None, None, m.zeros(4), m.ones(4), True, .1, 1e-5)
a._native_batch_norm_legit.no_stats(x, m.arange(4.), None, True, .1, 1e-5)
a._batch_norm_with_update(x, None, m.ones(4), m.zeros(4), m.ones(4), .1, 1e-5)
a._batch_norm_no_update(x, None, None, m.zeros(4), m.arange(4.) + 1, .1, 1e-5)
a._upsample_bilinear2d_aa(x[None, None], [2, 3], False, None, None)
a._upsample_bilinear2d_aa(x[None, None], [2, 3], False, 1.7, .9)
a._upsample_bicubic2d_aa(x[None, None], None, True, [.7, .8])
a._unsafe_masked_index(x, m.tensor([True, False]), [m.tensor([1, 99]), m.tensor([0, 4])], 7)
a._unsafe_masked_index_put_accumulate(x, m.tensor([True, False]), [m.tensor([1, 99]), m.tensor([0, 4])], m.ones(2))
a._chunk_cat([x, x[:, :1]], 0, 2)
a._chunk_cat([x, x[:, :3]], -1, 3)
"""


@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_values(call: str) -> None:
    results = []
    for lib, ops in ((tl, _ops.ops), (torch, torch.ops)):
        x = lib.arange(12.0).reshape(3, 4) / 7
        names = {"m": lib, "a": ops.aten, "x": x, "j": lib.tensor([[[0, 2, 2], [4, 5, 7], [9, 9, 11]]])}
        results.append(eval(call, names))
    ours, theirs = results
    assert_same(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("tensors", "dim", "chunks", "error"),
    [
        ([], 0, 1, ArgumentError),
        ([(2, 3)], 0, 0, ArgumentError),
        ([(2, 3), (3, 3)], 1, 2, ShapeError),
        ([(2, 0)], 0, 2, ShapeError),
    ],
)
def test_refused(tensors: list[tuple[int, ...]], dim: int, chunks: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="_chunk_cat expects"):
        _ops.ops.aten._chunk_cat([tl.ones(size) for size in tensors], dim, chunks)
    with pytest.raises(RuntimeError, match="_chunk_cat expects"):
        torch.ops.aten._chunk_cat([torch.ones(size) for size in tensors], dim, chunks)


def test_dtypes_of_chunks() -> None:
    with pytest.raises(DtypeError, match="same dtype"):
        _ops.ops.aten._chunk_cat([tl.ones(2), tl.ones(2, dtype=tl.float64)], 0, 2)


SEGMENTS = {
    "reduce='sum'": "Either lengths or offsets",
    "reduce='mode', lengths=m.tensor([2])": "must be either sum",
    "reduce='sum', lengths=m.tensor([1])": "to sum to",
    "reduce='sum', lengths=m.tensor([3, -1])": "negative value",
    "reduce='sum', lengths=m.tensor([[2]])": "last dimension of lengths",
    "reduce='sum', indices=m.tensor([2])": "indices based reduction",
}


@pytest.mark.parametrize("arguments", SEGMENTS)
def test_segments_refused(arguments: str) -> None:
    for m in (tl, torch):
        with pytest.raises(RuntimeError, match=SEGMENTS[arguments] if m is tl else None):
            eval(f"m.segment_reduce(m.ones(2), {arguments})", {"m": m})
