"""Collectives between the GPUs of a group's processes, by NCCL through CuPy.

Each process has its own GPU. Everything runs on a separate stream, concurrently with computation. Waiting for it makes
the current stream wait, not the program. If a process dies, the streams of the others keep waiting; mpiexec ends them.
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

# NCCL's names of the dtypes it reduces. Sixteen-bit floats are not converted.
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
    """Work submitted to the stream, up to an event.

    Args:  arrays: kept alive until the work is done
    """

    def __init__(self, event: Any, arrays: tuple[Any, ...]) -> None:
        super().__init__()
        self.event = event
        self.arrays = arrays

    def _poll(self) -> bool:
        return bool(self.event.done)

    def _complete(self, timeout: timedelta | None) -> None:
        """Make the current stream wait. Returns at once, so the timeout has no effect."""
        cupy.cuda.get_current_stream().wait_event(self.event)


class NcclEngine:
    """Moves arrays between the GPUs of a group's ranks, as `MpiEngine` does on the CPU.

    Args:  mpi: the engine of the same group, which connects the ranks

    Raises:  DeviceError without NCCL, or if two ranks share a GPU
    """

    device_type = "cuda"

    def __init__(self, mpi: MpiEngine) -> None:
        if not nccl.available:
            raise DeviceError(
                "CuPy does not find NCCL", hint="pip install nvidia-nccl-cu12 or nvidia-nccl-cu13, to match your CuPy"
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
        """Wait for the stream, and destroy the communicator."""
        self.stream.synchronize()
        self.comm.destroy()

    def all_reduce(self, array: Any, op: ReduceOp) -> Work:
        """Reduce the arrays of all ranks, in place on each."""
        number, operation = _reduction(array, op)
        return self._start(
            lambda stream: self.comm.allReduce(_ptr(array), _ptr(array), array.size, number, operation, stream),
            array,
        )

    def reduce(self, array: Any, root: int, op: ReduceOp) -> Work:
        """Reduce the arrays of all ranks to that of `root`, in place."""
        number, operation = _reduction(array, op)
        return self._start(
            lambda stream: self.comm.reduce(_ptr(array), _ptr(array), array.size, number, operation, root, stream),
            array,
        )

    def reduce_scatter(self, output: Any, array: Any, op: ReduceOp) -> Work:
        """Reduce the arrays of all ranks, and give each rank its part in `output`."""
        number, operation = _reduction(array, op)
        return self._start(
            lambda stream: self.comm.reduceScatter(_ptr(array), _ptr(output), output.size, number, operation, stream),
            output,
            array,
        )

    def broadcast(self, array: Any, root: int) -> Work:
        """Copy the array of `root` to all ranks."""
        return self._start(
            lambda stream: self.comm.broadcast(_ptr(array), _ptr(array), array.nbytes, nccl.NCCL_UINT8, root, stream),
            array,
        )

    def all_gather(self, output: Any, array: Any) -> Work:
        """Collect the arrays of all ranks in `output`, on every rank."""
        return self._start(
            lambda stream: self.comm.allGather(_ptr(array), _ptr(output), array.nbytes, nccl.NCCL_UINT8, stream),
            output,
            array,
        )

    def gather(self, output: Any | None, array: Any, root: int) -> Work:
        """Collect the arrays of all ranks in `output` on `root`."""

        def run(stream: int) -> None:
            nccl.groupStart()
            self.comm.send(_ptr(array), array.nbytes, nccl.NCCL_UINT8, root, stream)
            for rank in () if output is None else range(self.size):
                self.comm.recv(_ptr(output) + rank * array.nbytes, array.nbytes, nccl.NCCL_UINT8, rank, stream)
            nccl.groupEnd()

        return self._start(run, output, array)

    def scatter(self, array: Any, given: Any | None, root: int) -> Work:
        """Distribute the parts of `given` on `root` to `array` on each rank."""

        def run(stream: int) -> None:
            nccl.groupStart()
            for rank in () if given is None else range(self.size):
                self.comm.send(_ptr(given) + rank * array.nbytes, array.nbytes, nccl.NCCL_UINT8, rank, stream)
            self.comm.recv(_ptr(array), array.nbytes, nccl.NCCL_UINT8, root, stream)
            nccl.groupEnd()

        return self._start(run, array, given)

    def send(self, array: Any, to: int, tag: int) -> Work:
        """Send an array. The tag is not transmitted: NCCL delivers messages in order."""
        return self._start(lambda stream: self.comm.send(_ptr(array), array.nbytes, nccl.NCCL_UINT8, to, stream), array)

    def receive(self, array: Any, source: int | None, tag: int) -> Work:
        """Receive into `array` from the rank `source`. The tag has no effect."""
        if source is None:
            raise ArgumentError("recv: NCCL requires the rank to receive from", hint="pass src")
        return self._start(
            lambda stream: self.comm.recv(_ptr(array), array.nbytes, nccl.NCCL_UINT8, source, stream), array
        )

    def _start(self, run: Callable[[int], None], *arrays: Any) -> NcclWork:
        """Submit `run` to the stream, after the work submitted to the current stream so far."""
        self.stream.wait_event(cupy.cuda.get_current_stream().record())
        run(self.stream.ptr)
        work = NcclWork(self.stream.record(), arrays)
        # CuPy would reuse the memory of an unreferenced array although NCCL still reads it.
        self._under_way.append(work)
        while self._under_way[0].event.done and len(self._under_way) > 1:
            self._under_way.popleft()
        return work


def _ptr(array: Any) -> int:
    """Return the address of the first element."""
    return int(array.data.ptr)


def _reduction(array: Any, op: ReduceOp) -> tuple[int, int]:
    """Return NCCL's constants for the dtype and the operation.

    Raises:  DtypeError if NCCL does not reduce them
    """
    dtype = dtypes.dtype_of(array)
    operation = (LOGICAL if dtype is dtypes.bool else OPERATIONS).get(op)
    if dtype not in NUMBERS or operation is None or (op is ReduceOp.AVG and not dtype.is_floating_point):
        raise DtypeError(f"NCCL has no ReduceOp.{op.name} for tensors of {dtype}", hint="move them to the CPU")
    return getattr(nccl, f"NCCL_{NUMBERS[dtype]}"), getattr(nccl, f"NCCL_{operation}")


def _check_gpus(mpi: MpiEngine) -> None:
    """Raise DeviceError unless every rank has its own GPU. NCCL itself would hang."""
    device = cupy.cuda.Device()
    own = np.frombuffer(device.pci_bus_id.encode().ljust(32) + platform.node().encode()[:96].ljust(96), np.uint8)
    gathered = np.empty((mpi.size, own.size), np.uint8)
    mpi.all_gather(gathered, own).wait()
    others = [rank for rank in range(mpi.size) if rank != mpi.rank and (gathered[rank] == own).all()]
    if others:
        raise DeviceError(
            f"ranks {mpi.rank} and {others[0]} are both on GPU {device.id}",
            hint="tl.cuda.set_device(int(os.environ['LOCAL_RANK'])) before the first operation",
        )
