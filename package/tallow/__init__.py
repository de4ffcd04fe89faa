"""tallow: deep learning in Python that runs in a browser tab and on CUDA from the same file, with PyTorch's API."""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import TYPE_CHECKING

from tallow import autograd, functions, kernels, linalg, ops, return_types, special
from tallow.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from tallow.core.creation import arange, as_tensor, empty, from_numpy, full, ones, tensor, zeros
from tallow.core.printing import set_printoptions
from tallow.core.public_api import PUBLIC, publish_op, publish_operators
from tallow.core.public_api import user_op as op
from tallow.core.size import Size
from tallow.core.tensor import Tensor
from tallow.devices import device
from tallow.dtypes import (
    bfloat16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    chalf,
    complex32,
    complex64,
    complex128,
    double,
    dtype,
    finfo,
    float,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    promote_types,
    qint8,
    qint32,
    quint2x4,
    quint4x2,
    quint8,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tallow.errors import OutOfMemoryError
from tallow.lazy_names import names_of
from tallow.ops.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from tallow.random import Generator, manual_seed

__version__ = "0.2.0"

__all__ = [
    "Generator",
    "OutOfMemoryError",
    "Size",
    "Tensor",
    "arange",
    "as_tensor",
    "autograd",
    "bfloat16",
    "bool",
    "can_cast",
    "cdouble",
    "cfloat",
    "chalf",
    "channels_last",
    "channels_last_3d",
    "complex32",
    "complex64",
    "complex128",
    "contiguous_format",
    "device",
    "double",
    "dtype",
    "e",
    "empty",
    "enable_grad",
    "finfo",
    "float",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "full",
    "get_default_dtype",
    "half",
    "iinfo",
    "inf",
    "inference_mode",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "kernels",
    "layout",
    "linalg",
    "long",
    "manual_seed",
    "memory_format",
    "nan",
    "no_grad",
    "ones",
    "op",
    "pi",
    "preserve_format",
    "promote_types",
    "qint8",
    "qint32",
    "quint2x4",
    "quint4x2",
    "quint8",
    "return_types",
    "set_default_dtype",
    "set_grad_enabled",
    "set_printoptions",
    "short",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
    "special",
    "strided",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "zeros",
]

for _op in ops.OPS.values():
    publish_op(_op)
publish_operators()
globals().update(PUBLIC["tl"])
if TYPE_CHECKING:
    from tallow.signatures.functions import *  # noqa: F403
    from tallow.signatures.lazy import *  # noqa: F403

LAZY = {  # imported at first use
    "GradScaler": "tallow.amp:GradScaler",
    "accelerator": "tallow.accelerator",
    "amp": "tallow.amp",
    "audio": "tallow.audio",
    "autocast": "tallow.amp:autocast",
    "backends": "tallow.backends",
    "compat": "tallow.compat",
    "compile": "tallow.compiler:compile",
    "compiler": "tallow.compiler",
    "cuda": "tallow.cuda",
    "data": "tallow.data",
    "default_generator": "tallow.random:default_generator",
    "distributed": "tallow.distributed",
    "distributions": "tallow.distributions",
    "export": "tallow.export",
    "fft": "tallow.fft",
    "signal": "tallow.signal",
    "func": "tallow.func",
    "fx": "tallow.fx",
    "generation": "tallow.generation",
    "get_autocast_dtype": "tallow.amp:get_autocast_dtype",
    "io": "tallow.io",
    "is_autocast_enabled": "tallow.amp:is_autocast_enabled",
    "jit": "tallow.jit",
    "keras": "tallow.keras",
    "load": "tallow.io:load",
    "load_checkpoint": "tallow.io:load_checkpoint",
    "masked": "tallow.masked",
    "models": "tallow.models",
    "nn": "tallow.nn",
    "onnx": "tallow.onnx",
    "optim": "tallow.optim",
    "peft": "tallow.peft",
    "pipeline": "tallow.transformers.pipelines.factory:pipeline",
    "random": "tallow.random",
    "save": "tallow.io:save",
    "save_checkpoint": "tallow.io:save_checkpoint",
    "testing": "tallow.testing",
    "text": "tallow.text",
    "utils": "tallow.utils",
    "vmap": "tallow.func:vmap",
}
_SETTINGS = (
    "are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision "
    "get_num_interop_threads get_num_threads is_deterministic_algorithms_warn_only_enabled set_default_tensor_type "
    "set_deterministic_debug_mode set_float32_matmul_precision "
    "set_num_interop_threads set_num_threads use_deterministic_algorithms"
)
_TYPED_TENSORS = (
    "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
    "ShortTensor"
)
_TOP_LEVEL = (
    "adaptive_max_pool1d addmv_ affine_grid_generator alpha_dropout_ as_strided_ batch_norm "
    "binary_cross_entropy_with_logits constant_pad_nd cosine_embedding_loss ctc_loss detach_ dropout_ embedding "
    "embedding_renorm_ empty_permuted fake_quantize_per_channel_affine fake_quantize_per_tensor_affine "
    "feature_alpha_dropout_ feature_dropout feature_dropout_ fill_ frobenius_norm grid_sampler grid_sampler_2d "
    "grid_sampler_3d hinge_embedding_loss histogramdd index_put_ instance_norm kl_div ldexp_ margin_ranking_loss "
    "native_batch_norm native_dropout native_group_norm native_layer_norm norm_except_dim nuclear_norm "
    "poisson_nll_loss range resize_as_ triplet_margin_loss typename zero_"
)
_COPIES = (
    "alias as_strided ccol_indices col_indices crow_indices detach diagonal expand indices permute row_indices select "
    "slice split split_with_sizes squeeze t transpose unbind unfold unsqueeze values view view_as_complex view_as_real"
)
LAZY |= {name: f"tallow.functions.top_level:{name}" for name in _TOP_LEVEL.split()}
LAZY |= {f"{name}_copy": f"tallow.functions.copying:{name}_copy" for name in _COPIES.split()}
LAZY |= {name: f"tallow.nn.recurrent_functions:{name}" for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")}
LAZY["lobpcg"] = "tallow.functions.lobpcg:lobpcg"
LAZY["segment_reduce"] = "tallow.functions.segments:segment_reduce"
LAZY |= {name: f"tallow.compat.settings:{name}" for name in _SETTINGS.split()}
LAZY |= {name: f"tallow.functions.low_rank:{name}" for name in ("pca_lowrank", "svd_lowrank")}
LAZY |= {
    f"sparse_{kind}_tensor": f"tallow.sparse.creation:sparse_{kind}_tensor"
    for kind in ("bsc", "bsr", "compressed", "coo", "csc", "csr")
}
LAZY |= {"sparse": "tallow.sparse", "spmm": "tallow.sparse.products:mm"}
LAZY |= {name: f"tallow.compat.typed_tensors:{name}" for name in _TYPED_TENSORS.split()}
newaxis = None
__all__ += ["newaxis"]
__all__ += list(PUBLIC["tl"])
__all__ += list(LAZY)

__getattr__, __dir__ = names_of(__name__, lazy=LAZY, registry=PUBLIC["tl"])
