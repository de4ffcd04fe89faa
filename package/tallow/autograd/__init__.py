"""Automatic differentiation: a tape of closures."""

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

__all__ = [
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
