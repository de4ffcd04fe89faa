"""Taking values over by name, everything or nothing: what `VarMap.load` does, and the copy at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tallow import devices, dtypes
from tallow.autograd.graph import note_write
from tallow.errors import ArgumentTypeError, CheckpointError, DeviceError
from tallow.tensor import Tensor


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict(strict=False)` did not find in the state dict, and what it had no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not (self.missing_keys or self.unexpected_keys):
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def load_state(
    own: Mapping[str, Tensor],
    state: Mapping[str, Tensor],
    *,
    strict: bool = True,
    source: str,
    target: str,
) -> IncompatibleKeys:
    """Give the tensors of `own` the values of `state`.

    Args:
        strict: missing and unexpected names are errors; if not, they are returned.
        source: where the values come from, for error messages.
        target: what they are to fit.

    Raises:  CheckpointError with every name that is missing, unexpected or of another shape; nothing has changed then
    """
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(f"{source}: {name!r} is {type(value).__name__}, not a Tensor")
    keys = IncompatibleKeys([name for name in own if name not in state], [name for name in state if name not in own])
    problems = [
        wrong_shape(name, state[name], own[name])
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    if problems or (strict and (keys.missing_keys or keys.unexpected_keys)):
        raise misfit(source, target, keys if strict else None, problems)
    for name, tensor in own.items():
        if name in state:
            take(tensor, state[name], assign=False)
    return keys


def wrong_shape(name: str, theirs: Tensor, ours: Tensor) -> str:
    """A line of `misfit`."""
    return f"  wrong shape  {name}: file {tuple(theirs.shape)}, model {tuple(ours.shape)}"


def misfit(source: str, target: str, keys: IncompatibleKeys | None, problems: Sequence[str]) -> CheckpointError:
    """The error that lists all that does not fit: the keys, where they matter, and lines about other problems."""
    lines = [f"{source} does not fit {target}"]
    if keys is not None:
        lines += [f"  missing      {name}" for name in keys.missing_keys]
        lines += [f"  unexpected   {name}" for name in keys.unexpected_keys]
    return CheckpointError(
        "\n".join([*lines, *problems]), mend="make the model with the sizes the weights were saved with"
    )


def take(tensor: Tensor, value: Tensor, assign: bool) -> None:
    """Give a tensor the value of another: its elements, or with `assign` its very memory."""
    if assign:
        tensor.array = value.array
        return
    if tensor.device.type == "meta":
        raise DeviceError("load_state_dict: the module is on device 'meta', without memory", mend="pass assign=True")
    tensor.array[...] = devices.move(dtypes.cast(value.array, tensor.dtype), tensor.device)
    note_write(tensor)
