"""Adafactor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array, dtype_of, finfo
from tallow.errors import ArgumentError
from tallow.optim.moments import begin, count, descent, move_average
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.options import check_not_negative


class Adafactor(Optimizer):
    """Adam without the first moment, and with the second moment of a matrix factored into one row and one column.

    g = ∇
    β = 1 - t^beta2_decay
    R = β · R + (1 - β) · mean over columns of g²,  C likewise over rows;  v = R C / mean(R)
    v = β · v + (1 - β) · g²                                               for vectors and scalars
    u = g / √max(v, eps[0]²)
    p = p - lr · weight_decay · p
    p = p - max(eps[1], RMS(p)) · min(lr, 1/√t) · u / max(1, RMS(u) / d),  with RMS(p) from before the step

    Args:    as torch.optim.Adafactor; `foreach` is accepted and has no effect
        eps: two numbers; None for the first means the machine epsilon of the parameter's dtype
        d: the RMS at which updates are clipped

    Shapes:  for a parameter (..., N, M): row_var (..., N, 1), col_var (..., 1, M); for any other: variance, its shape
    Source:  Shazeer & Stern 2018, arXiv:1804.04235, algorithms 4 and 5
    """

    MOMENTS = ("row_var", "col_var", "variance")

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_not_negative(lr=lr, weight_decay=weight_decay, epsilon1=eps[0] or 0.0, epsilon2=eps[1])
        if not beta2_decay <= 0:
            raise ArgumentError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if not d >= 1:
            raise ArgumentError(f"Clipping threshold d should be >= 1 but is: {d}")
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        xp = array_module(param)
        if not state:
            begin(state, param)
            state |= {name: xp.zeros(shape, param.dtype) for name, shape in _factors(param.shape).items()}
        step = count(state)
        if not param.size:  # an empty parameter has no mean
            return
        lr, weight = float(group["lr"]), step ** group["beta2_decay"]
        smallest, least_scale = group["eps"]
        if smallest is None:
            smallest = finfo(dtype_of(param)).eps
        scale = max(least_scale, _rms(param)) * min(lr, step**-0.5)
        grad = descent(param, grad, group | {"decoupled_weight_decay": True}, lr)
        if param.ndim > 1:
            rows, columns = state["row_var"], state["col_var"]
            move_average(rows, (grad * grad).mean(axis=-1, keepdims=True), weight)
            move_average(columns, (grad * grad).mean(axis=-2, keepdims=True), weight)
            variance = rows * columns
            variance /= xp.maximum(rows.mean(axis=-2, keepdims=True), smallest)
        else:
            move_average(state["variance"], grad * grad, weight)
            variance = state["variance"]
        change = grad / xp.sqrt(xp.maximum(variance, smallest**2))
        change *= scale / max(1.0, _rms(change) / group["d"])
        param -= change

    def _update_half(self, array: Array, grad: Array, held: dict[str, Array], group: Group) -> None:
        """Update a half-precision parameter; `eps[0]` defaults to the epsilon of its dtype, not of float32."""
        smallest, least_scale = group["eps"]
        if smallest is None:
            group = group | {"eps": (finfo(dtype_of(array)).eps, least_scale)}
        super()._update_half(array, grad, held, group)

    def moment_shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        return _factors(shape).get(name)


def _factors(shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the factors of the second moment of a parameter."""
    if len(shape) < 2:
        return {"variance": shape}
    return {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}


def _rms(array: Array) -> float:
    """Return the root mean square of all elements; 0 for an empty array."""
    return float(array_module(array).sqrt((array * array).mean())) if array.size else 0.0
