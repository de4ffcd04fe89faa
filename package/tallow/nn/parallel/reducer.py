"""Average gradients in buckets while backward runs.

Parameters are assigned to buckets in the order in which their gradients are expected: the last first. A bucket is
reduced when all its gradients are complete and the buckets before it have been sent, so that all processes reduce
buckets in the same order.

Source:  Li et al. 2020, arXiv:2006.15704, section 3.2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import ref

import numpy as np

from tallow import devices
from tallow.autograd.api import queue_callback
from tallow.core.tensor import Tensor, wrap
from tallow.distributed.groups import ProcessGroup
from tallow.distributed.reduce_op import ReduceOp
from tallow.distributed.work import Work
from tallow.dtypes import Array
from tallow.errors import DistributedError

FIRST_BUCKET_BYTES = 2**20  # small, so that communication starts early


class Bucket:
    """Gradients of one dtype on one device, contiguous in one array."""

    def __init__(self, named: Mapping[str, Tensor]) -> None:
        self.names = list(named)
        self.parameters = list(named.values())
        first = self.parameters[0].array
        xp = devices.array_module(first)
        self.flat: Array = devices.move(
            xp.zeros(sum(each.numel() for each in self.parameters), first.dtype), devices.device_of(first)
        )
        self.views: list[Array] = []
        start = 0
        for each in self.parameters:
            self.views.append(self.flat[start : start + each.numel()].reshape(each.shape))
            start += each.numel()
        self.expect_all()
        self.work: Work | None = None

    def expect_all(self) -> None:
        """Mark every gradient as missing, at the start of a backward pass."""
        self.missing = set(range(len(self.parameters)))

    def fill(self, index: int) -> None:
        """Copy a parameter's gradient into the bucket; zeros if it has none."""
        grad, view = self.parameters[index].grad, self.views[index]
        if grad is None:
            view[...] = 0
        elif grad.array is not view:
            view[...] = grad.array
        self.missing.discard(index)

    def assign_gradients(self, as_views: bool, used: Array) -> None:
        """Set `.grad` to the averages, except for parameters that no process has used."""
        for parameter, view, was_used in zip(self.parameters, self.views, used, strict=True):
            if not was_used:
                continue
            if as_views or parameter.grad is None:
                parameter.grad = wrap(view if as_views else view.copy())
            else:
                parameter.grad.array[...] = view
        self.work = None


class Reducer:
    """Averages the gradients of `named` over the group in each backward.

    Args:
        bucket_bytes: size at which a bucket is full.
        allow_unused: treat missing gradients as zeros, and skip parameters that no process has used.
        as_views: make `.grad` a view of the bucket.
    """

    def __init__(
        self,
        named: Mapping[str, Tensor],
        group: ProcessGroup,
        bucket_bytes: int,
        allow_unused: bool = False,
        as_views: bool = False,
    ) -> None:
        self.group = group
        self.allow_unused = allow_unused
        self.as_views = as_views
        self._enabled = True
        self.buckets = [Bucket(part) for part in split(named, bucket_bytes)]
        self.sent = 0  # number of buckets sent in this pass
        self._running = False
        weak_self = ref(self)  # the parameters may outlive the reducer, and must not keep it alive

        def hook(bucket: int, index: int) -> Callable[[Tensor], None]:
            def on_gradient(_parameter: Tensor) -> None:
                reducer = weak_self()
                if reducer is not None and reducer._enabled:
                    reducer._on_gradient(reducer.buckets[bucket], index)

            return on_gradient

        for i, bucket in enumerate(self.buckets):
            for index, parameter in enumerate(bucket.parameters):
                parameter.register_post_accumulate_grad_hook(hook(i, index))

    def prepare(self, enabled: bool) -> None:
        """Set, before each forward, whether the following backward averages gradients."""
        self._enabled = enabled
        self._running = False  # a previous backward may have failed

    def _on_gradient(self, bucket: Bucket, index: int) -> None:
        """Handle the complete gradient of a parameter."""
        if not self._running:
            self._running, self.sent = True, 0
            for each in self.buckets:
                each.expect_all()
            queue_callback(self._finish)
        if index not in bucket.missing:
            raise DistributedError(
                f"DistributedDataParallel: {bucket.names[index]} got its gradient twice in one backward",
                hint="use a parameter in one checkpointed segment only",
            )
        bucket.fill(index)
        self._send_full_buckets()

    def _send_full_buckets(self) -> None:
        for bucket in self.buckets[: self.sent]:
            if bucket.work is not None:
                bucket.work.is_completed()  # MPI makes progress only when it is polled
        while self.sent < len(self.buckets) and not self.buckets[self.sent].missing:
            bucket = self.buckets[self.sent]
            engine = self.group.engine(devices.device_type_of(bucket.flat))
            bucket.work = engine.all_reduce(bucket.flat, ReduceOp.AVG)
            self.sent += 1

    def _finish(self) -> None:
        """Wait for all buckets and set the gradients, at the end of backward."""
        self._running = False
        used = [
            np.array([index not in bucket.missing for index in range(len(bucket.views))]) for bucket in self.buckets
        ]
        if not all(each.all() for each in used):
            self._fill_unused_with_zeros()
        if self.allow_unused:
            used = self._used_by_any_rank(used)
        for bucket, flags in zip(self.buckets, used, strict=True):
            assert bucket.work is not None
            bucket.work.wait()
            bucket.assign_gradients(self.as_views, flags)

    def _fill_unused_with_zeros(self) -> None:
        unused = [bucket.names[index] for bucket in self.buckets for index in sorted(bucket.missing)]
        if not self.allow_unused:
            raise DistributedError(
                f"DistributedDataParallel: {len(unused)} parameters got no gradient: {', '.join(unused[:8])}",
                hint="use all parameters in the loss of every process, or pass find_unused_parameters=True",
            )
        for bucket in self.buckets:
            for index in sorted(bucket.missing):
                bucket.fill(index)
        self._send_full_buckets()

    def _used_by_any_rank(self, used: list[Array]) -> list[Array]:
        flags = np.concatenate(used)
        self.group.mpi.all_reduce(flags, ReduceOp.MAX).wait()
        return np.split(flags, np.cumsum([len(each) for each in used])[:-1])


def split(named: Mapping[str, Tensor], bucket_bytes: int) -> list[dict[str, Tensor]]:
    """Assign parameters to buckets, last parameter first; each bucket has one dtype and one device."""
    open_buckets: dict[tuple[str, str], dict[str, Tensor]] = {}
    closed: list[dict[str, Tensor]] = []
    limit = min(FIRST_BUCKET_BYTES, bucket_bytes)
    for name, parameter in reversed([*named.items()]):
        kind = str(parameter.dtype), str(parameter.device)
        bucket = open_buckets.setdefault(kind, {})
        bucket[name] = parameter
        if sum(each.nbytes for each in bucket.values()) >= limit:
            closed.append(open_buckets.pop(kind))
            limit = bucket_bytes
    return closed + list(open_buckets.values())
