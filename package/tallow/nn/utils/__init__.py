"""Utilities for parameters and gradients, as torch.nn.utils."""

from tallow.lazy_names import names_of
from tallow.nn.utils import rnn
from tallow.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from tallow.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from tallow.nn.utils.init import skip_init
from tallow.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from tallow.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "fusion",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]

__getattr__, __dir__ = names_of(
    __name__,
    lazy={name: f"tallow.nn.utils.{name}" for name in ("fusion", "parametrizations", "parametrize", "prune")}
    | {name: f"tallow.nn.utils.fusion:{name}" for name in __all__ if name.startswith("fuse_")}
    | {name: f"tallow.nn.utils.memory_format:{name}" for name in __all__ if name.startswith("convert_")},
)
