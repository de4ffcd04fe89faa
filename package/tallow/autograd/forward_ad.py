"""torch.autograd.forward_ad: dual numbers, a tensor and its tangent.

    with dual_level():
        y = f(make_dual(x, v))
        value, change = unpack_dual(y)

A dual tensor is a recorded one: what is computed from it requires grad. Its tangent is computed when it is unpacked, by
`tallow.autograd.functional.Pushforward` over the recorded graph. So what is computed under `no_grad` has none, and what
ops have saved must not be overwritten before. Gradients that `autograd.grad` takes of what dual tensors move are
recorded for their tangents, without `create_graph=True` too; `.grad` has no tangent, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tallow.autograd.functional import Pushforward
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, DtypeError, GraphError, ShapeError, UnsupportedError
from tallow.lazy_names import names_of
from tallow.tape.graph import Node, edges_behind, moved_by_duals
from tallow.tape.modes import enable_grad, mode

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A tensor, and its tangent; None for one that depends on no dual tensor."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a level, in which dual tensors can be made, and return its number.

    Raises: UnsupportedError if one is open, as in PyTorch
    """
    if mode.duals is not None:
        raise UnsupportedError("forward_ad: levels cannot be nested", hint="nest tl.func.jvp instead")
    mode.duals = []
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level that was opened last, or this one."""
    if not _is_open(level):
        raise GraphError(f"forward_ad: level {level or 0} is not the one that was opened last")
    mode.duals = None


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
    if not ((tensor.is_floating_point() or tensor.is_complex()) and tensor.dtype is tangent.dtype):
        raise DtypeError(f"make_dual: expected one floating or complex dtype, not {tensor.dtype} and {tangent.dtype}")
    if tensor.shape != tangent.shape:
        raise ShapeError(f"make_dual: the tangent has shape {tuple(tangent.shape)}, not {tuple(tensor.shape)}")
    if not mode.recording:
        raise GraphError("make_dual: ops are not recorded here", hint="leave no_grad or inference_mode out")
    dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    assert mode.duals is not None
    mode.duals.append((dual, tangent))
    return dual.clone()  # neither a leaf nor a view of one, so it may be written in place


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor without its tangent, and the tangent: None without a level, or where no dual tensor moves it.

    Raises: GraphError if a backward pass has freed the graph of the tensor
    """
    duals = mode.duals or []
    is_moved, outer = moved_by_duals([tensor]) if _is_open(level) else (False, [])
    if not is_moved:
        if duals and any(isinstance(node, Node) and node.backward is None for _, node in edges_behind([tensor])):
            raise GraphError(
                "unpack_dual: a backward pass has freed the graph that gives the tangent",
                hint="unpack before, or call backward(retain_graph=True)",
            )
        return UnpackedDualTensor(tensor, None)
    inputs, tangents = [dual for dual, _ in duals], [tangent for _, tangent in duals]
    opened, mode.duals = mode.duals, None  # the gradients that give a tangent need none themselves
    try:
        with enable_grad():
            (change,) = Pushforward([tensor], inputs)(tangents, create_graph=bool(outer))
    finally:
        mode.duals = opened
    return UnpackedDualTensor(tensor.view_as(tensor) if outer else tensor.detach(), change)


def _is_open(level: int | None) -> bool:
    return mode.duals is not None and level in (None, 0)


__getattr__, __dir__ = names_of(__name__)
