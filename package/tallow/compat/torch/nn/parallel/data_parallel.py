"""torch.nn.parallel.data_parallel: DataParallel, and its function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.nn.module import Module
from tallow.nn.parallel.data_parallel import DataParallel

__all__ = ["DataParallel", "data_parallel"]


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module on one device. Raises: DeviceError for several devices, as DataParallel."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*given, **(module_kwargs or {}))
