"""NCCL, through CuPy: how arrays of GPUs travel between the processes of a group, each of which has one.

Everything runs on a stream of its own, beside what the GPU computes. Waiting for it makes the current stream wait, not
the program. A process that dies leaves the others' streams waiting; mpiexec ends them.
"""

from __future__ import annotations

import platform
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import cupy
import numpy as np
from cupy.cuda import nccl

from tallow import dtypes
from tallow.distributed.mpi import MpiEngine
from tallow.distributed.reduce_op import ReduceOp
from tallow.distributed.work import Work
from tallow.errors import ArgumentError, DeviceError, DtypeError

# What NCCL reduces, by its name of it. Sixteen-bit floats stay as they are.
NUMBERS = {
    dtypes.float64: "FLOAT64",
    dtypes.float32: "FLOAT32",
    dtypes.float16: "FLOAT16",
    dtypes.bfloat16: "BFLOAT16",
    dtypes.int64: "INT64",
    dtypes.int32: "INT32",
    dtypes.int8: "INT8",
    dtypes.uint32: "UINT32",
    dtypes.uint8: "UINT8",
    dtypes.bool: "UINT8",
}
OPERATIONS = {op: op.name for op in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.MIN, ReduceOp.MAX)}
OPERATIONS[ReduceOp.PRODUCT] = "PROD"
LOGICAL = {ReduceOp.SUM: "MAX", ReduceOp.BOR: "MAX", ReduceOp.PRODUCT: "MIN", ReduceOp.BAND: "MIN"}
LOGICAL |= {ReduceOp.MAX: "MAX", ReduceOp.MIN: "MIN"}


class NcclWork(Work):
    """What was put on the stream, up to an event.

    Args:  arrays: kept alive until it is done
    """

    def __init__(self, event: Any, arrays: tuple[Any, ...]) -> None:
        super().__init__()
        self.event = event
        self.arrays = arrays

    def _poll(self) -> bool:
        return bool(self.event.done)

    def _complete(self, timeout: timedelta | None) -> None:
        """The timeout does not count: the program goes on at once."""
        cupy.cuda.get_current_stream().wait_event(self.event)


