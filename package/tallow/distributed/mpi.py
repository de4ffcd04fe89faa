"""MPI, through mpi4py: how processes find each other, how arrays of the CPU travel, and how a job ends.

MPI waits by spinning and knows no death. Here everything is started without blocking and asked after in between, so
that a waiting process leaves the processor to others, takes Ctrl-C, gives up after a timeout, and notices when one that
it waits for is gone:

    an exception that nobody catches    ends the whole job at once, by MPI_Abort
    a process that is killed            ends it too: mpiexec sees that
    a process that ends, as by sys.exit(1), while others still wait for it
                                        says goodbye to all; they raise DistributedError
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
from tallow.installing import command

BUSY_S = 0.001  # how long to wait without sleeping
NAP_S = 0.0002
LAST_WORDS_S = 0.5  # mpiexec drops what it has not read of a process's output when the job is aborted
LOOK_S = 0.05  # how often to look whether somebody has gone
GRACE_S = 2.0  # how long what somebody sent before going may still be under way
GOODBYE = 1  # the tag of the message that says so
SAID_BYTES = 128  # of what a rank says it is about to do
# What is in the environment of processes that were started together: by MPICH and those that descend from it, by Open
# MPI, and by batch systems that speak PMIx.
LAUNCHED = ("PMI_SIZE", "PMI_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK")

# To a process that may be what this one waits for.
give_way = os.sched_yield if hasattr(os, "sched_yield") else lambda: time.sleep(0)

# The names of MPI's operations.
OPERATIONS = {op: op.name for op in ReduceOp} | {ReduceOp.AVG: "SUM", ReduceOp.PRODUCT: "PROD"}
# And those on truth values, which travel as bytes of 0 and 1.
LOGICAL = OPERATIONS | {ReduceOp.SUM: "MAX", ReduceOp.BOR: "MAX", ReduceOp.PRODUCT: "MIN", ReduceOp.BAND: "MIN"}
BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def is_launched() -> bool:
    """Whether mpiexec, or a batch system in its place, has started this process."""
    return any(name in os.environ for name in LAUNCHED)


@cache
def world() -> World:
    """MPI, started by the first call.

    Raises:  MissingPackageError without mpi4py; DeviceError without an MPI library, or in a browser
    """
    if sys.platform == "emscripten":
        raise DeviceError("a browser tab is one process", mend="train without a process group")
    return World(_load())


def _load() -> Any:
    try:
        import mpi4py.MPI as MPI  # optional: extra mpi
    except ModuleNotFoundError as error:
        raise MissingPackageError("mpi4py", "a process group", "mpi") from error
    except (ImportError, RuntimeError) as error:
        from tallow.distributed.mpich import file_of_mpich

        library = file_of_mpich("libmpi.so.12", "libmpi.12.dylib")  # mpi4py looks beside the interpreter only
        if library is None or "MPI4PY_LIBMPI" in os.environ:
            raise DeviceError(
                f"mpi4py finds no MPI library: {error}", mend=command("mpi", otherwise="mpich")
            ) from error
        os.environ["MPI4PY_LIBMPI"] = library
        import mpi4py.MPI as MPI
    return MPI


class World:
    """All processes of the job, and this one's place among them.

    Attributes:
        MPI: the module mpi4py.MPI.
        gone: the ranks that have said goodbye.
        at_odds: whether an operation was started that the ranks understand differently; it may never end.
    """

    def __init__(self, MPI: Any) -> None:
        self.MPI = MPI
        self.everybody = MPI.COMM_WORLD
        self.rank: int = self.everybody.rank
        self.size: int = self.everybody.size
        self.gone: set[int] = set()
        self.at_odds = False
        self._process = os.getpid()
        self._goodbyes = self.everybody.Dup()  # a channel of its own, on which nothing else is ever said
        self._except_hook = sys.excepthook
        if self.size > 1:
            sys.excepthook = self._fail
            atexit.register(self._leave)

    @cached_property
    def neighbours(self) -> Any:
        """The processes on this machine, as a communicator of MPI's. All processes of the job ask for it."""
        return self.everybody.Split_type(self.MPI.COMM_TYPE_SHARED)

    def look(self) -> None:
        """Take notice of those who have gone."""
        status = self.MPI.Status()
        while self._goodbyes.Iprobe(self.MPI.ANY_SOURCE, GOODBYE, status):
            self._goodbyes.Recv(bytearray(), status.source, GOODBYE)
            self.gone.add(status.source)

    def abort(self, code: int = 1) -> None:
        """End all processes of the job now."""
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(LAST_WORDS_S)
        self.everybody.Abort(code)

    def _fail(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        """In place of `sys.excepthook`."""
        self._except_hook(kind, error, traceback)
        if os.getpid() == self._process:
            print(f"rank {self.rank} of {self.size} has failed: the job ends", file=sys.stderr)
            self.abort()

    def _leave(self) -> None:
        """At the end of the program: MPI's own end would wait for the others without telling them."""
        if os.getpid() != self._process or self.MPI.Is_finalized():
            return
        if self.at_odds:  # MPI's own end would wait for what never ends
            self.abort()
        try:
            others = set(range(self.size)) - {self.rank}
            goodbyes = [self._goodbyes.Isend(bytearray(), other, GOODBYE) for other in others]
            while self.gone != others:
                self.look()
                time.sleep(LOOK_S / 10)
            self.MPI.Request.Waitall(goodbyes)
        except BaseException:
            self.abort()
            raise


class MpiWork(Work):
    """A request of MPI's.

    Args:
        name: of the operation, for error messages.
        buffers: kept alive until it is done.
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
        """Of a message that was received: the rank in the group that had sent it."""
        return self.status.source

    def _poll(self) -> bool:
        return self.request.Test(self.status)

    def _complete(self, timeout: timedelta | None) -> None:
        limit_s = (self.engine.timeout if timeout is None else timeout).total_seconds()
        start = now = time.monotonic()
        look_at, lost_since = start + LOOK_S, None
        while not self._poll():
            now = time.monotonic()
            if now - start < BUSY_S:
                give_way()
                continue
            time.sleep(NAP_S)
            if now < look_at:
                continue
            look_at = now + LOOK_S
            lost = self.engine.lost()
            if not lost:
                lost_since = None
            elif lost_since is None:
                lost_since = now
            elif now - lost_since > GRACE_S:
                raise DistributedError(f"{self.name}: rank {lost[0]} has ended; rank {self.engine.rank} waits for it")
            if now - start > limit_s:
                raise DistributedError(
                    f"{self.name}: rank {self.engine.rank} has waited for {limit_s:g} s; another has not come to it",
                    mend="all ranks do the same operations in the same order; or raise init_process_group's timeout",
                )

    def _conclude(self) -> None:
        super()._conclude()
        self.buffers = ()


class MpiEngine:
    """Moves arrays of the CPU between the ranks of a group, which are counted within it. Arrays are contiguous."""

    device_type = "cpu"

    def __init__(self, ranks: Sequence[int], timeout: timedelta) -> None:
        self.world = world()
        self.timeout = timeout
        self.members = tuple(ranks)
        if self.members == tuple(range(self.world.size)):
            self.comm = self.world.everybody.Dup()
        else:
            self.comm = self.world.everybody.Create_group(self.world.everybody.group.Incl(self.members))
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size

    def close(self) -> None:
        self.comm.Free()

    def lost(self) -> list[int]:
        """The members that have ended, by their rank in the job."""
        self.world.look()
        return sorted(self.world.gone.intersection(self.members))

    def agree(self, said: str, started: bool = False) -> Work:
        """Compare what the ranks are about to do: a sentence of SAID_BYTES at most, which begins with the operation.

        Args:  started: they have begun to do it already

        Raises:  DistributedError, in all ranks, when it is waited for and they say different things
        """
        mine, everybodys = np.zeros(SAID_BYTES, np.uint8), np.zeros((self.size, SAID_BYTES), np.uint8)
        text = np.frombuffer(said.encode()[:SAID_BYTES], np.uint8)
        mine[: text.size] = text

        def compare() -> None:
            ranks: dict[str, list[int]] = {}
            for rank, row in zip(self.members, everybodys, strict=True):
                ranks.setdefault(row.tobytes().rstrip(b"\0").decode(errors="replace"), []).append(rank)
            if len(ranks) > 1:
                self.world.at_odds |= started
                lines = [f"  {theirs}: rank {', '.join(map(str, who))}" for theirs, who in ranks.items()]
                raise DistributedError(
                    "\n".join(["the ranks are about to do different things", *lines]),
                    mend="do the same operations in one order everywhere, with tensors of one size, dtype and device",
                )

        request = self.comm.Iallgather(mine, everybodys)
        return MpiWork(request, said.partition(" ")[0], self, mine, everybodys).then(compare)

    def all_reduce(self, array: Array, op: ReduceOp) -> Work:
        """Leave the same reduced numbers in every rank's array."""
        wire = _Wire(array, op, self.size)
        request = self.comm.Iallreduce(self.world.MPI.IN_PLACE, wire.buffer, self._operation(wire))
        return MpiWork(request, "all_reduce", self, wire.buffer).then(lambda: wire.unpack(array))

    def reduce(self, array: Array, root: int, op: ReduceOp) -> Work:
        """Leave the reduced numbers in the array of `root`; the others' stay."""
        wire = _Wire(array, op, self.size)
        is_root = self.rank == root
        given, taken = (self.world.MPI.IN_PLACE, wire.buffer) if is_root else (wire.buffer, None)
        work = MpiWork(self.comm.Ireduce(given, taken, self._operation(wire), root), "reduce", self, wire.buffer)
        return work.then(lambda: wire.unpack(array)) if is_root else work

    def reduce_scatter(self, output: Array, array: Array, op: ReduceOp) -> Work:
        """Reduce arrays of as many parts as there are ranks, and leave each rank with its part."""
        wire = _Wire(array, op, self.size)
        part = np.empty(output.size, wire.buffer.dtype)
        request = self.comm.Ireduce_scatter_block(wire.buffer, part, self._operation(wire))
        work = MpiWork(request, "reduce_scatter", self, wire.buffer, part)
        return work.then(lambda: wire.unpack(output, part))

    def broadcast(self, array: Array, root: int) -> Work:
        buffer = _bytes(array)
        return MpiWork(self.comm.Ibcast(buffer, root), "broadcast", self, buffer)

    def all_gather(self, output: Array, array: Array) -> Work:
        """Leave every rank's array, in their order, in everybody's `output`."""
        given, taken = _bytes(array), _bytes(output)
        return MpiWork(self.comm.Iallgather(given, taken), "all_gather", self, given, taken)

    def gather(self, output: Array | None, array: Array, root: int) -> Work:
        """Leave every rank's array, in their order, in the `output` of `root`."""
        given, taken = _bytes(array), None if output is None else _bytes(output)
        return MpiWork(self.comm.Igather(given, taken, root), "gather", self, given, taken)

    def scatter(self, array: Array, given: Array | None, root: int) -> Work:
        """Leave each rank with its part of what `root` gives."""
        taken, parts = _bytes(array), None if given is None else _bytes(given)
        return MpiWork(self.comm.Iscatter(parts, taken, root), "scatter", self, parts, taken)

    def send(self, array: Array, to: int, tag: int) -> Work:
        buffer = _bytes(array)
        return MpiWork(self.comm.Isend(buffer, to, tag), "send", self, buffer)

    def receive(self, array: Array, source: int | None, tag: int) -> MpiWork:
        buffer = _bytes(array)
        origin = self.world.MPI.ANY_SOURCE if source is None else source
        return MpiWork(self.comm.Irecv(buffer, origin, tag), "recv", self, buffer)

    def barrier(self) -> Work:
        return MpiWork(self.comm.Ibarrier(), "barrier", self)

    def _operation(self, wire: _Wire) -> Any:
        return getattr(self.world.MPI, wire.operation)


def _bytes(array: Array) -> Array:
    """What only travels does so as bytes, whatever the dtype."""
    return array.reshape(-1).view(np.uint8)


class _Wire:
    """Numbers as MPI reduces them: sixteen-bit floats in float32, truth values as bytes.

    Attributes:
        buffer: a flat array; the given one itself where MPI has its dtype.
        operation: the name that MPI has for `op`.

    Raises:  DtypeError for an operation that the dtype does not have
    """

    def __init__(self, array: Array, op: ReduceOp, size: int) -> None:
        self.dtype = dtypes.dtype_of(array)
        if op in BITWISE if self.dtype.is_floating_point else op is ReduceOp.AVG:
            raise DtypeError(f"ReduceOp.{op.name} is not for tensors of {self.dtype}")
        is_bool = self.dtype is dtypes.bool
        self.operation = (LOGICAL if is_bool else OPERATIONS)[op]
        self.buffer = (array.view(np.uint8) if is_bool else dtypes.widen(array)).reshape(-1)
        self.divisor = size if op is ReduceOp.AVG else None

    def unpack(self, target: Array, reduced: Array | None = None) -> None:
        """Write the reduced numbers to `target`, in its dtype."""
        reduced = self.buffer if reduced is None else reduced
        if self.divisor is not None:
            reduced /= self.divisor
        if self.dtype in (dtypes.float16, dtypes.bfloat16):
            reduced = dtypes.cast(reduced, self.dtype)
        flat = target.reshape(-1)
        if not np.shares_memory(flat, reduced):
            flat[...] = reduced.view(flat.dtype)
