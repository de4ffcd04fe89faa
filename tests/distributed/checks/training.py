"""DistributedDataParallel: gradients and steps equal those of one process with the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
import tallow.distributed as dist
from tallow.data import DistributedSampler
from tallow.errors import DistributedError
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.nn import functional as F
from tallow.nn.parallel import DistributedDataParallel
from tallow.nn.parallel.reducer import split

TOLERANCE = 1e-6  # float32 sums rounded in a different order
BATCH = 8


def mlp() -> tl.nn.Module:
    return tl.nn.Sequential(tl.nn.Linear(6, 16), tl.nn.Tanh(), tl.nn.Linear(16, 16), tl.nn.ReLU(), tl.nn.Linear(16, 3))


def llama() -> tl.nn.Module:
    return Llama(
        LlamaConfig(
            vocab_size=17,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            tie_word_embeddings=True,
        )
    )


def data_of_mlp() -> tuple[tl.Tensor, tl.Tensor]:
    rng = np.random.default_rng(0)
    return tl.tensor(rng.normal(size=(BATCH, 6)), dtype=tl.float32), tl.tensor(rng.integers(0, 3, BATCH))


def data_of_llama() -> tuple[tl.Tensor, tl.Tensor]:
    tokens = tl.tensor(np.random.default_rng(0).integers(0, 17, (BATCH, 9)))
    return tokens[:, :-1], tokens[:, 1:]


def loss_of(model: Any, x: tl.Tensor, y: tl.Tensor) -> tl.Tensor:
    logits = model(x)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def own_part(x: tl.Tensor) -> tl.Tensor:
    """Return this rank's part of a batch."""
    return x.chunk(dist.get_world_size())[dist.get_rank()]


def pair(make: Callable[[], tl.nn.Module], **options: Any) -> tuple[tl.nn.Module, DistributedDataParallel]:
    """Return a single-process model and the distributed one; both start from rank 0's weights."""
    tl.manual_seed(0)
    alone = make()
    tl.manual_seed(dist.get_rank())
    return alone, DistributedDataParallel(make(), **options)


def assert_same(alone: tl.nn.Module, together: DistributedDataParallel, gradients: bool = False) -> None:
    for (name, one), other in zip(alone.named_parameters(), together.module.parameters(), strict=True):
        a, b = (one.grad, other.grad) if gradients else (one.detach(), other.detach())
        assert a is not None
        assert b is not None
        np.testing.assert_allclose(b.numpy(), a.numpy(), atol=TOLERANCE, err_msg=name)


def assert_gradients_differ(module: tl.nn.Module) -> None:
    """Nothing has averaged the gradients."""
    first = next(module.parameters()).grad
    assert first is not None
    everybodys = [tl.empty_like(first) for _ in range(dist.get_world_size())]
    dist.all_gather(everybodys, first)
    assert not tl.equal(everybodys[0], everybodys[1])


def check_steps_are_those_of_one_process(folder: Path) -> None:
    for make, data in ((mlp, data_of_mlp), (llama, data_of_llama)):
        for options in ({}, {"bucket_cap_mb": 1e-3}, {"bucket_cap_mb": 1e-3, "gradient_as_bucket_view": True}):
            x, y = data()
            alone, together = pair(make, **options)
            steps = [tl.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in (alone, together)]
            for _ in range(3):
                for step in steps:
                    step.zero_grad()
                loss_of(alone, x, y).backward()
                loss_of(together, own_part(x), own_part(y)).backward()
                assert_same(alone, together, gradients=True)
                for step in steps:
                    step.step()
            assert_same(alone, together)


def check_gradients_add_up_without_sync(folder: Path) -> None:
    x, y = data_of_mlp()
    alone, together = pair(mlp)
    (loss_of(alone, x, y) + loss_of(alone, x + 1, y)).backward()
    with together.no_sync():
        loss_of(together, own_part(x), own_part(y)).backward()
    assert_gradients_differ(together.module)
    loss_of(together, own_part(x) + 1, own_part(y)).backward()
    assert_same(alone, together, gradients=True)


def check_blocks_without_sync_nest(folder: Path) -> None:
    x, y = data_of_mlp()
    _, together = pair(mlp)
    with together.no_sync():
        with together.no_sync():
            pass
        loss_of(together, own_part(x), own_part(y)).backward()
    assert_gradients_differ(together.module)


