"""torch._functorch.vmap: parts of PyTorch's own `vmap`, which programs import and may replace."""

from __future__ import annotations

from tallow import Tensor as Tensor
from tallow.compat.absent import absent
from tallow.compat.torch.utils._pytree import tree_flatten as tree_flatten
from tallow.compat.torch.utils._pytree import tree_unflatten as tree_unflatten
from tallow.func import vmap as vmap

_PARTS = (
    "_add_batch_dim",
    "_broadcast_to_and_flatten",
    "_create_batched_inputs",
    "_get_name",
    "_maybe_remove_batch_dim",
    "_process_batched_inputs",
    "_remove_batch_dim",
    "_unwrap_batched",
)
globals().update({name: absent(f"torch._functorch.vmap.{name}", "use torch.func.vmap") for name in _PARTS})
