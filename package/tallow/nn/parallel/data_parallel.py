"""DataParallel: PyTorch's wrapper for several devices in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.errors import DeviceError
from tallow.nn.module import Module


class DataParallel(Module):
    """Run a module, its attribute `module`, on one device.

    Args:    as torch.nn.DataParallel; batches are not split, as in PyTorch with at most one GPU
    Raises:  DeviceError for several devices
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise DeviceError(
                f"DataParallel: {len(device_ids)} devices are not supported",
                hint="pass one, device_ids=[0]; or use DistributedDataParallel",
            )
        self.device_ids = [] if device_ids is None else list(device_ids)
        self.dim = dim
        self.module = module
        if self.device_ids:
            first = self.device_ids[0]
            module.to(devices.device("cuda", first) if isinstance(first, int) else first)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        device = next((t.device for t in self.module.parameters()), None) if self.device_ids else None
        if device is not None:
            inputs = tuple(x.to(device) if isinstance(x, Tensor) else x for x in inputs)
            kwargs = {name: x.to(device) if isinstance(x, Tensor) else x for name, x in kwargs.items()}
        return self.module(*inputs, **kwargs)
