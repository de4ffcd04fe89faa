"""torch.autograd.forward_ad: dual numbers, a tensor and its tangent.

    with dual_level():
        y = f(make_dual(x, v))
        value, change = unpack_dual(y)

A dual tensor is a recorded one: what is computed from it requires grad. Its tangent is computed when it is unpacked, by
`tallow.autograd.functional.Pushforward` over the recorded graph. So what is computed under `no_grad` has none, nor has
a gradient that was taken without `create_graph=True`, and what ops have saved must not be overwritten before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tallow.autograd.functional import Pushforward
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, DtypeError, GraphError, ShapeError, UnsupportedError
from tallow.lazy_names import names_of
from tallow.tape.graph import edge_to, leaves_of
from tallow.tape.modes import enable_grad, mode

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A tensor, and its tangent; None for one that depends on no dual tensor."""

    primal: Tensor
    tangent: Tensor | None


_levels: list[list[tuple[Tensor, Tensor]]] = []  # of each open level, which is at most one: dual tensors and tangents


def enter_dual_level() -> int:
    """Open a level, in which dual tensors can be made, and return its number.

    Raises: UnsupportedError if one is open, as in PyTorch
    """
    if _levels:
        raise UnsupportedError("forward_ad: levels cannot be nested", hint="nest tl.func.jvp instead")
    _levels.append([])
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level that was opened last, or this one."""
    if len(_levels) - 1 != (level or 0):
        raise GraphError(f"forward_ad: level {level or 0} is not the one that was opened last")
    _levels.pop()


@contextmanager
def dual_level() -> Iterator[int]:
    """Open a level for a block."""
    level = enter_dual_level()
    try:
        yield level
    finally:
        exit_dual_level(level=level)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a dual tensor: a copy of the elements, which move by `tangent`.

    Raises: ShapeError for a tangent of another shape, DtypeError for one of another dtype or of integers, GraphError
        outside of a level or where ops are not recorded
    """
    if not _is_open(level):
        raise GraphError("make_dual: no level is open", hint="call it inside `with forward_ad.dual_level():`")
    if not (isinstance(tensor, Tensor) and isinstance(tangent, Tensor)):
        raise ArgumentTypeError("make_dual: expected two tensors")
    if not (tensor.is_floating_point() and tensor.dtype is tangent.dtype):
        raise DtypeError(f"make_dual: expected one floating dtype, not {tensor.dtype} and {tangent.dtype}")
    if tensor.shape != tangent.shape:
        raise ShapeError(f"make_dual: the tangent has shape {tuple(tangent.shape)}, not {tuple(tensor.shape)}")
    if not mode.recording:
        raise GraphError("make_dual: ops are not recorded here", hint="leave no_grad or inference_mode out")
    dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _levels[0].append((dual, tangent))
    return dual.clone()  # neither a leaf nor a view of one, so it may be written in place


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor without its tangent, and the tangent: None without a level, or where no dual tensor moves it."""
    duals = _levels[0] if _is_open(level) else []
    if not duals or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    inputs, tangents = [dual for dual, _ in duals], [tangent for _, tangent in duals]
    own = {id(edge_to(dual)) for dual in inputs}
    is_moved, outer = leaves_of([tensor], own)
    if not is_moved:
        return UnpackedDualTensor(tensor, None)
    with enable_grad():
        (change,) = Pushforward([tensor], inputs)(tangents, create_graph=bool(outer))
    return UnpackedDualTensor(tensor.view_as(tensor) if outer else tensor.detach(), change)


def _is_open(level: int | None) -> bool:
    return bool(_levels) and level in (None, 0)


__getattr__, __dir__ = names_of(__name__)
