"""DistributedDataParallel: the same model in every process, each with a part of the batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.distributed import ProcessGroup, broadcast
from tallow.distributed.groups import member
from tallow.errors import ArgumentError, DeviceError, DistributedError
from tallow.nn.module import Module
from tallow.nn.parallel.reducer import Reducer
from tallow.tape.modes import mode, no_grad

BUCKET_MB = 25


class DistributedDataParallel(Module):
    """Train a model in several processes as one process would with the whole batch.

    Every process has a copy, which starts with the parameters and buffers of the group's first rank. Backward averages
    the gradients in buckets while it computes those of earlier layers. Afterwards `.grad` is the same in all processes,
    and so are the optimizer steps. If the loss is a mean and all parts have the same size, the average is the gradient
    of the loss of the whole batch.

    Args:
        module: on the CPU, or on the GPU of this process.
        device_ids: the GPU of the module, if any; inputs are moved there.
        broadcast_buffers: copy the first rank's buffers before each forward in training.
        init_sync: copy the first rank's parameters and buffers at the start.
        process_group: group to average over; None means all processes.
        bucket_cap_mb: size of a bucket in MiB, by default 25; the first bucket is smaller.
        find_unused_parameters: allow parameters without a gradient, which are an error otherwise.
        gradient_as_bucket_view: make `.grad` a view of the bucket, which saves memory and a copy.
        static_graph: the parameters without a gradient are the same in every step; allows them too.
        output_device, dim, check_reduction: no effect, as in PyTorch with one device per process.

    Raises:  ArgumentError before init_process_group, or for a module without trainable parameters; DistributedError if
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
                f"DistributedDataParallel: {len(device_ids)} devices in one process",
                hint="start one process per device",
            )
        self.module = module
        self.device_ids = list(device_ids or ())
        self.device = self._place(module)
        self.broadcast_buffers = broadcast_buffers
        self.require_backward_grad_sync = True
        trainable = {name: each for name, each in module.named_parameters() if each.requires_grad}
        if not trainable:
            raise ArgumentError("DistributedDataParallel: the module has no parameter that requires a gradient")
        self._check_same_model(module)
        if init_sync:
            self._copy_from_first_rank([*module.parameters(), *module.buffers()])
        bucket_mb = BUCKET_MB if bucket_cap_mb is None else bucket_cap_mb
        self.reducer = Reducer(
            trainable,
            self.process_group,
            int(bucket_mb * 2**20),
            find_unused_parameters or static_graph,
            gradient_as_bucket_view,
        )

    def _place(self, module: Module) -> devices.device | None:
        """Move the module to its device, and return the device for inputs; None leaves inputs where they are."""
        if not self.device_ids:
            return None
        first = self.device_ids[0]
        device = devices.device("cuda", first) if isinstance(first, int) else devices.device(first)
        module.to(device)
        return device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        self.reducer.prepare(self.require_backward_grad_sync and mode.recording)
        if self.broadcast_buffers and self.training and self.require_backward_grad_sync:
            self._copy_from_first_rank([*self.module.buffers()])
        if self.device is not None:
            inputs = tuple(x.to(self.device) if isinstance(x, Tensor) else x for x in inputs)
            kwargs = {name: x.to(self.device) if isinstance(x, Tensor) else x for name, x in kwargs.items()}
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate gradients locally within the block; the first backward after it averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _copy_from_first_rank(self, tensors: list[Tensor]) -> None:
        """Overwrite tensors with those of the group's first rank."""
        first = self.process_group.ranks[0]
        with no_grad():
            for work in [broadcast(each.detach(), first, self.process_group, async_op=True) for each in tensors]:
                assert work is not None
                work.wait()

    def _check_same_model(self, module: Module) -> None:
        """Raise unless all processes have the same model: else gradients of different parameters would be averaged."""
        description = [
            (name, tuple(each.shape), str(each.dtype), each.device.type)
            for name, each in module.state_dict(keep_vars=True).items()
        ]
        digest = np.frombuffer(hashlib.sha256(repr(description).encode()).digest(), np.uint8).copy()
        digests = np.empty((self.process_group.size(), digest.size), np.uint8)
        self.process_group.mpi.all_gather(digests, digest).wait()
        differs = (digests != digests[0]).any(axis=1)
        if differs.any():
            ranks = self.process_group.ranks
            raise DistributedError(
                f"DistributedDataParallel: the model of ranks {[ranks[i] for i in differs.nonzero()[0]]} has other "
                f"names, shapes, dtypes or devices than that of rank {ranks[0]}",
                hint="create the same model in every process",
            )
