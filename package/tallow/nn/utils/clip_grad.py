"""Clip gradients, in place, before an optimizer's step."""

from __future__ import annotations

from collections.abc import Iterable

from tallow.autograd import no_grad
from tallow.core.apply import apply
from tallow.core.creation import tensor
from tallow.core.deprecated import older_name
from tallow.core.tensor import Tensor, wrap
from tallow.core.whole_calls import recorded_whole
from tallow.devices import device_of, move
from tallow.dtypes import cast
from tallow.errors import NumericError
from tallow.linalg import vector_norm
from tallow.ops.joining import stack
from tallow.ops.multi_tensor import alike, scale_all
from tallow.ops.multi_tensor import total_norm as norm_of_all
from tallow.tape.graph import note_write

Tensors = Tensor | Iterable[Tensor]


def _as_list(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Tensors) -> list[Tensor]:
    return [p.grad for p in _as_list(parameters) if p.grad is not None]


@recorded_whole
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the p-norm of all tensors concatenated to one vector.

    Args:    norm_type: p, which may be inf; foreach: no effect, because there is one implementation
    Raises:  NumericError for NaN or infinity, if error_if_nonfinite
    """
    parts = _as_list(tensors)
    if not parts:
        return tensor(0.0)
    arrays = [t.array for t in parts]
    total: Tensor
    with no_grad():
        if norm_type == 2 and parts[0].is_floating_point() and len(alike(arrays)) == 1:
            total = wrap(cast(norm_of_all(arrays), parts[0].dtype))
        else:
            norms = [vector_norm(t, float(norm_type)).to(parts[0].device) for t in parts]
            total = vector_norm(apply(stack, norms), float(norm_type))
    if error_if_nonfinite and not total.isfinite().item():
        raise NumericError(
            f"the norm of order {norm_type} of the gradients is {total.item()}, so they cannot be clipped",
            hint="find the step that diverges, or pass error_if_nonfinite=False",
        )
    return total


@recorded_whole
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients by max_norm / total_norm if that is less than 1."""
    scale_gradients(_gradients(parameters), max_norm, total_norm)


def scale_gradients(grads: list[Tensor], max_norm: float, total_norm: Tensor) -> None:
    """Scale gradients by max_norm / total_norm if that is less than 1."""
    with no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for arrays in alike([grad.array for grad in grads]):
            scale_all(arrays, move(scale.array, device_of(arrays[0])))
    for grad in grads:
        note_write(grad)


@recorded_whole
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients by one factor, so that their norm as one vector is at most max_norm.

    Returns: the norm before scaling
    Source:  Pascanu et al. 2012, arXiv:1211.5063
    """
    tensors = _as_list(parameters)  # iterated twice
    total = get_total_norm(_gradients(tensors), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(tensors, max_norm, total)
    return total


clip_grad_norm = older_name("clip_grad_norm", clip_grad_norm_)


@recorded_whole
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp each element of all gradients to [-clip_value, clip_value]."""
    bound = float(clip_value)
    with no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-bound, bound)
