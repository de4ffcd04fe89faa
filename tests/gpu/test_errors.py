"""Errors if something that `cuda` needs is missing, too old or broken, and their hints."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import cupy_behaviour, cupy_like

import tallow as tl
import tallow_cuda
from tallow import devices
from tallow.data import DataLoader, TensorDataset
from tallow.errors import DeviceError, KernelCompileError


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class CompileException(Exception):
    def get_message(self) -> str:
        return 'kernel.cu(3): error: identifier "undefined" is undefined'


class TestWhatIsMissing:
    """Call `tallow_cuda.register` in a process where a requirement is missing."""

    @pytest.fixture(autouse=True)
    def forget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(devices._BY_TYPE, "cuda", raising=False)

    def install(self, monkeypatch: pytest.MonkeyPatch, count: Callable[[], int], driver: int = 12090) -> None:
        """Return a stub of cupy for CUDA 12.9 whose runtime counts GPUs with `count`."""
        runtime = SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=count,
            driverGetVersion=lambda: driver,
            runtimeGetVersion=lambda: 12090,
        )
        monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))

    def test_cupy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "cupy", None)
        with pytest.raises(DeviceError, match=r"needs CuPy.*\n.*nvidia-smi.*cupy-cuda12x>=14.*cupy-cuda13x>=14"):
            tl.ones(2).to("cuda")

    @pytest.mark.parametrize(
        ("driver", "message"),
        [
            (0, r"needs an NVIDIA GPU and its driver: cudaErrorInsufficientDriver.*\n.*install NVIDIA's driver"),
            (11080, r"driver is too old: it is for CUDA 11\.8, CuPy for 12\.9.*\n.*update the driver"),
            (13000, r"needs an NVIDIA GPU and its driver: cudaErrorInsufficientDriver"),
        ],
    )
    def test_driver(self, driver: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def count() -> int:  # CUDA returns this without a driver too
            raise CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

        self.install(monkeypatch, count, driver)
        with pytest.raises(DeviceError, match=message):
            tl.ones(2, device="cuda")

    def test_gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.install(monkeypatch, lambda: 0)
        with pytest.raises(DeviceError, match=r"none is visible\n.*CUDA_VISIBLE_DEVICES"):
            tl.ones(2, device="cuda")

    def test_anything_in_a_browser(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tallow_cuda.sys, "platform", "emscripten")
        with pytest.raises(DeviceError, match="a browser tab has no CUDA"):
            tl.ones(2, device="cuda")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a stub of cupy with two GPUs, for errors; modules that import it are imported afresh."""
    cuda: Any = ModuleType("cupy.cuda")
    cuda.runtime = SimpleNamespace(getDeviceCount=lambda: 2, getDevice=lambda: 0)
    cuda.Device = lambda index: nullcontext()
    cuda.compiler = SimpleNamespace(CompileException=CompileException)
    cuda.driver = SimpleNamespace(CUDADriverError=CUDADriverError)
    cuda.nccl = SimpleNamespace(available=False)
    cuda.get_allocator = cuda.get_current_stream = lambda: None
    cupy: Any = ModuleType("cupy")
    cupy.cuda, cupy.ndarray = cuda, cupy_like.Array
    cupy.get_default_memory_pool = lambda: SimpleNamespace(malloc=len)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(errstate=cupy_behaviour.errstate))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
    names = [f"tallow_cuda.{name}" for name in ("backend", "cublas", "memory", "nccl", "uploads")]
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield cupy
    for name in names:
        sys.modules.pop(name, None)  # its module holds the stub


def test_a_device_beyond_the_last_one(library: Any) -> None:
    backend = importlib.import_module("tallow_cuda.backend").CupyBackend()
    with pytest.raises(DeviceError, match=r"device not found: 'cuda:2'\n.*the last one is 'cuda:1'"):
        backend.from_host(np.ones(2), tl.device("cuda:2"))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ImportError("libcusolver.so.11 not found"), r"needs cuSOLVER and cuSPARSE.*\n.*nvidia-cusolver-cu12"),
        (RuntimeError("geev is not available"), r"this cuSOLVER is too old: geev is not available\n.*pip install -U"),
    ],
)
def test_linear_algebra(error: Exception, message: str, library: Any) -> None:
    backend = importlib.import_module("tallow_cuda.backend").CupyBackend()
    with pytest.raises(DeviceError, match=message), backend.linalg_errors():
        raise error
    inv = cupy_behaviour.LINALG["inv"]
    with pytest.raises(np.linalg.LinAlgError), backend.linalg_errors():
        inv(np.zeros((2, 2)))
    inv(np.zeros((2, 2)))  # and CuPy's own users need no errstate
    with pytest.raises(RuntimeError, match="another"), backend.linalg_errors():
        raise RuntimeError("another")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (CompileException(), r"scale: the kernel does not compile:\nkernel.cu\(3\): error: identifier"),
        (
            CUDADriverError("named symbol not found"),
            r"has no kernel 'scale': named symbol.*\n.*extern \"C\" __global__",
        ),
    ],
)
def test_a_source_that_does_not_compile(error: Exception, message: str, library: Any) -> None:
    class RawModule:
        def __init__(self, code: str, options: tuple[str, ...]) -> None:
            assert code == "source"

        def get_function(self, name: str) -> Any:
            raise error

    library.RawModule = RawModule
    backend = importlib.import_module("tallow_cuda.backend").CupyBackend()
    with pytest.raises(KernelCompileError, match=message):
        backend.compile_kernel("source", "scale")


def test_nccl(library: Any) -> None:
    nccl = importlib.import_module("tallow_cuda.nccl")
    with pytest.raises(DeviceError, match=r"CuPy does not find NCCL\n.*pip install nvidia-nccl-cu12"):
        nccl.NcclEngine(SimpleNamespace(rank=0, size=1))


def test_creation_on_a_missing_device(cuda: str) -> None:
    for make in (
        lambda: tl.ones(3, device="cuda:99"),
        lambda: tl.ones(3).to("cuda:99"),
        lambda: tl.nn.Linear(1, 1).to("cuda:99"),
    ):
        with pytest.raises(DeviceError, match=r"device not found: 'cuda:99'\n.*the last one is 'cuda:\d+'"):
            make()


FORKED = r"forked from one that uses CUDA cannot use CUDA\n.*keep tensors on the CPU.*spawn"


def test_what_a_forked_process_does(cuda: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[Callable[[], None]] = []
    monkeypatch.setattr("os.register_at_fork", lambda after_in_child: hooks.append(after_in_child))
    tallow_cuda.refuse_after_fork(devices.get_backend(cuda))
    x, total = tl.ones(2, device=cuda), tl.ones((), device=cuda)
    for name in ("_BY_TYPE", "_BY_ARRAY"):
        monkeypatch.setattr(devices, name, dict(getattr(devices, name)))
    hooks[0]()
    for use in (x.cpu, total.item, x.exp, lambda: tl.ones(2, device=cuda)):
        with pytest.raises(DeviceError, match=FORKED):
            use()


@pytest.mark.gpu
@pytest.mark.native
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_dataset_on_the_gpu_in_a_worker() -> None:
    rows = TensorDataset(tl.arange(4.0, device="cuda"))
    with pytest.raises(DeviceError, match=FORKED):
        next(iter(DataLoader(rows, num_workers=1, collate_fn=lambda rows: [x.item() for (x,) in rows])))