class NcclEngine:
    """Moves arrays of GPUs between the ranks of a group, as `MpiEngine` does those of the CPU.

    Args:  mpi: of the same group; over it the ranks find each other

    Raises:  DeviceError without NCCL, or where two ranks of a machine are on one GPU
    """

    device_type = "cuda"

    def __init__(self, mpi: MpiEngine) -> None:
        if not nccl.available:
            raise DeviceError(
                "CuPy does not find NCCL", mend="pip install nvidia-nccl-cu12 or nvidia-nccl-cu13, as your CuPy is"
            )
        self.rank, self.size = mpi.rank, mpi.size
        _check_gpus(mpi)
        key = np.zeros(128, np.uint8)
        if self.rank == 0:
            key[:] = np.frombuffer(nccl.get_unique_id(), np.uint8)
        mpi.broadcast(key, 0).wait()
        self.comm = nccl.NcclCommunicator(self.size, key.tobytes(), self.rank)
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._under_way: deque[NcclWork] = deque()

    def close(self) -> None:
        self.stream.synchronize()
        self.comm.destroy()

    def all_reduce(self, array: Any, op: ReduceOp) -> Work:
        number, operation = _reduction(array, op)
        return self._start(
            lambda stream: self.comm.allReduce(_at(array), _at(array), array.size, number, operation, stream), array
        )

    def reduce(self, array: Any, root: int, op: ReduceOp) -> Work:
        number, operation = _reduction(array, op)
        return self._start(
            lambda stream: self.comm.reduce(_at(array), _at(array), array.size, number, operation, root, stream), array
        )

    def reduce_scatter(self, output: Any, array: Any, op: ReduceOp) -> Work:
        number, operation = _reduction(array, op)
        return self._start(
            lambda stream: self.comm.reduceScatter(_at(array), _at(output), output.size, number, operation, stream),
            output,
            array,
        )

    def broadcast(self, array: Any, root: int) -> Work:
        return self._start(
            lambda stream: self.comm.broadcast(_at(array), _at(array), array.nbytes, nccl.NCCL_UINT8, root, stream),
            array,
        )

    def all_gather(self, output: Any, array: Any) -> Work:
        return self._start(
            lambda stream: self.comm.allGather(_at(array), _at(output), array.nbytes, nccl.NCCL_UINT8, stream),
            output,
            array,
        )

    def gather(self, output: Any | None, array: Any, root: int) -> Work:
        def run(stream: int) -> None:
            nccl.groupStart()
            self.comm.send(_at(array), array.nbytes, nccl.NCCL_UINT8, root, stream)
            for rank in () if output is None else range(self.size):
                self.comm.recv(_at(output) + rank * array.nbytes, array.nbytes, nccl.NCCL_UINT8, rank, stream)
            nccl.groupEnd()

        return self._start(run, output, array)

    def scatter(self, array: Any, given: Any | None, root: int) -> Work:
        def run(stream: int) -> None:
            nccl.groupStart()
            for rank in () if given is None else range(self.size):
                self.comm.send(_at(given) + rank * array.nbytes, array.nbytes, nccl.NCCL_UINT8, rank, stream)
            self.comm.recv(_at(array), array.nbytes, nccl.NCCL_UINT8, root, stream)
            nccl.groupEnd()

        return self._start(run, array, given)

    def send(self, array: Any, to: int, tag: int) -> Work:
        """The tag does not travel: NCCL keeps messages in their order."""
        return self._start(lambda stream: self.comm.send(_at(array), array.nbytes, nccl.NCCL_UINT8, to, stream), array)

    def receive(self, array: Any, source: int | None, tag: int) -> Work:
        if source is None:
            raise ArgumentError("recv: NCCL receives from a rank that is named", mend="pass src")
        return self._start(
            lambda stream: self.comm.recv(_at(array), array.nbytes, nccl.NCCL_UINT8, source, stream), array
        )

    def _start(self, run: Callable[[int], None], *arrays: Any) -> NcclWork:
        """Put on the stream what `run` does, after what the current stream has been given so far."""
        self.stream.wait_event(cupy.cuda.get_current_stream().record())
        run(self.stream.ptr)
        work = NcclWork(self.stream.record(), arrays)
        # CuPy would give the memory of an array that nobody holds to the next one, though NCCL still reads it.
        self._under_way.append(work)
        while self._under_way[0].event.done and len(self._under_way) > 1:
            self._under_way.popleft()
        return work


def _at(array: Any) -> int:
    """Where it begins."""
    return int(array.data.ptr)


def _reduction(array: Any, op: ReduceOp) -> tuple[int, int]:
    """NCCL's numbers for the dtype and the operation.

    Raises:  DtypeError for what it does not reduce
    """
    dtype = dtypes.dtype_of(array)
    operation = (LOGICAL if dtype is dtypes.bool else OPERATIONS).get(op)
    if dtype not in NUMBERS or operation is None or (op is ReduceOp.AVG and not dtype.is_floating_point):
        raise DtypeError(f"NCCL has no ReduceOp.{op.name} for tensors of {dtype}", mend="move them to the CPU")
    return getattr(nccl, f"NCCL_{NUMBERS[dtype]}"), getattr(nccl, f"NCCL_{operation}")


def _check_gpus(mpi: MpiEngine) -> None:
    """Every rank has a GPU of its own. NCCL itself reports this, if at all, by waiting for ever."""
    device = cupy.cuda.Device()
    mine = np.frombuffer(device.pci_bus_id.encode().ljust(32) + platform.node().encode()[:96].ljust(96), np.uint8)
    everybodys = np.empty((mpi.size, mine.size), np.uint8)
    mpi.all_gather(everybodys, mine).wait()
    others = [rank for rank in range(mpi.size) if rank != mpi.rank and (everybodys[rank] == mine).all()]
    if others:
        raise DeviceError(
            f"ranks {mpi.rank} and {others[0]} are both on GPU {device.id}",
            mend="tl.cuda.set_device(int(os.environ['LOCAL_RANK'])) before the first operation",
        )