def check_buckets_are_of_one_dtype_and_the_first_is_small(folder: Path) -> None:
    mib = 2**20
    alike = {name: tl.empty(mib // 4) for name in "abcd"}  # 1 MiB each
    assert [list(bucket) for bucket in split(alike, 2 * mib)] == [["d"], ["c", "b"], ["a"]]
    mixed = {"a": tl.empty(2), "b": tl.empty(2, dtype=tl.float64), "c": tl.empty(2)}
    assert [list(bucket) for bucket in split(mixed, mib)] == [["c", "a"], ["b"]]


def check_buckets_are_sent_while_backward_goes_on(folder: Path) -> None:
    x, y = data_of_mlp()
    _, together = pair(mlp, bucket_cap_mb=1e-4)
    sent: list[int] = []

    def watch(module: tl.nn.Module, inputs: Any, output: tl.Tensor) -> None:
        output.register_hook(lambda g: sent.append(together.reducer.sent))

    together.module.get_submodule("0").register_forward_hook(watch)
    loss_of(together, own_part(x), own_part(y)).backward()
    assert 0 < sent[0] < len(together.reducer.buckets)


def check_a_failed_backward_leaves_no_state(folder: Path) -> None:
    x, y = data_of_mlp()
    alone, together = pair(mlp)

    def fail(g: tl.Tensor) -> None:
        raise ArithmeticError("on purpose")

    first = together.module.get_submodule("0")  # their gradients come last

    def watch(module: tl.nn.Module, inputs: Any, output: tl.Tensor) -> None:
        output.register_hook(fail)

    handle = first.register_forward_hook(watch)
    with pytest.raises(ArithmeticError, match="on purpose"):
        loss_of(together, own_part(x), own_part(y)).backward()
    handle.remove()
    together.zero_grad()
    loss_of(alone, x, y).backward()
    loss_of(together, own_part(x), own_part(y)).backward()
    assert_same(alone, together, gradients=True)


class PartlyUsed(tl.nn.Module):
    """Every rank but the first skips `some`; all skip `none`."""

    def __init__(self) -> None:
        super().__init__()
        self.all, self.some, self.none = (tl.nn.Linear(2, 2) for _ in range(3))

    def forward(self, x: tl.Tensor) -> tl.Tensor:
        return self.some(self.all(x)) if dist.get_rank() == 0 else self.all(x)


def check_parameters_without_a_gradient(folder: Path) -> None:
    refusing = DistributedDataParallel(PartlyUsed())
    with pytest.raises(DistributedError, match=r"got no gradient: .*none\.bias"):
        refusing(tl.ones(1, 2)).sum().backward()
    dist.barrier()
    for option in ({"static_graph": True}, {"find_unused_parameters": True}):
        allowing = DistributedDataParallel(PartlyUsed(), **option)
        for _ in range(2):
            allowing.zero_grad()
            allowing(tl.ones(1, 2)).sum().backward()
            choice: Any = allowing.module
            assert choice.none.weight.grad is None
            # One rank has a gradient of 1 for each output, the others have no gradient.
            assert choice.some.bias.grad.tolist() == pytest.approx([1 / dist.get_world_size()] * 2)


def check_buffers_are_rank_0s(folder: Path) -> None:
    _, together = pair(lambda: tl.nn.Sequential(tl.nn.BatchNorm1d(2), tl.nn.Linear(2, 1)))
    for scale in (1.0, 3.0):
        together(tl.tensor([[0.0, 1.0], [2.0, 4.0]]) * scale * (dist.get_rank() + 1)).sum().backward()
    together(tl.ones(2, 2))
    norm: Any = together.module.get_submodule("0")
    momentum, means = 0.1, [np.array([1.0, 2.5]), np.array([3.0, 7.5]), np.array([1.0, 1.0])]
    running = np.zeros(2)
    for mean in means:  # of rank 0's batches; the last batch is the same in all ranks
        running = (1 - momentum) * running + momentum * mean
    np.testing.assert_allclose(norm.running_mean.numpy(), running, rtol=1e-6)


def check_buffers_may_be_each_ranks_own(folder: Path) -> None:
    _, together = pair(lambda: tl.nn.Sequential(tl.nn.BatchNorm1d(2), tl.nn.Linear(2, 1)), broadcast_buffers=False)
    batch = tl.tensor([[0.0, 1.0], [2.0, 4.0]]) * (dist.get_rank() + 1)
    for _ in range(2):
        together(batch)
    norm: Any = together.module.get_submodule("0")
    momentum = 0.1
    np.testing.assert_allclose(
        norm.running_mean.numpy(), (1 - (1 - momentum) ** 2) * batch.numpy().mean(axis=0), rtol=1e-6
    )


def check_other_models_are_noticed(folder: Path) -> None:
    width = 2 if dist.get_rank() == 0 else 3
    with pytest.raises(DistributedError, match=r"model of ranks \[1.*than that of rank 0"):
        DistributedDataParallel(tl.nn.Linear(2, width))


def check_the_sampler_asks_the_group(folder: Path) -> None:
    default = DistributedSampler(range(10), seed=3)
    explicit = DistributedSampler(range(10), dist.get_world_size(), dist.get_rank(), seed=3)
    assert list(default) == list(explicit)


def check_a_deleted_wrapper_does_nothing(folder: Path) -> None:
    x, y = data_of_mlp()
    _, together = pair(mlp)
    module = together.module
    del together
    loss_of(module, own_part(x), own_part(y)).backward()
    assert_gradients_differ(module)
