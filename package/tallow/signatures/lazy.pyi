"""Names that a package imports on first use. Written by scripts/build_stubs.py."""

from tallow.compat.typed_tensors import BFloat16Tensor as BFloat16Tensor
from tallow.compat.typed_tensors import BoolTensor as BoolTensor
from tallow.compat.typed_tensors import ByteTensor as ByteTensor
from tallow.compat.typed_tensors import CharTensor as CharTensor
from tallow.compat.typed_tensors import DoubleTensor as DoubleTensor
from tallow.compat.typed_tensors import FloatTensor as FloatTensor
from tallow.amp.grad_scaler import GradScaler as GradScaler
from tallow.compat.typed_tensors import HalfTensor as HalfTensor
from tallow.compat.typed_tensors import IntTensor as IntTensor
from tallow.compat.typed_tensors import LongTensor as LongTensor
from tallow.compat.typed_tensors import ShortTensor as ShortTensor
from tallow import accelerator as accelerator
from tallow.functions.top_level import adaptive_max_pool1d as adaptive_max_pool1d
from tallow.functions.top_level import addmv_ as addmv_
from tallow.functions.top_level import affine_grid_generator as affine_grid_generator
from tallow.functions.copying import alias_copy as alias_copy
from tallow.functions.top_level import alpha_dropout_ as alpha_dropout_
from tallow import amp as amp
from tallow.compat.settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from tallow.functions.top_level import as_strided_ as as_strided_
from tallow.functions.copying import as_strided_copy as as_strided_copy
from tallow import audio as audio
from tallow.amp.autocast_mode import autocast as autocast
from tallow import backends as backends
from tallow.functions.top_level import batch_norm as batch_norm
from tallow.functions.top_level import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from tallow.functions.copying import ccol_indices_copy as ccol_indices_copy
from tallow.functions.copying import col_indices_copy as col_indices_copy
from tallow import compat as compat
from tallow.compiler import compile as compile
from tallow import compiler as compiler
from tallow.functions.top_level import constant_pad_nd as constant_pad_nd
from tallow.functions.top_level import cosine_embedding_loss as cosine_embedding_loss
from tallow.functions.copying import crow_indices_copy as crow_indices_copy
from tallow.functions.top_level import ctc_loss as ctc_loss
from tallow import cuda as cuda
from tallow import data as data
from tallow.random import default_generator as default_generator
from tallow.functions.top_level import detach_ as detach_
from tallow.functions.copying import detach_copy as detach_copy
from tallow.functions.copying import diagonal_copy as diagonal_copy
from tallow import distributed as distributed
from tallow import distributions as distributions
from tallow.functions.top_level import dropout_ as dropout_
from tallow.functions.top_level import embedding as embedding
from tallow.functions.top_level import embedding_renorm_ as embedding_renorm_
from tallow.functions.top_level import empty_permuted as empty_permuted
from tallow.functions.copying import expand_copy as expand_copy
from tallow import export as export
from tallow.functions.top_level import fake_quantize_per_channel_affine as fake_quantize_per_channel_affine
from tallow.functions.top_level import fake_quantize_per_tensor_affine as fake_quantize_per_tensor_affine
from tallow.functions.top_level import feature_alpha_dropout_ as feature_alpha_dropout_
from tallow.functions.top_level import feature_dropout as feature_dropout
from tallow.functions.top_level import feature_dropout_ as feature_dropout_
from tallow import fft as fft
from tallow.functions.top_level import fill_ as fill_
from tallow.functions.top_level import frobenius_norm as frobenius_norm
from tallow import func as func
from tallow import fx as fx
from tallow import generation as generation
from tallow.amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from tallow.compat.settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from tallow.compat.settings import get_float32_matmul_precision as get_float32_matmul_precision
from tallow.compat.settings import get_num_interop_threads as get_num_interop_threads
from tallow.compat.settings import get_num_threads as get_num_threads
from tallow.functions.top_level import grid_sampler as grid_sampler
from tallow.functions.top_level import grid_sampler_2d as grid_sampler_2d
from tallow.functions.top_level import grid_sampler_3d as grid_sampler_3d
from tallow.nn.recurrent_functions import gru as gru
from tallow.functions.top_level import hinge_embedding_loss as hinge_embedding_loss
from tallow.functions.top_level import histogramdd as histogramdd
from tallow.functions.top_level import index_put_ as index_put_
from tallow.functions.copying import indices_copy as indices_copy
from tallow.functions.top_level import instance_norm as instance_norm
from tallow import io as io
from tallow.amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from tallow.compat.settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from tallow import jit as jit
from tallow import keras as keras
from tallow.functions.top_level import kl_div as kl_div
from tallow.functions.top_level import ldexp_ as ldexp_
from tallow.io.files import load as load
from tallow.io.checkpoint import load_checkpoint as load_checkpoint
from tallow.functions.lobpcg import lobpcg as lobpcg
from tallow.nn.recurrent_functions import lstm as lstm
from tallow.functions.top_level import margin_ranking_loss as margin_ranking_loss
from tallow import masked as masked
from tallow import models as models
from tallow.functions.top_level import native_batch_norm as native_batch_norm
from tallow.functions.top_level import native_dropout as native_dropout
from tallow.functions.top_level import native_group_norm as native_group_norm
from tallow.functions.top_level import native_layer_norm as native_layer_norm
from tallow import nn as nn
from tallow.functions.top_level import norm_except_dim as norm_except_dim
from tallow.functions.top_level import nuclear_norm as nuclear_norm
from tallow import onnx as onnx
from tallow import optim as optim
from tallow.functions.low_rank import pca_lowrank as pca_lowrank
from tallow import peft as peft
from tallow.functions.copying import permute_copy as permute_copy
from tallow.transformers.pipelines.factory import pipeline as pipeline
from tallow.functions.top_level import poisson_nll_loss as poisson_nll_loss
from tallow import random as random
from tallow.functions.top_level import range as range
from tallow.functions.top_level import resize_as_ as resize_as_
from tallow.nn.recurrent_functions import rnn_relu as rnn_relu
from tallow.nn.recurrent_functions import rnn_tanh as rnn_tanh
from tallow.functions.copying import row_indices_copy as row_indices_copy
from tallow.io.files import save as save
from tallow.io.checkpoint import save_checkpoint as save_checkpoint
from tallow.functions.segments import segment_reduce as segment_reduce
from tallow.functions.copying import select_copy as select_copy
from tallow.compat.settings import set_default_tensor_type as set_default_tensor_type
from tallow.compat.settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from tallow.compat.settings import set_float32_matmul_precision as set_float32_matmul_precision
from tallow.compat.settings import set_num_interop_threads as set_num_interop_threads
from tallow.compat.settings import set_num_threads as set_num_threads
from tallow import signal as signal
from tallow.functions.copying import slice_copy as slice_copy
from tallow import sparse as sparse
from tallow.sparse.creation import sparse_bsc_tensor as sparse_bsc_tensor
from tallow.sparse.creation import sparse_bsr_tensor as sparse_bsr_tensor
from tallow.sparse.creation import sparse_compressed_tensor as sparse_compressed_tensor
from tallow.sparse.creation import sparse_coo_tensor as sparse_coo_tensor
from tallow.sparse.creation import sparse_csc_tensor as sparse_csc_tensor
from tallow.sparse.creation import sparse_csr_tensor as sparse_csr_tensor
from tallow.functions.copying import split_copy as split_copy
from tallow.functions.copying import split_with_sizes_copy as split_with_sizes_copy
from tallow.sparse.products import mm as spmm
from tallow.functions.copying import squeeze_copy as squeeze_copy
from tallow.functions.low_rank import svd_lowrank as svd_lowrank
from tallow.functions.copying import t_copy as t_copy
from tallow import testing as testing
from tallow import text as text
from tallow.functions.copying import transpose_copy as transpose_copy
from tallow.functions.top_level import triplet_margin_loss as triplet_margin_loss
from tallow.functions.top_level import typename as typename
from tallow.functions.copying import unbind_copy as unbind_copy
from tallow.functions.copying import unfold_copy as unfold_copy
from tallow.functions.copying import unsqueeze_copy as unsqueeze_copy
from tallow.compat.settings import use_deterministic_algorithms as use_deterministic_algorithms
from tallow import utils as utils
from tallow.functions.copying import values_copy as values_copy
from tallow.functions.copying import view_as_complex_copy as view_as_complex_copy
from tallow.functions.copying import view_as_real_copy as view_as_real_copy
from tallow.functions.copying import view_copy as view_copy
from tallow.functions.batching.vmap import vmap as vmap
from tallow.functions.top_level import zero_ as zero_

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
    "adaptive_max_pool1d",
    "addmv_",
    "affine_grid_generator",
    "alias_copy",
    "alpha_dropout_",
    "amp",
    "are_deterministic_algorithms_enabled",
    "as_strided_",
    "as_strided_copy",
    "audio",
    "autocast",
    "backends",
    "batch_norm",
    "binary_cross_entropy_with_logits",
    "ccol_indices_copy",
    "col_indices_copy",
    "compat",
    "compile",
    "compiler",
    "constant_pad_nd",
    "cosine_embedding_loss",
    "crow_indices_copy",
    "ctc_loss",
    "cuda",
    "data",
    "default_generator",
    "detach_",
    "detach_copy",
    "diagonal_copy",
    "distributed",
    "distributions",
    "dropout_",
    "embedding",
    "embedding_renorm_",
    "empty_permuted",
    "expand_copy",
    "export",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
    "feature_alpha_dropout_",
    "feature_dropout",
    "feature_dropout_",
    "fft",
    "fill_",
    "frobenius_norm",
    "func",
    "fx",
    "generation",
    "get_autocast_dtype",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "gru",
    "hinge_embedding_loss",
    "histogramdd",
    "index_put_",
    "indices_copy",
    "instance_norm",
    "io",
    "is_autocast_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "jit",
    "keras",
    "kl_div",
    "ldexp_",
    "load",
    "load_checkpoint",
    "lobpcg",
    "lstm",
    "margin_ranking_loss",
    "masked",
    "models",
    "native_batch_norm",
    "native_dropout",
    "native_group_norm",
    "native_layer_norm",
    "nn",
    "norm_except_dim",
    "nuclear_norm",
    "onnx",
    "optim",
    "pca_lowrank",
    "peft",
    "permute_copy",
    "pipeline",
    "poisson_nll_loss",
    "random",
    "range",
    "resize_as_",
    "rnn_relu",
    "rnn_tanh",
    "row_indices_copy",
    "save",
    "save_checkpoint",
    "segment_reduce",
    "select_copy",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "set_num_threads",
    "signal",
    "slice_copy",
    "sparse",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "split_copy",
    "split_with_sizes_copy",
    "spmm",
    "squeeze_copy",
    "svd_lowrank",
    "t_copy",
    "testing",
    "text",
    "transpose_copy",
    "triplet_margin_loss",
    "typename",
    "unbind_copy",
    "unfold_copy",
    "unsqueeze_copy",
    "use_deterministic_algorithms",
    "utils",
    "values_copy",
    "view_as_complex_copy",
    "view_as_real_copy",
    "view_copy",
    "vmap",
    "zero_",
]
