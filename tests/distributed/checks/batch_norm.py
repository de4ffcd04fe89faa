"""SyncBatchNorm computes in every process what one BatchNorm computes for all batches together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
import tallow.distributed as dist
from tallow.errors import ArgumentError, DistributedError
from tallow.nn.parallel import DistributedDataParallel

CHANNELS = 3
TOLERANCE = 2e-6  # float32 sums rounded in a different order
SHAPES = ((), (5,), (4, 3), (2, 3, 2))  # positions of a sample


def assert_close(mine: tl.Tensor | None, expected: tl.Tensor | None, what: Any, tolerance: float = TOLERANCE) -> None:
    assert mine is not None
    assert expected is not None
    assert mine.dtype is expected.dtype
    np.testing.assert_allclose(
        mine.detach().double().numpy(), expected.detach().double().numpy(), atol=tolerance, err_msg=str(what)
    )


def parts(counts: list[int], positions: tuple[int, ...], dtype: Any = tl.float32) -> list[tl.Tensor]:
    """Return every rank's batch, far from zero so that a difference of large sums would show."""
    rng = np.random.default_rng(0)
    return [tl.tensor(rng.normal(30, 2, (count, CHANNELS, *positions))).to(dtype) for count in counts]


def layers(**options: Any) -> tuple[tl.nn.BatchNorm1d, tl.nn.SyncBatchNorm]:
    """Return the layer for the whole batch in one process, and the one for a part of it."""
    alone, together = tl.nn.BatchNorm1d(CHANNELS, **options), tl.nn.SyncBatchNorm(CHANNELS, **options)
    alone.dims = together.dims  # any number of positions
    for layer in (alone, together):
        if layer.weight is not None:
            tl.nn.init.constant_(layer.weight, 1.5)
        if layer.bias is not None:
            tl.nn.init.constant_(layer.bias, -0.5)
    return alone, together


def train(layer: Any, x: tl.Tensor, g: tl.Tensor) -> tuple[tl.Tensor, tl.Tensor | None]:
    x = x.detach().requires_grad_()
    y = layer(x)
    (y * g).sum().backward()
    return y.detach(), x.grad


def all_reduced(x: tl.Tensor | None) -> tl.Tensor:
    assert x is not None
    total = x.clone()
    dist.all_reduce(total)
    return total


def compare(counts: list[int], positions: tuple[int, ...], tolerance: float = TOLERANCE, **options: Any) -> None:
    alone, together = layers(**options)
    rank, starts = dist.get_rank(), np.cumsum([0, *counts])
    what = (counts, positions, options)
    for step in range(2):
        batches = [x + step for x in parts(counts, positions, options.get("dtype", tl.float32))]
        weights = [tl.cos(x) for x in batches]  # gradients of the output
        y, dx = train(alone, tl.cat(batches), tl.cat(weights))
        own_y, own_dx = train(together, batches[rank], weights[rank])
        own = slice(int(starts[rank]), int(starts[rank + 1]))
        assert_close(own_y, y[own], what, 10 * tolerance)  # the mean is 30
        assert dx is not None
        assert_close(own_dx, dx[own], what, 10 * tolerance)
    for one, other in zip(alone.parameters(), together.parameters(), strict=True):
        assert_close(all_reduced(other.grad), one.grad, what, 50 * tolerance)
    for (name, one), other in zip(alone.named_buffers(), together.buffers(), strict=True):
        assert_close(other, one, (name, *what), 10 * tolerance)


def check_batches_of_one_size(folder: Path) -> None:
    for positions in SHAPES:
        compare([4] * dist.get_world_size(), positions)


def check_batches_of_other_sizes_and_none(folder: Path) -> None:
    n = dist.get_world_size()
    compare([rank + 1 for rank in range(n)], (2,))
    compare([0, *[3] * (n - 1)], (2, 2))
    compare([1] * n, ())  # one value each: together they are enough


