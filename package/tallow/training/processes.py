"""The processes that train one model together: those that MPI has started, or this one alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import cuda
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
from tallow.distributed.rendezvous import names_a_job
from tallow.tensor import wrap


class Processes:
    """Where this process stands among the others, and what they tell each other.

    Attributes:
        rank: of this process, from 0 on.
        size: how many there are.
    """

    def __init__(self) -> None:
        self.rank, self.size = (get_rank(), get_world_size()) if is_initialized() else (0, 1)

    @classmethod
    def join(cls) -> Processes:
        """Join the others, if mpiexec has started any.

        Raises:  MissingPackageError, DeviceError when it has and MPI cannot be used; ArgumentError when torchrun has
                 started them, each of which would train alone
        """
        if (is_launched() or names_a_job()) and not is_initialized():
            init_process_group()
        return cls()

    def device(self, name: str) -> str:
        """The device of this process: where several share a machine, and its index is not given, a GPU for each."""
        if name == "cuda" and self.size > 1:
            name = f"cuda:{world().neighbours.rank}"
            cuda.set_device(name)
        return name

    def wait(self) -> None:
        """Until all have come here: a process that ends with an error, or by Ctrl-C, may end the others."""
        if self.size > 1:
            barrier()

    def mean(self, values: list[float]) -> list[float]:
        """Of everybody's numbers, one by one."""
        return [total / self.size for total in self.sum(values)]

    def sum(self, values: list[float]) -> list[float]:
        if self.size == 1:
            return values
        numbers = np.array(values, np.float64)
        all_reduce(wrap(numbers), ReduceOp.SUM)
        return numbers.tolist()

    def tell(self, value: Any) -> Any:
        """Rank 0's value: numbers, strings, None, and containers of them."""
        told = [value]
        if self.size > 1:
            broadcast_object_list(told)
        return told[0]

    def tell_array(self, array: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int32] | None:
        """Rank 0's array, or None; the others pass None."""
        length = self.tell(None if array is None else array.size)
        if length is None or self.size == 1:
            return array
        array = np.empty(length, np.int32) if array is None else array
        broadcast(wrap(array), 0)
        return array
