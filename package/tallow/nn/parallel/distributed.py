"""DistributedDataParallel: the same model in every process, each with its part of the batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tallow import devices
from tallow.autograd.modes import mode, no_grad
from tallow.distributed import ProcessGroup, broadcast
from tallow.distributed.groups import member
from tallow.errors import ArgumentError, DeviceError, DistributedError
from tallow.nn.module import Module
from tallow.nn.parallel.reducer import Reducer
from tallow.tensor import Tensor

BUCKET_MB = 25


class DistributedDataParallel(Module):
    """Trains a model in several processes as one process would with all of the batch.

    Every process has a copy, which begins with the parameters and buffers of the group's first rank. In backward the
    gradients are averaged, in buckets, while those of earlier layers are still being computed; after it `.grad` is the
    same everywhere, so the optimizers' steps are too. With a loss that is a mean, and parts of one size, that is the
    gradient of the whole batch's loss.

    Args:
        module: on the CPU, or on the GPU of this process.
        device_ids: the one GPU that the module is on, if any; inputs go there.
        broadcast_buffers: take the first rank's buffers over before each forward in training.
        init_sync: begin with the first rank's parameters and buffers.
        process_group: whose gradients are averaged; None means all processes.
        bucket_cap_mb: how much is averaged at a time, in MiB; 25, but less at first.
        find_unused_parameters: allow some parameters to get no gradient. Without it that is an error.
        gradient_as_bucket_view: let `.grad` be a part of the bucket, which saves the memory and a copy.
        static_graph: says that parameters without a gradient are the same ones in every step, which allows them too.
        output_device, dim, check_reduction: without effect, as in PyTorch with one device in each process.

    Raises:  ArgumentError before init_process_group, or for a module without parameters to train; DistributedError when
             the processes have different models; in backward, for parameters without a gradient
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        self.process_group = member(process_group)
        if device_ids is not None and len(device_ids) > 1:
            raise DeviceError(
                f"DistributedDataParallel: {len(device_ids)} devices", mend="start a process for each, with one device"
            )
        self.module = module
        self.device_ids = list(device_ids or ())
        self.device = self._place(module)
        self.broadcast_buffers = broadcast_buffers
        self.require_backward_grad_sync = True
        trained = {name: each for name, each in module.named_parameters() if each.requires_grad}
        if not trained:
            raise ArgumentError("DistributedDataParallel: the module has no parameter that requires a gradient")
        self._check_models_are_alike(module)
        if init_sync:
            self._take_over([*module.parameters(), *module.buffers()])
        bucket_mb = BUCKET_MB if bucket_cap_mb is None else bucket_cap_mb
        self.reducer = Reducer(
            trained,
            self.process_group,
            int(bucket_mb * 2**20),
            find_unused_parameters or static_graph,
            gradient_as_bucket_view,
        )

    def _place(self, module: Module) -> devices.device | None:
        """The device that inputs go to; None for where they are."""
        if not self.device_ids:
            return None
        first = self.device_ids[0]
        device = devices.device("cuda", first) if isinstance(first, int) else devices.device(first)
        module.to(device)
        return device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        self.reducer.prepare(self.require_backward_grad_sync and mode.recording)
        if self.broadcast_buffers and self.training and self.require_backward_grad_sync:
            self._take_over([*self.module.buffers()])
        if self.device is not None:
            inputs = tuple(x.to(self.device) if isinstance(x, Tensor) else x for x in inputs)
            kwargs = {name: x.to(self.device) if isinstance(x, Tensor) else x for name, x in kwargs.items()}
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it gradients add up in each process; the first backward of a forward after it averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _take_over(self, tensors: list[Tensor]) -> None:
        """Copy the tensors of the group's first rank."""
        first = self.process_group.ranks[0]
        with no_grad():
            for work in [broadcast(each.detach(), first, self.process_group, async_op=True) for each in tensors]:
                assert work is not None
                work.wait()

    def _check_models_are_alike(self, module: Module) -> None:
        """Otherwise the gradients of one process would be added to those of other parameters in another."""
        said = [
            (name, tuple(each.shape), str(each.dtype), each.device.type)
            for name, each in module.state_dict(keep_vars=True).items()
        ]
        mine = np.frombuffer(hashlib.sha256(repr(said).encode()).digest(), np.uint8).copy()
        all_of_them = np.empty((self.process_group.size(), mine.size), np.uint8)
        self.process_group.mpi.all_gather(all_of_them, mine).wait()
        other = (all_of_them != all_of_them[0]).any(axis=1)
        if other.any():
            ranks = self.process_group.ranks
            raise DistributedError(
                f"DistributedDataParallel: the model of ranks {[ranks[i] for i in other.nonzero()[0]]} has other "
                f"names, shapes, dtypes or devices than that of rank {ranks[0]}",
                mend="make the same model in every process",
            )
