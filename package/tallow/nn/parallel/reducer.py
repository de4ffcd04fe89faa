"""Averaging gradients in buckets, while backward goes on.

Parameters are put into buckets in the order in which their gradients are expected: the last first. A bucket is sent off
when its gradients are there and those before it have been, so that all processes send theirs in one order.

Source:  Li et al. 2020, arXiv:2006.15704, section 3.2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import ref

import numpy as np

from tallow import devices
from tallow.autograd.api import queue_callback
from tallow.distributed.groups import ProcessGroup
from tallow.distributed.reduce_op import ReduceOp
from tallow.distributed.work import Work
from tallow.dtypes import Array
from tallow.errors import DistributedError
from tallow.tensor import Tensor, wrap

FIRST_BUCKET_BYTES = 2**20  # small, so that sending begins early


class Bucket:
    """Gradients of one dtype on one device, side by side in one array."""

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
        self.missing = set(range(len(self.parameters)))

    def fill(self, place: int) -> None:
        """Take over a parameter's gradient; zero if it has none."""
        grad, view = self.parameters[place].grad, self.views[place]
        if grad is None:
            view[...] = 0
        elif grad.array is not view:
            view[...] = grad.array
        self.missing.discard(place)

    def hand_back(self, as_views: bool, used: Array) -> None:
        """Give the parameters the averages, but for those that nobody has used."""
        for parameter, view, was_used in zip(self.parameters, self.views, used, strict=True):
            if not was_used:
                continue
            if as_views or parameter.grad is None:
                parameter.grad = wrap(view if as_views else view.copy())
            else:
                parameter.grad.array[...] = view
        self.work = None


class Reducer:
    """Averages the gradients of `named` over the group at each backward.

    Args:
        bucket_bytes: a bucket is closed when it has so many.
        allow_unused: take parameters without a gradient for zeros, and leave those alone that no process has used.
        as_views: let `.grad` be a part of the bucket.
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
        self.sent = 0  # how many buckets have been, in this pass
        self._running = False
        mine = ref(self)  # the parameters may outlive the reducer, and must not keep it

        def hook(bucket: int, place: int) -> Callable[[Tensor], None]:
            def arrived(_parameter: Tensor) -> None:
                reducer = mine()
                if reducer is not None and reducer._enabled:
                    reducer._arrived(reducer.buckets[bucket], place)

            return arrived

        for i, bucket in enumerate(self.buckets):
            for place, parameter in enumerate(bucket.parameters):
                parameter.register_post_accumulate_grad_hook(hook(i, place))

    def prepare(self, enabled: bool) -> None:
        """Before each forward: whether the backward that follows is to average."""
        self._enabled = enabled
        self._running = False  # after a backward that failed

    def _arrived(self, bucket: Bucket, place: int) -> None:
        """The gradient of a parameter in this pass is complete."""
        if not self._running:
            self._running, self.sent = True, 0
            for each in self.buckets:
                each.expect_all()
            queue_callback(self._finish)
        if place not in bucket.missing:
            raise DistributedError(
                f"DistributedDataParallel: {bucket.names[place]} got its gradient twice in one backward",
                mend="use a parameter in one checkpointed segment only",
            )
        bucket.fill(place)
        self._send_what_is_full()

    def _send_what_is_full(self) -> None:
        for bucket in self.buckets[: self.sent]:
            if bucket.work is not None:
                bucket.work.is_completed()  # MPI goes on with what was started only when it is asked
        while self.sent < len(self.buckets) and not self.buckets[self.sent].missing:
            bucket = self.buckets[self.sent]
            engine = self.group.engine(devices.device_type_of(bucket.flat))
            bucket.work = engine.all_reduce(bucket.flat, ReduceOp.AVG)
            self.sent += 1

    def _finish(self) -> None:
        """At the end of backward."""
        self._running = False
        used = [
            np.array([place not in bucket.missing for place in range(len(bucket.views))]) for bucket in self.buckets
        ]
        if not all(each.all() for each in used):
            self._take_unused_for_zeros()
        if self.allow_unused:
            used = self._used_by_anybody(used)
        for bucket, flags in zip(self.buckets, used, strict=True):
            assert bucket.work is not None
            bucket.work.wait()
            bucket.hand_back(self.as_views, flags)

    def _take_unused_for_zeros(self) -> None:
        unused = [bucket.names[place] for bucket in self.buckets for place in sorted(bucket.missing)]
        if not self.allow_unused:
            raise DistributedError(
                f"DistributedDataParallel: {len(unused)} parameters got no gradient: {', '.join(unused[:8])}",
                mend="use all parameters in the loss of every process, or pass find_unused_parameters=True",
            )
        for bucket in self.buckets:
            for place in sorted(bucket.missing):
                bucket.fill(place)
        self._send_what_is_full()

    def _used_by_anybody(self, used: list[Array]) -> list[Array]:
        flags = np.concatenate(used)
        self.group.mpi.all_reduce(flags, ReduceOp.MAX).wait()
        return np.split(flags, np.cumsum([len(each) for each in used])[:-1])


def split(named: Mapping[str, Tensor], bucket_bytes: int) -> list[dict[str, Tensor]]:
    """The parameters of each bucket, last first; a bucket has one dtype and one device."""
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
