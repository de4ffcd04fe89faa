"""torch.backends: the switches that programs set, and the questions they ask, about libraries under PyTorch.

tallow has none of these libraries, so the questions are answered with no. The switches allow PyTorch something, such as
algorithms that differ between runs; tallow keeps what they are set to, and makes use of `cuda.matmul.allow_tf32` alone.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from tallow import devices
from tallow.errors import MissingNameError

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


class _Library:
    """A library's switches, and whether it is there."""

    def __init__(self, name: str, **switches: Any) -> None:
        self.__dict__.update(switches, __name__=name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise self._has_no(name)
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        raise self._has_no(name)

    def _has_no(self, name: str) -> MissingNameError:
        switches = [n for n in self.__dict__ if not n.startswith("_")]
        return MissingNameError(f"{self.__dict__['__name__']} has no {name!r}", mend=f"it has {', '.join(switches)}")

    def __repr__(self) -> str:
        return f"<{self.__dict__['__name__']}>"

    def is_available(self) -> bool:
        return False

    def is_built(self) -> bool:
        return False

    def version(self) -> None:
        return None


class _Matmul(_Library):
    """`allow_tf32` lets a GPU multiply float32 matrices on tensor cores, with ten bits of precision."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        backend: Any = devices.registered("cuda")
        if name == "allow_tf32" and backend is not None:
            backend.allow_tf32(bool(value))


class _Cuda(_Library):
    """What is asked of PyTorch's attention kernels has one answer here: there is one implementation."""

    def is_built(self) -> bool:
        """Whether CuPy, which serves the device cuda, is installed."""
        return find_spec("cupy") is not None

    def flash_sdp_enabled(self) -> bool:
        return False

    mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled

    def math_sdp_enabled(self) -> bool:
        return True

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Accepted: PyTorch, too, takes another kernel where it cannot have the one it may use."""

    enable_mem_efficient_sdp = enable_cudnn_sdp = enable_math_sdp = enable_flash_sdp


cudnn = _Library(
    "torch.backends.cudnn", enabled=True, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True
)
cuda = _Cuda(
    "torch.backends.cuda",
    matmul=_Matmul(
        "torch.backends.cuda.matmul",
        allow_tf32=False,
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
        fp32_precision="none",
    ),
)
mkl = _Library("torch.backends.mkl")
mkldnn = _Library("torch.backends.mkldnn", enabled=True, deterministic=False, allow_tf32=True)
mps = _Library("torch.backends.mps")
openmp = _Library("torch.backends.openmp")
