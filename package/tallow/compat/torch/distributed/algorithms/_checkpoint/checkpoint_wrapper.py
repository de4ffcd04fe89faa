"""torch.distributed.algorithms._checkpoint.checkpoint_wrapper: modules that are computed again in backward."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from tallow.compat.absent import absent
from tallow.nn.module import Module
from tallow.utils.checkpoint import checkpoint

offload_wrapper = absent(
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.offload_wrapper", "use checkpoint_wrapper"
)


class CheckpointImpl(Enum):
    """The ways in which PyTorch computes again; tallow has one."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class CheckpointWrapper(Module):
    """A module that stores its inputs only, and is computed again in backward.

    Args:
        mod: the module, whose names it has in `state_dict`.
    """

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return checkpoint(self._checkpoint_wrapped_module, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules["_checkpoint_wrapped_module"], name)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT
) -> CheckpointWrapper:
    """Return a module that stores its inputs only, and is computed again in backward."""
    return CheckpointWrapper(module)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
) -> None:
    """Replace the modules inside a model for which `check_fn` is true by what `checkpoint_wrapper_fn` makes of them."""
    for name, child in list(model.named_children()):
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn)
        if check_fn(child):
            setattr(model, name, checkpoint_wrapper_fn(child))
