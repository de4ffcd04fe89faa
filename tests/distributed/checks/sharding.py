"""Sharded parameters and optimizer state: steps equal those of one process with the whole batch."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tallow as tl
import tallow.distributed as dist
from checks.training import TOLERANCE, data_of_mlp, loss_of, mlp, own_part
from tallow.distributed.optim import ZeroRedundancyOptimizer
from tallow.errors import ArgumentError, GraphError
from tallow.nn.parallel.distributed import DistributedDataParallel
from tallow.nn.parallel.sharded import FullyShardedDataParallel


def only_linear(module: tl.nn.Module, recurse: bool, nonwrapped_numel: int) -> bool:
    return recurse or isinstance(module, tl.nn.Linear)


def pair(**options: object) -> tuple[tl.nn.Module, FullyShardedDataParallel]:
    tl.manual_seed(0)
    alone = mlp()
    tl.manual_seed(dist.get_rank())
    return alone, FullyShardedDataParallel(mlp(), sync_module_states=True, **options)


def assert_equal_states(alone: tl.nn.Module, together: FullyShardedDataParallel) -> None:
    state = together.state_dict()
    assert list(state) == list(alone.state_dict())
    for name, value in alone.state_dict().items():
        np.testing.assert_allclose(state[name].numpy(), value.numpy(), atol=TOLERANCE, err_msg=name)


def check_steps_with_parts(folder: Path) -> None:
    x, y = data_of_mlp()
    for policy in (None, only_linear):
        alone, together = pair(auto_wrap_policy=policy)
        counts = sum(p.numel() for p in together.parameters()), sum(p.numel() for p in alone.parameters())
        assert counts[0] < counts[1] / dist.get_world_size() + 8  # each rank has its part, padded
        optimizers = [tl.optim.AdamW(m.parameters(), lr=0.01) for m in (alone, together)]
        for _ in range(3):
            loss_of(alone, x, y).backward()
            loss_of(together, own_part(x), own_part(y)).backward()
            norms = tl.nn.utils.clip_grad_norm_(alone.parameters(), 0.3), together.clip_grad_norm_(0.3)
            assert norms[1].item() == pytest.approx(norms[0].item(), rel=1e-5)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        assert_equal_states(alone, together)
        np.testing.assert_allclose(together(x).detach().numpy(), alone(x).detach().numpy(), atol=TOLERANCE)


def check_states_load_and_whole_parameters_can_be_written(folder: Path) -> None:
    _, together = pair(auto_wrap_policy=only_linear)
    tl.manual_seed(5)
    other = mlp()
    together.load_state_dict(other.state_dict())
    assert_equal_states(other, together)
    with together.unsharded(), tl.no_grad():
        for p in together.module.parameters():
            p.fill_(2.0)
    assert all((value == 2).all() for value in together.state_dict().values())
    with together.unsharded(writeback=False), tl.no_grad():
        for p in together.module.parameters():
            p.fill_(3.0)
    assert all((value == 2).all() for value in together.state_dict().values())


def check_different_kinds_of_parameters_are_refused(folder: Path) -> None:
    module = mlp()
    next(module.parameters()).requires_grad_(False)
    with pytest.raises(ArgumentError, match="frozen"):
        FullyShardedDataParallel(module)


def check_zero_redundancy(folder: Path) -> None:
    x, y = data_of_mlp()
    tl.manual_seed(0)
    alone, model = mlp(), mlp()
    model.load_state_dict(alone.state_dict())
    together = DistributedDataParallel(model)
    one = tl.optim.Adam(alone.parameters(), lr=0.01)
    many = ZeroRedundancyOptimizer(together.parameters(), partial(tl.optim.Adam), lr=0.01)
    own = sum(p.numel() for group in many.optim.param_groups for p in group["params"])
    assert own < sum(p.numel() for p in alone.parameters())
    for step in range(4):
        loss_of(alone, x, y).backward()
        loss_of(together, own_part(x), own_part(y)).backward()
        for optimizer in (one, many):
            optimizer.param_groups[0]["lr"] = 0.01 / (step + 1)
            optimizer.step()
            optimizer.zero_grad()
        if step == 1:  # continue from a file
            with pytest.raises(GraphError, match="consolidated"):
                many.state_dict()
            many.consolidate_state_dict(to=0)
            if dist.get_rank() == 0:
                state = many.state_dict()
                assert state["state"].keys() == one.state_dict()["state"].keys()
                tl.save(state, folder / "zero.pt")
            dist.barrier()
            many = ZeroRedundancyOptimizer(together.parameters(), tl.optim.Adam, lr=1.0)
            many.load_state_dict(tl.load(folder / "zero.pt"))
    for a, b in zip(alone.parameters(), together.parameters(), strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), atol=TOLERANCE)


def check_meshes_and_subgroups(folder: Path) -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    mesh = dist.init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("replicate", "shard"))
    assert mesh.get_coordinate() == [rank // 2, rank % 2]
    assert mesh["shard"].get_local_rank() == rank % 2
    assert dist.get_process_group_ranks(mesh.get_group("shard")) == [rank - rank % 2, rank - rank % 2 + 1]
    assert mesh.get_group(0).size() == mesh.size(0) == size // 2
    line = dist.init_device_mesh("cpu", (size,))
    assert line.get_group().size() == size
    assert line.mesh.tolist() == list(range(size))
    with pytest.raises(ArgumentError, match="places"):
        dist.init_device_mesh("cpu", (size + 1,))
    own, groups = dist.new_subgroups(2)
    assert len(groups) == size // 2
    total = tl.tensor([float(rank)])
    dist.all_reduce(total, group=own)
    assert total.item() == 2 * (rank - rank % 2) + 1
    with pytest.raises(ArgumentError, match="divisible"):
        dist.new_subgroups(size + 1)


def check_lists(folder: Path) -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    if rank == 0:
        dist.send_object_list([{"a": 1}, "b"], dst=1)
    elif rank == 1:
        received: list[object] = [None, None]
        assert dist.recv_object_list(received) == 0
        assert received == [{"a": 1}, "b"]
    tensors = [tl.tensor([1.0]), tl.tensor([float(rank), 2.0])]
    dist.all_reduce_coalesced(tensors)
    assert [t.tolist() for t in tensors] == [[size], [size * (size - 1) / 2, 2 * size]]
    outputs = [[tl.zeros(1), tl.zeros(2)] for _ in range(size)]
    work = dist.all_gather_coalesced(outputs, [tl.full((1,), float(rank)), tl.full((2,), -float(rank))], async_op=True)
    assert work is not None
    work.wait()
    assert [[t.tolist() for t in row] for row in outputs] == [[[r], [-r, -r]] for r in range(size)]
