"""MPI, through mpi4py: connect the processes, send CPU arrays, and end the job.

MPI busy-waits and does not detect dead ranks. So every operation here is non-blocking and polled: a waiting process
yields the processor, reacts to Ctrl-C, times out, and detects that a process it waits for has ended:

    an uncaught exception           ends the whole job at once, with MPI_Abort
    a process that is killed        also ends the job: mpiexec detects it
    a process that ends, for example with sys.exit(1), while others still wait for it
                                    sends a goodbye message to all; the others raise DistributedError
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import cache, cached_property
from types import TracebackType
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.distributed.reduce_op import ReduceOp
from tallow.distributed.work import Work
from tallow.dtypes import Array
from tallow.errors import DeviceError, DistributedError, DtypeError, MissingPackageError
from tallow.extras import install_command

BUSY_S = 0.001  # time to poll without sleeping
SLEEP_S = 0.0002  # and then at least so long; a process that waits for long sleeps longer, and uses no processor
SLEEP_OF_WAIT = 0.02  # of the time that it has waited
FLUSH_S = 0.5  # time for mpiexec to read a process's output, which it drops when the job is aborted
CHECK_S = 0.05  # interval of checks for departed processes
GRACE_S = 2.0  # time for messages that a process sent before it ended to arrive
GOODBYE = 1  # tag of goodbye messages
CALL_BYTES = 128  # length of the description of a call
# Environment variables of processes that were started together: by MPICH and its descendants, by Open MPI, and by batch
# systems that support PMIx.
LAUNCHED = ("PMI_SIZE", "PMI_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK")

# Let other processes run; this one may be waiting for them.
yield_processor = os.sched_yield if hasattr(os, "sched_yield") else lambda: time.sleep(0)

# MPI's names of the operations.
OPERATIONS = {op: op.name for op in ReduceOp} | {ReduceOp.AVG: "SUM", ReduceOp.PRODUCT: "PROD"}
# The names for booleans, which are sent as bytes 0 and 1.
LOGICAL = OPERATIONS | {ReduceOp.SUM: "MAX", ReduceOp.BOR: "MAX", ReduceOp.PRODUCT: "MIN", ReduceOp.BAND: "MIN"}
BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def is_launched() -> bool:
    """Return whether mpiexec or a batch system started this process."""
    return any(name in os.environ for name in LAUNCHED)


@cache
def world() -> World:
    """Return MPI's world; the first call starts MPI.

    Raises:  MissingPackageError without mpi4py; DeviceError without an MPI library, or in a browser
    """
    if sys.platform == "emscripten":
        raise DeviceError("a browser tab is one process", hint="train without a process group")
    return World(_load())


def _load() -> Any:
    try:
        import mpi4py.MPI as MPI  # optional: extra mpi
    except ModuleNotFoundError as error:
        raise MissingPackageError("mpi4py", "a process group", "mpi") from error
    except (ImportError, RuntimeError) as error:
        from tallow.distributed.mpich import file_of_mpich

        library = file_of_mpich("libmpi.so.12", "libmpi.12.dylib")  # mpi4py searches only next to the interpreter
        if library is None or "MPI4PY_LIBMPI" in os.environ:
            raise DeviceError(
                f"mpi4py finds no MPI library: {error}", hint=install_command("mpi", otherwise="mpich")
            ) from error
        os.environ["MPI4PY_LIBMPI"] = library
        import mpi4py.MPI as MPI
    return MPI


class World:
    """All processes of the job, and this one's rank.

    Attributes:
        MPI: the module mpi4py.MPI.
        departed: the ranks that have sent goodbye.
        has_mismatch: whether mismatched operations were started; they may never end.
    """

    def __init__(self, MPI: Any) -> None:
        self.MPI = MPI
        self.comm = MPI.COMM_WORLD
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size
        self.departed: set[int] = set()
        self.has_mismatch = False
        self._process = os.getpid()
        self._goodbyes = self.comm.Dup()  # a communicator for goodbye messages only
        self._except_hook = sys.excepthook
        if self.size > 1:
            sys.excepthook = self._abort_job
            atexit.register(self._say_goodbye)

    @cached_property
    def neighbours(self) -> Any:
        """The processes on this machine, as an MPI communicator. All processes of the job must access it."""
        return self.comm.Split_type(self.MPI.COMM_TYPE_SHARED)

    def check_departures(self) -> None:
        """Receive goodbye messages and update `departed`."""
        status = self.MPI.Status()
        while self._goodbyes.Iprobe(self.MPI.ANY_SOURCE, GOODBYE, status):
            self._goodbyes.Recv(bytearray(), status.source, GOODBYE)
            self.departed.add(status.source)

    def abort(self, code: int = 1) -> None:
        """End all processes of the job now."""
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(FLUSH_S)
        self.comm.Abort(code)

    def _abort_job(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        """Replace `sys.excepthook`: print the exception and abort the job."""
        self._except_hook(kind, error, traceback)
        if os.getpid() == self._process:
            print(f"rank {self.rank} of {self.size} has failed: the job ends", file=sys.stderr)
            self.abort()

    def _say_goodbye(self) -> None:
        """Send goodbye at exit: MPI_Finalize would wait for the others without notifying them."""
        if os.getpid() != self._process or self.MPI.Is_finalized():
            return
        if self.has_mismatch:  # MPI_Finalize would wait for operations that never end
            self.abort()
        try:
            others = set(range(self.size)) - {self.rank}
            goodbyes = [self._goodbyes.Isend(bytearray(), other, GOODBYE) for other in others]
            while self.departed != others:
                self.check_departures()
                time.sleep(CHECK_S / 10)
            self.MPI.Request.Waitall(goodbyes)
        except BaseException:
            self.abort()
            raise


class MpiWork(Work):
    """A pending MPI request.

    Args:
        name: name of the operation, for error messages.
        buffers: arrays to keep alive until the request completes.
    """

    def __init__(self, request: Any, name: str, engine: MpiEngine, *buffers: Any) -> None:
        super().__init__()
        self.request = request
        self.name = name
        self.engine = engine
        self.buffers = buffers
        self.status = engine.world.MPI.Status()

    @property
    def source(self) -> int:
        """The rank in the group of the sender of a received message."""
        return self.status.source

    def _poll(self) -> bool:
        return self.request.Test(self.status)

    def _complete(self, timeout: timedelta | None) -> None:
        limit_s = (self.engine.timeout if timeout is None else timeout).total_seconds()
        start = now = time.monotonic()
        next_check, lost_since = start + CHECK_S, None
        while not self._poll():
            now = time.monotonic()
            if now - start < BUSY_S:
                yield_processor()
                continue
            time.sleep(min(max(SLEEP_S, SLEEP_OF_WAIT * (now - start)), CHECK_S))
            if now < next_check:
                continue
            next_check = now + CHECK_S
            lost = self.engine.lost()
            if not lost:
                lost_since = None
            elif lost_since is None:
                lost_since = now
            elif now - lost_since > GRACE_S:
                raise DistributedError(
                    f"{self.name}: rank {lost[0]} has ended, but rank {self.engine.rank} waits for it"
                )
            if now - start > limit_s:
                raise DistributedError(
                    f"{self.name}: rank {self.engine.rank} timed out after {limit_s:g} s; another rank did not call it",
                    hint="call the same operations in the same order in all ranks; or increase init_process_group's "
                    "timeout",
                )

    def _conclude(self) -> None:
        super()._conclude()
        self.buffers = ()


class MpiEngine:
    """Engine for CPU arrays, which must be contiguous. Ranks are those in the group."""

    device_type = "cpu"

    def __init__(self, ranks: Sequence[int], timeout: timedelta) -> None:
        self.world = world()
        self.timeout = timeout
        self.members = tuple(ranks)
        if self.members == tuple(range(self.world.size)):
            self.comm = self.world.comm.Dup()
        else:
            self.comm = self.world.comm.Create_group(self.world.comm.group.Incl(self.members))
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size

    def close(self) -> None:
        """Free the communicator."""
        self.comm.Free()

    def lost(self) -> list[int]:
        """Return the members that have ended, by rank in the job."""
        self.world.check_departures()
        return sorted(self.world.departed.intersection(self.members))

    def agree(self, call: str, started: bool = False) -> Work:
        """Compare the calls of all ranks, described in at most CALL_BYTES bytes that start with the operation.

        Args:  started: whether the operation has already started

        Raises:  DistributedError in all ranks, on waiting, if the calls differ
        """
        own_call, all_calls = np.zeros(CALL_BYTES, np.uint8), np.zeros((self.size, CALL_BYTES), np.uint8)
        text = np.frombuffer(call.encode()[:CALL_BYTES], np.uint8)
        own_call[: text.size] = text

        def compare() -> None:
            ranks: dict[str, list[int]] = {}
            for rank, row in zip(self.members, all_calls, strict=True):
                ranks.setdefault(row.tobytes().rstrip(b"\0").decode(errors="replace"), []).append(rank)
            if len(ranks) > 1:
                self.world.has_mismatch |= started
                lines = [f"  {text}: rank {', '.join(map(str, callers))}" for text, callers in ranks.items()]
                raise DistributedError(
                    "\n".join(["the ranks call different operations", *lines]),
                    hint="call the same operations in the same order in all ranks, with equal sizes, dtypes and "
                    "devices",
                )

        request = self.comm.Iallgather(own_call, all_calls)
        return MpiWork(request, call.partition(" ")[0], self, own_call, all_calls).then(compare)

    def all_reduce(self, array: Array, op: ReduceOp) -> Work:
        """Reduce the arrays of all ranks, in place in every rank."""
        wire = _Wire(array, op, self.size)
        request = self.comm.Iallreduce(self.world.MPI.IN_PLACE, wire.buffer, self._operation(wire))
        return MpiWork(request, "all_reduce", self, wire.buffer).then(lambda: wire.unpack(array))

    def reduce(self, array: Array, root: int, op: ReduceOp) -> Work:
        """Reduce the arrays of all ranks, in place in `root`; other arrays are unchanged."""
        wire = _Wire(array, op, self.size)
        is_root = self.rank == root
        sent, received = (self.world.MPI.IN_PLACE, wire.buffer) if is_root else (wire.buffer, None)
        work = MpiWork(self.comm.Ireduce(sent, received, self._operation(wire), root), "reduce", self, wire.buffer)
        return work.then(lambda: wire.unpack(array)) if is_root else work

    def reduce_scatter(self, output: Array, array: Array, op: ReduceOp) -> Work:
        """Reduce arrays with one part per rank, and give each rank its part."""
        wire = _Wire(array, op, self.size)
        part = np.empty(output.size, wire.buffer.dtype)
        request = self.comm.Ireduce_scatter_block(wire.buffer, part, self._operation(wire))
        work = MpiWork(request, "reduce_scatter", self, wire.buffer, part)
        return work.then(lambda: wire.unpack(output, part))

    def broadcast(self, array: Array, root: int) -> Work:
        """Copy the array of `root` to all ranks."""
        buffer = _bytes(array)
        return MpiWork(self.comm.Ibcast(buffer, root), "broadcast", self, buffer)

    def all_gather(self, output: Array, array: Array) -> Work:
        """Collect the arrays of all ranks, in rank order, in every rank's `output`."""
        sent, received = _bytes(array), _bytes(output)
        return MpiWork(self.comm.Iallgather(sent, received), "all_gather", self, sent, received)

    def gather(self, output: Array | None, array: Array, root: int) -> Work:
        """Collect the arrays of all ranks, in rank order, in the `output` of `root`."""
        sent, received = _bytes(array), None if output is None else _bytes(output)
        return MpiWork(self.comm.Igather(sent, received, root), "gather", self, sent, received)

    def scatter(self, array: Array, source: Array | None, root: int) -> Work:
        """Give each rank its part of the array `source` of `root`."""
        received, parts = _bytes(array), None if source is None else _bytes(source)
        return MpiWork(self.comm.Iscatter(parts, received, root), "scatter", self, parts, received)

    def send(self, array: Array, to: int, tag: int) -> Work:
        """Send an array to a rank."""
        buffer = _bytes(array)
        return MpiWork(self.comm.Isend(buffer, to, tag), "send", self, buffer)

    def receive(self, array: Array, source: int | None, tag: int) -> MpiWork:
        """Receive an array from a rank, or from any rank."""
        buffer = _bytes(array)
        origin = self.world.MPI.ANY_SOURCE if source is None else source
        return MpiWork(self.comm.Irecv(buffer, origin, tag), "recv", self, buffer)

    def barrier(self) -> Work:
        """Wait until all ranks have started the barrier."""
        return MpiWork(self.comm.Ibarrier(), "barrier", self)

    def _operation(self, wire: _Wire) -> Any:
        return getattr(self.world.MPI, wire.operation)


