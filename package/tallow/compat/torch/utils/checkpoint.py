"""Names of `torch.utils.checkpoint` that tallow itself does not have."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from enum import Enum
from typing import Any

from tallow import cuda
from tallow.compat.absent import absent
from tallow.core.tensor import Tensor
from tallow.core.trees import leaves
from tallow.utils.checkpoint import checkpoint as checkpoint
from tallow.utils.checkpoint import checkpoint_sequential as checkpoint_sequential

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_HINT = "use checkpoint"
CheckpointFunction = absent("torch.utils.checkpoint.CheckpointFunction", _HINT)
SelectiveCheckpointContext = absent("torch.utils.checkpoint.SelectiveCheckpointContext", _HINT)
create_selective_checkpoint_contexts = absent("torch.utils.checkpoint.create_selective_checkpoint_contexts", _HINT)


class CheckpointError(RuntimeError):
    """The second run of a part of a model did not do what the first did."""


class CheckpointPolicy(Enum):
    """Policies for an op inside of a checkpoint; tallow always computes it again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


class DefaultDeviceType:
    """The device whose random state a checkpoint keeps, besides the CPU's."""

    _type = "cuda"

    @staticmethod
    def get_device_type() -> str:
        """Return the kind of device."""
        return DefaultDeviceType._type

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the kind of device."""
        DefaultDeviceType._type = device


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the GPUs that tensors among the arguments are on, and the state of each one's random numbers."""
    tensors = [x for x in leaves(args) if isinstance(x, Tensor) and x.is_cuda]
    devices = list(dict.fromkeys(t.get_device() for t in tensors))
    return devices, [cuda.get_rng_state(device) for device in devices]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Restore what `get_device_states` returned."""
    if device_type not in (None, "cuda", "cpu"):
        raise CheckpointError(f"set_device_states: no random numbers on {device_type}")
    for device, state in zip(devices, states, strict=True):
        cuda.set_rng_state(state, device)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the tensors among the inputs as leaves that require grad as they do, and all else unchanged."""
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Sequence[Any]) -> None:
    """Do nothing: a checkpoint whose inputs need no gradient gives those of the parameters here."""


def noop_context_fn() -> tuple[Any, Any]:
    """Return two contexts that do nothing."""
    return nullcontext(), nullcontext()


class set_checkpoint_early_stop:
    """Accept PyTorch's setting: a part of a model is always computed again as a whole."""

    def __init__(self, enable: bool) -> None:
        pass

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc_info: object) -> None:
        return None
