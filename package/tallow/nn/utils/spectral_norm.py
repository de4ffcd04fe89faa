"""Spectral normalization as a hook: PyTorch's older form of `parametrizations.spectral_norm`."""

from __future__ import annotations

from typing import Any, TypeVar

from tallow.autograd import no_grad
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, GraphError
from tallow.functions.sampling import randn
from tallow.nn import functional as F
from tallow.nn.convolution import _ConvTransposeNd
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter

M = TypeVar("M", bound=Module)


class SpectralNorm:
    """A forward pre-hook that computes the weight."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        if n_power_iterations <= 0:
            raise ArgumentError(f"spectral_norm: n_power_iterations must be positive, got {n_power_iterations}")
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def as_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix (N, M), where N is its size at `dim`."""
        return weight.transpose(0, self.dim).flatten(1) if weight.ndim > 1 else weight[:, None]

    def compute_weight(self, module: Module, iterate: bool) -> Tensor:
        """Divide the weight by its largest singular value; with `iterate`, update the singular vectors first."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.as_matrix(weight)
        if iterate:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
        u, v = u.clone(), v.clone()  # the next step may overwrite them before this step's backward
        return weight / u.dot(matrix.mv(v))

    def __call__(self, module: Module, _inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, iterate=module.training))


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight by its largest singular value; the trained parameter becomes `<name>_orig`.

    Args:    as torch.nn.utils.spectral_norm
    Raises:  GraphError if the parameter already has a spectral norm; ArgumentError if it does not exist
    Source:  Miyato et al. 2018, arXiv:1802.05957
    """
    if _hook_of(module, name) is not None:
        raise GraphError(f"{type(module).__name__} already has a spectral_norm of {name!r}")
    weight = module._parameters.get(name)
    if weight is None:
        raise ArgumentError(f"spectral_norm: {type(module).__name__} has no parameter {name!r}")
    if dim is None:
        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    for suffix, size in zip(("_u", "_v"), hook.as_matrix(weight).shape, strict=True):
        vector = randn(size, dtype=weight.dtype, device=weight.device)
        module.register_buffer(name + suffix, F.normalize(vector, dim=0, eps=eps))
    setattr(module, name, weight.detach())
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Turn the weight back into one parameter, with its current value.

    Raises:  ArgumentError if there is no spectral_norm of that name
    """
    key_and_hook = _hook_of(module, name)
    if key_and_hook is None:
        raise ArgumentError(f"spectral_norm of {name!r} not found on {type(module).__name__}")
    key, hook = key_and_hook
    with no_grad():
        weight = hook.compute_weight(module, iterate=False)
    for part in (name, name + "_orig", name + "_u", name + "_v"):
        delattr(module, part)
    module.register_parameter(name, Parameter(weight.detach()))
    del module._forward_pre_hooks[key]
    return module


def _hook_of(module: Module, name: str) -> tuple[int, SpectralNorm] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            return key, hook
    return None
