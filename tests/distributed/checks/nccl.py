"""The NCCL engine with stubs for CuPy's arrays and communicator: it makes the right calls to NCCL."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import cupy_like

import tallow as tl
import tallow.distributed as dist
from checks import collectives
from tallow import devices
from tallow.distributed.groups import member
from tallow.distributed.mpi import world
from tallow.errors import ArgumentError, DeviceError, DtypeError

# NCCL's number for each dtype and operation, and the NumPy or MPI equivalent.
TYPES: dict[str, Any] = {
    "FLOAT64": np.float64,
    "FLOAT32": np.float32,
    "FLOAT16": np.float16,
    "BFLOAT16": np.uint16,
    "INT64": np.int64,
    "INT32": np.int32,
    "INT8": np.int8,
    "UINT32": np.uint32,
    "UINT8": np.uint8,
}
OPERATIONS = ("SUM", "PROD", "MAX", "MIN", "AVG")


class Communicator:
    """NCCL's functions implemented by MPI, on the memory at the given addresses."""

    def __init__(self, size: int, key: bytes, rank: int) -> None:
        assert key == bytes(range(64, 192))  # rank 0's
        self.comm = world().comm.Dup()
        assert (size, rank) == (self.comm.size, self.comm.rank)

    def destroy(self) -> None:
        self.comm.Free()

    def allReduce(self, source: int, target: int, count: int, dtype: int, op: int, stream: int) -> None:
        numbers = self._reduced(source, count, dtype, op)
        memory(target, count, dtype)[:] = numbers

    def reduce(self, source: int, target: int, count: int, dtype: int, op: int, root: int, stream: int) -> None:
        numbers = self._reduced(source, count, dtype, op)
        if self.comm.rank == root:
            memory(target, count, dtype)[:] = numbers

    def reduceScatter(self, source: int, target: int, count: int, dtype: int, op: int, stream: int) -> None:
        numbers = self._reduced(source, count * self.comm.size, dtype, op)
        memory(target, count, dtype)[:] = numbers.reshape(self.comm.size, count)[self.comm.rank]

    def broadcast(self, source: int, target: int, count: int, dtype: int, root: int, stream: int) -> None:
        assert source == target
        self.comm.Bcast(memory(target, count, dtype), root)

    def allGather(self, source: int, target: int, count: int, dtype: int, stream: int) -> None:
        self.comm.Allgather(memory(source, count, dtype), memory(target, count * self.comm.size, dtype))

    def send(self, source: int, count: int, dtype: int, peer: int, stream: int) -> None:
        StubStream.requests.append(self.comm.Isend(memory(source, count, dtype), peer))

    def recv(self, target: int, count: int, dtype: int, peer: int, stream: int) -> None:
        StubStream.requests.append(self.comm.Irecv(memory(target, count, dtype), peer))

    def _reduced(self, source: int, count: int, dtype: int, op: int) -> Any:
        name = [*TYPES][dtype]
        numbers = memory(source, count, dtype)
        if name == "BFLOAT16":
            return tl.dtypes.cast(self._mpi(tl.dtypes.widen(numbers.copy()), op), tl.bfloat16)
        if name == "FLOAT16":
            return self._mpi(numbers.astype(np.float32), op).astype(np.float16)
        return self._mpi(numbers.copy(), op)

    def _mpi(self, numbers: Any, op: int) -> Any:
        name = OPERATIONS[op]
        reduced = np.empty_like(numbers)
        self.comm.Allreduce(numbers, reduced, getattr(world().MPI, "SUM" if name == "AVG" else name))
        return reduced / self.comm.size if name == "AVG" else reduced


class StubStream:
    """Messages of this process in progress, as if on a stream, until the program waits."""

    requests: list[Any] = []  # noqa: RUF012

    @classmethod
    def finish(cls) -> None:
        world().MPI.Request.Waitall(cls.requests)
        cls.requests.clear()


