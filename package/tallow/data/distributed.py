"""Split a dataset among the processes of distributed training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from itertools import cycle, islice

from tallow.data.sampler import Sampler
from tallow.distributed.groups import get_rank, get_world_size
from tallow.errors import ArgumentError
from tallow.functions.sampling import randperm
from tallow.random import Generator


class DistributedSampler(Sampler[int]):
    """Sampler of one process's share: all shares have the same size and cover the dataset.

    All processes draw the same random order from `seed` and the epoch, and each takes every num_replicas-th index. Call
    `set_epoch` before each epoch, or the order stays the same.

    Args:
        num_replicas: number of processes; None means that of the process group.
        rank: rank of this process; None means that in the process group.
        drop_last: if the dataset does not divide evenly, drop samples instead of repeating some.

    Raises:  ArgumentError for a rank beyond num_replicas, or if one of them is None before init_process_group
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ArgumentError(f"invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    @property
    def num_samples(self) -> int:
        """The number of samples per process."""
        share = len(self.dataset) / self.num_replicas
        return math.floor(share) if self.drop_last else math.ceil(share)

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        if self.shuffle:
            order = randperm(n, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        else:
            order = list(range(n))
        return islice(cycle(order), self.rank, self.num_samples * self.num_replicas, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the random order. All processes must set the same one."""
        self.epoch = epoch
