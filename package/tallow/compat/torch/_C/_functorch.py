"""torch._C._functorch: what programs ask about tensors under `vmap`."""

from __future__ import annotations

from typing import Any

from tallow.compat.absent import absent
from tallow.core.tensor import Tensor
from tallow.functions.batching.level import Level
from tallow.functions.batching.tensors import batch_of, batched
from tallow.tape.modes import mode

_vmap_increment_nesting, _vmap_decrement_nesting, _unwrap_batched = (
    absent(f"torch._C._functorch.{name}", "use torch.func.vmap")
    for name in ("_vmap_increment_nesting", "_vmap_decrement_nesting", "_unwrap_batched")
)


def _add_batch_dim(tensor: Tensor, in_dim: int, level: Level) -> Tensor:
    """Return one element of a batch. The level is that which `vmap` gives an object that holds tensors."""
    return batched(tensor.movedim(in_dim, 0), level)


def _remove_batch_dim(tensor: Tensor, level: Level, batch_size: int, out_dim: int) -> Tensor:
    """Return the batch of which a tensor is one element."""
    result: Tensor = batch_of(tensor, level, out_dim)
    return result


def is_batchedtensor(tensor: Any) -> bool:
    """Return whether a tensor is one under `vmap`, for all elements of the batch."""
    return mode.batching is not None and isinstance(tensor, Tensor) and tensor.physical() is not tensor


is_functorch_wrapped_tensor = is_batchedtensor


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """Return False: there is one kind of tensors under `vmap`."""
    return False


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Return False: `func.grad` computes with tensors proper."""
    return False


def get_unwrapped(tensor: Any) -> Any:
    """Return the tensor with the batch dims, of a tensor under `vmap`."""
    return tensor.physical()


def maybe_get_bdim(tensor: Any) -> int:
    """Return the batch dim of a tensor under `vmap`, the first; -1 for others."""
    return 0 if is_batchedtensor(tensor) else -1


def maybe_get_level(tensor: Any) -> int:
    """Return -1: levels have no numbers."""
    return -1


def peek_interpreter_stack() -> None:
    """Return None: no transform interprets the ops."""