def check_options(folder: Path) -> None:
    for options in (
        {"momentum": None},
        {"affine": False},
        {"bias": False},
        {"track_running_stats": False},
        {"eps": 0.1, "momentum": 0.5},
    ):
        compare([3] * dist.get_world_size(), (2,), **options)
    compare([3] * dist.get_world_size(), (2,), 1e-13, dtype=tl.float64)
    compare([3] * dist.get_world_size(), (2,), 0.01, dtype=tl.bfloat16)


def check_evaluation_is_for_each_process_alone(folder: Path) -> None:
    alone, together = layers()
    alone.eval()
    together.eval()
    x = tl.randn(dist.get_rank() + 1, CHANNELS)
    if dist.get_rank() == 0:  # no rank waits for another
        assert_close(together(x), alone(x), "evaluation")
    alone, together = (layer.eval() for layer in layers(track_running_stats=False))
    assert_close(together(x.repeat(2, 1)), alone(x.repeat(2, 1)), "evaluation by the batch")


def check_a_process_group(folder: Path) -> None:
    n, rank = dist.get_world_size(), dist.get_rank()
    groups = [dist.new_group([first, first + 1]) for first in range(0, n, 2)]
    alone, _ = layers()
    model = tl.nn.Sequential(tl.nn.Sequential(layers(bias=False)[1]))
    converted: Any = tl.nn.SyncBatchNorm.convert_sync_batchnorm(model, groups[rank // 2])[0][0]
    assert converted.process_group is groups[rank // 2]
    assert converted.bias is None
    batches = [x + 5 * which for which, x in enumerate(parts([4] * n, ()))]
    first = rank // 2 * 2
    expected = alone(tl.cat(batches[first : first + 2]))[4 * (rank - first) :][:4] + 0.5
    assert_close(converted(batches[rank]), expected, "two of the processes", 10 * TOLERANCE)
    outsider = dist.new_group([0])  # a group of rank 0 only; the others are not in it
    layer = tl.nn.SyncBatchNorm(CHANNELS, process_group=outsider)
    assert_close(layer(batches[rank]), tl.nn.BatchNorm1d(CHANNELS)(batches[rank]), "outside of the group")
    dist.barrier()
    for group in (groups[rank // 2], outsider):
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)


def check_training_with_averaged_gradients(folder: Path) -> None:
    """A network with normalization trains as in one process. With separate statistics per rank it does not."""
    n, rank = dist.get_world_size(), dist.get_rank()
    tl.manual_seed(0)
    x, y = tl.randn(4 * n, 6), tl.randn(4 * n, 2)

    def network() -> tl.nn.Sequential:
        tl.manual_seed(1)
        return tl.nn.Sequential(
            tl.nn.Linear(6, 8), tl.nn.BatchNorm1d(8), tl.nn.ReLU(), tl.nn.Linear(8, 2), tl.nn.BatchNorm1d(2)
        )

    alone = network()
    together = DistributedDataParallel(tl.nn.SyncBatchNorm.convert_sync_batchnorm(network()), bucket_cap_mb=1e-4)
    for model, rows in ((alone, slice(None)), (together, slice(4 * rank, 4 * rank + 4))):
        optimizer = tl.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            tl.nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
            optimizer.step()
    for (name, one), other in zip(alone.state_dict().items(), together.module.state_dict().values(), strict=True):
        assert_close(other, one, name, 10 * TOLERANCE)


def check_mistakes(folder: Path) -> None:
    one = int(dist.get_rank() == 0)
    with pytest.raises(
        ArgumentError, match=r"expected more than 1 value per channel in all \d processes together, got 1"
    ):
        tl.nn.SyncBatchNorm(CHANNELS)(tl.ones(one, CHANNELS))
    with pytest.raises(DistributedError, match="different operations"):
        tl.nn.SyncBatchNorm(CHANNELS + one)(tl.ones(2, CHANNELS + one))