def _bytes(array: Array) -> Array:
    """Return the array's bytes: data that is only moved is sent as bytes."""
    return array.reshape(-1).view(np.uint8)


class _Wire:
    """An array in the form that MPI reduces: 16-bit floats as float32, booleans as bytes.

    Attributes:
        buffer: a flat array; a view of the original one if MPI supports its dtype.
        operation: MPI's name for `op`.

    Raises:  DtypeError for an operation that the dtype does not support
    """

    def __init__(self, array: Array, op: ReduceOp, size: int) -> None:
        self.dtype = dtypes.dtype_of(array)
        if op in BITWISE if self.dtype.is_floating_point else op is ReduceOp.AVG:
            raise DtypeError(f"ReduceOp.{op.name} does not support tensors of {self.dtype}")
        is_bool = self.dtype is dtypes.bool
        self.operation = (LOGICAL if is_bool else OPERATIONS)[op]
        self.buffer = (array.view(np.uint8) if is_bool else dtypes.widen(array)).reshape(-1)
        self.divisor = size if op is ReduceOp.AVG else None

    def unpack(self, target: Array, reduced: Array | None = None) -> None:
        """Write the reduced values to `target`, in its dtype."""
        reduced = self.buffer if reduced is None else reduced
        if self.divisor is not None:
            reduced /= self.divisor
        if self.dtype in (dtypes.float16, dtypes.bfloat16):
            reduced = dtypes.cast(reduced, self.dtype)
        flat = target.reshape(-1)
        if not np.shares_memory(flat, reduced):
            flat[...] = reduced.view(flat.dtype)
