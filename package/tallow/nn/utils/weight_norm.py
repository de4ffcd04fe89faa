"""Weight normalisation: a weight's length and direction as two parameters."""

from __future__ import annotations

from typing import Any, TypeVar

from tallow.errors import ArgumentError, GraphError
from tallow.linalg import vector_norm
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter
from tallow.tensor import Tensor

M = TypeVar("M", bound=Module)


def norm_except(v: Tensor, dim: int | None) -> Tensor:
    """The length of each slice along `dim`, kept as a dim of one; of all of it if `dim` is None."""
    if dim is None:
        return vector_norm(v)
    others = [d for d in range(v.ndim) if d != dim % v.ndim]
    return vector_norm(v, dim=others, keepdim=True) if others else v.abs()


class WeightNorm:
    """The hook that computes the weight before each forward."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = dim

    def compute_weight(self, module: Module) -> Tensor:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except(v, self.dim))

    def __call__(self, module: Module, _inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replace a parameter w by its length g and direction v, under the names `<name>_g` and `<name>_v`.

    w = g · v / |v|, for each slice along `dim` by itself; dim=None takes all of w as one vector. (PyTorch takes -1 for
    None.)

    Raises:  GraphError if it is there already
    Source:  Salimans & Kingma 2016, arXiv:1602.07868
    """
    dim = None if dim == -1 else dim
    if _hook_of(module, name) is not None:
        raise GraphError(f"weight_norm of {name!r} is on {type(module).__name__} already")
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
    """Make the weight one parameter again, with the value it has now.

    Raises:  ArgumentError if there is no weight_norm of that name
    """
    found = _hook_of(module, name)
    if found is None:
        raise ArgumentError(f"weight_norm of {name!r} not found on {type(module).__name__}")
    key, hook = found
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
