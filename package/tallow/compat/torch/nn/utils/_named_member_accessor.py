"""torch.nn.utils._named_member_accessor: exchange the tensors of modules."""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.nn import Module


def swap_tensor(module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of a parameter, buffer or attribute of a module, and return what was there.

    Args:
        allow_missing: the attribute need not exist; None deletes it.

    Raises: AttributeError for a name that the module does not have.
    """
    before = getattr(module, name, None) if allow_missing else getattr(module, name)
    kinds = (module._parameters, module._buffers)
    place: Any = next((kind for kind in kinds if name in kind), module.__dict__)
    if tensor is None and before is not None:
        del place[name]
    elif tensor is not None:
        place[name] = tensor
    return before
