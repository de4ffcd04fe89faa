"""Automatic differentiation: a tape of closures."""

from typing import TYPE_CHECKING

from tallow.autograd import method  # noqa: F401 - of Tensor
from tallow.autograd.api import GradStore, backward, grad
from tallow.autograd.gradcheck import gradcheck, gradgradcheck
from tallow.lazy_names import names_of
from tallow.tape.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

if TYPE_CHECKING:
    from tallow.autograd.function import Function as Function

__all__ = [
    "Function",
    "GradStore",
    "backward",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]

LAZY = {  # these modules stand above this package: they use tensors
    "Function": "tallow.autograd.function:Function",
    "Variable": "tallow.compat.typed_tensors:Variable",
    "detect_anomaly": "tallow.autograd.anomaly:detect_anomaly",
    "forward_ad": "tallow.autograd.forward_ad",
    "function": "tallow.autograd.function",
    "functional": "tallow.autograd.functional",
    "set_detect_anomaly": "tallow.autograd.anomaly:set_detect_anomaly",
}

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
