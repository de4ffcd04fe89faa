"""Layers and containers, as in torch.nn: one file per family of modules, and their functions in `functional`.

The modules that nearly every model uses are imported here; other families are imported on first access to one of their
names.
"""

# ruff: noqa: F403 - for type checkers, which cannot see through FAMILIES

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.lazy_names import names_of
from tallow.nn import functional, init
from tallow.nn.container import ModuleDict, ModuleList, Sequential
from tallow.nn.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout
from tallow.nn.embedding import Embedding, EmbeddingBag
from tallow.nn.linear import Bilinear, Identity, Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm, RMSNorm
from tallow.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

if TYPE_CHECKING:
    from tallow.nn import parallel, quantization, utils
    from tallow.nn.activation import *
    from tallow.nn.adaptive_softmax import *
    from tallow.nn.candle.functions import *
    from tallow.nn.candle.init import *
    from tallow.nn.candle.layers import *
    from tallow.nn.candle.var_builder import *
    from tallow.nn.candle.var_map import *
    from tallow.nn.channel_normalization import *
    from tallow.nn.convolution import *
    from tallow.nn.distance import *
    from tallow.nn.lazy import *
    from tallow.nn.loss import *
    from tallow.nn.multihead_attention import *
    from tallow.nn.padding import *
    from tallow.nn.parallel.data_parallel import *
    from tallow.nn.parameter_containers import *
    from tallow.nn.pooling import *
    from tallow.nn.recurrent import *
    from tallow.nn.reshaping import *
    from tallow.nn.sync_batch_norm import *
    from tallow.nn.transformer import *
    from tallow.nn.upsampling import *

FAMILIES = {  # imported on first access: importing all of them would double the time of `import tallow.nn`
    "activation": "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish "
    "PReLU ReLU ReLU6 RReLU SELU Sigmoid SiLU Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink "
    "Threshold",
    "adaptive_softmax": "AdaptiveLogSoftmaxWithLoss",
    "channel_normalization": "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d "
    "InstanceNorm3d LocalResponseNorm",
    "convolution": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "distance": "CosineSimilarity PairwiseDistance",
    "lazy": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d "
    "LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear",
    "loss": "BCELoss BCEWithLogitsLoss CosineEmbeddingLoss CrossEntropyLoss CTCLoss GaussianNLLLoss "
    "HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MarginRankingLoss MSELoss "
    "MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss "
    "TripletMarginLoss TripletMarginWithDistanceLoss",
    "multihead_attention": "MultiheadAttention",
    "padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
    "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d",
    "parallel.data_parallel": "DataParallel",
    "parameter_containers": "ParameterDict ParameterList",
    "pooling": "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
    "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d "
    "LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    "recurrent": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "reshaping": "ChannelShuffle Flatten Fold PixelShuffle PixelUnshuffle Unflatten Unfold",
    "sync_batch_norm": "SyncBatchNorm",
    "transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
    "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}
CANDLE = {
    "functions": "func func_t seq",
    "init": "Init",
    "layers": "batch_norm conv1d conv1d_no_bias conv2d conv2d_no_bias conv_transpose1d conv_transpose2d "
    "embedding group_norm gru layer_norm layer_norm_no_bias linear linear_b linear_no_bias lstm prelu rms_norm",
    "var_builder": "VarBuilder",
    "var_map": "VarMap",
}
LAZY = {name: f"tallow.nn.{family}:{name}" for family, names in FAMILIES.items() for name in names.split()}
LAZY |= {name: f"tallow.nn.candle.{file}:{name}" for file, names in CANDLE.items() for name in names.split()}

__all__ = [
    "AlphaDropout",
    "Bilinear",
    "Buffer",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Identity",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "RMSNorm",
    "Sequential",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "parallel",
    "quantization",
    "utils",
]
__all__ += list(LAZY)
LAZY |= {name: f"tallow.nn.{name}" for name in ("parallel", "quantization", "utils")}

# Importing the files `embedding` and `linear` above bound these names to modules; they belong to candle's functions.
del embedding, linear  # noqa: F821

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
