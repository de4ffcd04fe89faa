"""PyTorch's parametrizations: weight normalization and spectral normalization."""

from __future__ import annotations

from typing import TypeVar

from tallow.autograd import no_grad
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.functions.sampling import randn
from tallow.lazy_names import names_of
from tallow.nn import functional as F
from tallow.nn.convolution import _ConvTransposeNd
from tallow.nn.module import Module
from tallow.nn.utils.orthogonal import orthogonal
from tallow.nn.utils.parametrize import register_parametrization
from tallow.nn.utils.weight_norm import norm_except

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


class _WeightNorm(Module):
    """weight = v · g / |v|."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = None if dim == -1 else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, estimated by power iteration across steps.

    Shapes:  weight (..., N at dim, ...), viewed as a matrix (N, M); _u (N,), _v (M,)
    """

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise ArgumentError(f"spectral_norm: dim={dim} is out of range for a weight with {weight.ndim} dims")
        if n_power_iterations <= 0:
            raise ArgumentError(f"spectral_norm: n_power_iterations must be positive, got {n_power_iterations}")
        self.dim = dim % weight.ndim
        self.n_power_iterations, self.eps = n_power_iterations, eps
        if weight.ndim > 1:
            rows, columns = self.as_matrix(weight).shape
            for name, size in (("_u", rows), ("_v", columns)):
                vector = randn(size, dtype=weight.dtype, device=weight.device)
                self.register_buffer(name, F.normalize(vector, dim=0, eps=eps))
            self.iterate(self.as_matrix(weight), 15)

    def as_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix (N, M)."""
        return weight.transpose(0, self.dim).flatten(1)

    @no_grad()
    def iterate(self, matrix: Tensor, times: int) -> None:
        """Update _u and _v towards the singular vectors of the largest singular value."""
        for _ in range(times):
            self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self.as_matrix(weight)
        if self.training:
            self.iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the next step may overwrite them before this step's backward
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value  # not unique: many weights have the same normalized form; `value` is the nearest


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Parametrize a weight by length g and direction v: w = g · v / |v|, separately for each slice along `dim`.

    The module also loads state dicts of `tallow.nn.utils.weight_norm`.

    Source:  Salimans & Kingma 2016, arXiv:1602.07868
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state: dict[str, Tensor], prefix: str, *_: object) -> None:
        old = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(key in state for key in old):
            for i, key in enumerate(old):
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight by its largest singular value, which bounds the layer's Lipschitz constant by 1.

    Args:    as torch.nn.utils.parametrizations.spectral_norm
    Source:  Miyato et al. 2018, arXiv:1802.05957
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(f"spectral_norm: {type(module).__name__} has no parameter or buffer {name!r}")
    if dim is None:
        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


__getattr__, __dir__ = names_of(__name__)
