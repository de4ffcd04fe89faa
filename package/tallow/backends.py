"""torch.backends: switches and queries for the libraries that PyTorch is built on.

tallow has none of these libraries, so every query returns False. The switches permit PyTorch something, such as
nondeterministic algorithms; tallow stores their values, and uses only `cuda.matmul.allow_tf32`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from tallow import devices
from tallow.errors import MissingNameError

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


class _Library:
    """The switches of a library, and whether it is available."""

    def __init__(self, name: str, **switches: Any) -> None:
        self.__dict__.update(switches, __name__=name, _defaults=switches)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise self._has_no(name)
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        raise self._has_no(name)

    def _has_no(self, name: str) -> MissingNameError:
        switches = [n for n in self.__dict__ if not n.startswith("_")]
        return MissingNameError(f"{self.__dict__['__name__']} has no {name!r}", hint=f"it has {', '.join(switches)}")

    def __repr__(self) -> str:
        return f"<{self.__dict__['__name__']}>"

    @contextmanager
    def flags(self, enabled: bool = False, **switches: Any) -> Iterator[None]:
        """Set the switches for a `with` block: `enabled` and those that are given, the others to their defaults."""
        names = self.__dict__["_defaults"]
        before = {name: getattr(self, name) for name in names}
        try:
            for name, value in {**names, "enabled": enabled, **switches}.items():
                setattr(self, name, value)
            yield
        finally:
            self.__dict__.update(before)

    def is_available(self) -> bool:
        """Return whether the library is available: no."""
        return False

    def is_built(self) -> bool:
        """Return whether tallow is built with the library: no."""
        return False

    def version(self) -> None:
        """Return None: the library is not available."""
        return None


class _Matmul(_Library):
    """The switches of matrix products. `allow_tf32` permits tensor cores for float32, with ten bits of precision."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        backend: Any = devices.registered("cuda")
        if name == "allow_tf32" and backend is not None:
            backend.allow_tf32(bool(value))


class _Cuda(_Library):
    """The switches of CUDA. Those of attention kernels have no effect: tallow has one implementation."""

    def is_built(self) -> bool:
        """Return whether CuPy, which serves the device cuda, is installed."""
        return find_spec("cupy") is not None

    def flash_sdp_enabled(self) -> bool:
        """Return False: tallow has one attention implementation, which counts as "math"."""
        return False

    mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled

    def math_sdp_enabled(self) -> bool:
        """Return True; see `flash_sdp_enabled`."""
        return True

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Do nothing. In PyTorch this permits a kernel, which it may still not choose."""

    enable_mem_efficient_sdp = enable_cudnn_sdp = enable_math_sdp = enable_flash_sdp


class _Cpu(_Library):
    """The queries about the processor."""

    def get_cpu_capability(self) -> str:
        """Return "DEFAULT": PyTorch's kernels for other capabilities, which programs look for, are not here."""
        return "DEFAULT"


cpu = _Cpu("torch.backends.cpu")
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
