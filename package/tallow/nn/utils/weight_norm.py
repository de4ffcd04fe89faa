"""Weight normalization as a hook: a weight's length and direction as two parameters."""

from __future__ import annotations

from typing import Any, TypeVar

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, GraphError
from tallow.linalg import vector_norm
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter

M = TypeVar("M", bound=Module)


def norm_except(v: Tensor, dim: int | None) -> Tensor:
    """Return the norm of each slice along `dim`, keeping dimensions; the norm of the whole tensor if `dim` is None."""
    if v.device.type == "meta":  # of sizes that a file may claim: nothing is computed
        kept = v.ndim if dim is None else dim % v.ndim
        part = v[tuple(slice(None if d == kept else 1) for d in range(v.ndim))]
        return part.reshape(()) if dim is None else part
    if dim is None:
        return vector_norm(v)
    others = [d for d in range(v.ndim) if d != dim % v.ndim]
    return vector_norm(v, dim=others, keepdim=True) if others else v.abs()


class WeightNorm:
    """A forward pre-hook that computes the weight."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = dim

    def compute_weight(self, module: Module) -> Tensor:
        """Return g · v / |v|."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except(v, self.dim))

    def __call__(self, module: Module, _inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replace a parameter w by its length g and direction v, under the names `<name>_g` and `<name>_v`.

    w = g · v / |v|, separately for each slice along `dim`; dim=None treats w as one vector, and so does -1, as in
    PyTorch.

    Raises:  GraphError if the parameter already has a weight norm; ArgumentError if it does not exist
    Source:  Salimans & Kingma 2016, arXiv:1602.07868
    """
    dim = None if dim == -1 else dim
    if _hook_of(module, name) is not None:
        raise GraphError(f"{type(module).__name__} already has a weight_norm of {name!r}")
    weight = module._parameters.get(name)
    if weight is None:
        raise ArgumentError(f"weight_norm: {type(module).__name__} has no parameter {name!r}")
    hook = WeightNorm(name, dim)
    delattr(module, name)
    module.register_parameter(name + "_g", Parameter(norm_except(weight, dim).detach()))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Turn the weight back into one parameter, with its current value.

    Raises:  ArgumentError if there is no weight_norm of that name
    """
    key_and_hook = _hook_of(module, name)
    if key_and_hook is None:
        raise ArgumentError(f"weight_norm of {name!r} not found on {type(module).__name__}")
    key, hook = key_and_hook
    weight = hook.compute_weight(module)
    for part in (name, name + "_g", name + "_v"):
        delattr(module, part)
    module.register_parameter(name, Parameter(weight.detach()))
    del module._forward_pre_hooks[key]
    return module


def _hook_of(module: Module, name: str) -> tuple[int, WeightNorm] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            return key, hook
    return None
