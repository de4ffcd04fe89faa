"""torch.multiprocessing: Python's multiprocessing, which sends tensors of shared memory without a copy.

Children that start by spawn or by a server have the stand-in as well, before they import the main program.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.spawn as _spawn
import sys
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import numpy as np

from tallow.compat.stand_in import TorchFinder
from tallow.compat.torch.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    spawn,
    start_processes,
)
from tallow.core.shared_memory import mapped_array, shared_map
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn.parameter import Parameter

_SHARING = ("file_descriptor", "file_system")
__all__ = [  # noqa: PLE0604 - they are strings
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
globals().update({name: getattr(multiprocessing, name) for name in multiprocessing.__all__})


class _Strategy:
    """The setting of `set_sharing_strategy`."""

    name = _SHARING[0]


def get_all_sharing_strategies() -> set[str]:
    """Return the names of PyTorch's ways to share memory."""
    return set(_SHARING)


def get_sharing_strategy() -> str:
    """Return the setting of `set_sharing_strategy`."""
    return _Strategy.name


def set_sharing_strategy(new_strategy: str) -> None:
    """Store the setting. Memory is shared by open files. Raises: ArgumentError for an unknown name."""
    if new_strategy not in _SHARING:
        raise ArgumentError(f"set_sharing_strategy: {new_strategy!r}", hint=f"use one of {_SHARING}")
    _Strategy.name = new_strategy


def _reduce(tensor: Tensor) -> Any:
    """Return how to send a tensor: the open file of its memory, or a copy if the memory is not shared."""
    shared = shared_map(tensor.array) if isinstance(tensor.array, np.ndarray) else None
    if shared is None or type(tensor) not in (Tensor, Parameter):
        return tensor.__reduce_ex__(2)
    start = np.frombuffer(shared, np.uint8).ctypes.data
    array = tensor.array
    place = array.shape, array.strides, array.dtype, array.ctypes.data - start
    return _rebuild, (type(tensor), DupFd(shared.shared_file), place, tensor.requires_grad)


def _rebuild(cls: type[Tensor], file: Any, place: Any, requires_grad: bool) -> Tensor:
    """Return a tensor over the memory of a file that another process has opened."""
    shape, strides, dtype, offset = place
    return cls._rebuild(mapped_array(file.detach(), shape, dtype, offset, strides), requires_grad)


def init_reductions() -> None:
    """Let tensors be sent by their shared memory. It is done at import."""
    for cls in (Tensor, Parameter):
        ForkingPickler.register(cls, _reduce)


class _StandIn:
    """Pickled as a call that installs the stand-in where it is loaded."""

    def __reduce__(self) -> Any:
        lines = ["import sys", f"sys.path[:] = {sys.path!r}", "import tallow.compat", "tallow.compat.install_torch()"]
        return exec, ("; ".join(lines),)


_python_data = _spawn.get_preparation_data


def _preparation_data(name: str) -> dict[str, Any]:
    """Return what a child gets before it imports the main program, with the stand-in if it is installed here."""
    data = _python_data(name)
    is_installed = any(isinstance(finder, TorchFinder) for finder in sys.meta_path)
    return {"torch": _StandIn(), **data} if is_installed else data


_spawn.get_preparation_data = _preparation_data
init_reductions()