def memory(address: int, count: int, dtype: int) -> Any:
    kind = np.dtype([*TYPES.values()][dtype])
    raw = (ctypes.c_char * (count * kind.itemsize)).from_address(address)
    return np.frombuffer(raw, kind)


class Stream:
    ptr = 7

    def __init__(self, non_blocking: bool = False) -> None:
        pass

    def record(self) -> Any:
        return SimpleNamespace(done=True)

    def wait_event(self, event: Any) -> None:
        StubStream.finish()

    def synchronize(self) -> None:
        StubStream.finish()


@contextlib.contextmanager
def stub_cupy(own_gpu: bool = True, available: bool = True) -> Iterator[None]:
    """Replace CuPy by stubs: its arrays, its streams and its NCCL."""
    nccl: Any = ModuleType("cupy.cuda.nccl")
    vars(nccl).update({f"NCCL_{name}": i for i, name in enumerate(TYPES)})
    vars(nccl).update({f"NCCL_{name}": i for i, name in enumerate(OPERATIONS)})
    nccl.available, nccl.NcclCommunicator = available, Communicator
    nccl.get_unique_id = lambda: bytes(range(64, 192)) if world().rank == 0 else None
    nccl.groupStart, nccl.groupEnd = lambda: None, StubStream.finish
    cuda: Any = ModuleType("cupy.cuda")
    bus = world().rank if own_gpu else 0
    cuda.nccl, cuda.Stream, cuda.get_current_stream = nccl, Stream, Stream
    cuda.Device = lambda: SimpleNamespace(id=bus, pci_bus_id=f"0000:0{bus}:00.0")
    cupy: Any = ModuleType("cupy")
    cupy.cuda = cuda
    backend: Any = cupy_like.Backend()
    with pytest.MonkeyPatch.context() as patch:
        for name, module in {"cupy": cupy, "cupy.cuda": cuda, "cupy.cuda.nccl": nccl}.items():
            patch.setitem(sys.modules, name, module)
        patch.delitem(sys.modules, "tallow_cuda.nccl", raising=False)
        patch.setitem(devices._BY_TYPE, backend.type, backend)
        patch.setitem(devices._BY_ARRAY, backend.array_type, backend)
        try:
            yield
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
            dist.init_process_group()


def input_of(rank: int, *shape: int, dtype: Any = tl.float32) -> tl.Tensor:
    return collectives.input_of(rank, *shape, dtype=dtype).to("cuda")


