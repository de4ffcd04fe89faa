"""Load named values into tensors, all or nothing: the work of `VarMap.load` and of `Module.load_state_dict`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tallow import devices, dtypes
from tallow.core.apply import is_writable
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, CheckpointError, DeviceError
from tallow.ops.memory_format import strided
from tallow.tape.graph import note_write


class IncompatibleKeys(NamedTuple):
    """Names missing from a state dict, and names in it that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not (self.missing_keys or self.unexpected_keys):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def load_state(
    own: Mapping[str, Tensor],
    state: Mapping[str, Tensor],
    *,
    strict: bool = True,
    assign: bool = False,
    source: str,
    target: str,
) -> IncompatibleKeys:
    """Copy the values of `state` into the tensors of `own`.

    Args:
        strict: raise for missing and unexpected names instead of returning them.
        assign: let the tensors share the memory of the values instead.
        source: name of the origin of the values, for error messages.
        target: name of the owner of the tensors, for error messages.

    Raises:  CheckpointError with every name that is missing, unexpected or of another shape; nothing is changed then
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
            assign_value(tensor, state[name], share_memory=assign)
    return keys


def wrong_shape(name: str, theirs: Tensor, ours: Tensor) -> str:
    """Return the line of `misfit` for a tensor of the wrong shape."""
    return f"  wrong shape  {name}: file {tuple(theirs.shape)}, model {tuple(ours.shape)} (size mismatch for {name})"


def misfit(source: str, target: str, keys: IncompatibleKeys | None, problems: Sequence[str]) -> CheckpointError:
    """Return an error that lists every problem at once: names that differ (unless `keys` is None), and `problems`."""
    kinds = [] if keys is None else [("Missing", keys.missing_keys), ("Unexpected", keys.unexpected_keys)]
    words = [f"{kind} key(s) in state_dict" for kind, names in kinds if names]  # PyTorch's, which programs look for
    lines = [f"{source} does not fit {target}" + (f": {', '.join(words)}" if words else "")]
    if keys is not None:
        lines += [f"  missing      {name}" for name in keys.missing_keys]
        lines += [f"  unexpected   {name}" for name in keys.unexpected_keys]
    hint = "create the model with the sizes that the weights were saved with"
    if keys is not None and keys.missing_keys and (prefix := _prefix(keys.unexpected_keys, keys.missing_keys)):
        hint = (
            f"each name begins with {prefix!r} here: {{name.removeprefix({prefix!r}): x for name, x in state.items()}}"
        )
    elif keys is not None and keys.unexpected_keys and (prefix := _prefix(keys.missing_keys, keys.unexpected_keys)):
        hint = f"each name of the model begins with {prefix!r}: {{{prefix!r} + name: x for name, x in state.items()}}"
    return CheckpointError("\n".join([*lines, *problems]), hint=hint)


def _prefix(longer: Sequence[str], shorter: Sequence[str]) -> str | None:
    """Return what stands before each of the shorter names to make the longer ones; None if they differ otherwise."""
    if not longer or len(longer) != len(shorter):
        return None
    prefix = longer[0][: longer[0].rfind(".") + 1]  # whole names of modules
    while prefix:
        if {name.removeprefix(prefix) for name in longer} == set(shorter):
            return prefix
        prefix = prefix[: prefix[:-1].rfind(".") + 1]
    return None


def assign_value(tensor: Tensor, value: Tensor, share_memory: bool) -> None:
    """Copy the elements of `value` into a tensor, or make the tensor share its memory."""
    if share_memory:
        tensor.array = value.array
        return
    if tensor.device.type == "meta":
        raise DeviceError(
            "load_state_dict: the module is on device 'meta' and has no memory to copy into", hint="pass assign=True"
        )
    if tensor.layout is not strided:
        tensor.copy_(value)
        return
    source = devices.move(dtypes.cast(value.array, tensor.dtype), tensor.device)
    if not is_writable(tensor.array):
        tensor.array = source.copy()
        return
    tensor.array[...] = source
    note_write(tensor)
