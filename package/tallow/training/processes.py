"""The processes of a training run: those started by MPI, or this one alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import cuda
from tallow.core.tensor import wrap
from tallow.distributed import (
    ReduceOp,
    all_reduce,
    barrier,
    broadcast,
    broadcast_object_list,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
)
from tallow.distributed.mpi import is_launched, world
from tallow.distributed.rendezvous import has_world_size


class Processes:
    """The rank of this process, and communication with the others.

    Attributes:
        rank: rank of this process, from 0.
        size: number of processes.
    """

    def __init__(self) -> None:
        self.rank, self.size = (get_rank(), get_world_size()) if is_initialized() else (0, 1)

    @classmethod
    def join(cls) -> Processes:
        """Join the other processes, if mpiexec started any.

        Raises:  MissingPackageError, DeviceError if there are others but MPI cannot be used; ArgumentError if torchrun
                 started the processes, each of which would train alone
        """
        if (is_launched() or has_world_size()) and not is_initialized():
            init_process_group()
        return cls()

    def device(self, name: str) -> str:
        """Return the device of this process: for "cuda" with several processes, one GPU for each on a machine."""
        if name == "cuda" and self.size > 1:
            name = f"cuda:{world().neighbours.rank}"
            cuda.set_device(name)
        return name

    def wait(self) -> None:
        """Wait for all processes: one that ends with an error or Ctrl-C earlier might end the others."""
        if self.size > 1:
            barrier()

    def mean(self, values: list[float]) -> list[float]:
        """Return the elementwise mean over all processes."""
        return [total / self.size for total in self.sum(values)]

    def sum(self, values: list[float]) -> list[float]:
        """Return the elementwise sum over all processes."""
        if self.size == 1:
            return values
        numbers = np.array(values, np.float64)
        all_reduce(wrap(numbers), ReduceOp.SUM)
        return numbers.tolist()

    def broadcast(self, value: Any) -> Any:
        """Return the value of rank 0: numbers, strings, None, and containers of them."""
        values = [value]
        if self.size > 1:
            broadcast_object_list(values)
        return values[0]

    def broadcast_array(self, array: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int32] | None:
        """Return the array of rank 0, or None. Other ranks pass None."""
        length = self.broadcast(None if array is None else array.size)
        if length is None or self.size == 1:
            return array
        array = np.empty(length, np.int32) if array is None else array
        broadcast(wrap(array), 0)
        return array
