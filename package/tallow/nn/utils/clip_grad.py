"""Bounding gradients, in place, before an optimizer's step."""

from __future__ import annotations

from collections.abc import Iterable

from tallow.apply import apply
from tallow.autograd import no_grad
from tallow.autograd.graph import note_write
from tallow.creation import tensor
from tallow.deprecated import older_name
from tallow.devices import device_of, move
from tallow.dtypes import cast
from tallow.errors import NumericError
from tallow.linalg import vector_norm
from tallow.ops.joining import stack
from tallow.ops.together import alike, scale_all
from tallow.ops.together import total_norm as norm_of_all
from tallow.tensor import Tensor, wrap

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Tensors) -> list[Tensor]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as if they were one vector.

    Args:    norm_type: p, which may be inf; foreach: without effect, as everything is computed one way
    Raises:  NumericError for NaN or infinity, if error_if_nonfinite
    """
    given = _listed(tensors)
    if not given:
        return tensor(0.0)
    arrays = [t.array for t in given]
    total: Tensor
    with no_grad():
        if norm_type == 2 and given[0].is_floating_point() and len(alike(arrays)) == 1:
            total = wrap(cast(norm_of_all(arrays), given[0].dtype))
        else:
            norms = [vector_norm(t, float(norm_type)).to(given[0].device) for t in given]
            total = vector_norm(apply(stack, norms), float(norm_type))
    if error_if_nonfinite and not total.isfinite().item():
        raise NumericError(
            f"the norm of order {norm_type} of the gradients is {total.item()}, so it cannot be clipped",
            mend="look for the step that diverges, or pass error_if_nonfinite=False",
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients by max_norm / total_norm where that is less than 1."""
    grads = _gradients(parameters)
    with no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for arrays in alike([grad.array for grad in grads]):
            scale_all(arrays, move(scale.array, device_of(arrays[0])))
    for grad in grads:
        note_write(grad)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients by one number, so that their norm as one vector is max_norm at most.

    Returns: the norm before that
    Source:  Pascanu et al. 2012, arXiv:1211.5063
    """
    kept = _listed(parameters)
    total = get_total_norm(_gradients(kept), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(kept, max_norm, total)
    return total


clip_grad_norm = older_name("clip_grad_norm", clip_grad_norm_)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Keep each element of all gradients between -clip_value and clip_value."""
    bound = float(clip_value)
    with no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-bound, bound)
