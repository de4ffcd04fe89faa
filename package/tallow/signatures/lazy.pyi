"""Names that the package imports on first use. Written by scripts/build_stubs.py."""

from tallow.compat.typed_tensors import BFloat16Tensor as BFloat16Tensor
from tallow.compat.typed_tensors import BoolTensor as BoolTensor
from tallow.compat.typed_tensors import ByteTensor as ByteTensor
from tallow.compat.typed_tensors import CharTensor as CharTensor
from tallow.compat.typed_tensors import DoubleTensor as DoubleTensor
from tallow.compat.typed_tensors import FloatTensor as FloatTensor
from tallow.amp import GradScaler as GradScaler
from tallow.compat.typed_tensors import HalfTensor as HalfTensor
from tallow.compat.typed_tensors import IntTensor as IntTensor
from tallow.compat.typed_tensors import LongTensor as LongTensor
from tallow.compat.typed_tensors import ShortTensor as ShortTensor
from tallow import accelerator as accelerator
from tallow import amp as amp
from tallow.compat.settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from tallow import audio as audio
from tallow.amp import autocast as autocast
from tallow import backends as backends
from tallow import compat as compat
from tallow.compiler import compile as compile
from tallow import compiler as compiler
from tallow import cuda as cuda
from tallow import data as data
from tallow.random import default_generator as default_generator
from tallow import distributed as distributed
from tallow import distributions as distributions
from tallow import export as export
from tallow import func as func
from tallow import fx as fx
from tallow import generation as generation
from tallow.amp import get_autocast_dtype as get_autocast_dtype
from tallow.compat.settings import get_float32_matmul_precision as get_float32_matmul_precision
from tallow.compat.settings import get_num_interop_threads as get_num_interop_threads
from tallow.compat.settings import get_num_threads as get_num_threads
from tallow import io as io
from tallow.amp import is_autocast_enabled as is_autocast_enabled
from tallow import jit as jit
from tallow import keras as keras
from tallow.io import load as load
from tallow.io import load_checkpoint as load_checkpoint
from tallow import models as models
from tallow import nn as nn
from tallow import optim as optim
from tallow.functions.low_rank import pca_lowrank as pca_lowrank
from tallow import peft as peft
from tallow import random as random
from tallow.io import save as save
from tallow.io import save_checkpoint as save_checkpoint
from tallow.compat.settings import set_default_tensor_type as set_default_tensor_type
from tallow.compat.settings import set_float32_matmul_precision as set_float32_matmul_precision
from tallow.compat.settings import set_num_interop_threads as set_num_interop_threads
from tallow.compat.settings import set_num_threads as set_num_threads
from tallow.functions.low_rank import svd_lowrank as svd_lowrank
from tallow import testing as testing
from tallow import text as text
from tallow.compat.settings import use_deterministic_algorithms as use_deterministic_algorithms
from tallow import utils as utils
from tallow.func import vmap as vmap

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "GradScaler",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "accelerator",
    "amp",
    "are_deterministic_algorithms_enabled",
    "audio",
    "autocast",
    "backends",
    "compat",
    "compile",
    "compiler",
    "cuda",
    "data",
    "default_generator",
    "distributed",
    "distributions",
    "export",
    "func",
    "fx",
    "generation",
    "get_autocast_dtype",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "io",
    "is_autocast_enabled",
    "jit",
    "keras",
    "load",
    "load_checkpoint",
    "models",
    "nn",
    "optim",
    "pca_lowrank",
    "peft",
    "random",
    "save",
    "save_checkpoint",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "set_num_threads",
    "svd_lowrank",
    "testing",
    "text",
    "use_deterministic_algorithms",
    "utils",
    "vmap",
]
