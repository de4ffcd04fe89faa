"""torch._functorch.vmap: parts of PyTorch's own `vmap`, which programs import and may replace."""

from __future__ import annotations

from typing import Any

from tallow import Tensor as Tensor
from tallow.compat.absent import absent
from tallow.compat.torch._C._functorch import _add_batch_dim as _add_batch_dim
from tallow.compat.torch._C._functorch import _remove_batch_dim as _remove_batch_dim
from tallow.compat.torch.utils._pytree import tree_flatten as tree_flatten
from tallow.compat.torch.utils._pytree import tree_unflatten as tree_unflatten
from tallow.func import vmap as vmap

_PARTS = (
    "_broadcast_to_and_flatten",
    "_create_batched_inputs",
    "_get_name",
    "_process_batched_inputs",
    "_unwrap_batched",
)
globals().update({name: absent(f"torch._functorch.vmap.{name}", "use torch.func.vmap") for name in _PARTS})


def _maybe_remove_batch_dim(name: str, tensor: Any, level: Any, batch_size: int, out_dim: int | None) -> Any:
    """Return the batch of which a result of the function `name` is one element; with `out_dim` None, the result."""
    return tensor if out_dim is None else _remove_batch_dim(tensor, level, batch_size, out_dim)