def check_arrays_of_gpus_travel_by_nccl(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    with stub_cupy():
        for name in collectives.DTYPES:
            if name == "int16":
                continue
            x = input_of(rank, 2, 3, dtype=getattr(tl, name)).T
            dist.all_reduce(x)
            counts = collectives.all_inputs(2, 3, dtype=tl.int64)
            expected = counts.any(0) if name == "bool" else counts.sum(0)
            np.testing.assert_array_equal(x.cpu().T.to(tl.int64).numpy(), expected, err_msg=name)
        x = input_of(rank, 4)
        dist.all_reduce(x, dist.ReduceOp.AVG)
        np.testing.assert_allclose(x.cpu().numpy(), collectives.all_inputs(4).mean(0))
        x = input_of(rank, 4)
        dist.reduce(x, dst=n - 1, op=dist.ReduceOp.MAX)
        reduced = collectives.all_inputs(4).max(0) if rank == n - 1 else collectives.input_of(rank, 4).numpy()
        np.testing.assert_array_equal(x.cpu().numpy(), reduced)
        x = tl.empty(3, device="cuda")
        dist.reduce_scatter_tensor(x, input_of(rank, n, 3))
        np.testing.assert_array_equal(x.cpu().numpy(), collectives.all_inputs(n, 3).sum(0)[rank])


def check_moving_without_reducing(folder: Path) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    with stub_cupy():
        for dtype in (tl.float32, tl.bfloat16, tl.int16):
            all_of_them = [collectives.input_of(each, 3, dtype=dtype) for each in range(n)]
            x = input_of(rank, 3, dtype=dtype)
            full = tl.zeros(n * 3, dtype=dtype, device="cuda")
            dist.all_gather_into_tensor(full, x)
            assert tl.equal(full.cpu(), tl.cat(all_of_them))
            parts = [tl.zeros(3, dtype=dtype, device="cuda") for _ in range(n)] if rank == 0 else None
            dist.gather(x, parts)
            assert parts is None or all(tl.equal(a.cpu(), b) for a, b in zip(parts, all_of_them, strict=True))
            buffer = tl.zeros(3, dtype=dtype, device="cuda")
            dist.scatter(buffer, parts)
            assert tl.equal(buffer.cpu(), all_of_them[rank])
            sent = dist.isend(x, (rank + 1) % n)
            assert dist.recv(buffer, src=(rank - 1) % n) == (rank - 1) % n
            sent.wait()
            assert tl.equal(buffer.cpu(), all_of_them[rank - 1])
            dist.broadcast(buffer, src=0)
            assert tl.equal(buffer.cpu(), all_of_them[-1])


def check_a_model_on_gpus(folder: Path) -> None:
    with stub_cupy():
        tl.manual_seed(dist.get_rank())
        model = tl.nn.parallel.DistributedDataParallel(tl.nn.Linear(2, 1).to("cuda"), bucket_cap_mb=1e-6)
        assert len(model.reducer.buckets) == 2
        model(tl.full((1, 2), float(dist.get_rank()), device="cuda")).sum().backward()
        weight = model.module.get_parameter("weight")
        mean = (dist.get_world_size() - 1) / 2
        assert weight.grad is not None
        assert weight.grad.cpu().tolist() == [[mean, mean]]


def check_normalisation_of_gpus(folder: Path) -> None:
    n, rank = dist.get_world_size(), dist.get_rank()
    x = tl.stack([collectives.input_of(each, 3, 2).float() for each in range(n)])
    alone, together = tl.nn.BatchNorm1d(2), tl.nn.SyncBatchNorm(2)
    with stub_cupy():
        y = together.to("cuda")(x[rank].to("cuda"))
        y.square().sum().backward()
        np.testing.assert_allclose(y.detach().cpu().numpy(), alone(x.flatten(0, 1))[3 * rank :][:3].detach(), atol=1e-5)


def check_the_gpu_of_a_process(folder: Path) -> None:
    with stub_cupy():
        for backend in (None, "nccl"):
            dist.destroy_process_group()
            dist.init_process_group(backend, device_id="cuda:0")
            assert [*member(None)._engines] == ["cpu", "cuda"]  # starts the engine
            assert dist.get_backend() == "nccl"
        dist.destroy_process_group()
        with pytest.raises(DeviceError, match="backend 'mpi' does not support tensors of device 'cuda'"):
            dist.init_process_group("gloo", device_id=0)
        with pytest.raises(DeviceError, match="cuda:5"):
            dist.init_process_group(device_id="cuda:5")
        dist.init_process_group("gloo", device_id="cpu")


def check_what_is_missing(folder: Path) -> None:
    with stub_cupy(available=False), pytest.raises(DeviceError, match=r"not find NCCL\n.*nvidia-nccl-cu12"):
        dist.all_reduce(input_of(0, 1))
    with stub_cupy(own_gpu=False), pytest.raises(DeviceError, match=r"are both on GPU 0\n.*LOCAL_RANK"):
        dist.all_reduce(input_of(0, 1))
    with stub_cupy():
        with pytest.raises(ArgumentError, match="the rank to receive from"):
            dist.recv(input_of(0, 1))
        with pytest.raises(DtypeError, match=r"NCCL has no ReduceOp\.SUM for tensors of tallow\.int16"):
            dist.all_reduce(input_of(0, 1, dtype=tl.int16))
        with pytest.raises(DtypeError, match=r"NCCL has no ReduceOp\.BXOR"):
            dist.all_reduce(input_of(0, 1, dtype=tl.int32), dist.ReduceOp.BXOR)
