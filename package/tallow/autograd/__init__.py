"""Automatic differentiation: a tape of closures."""

from typing import TYPE_CHECKING

from tallow.autograd.api import GradStore, backward, grad
from tallow.autograd.gradcheck import gradcheck
from tallow.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from tallow.names import names_of

if TYPE_CHECKING:
    from tallow.autograd.function import Function as Function  # put here by `tallow`

__all__ = [
    "Function",
    "GradStore",
    "backward",
    "enable_grad",
    "grad",
    "gradcheck",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]

__getattr__, __dir__ = names_of(__name__, later={"Variable": "tallow.typed_tensors:Variable"})
