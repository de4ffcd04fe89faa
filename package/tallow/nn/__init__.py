"""Layers and models, as torch.nn: modules in files by family, their functions in `functional`.

What nearly every model uses is imported here; the other families when one of their names is first asked for.
"""

# ruff: noqa: F403 - for type checkers, which cannot see through FAMILIES

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.names import names_of
from tallow.nn import functional, init
from tallow.nn.container import ModuleDict, ModuleList, Sequential
from tallow.nn.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout
from tallow.nn.embedding import Embedding, EmbeddingBag
from tallow.nn.linear import Bilinear, Identity, Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm, RMSNorm
from tallow.nn.parameter import Buffer, Parameter, UninitializedParameter

if TYPE_CHECKING:
    from tallow.nn import utils
    from tallow.nn.activation import *
    from tallow.nn.channel_normalization import *
    from tallow.nn.convolution import *
    from tallow.nn.distance import *
    from tallow.nn.loss import *
    from tallow.nn.multihead_attention import *
    from tallow.nn.padding import *
    from tallow.nn.parameter_containers import *
    from tallow.nn.pooling import *
    from tallow.nn.recurrent import *
    from tallow.nn.reshaping import *
    from tallow.nn.transformer import *
    from tallow.nn.upsampling import *

FAMILIES = {  # imported when they are first needed: with all of them `import tallow.nn` would take twice as long
    "activation": "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish "
    "PReLU ReLU ReLU6 RReLU SELU Sigmoid SiLU Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink "
    "Threshold",
    "channel_normalization": "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d "
    "InstanceNorm3d LocalResponseNorm",
    "convolution": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "distance": "CosineSimilarity PairwiseDistance",
    "loss": "BCELoss BCEWithLogitsLoss CosineEmbeddingLoss CrossEntropyLoss CTCLoss GaussianNLLLoss "
    "HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MarginRankingLoss MSELoss MultiLabelMarginLoss "
    "MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss "
    "TripletMarginWithDistanceLoss",
    "multihead_attention": "MultiheadAttention",
    "padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
    "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d",
    "parameter_containers": "ParameterDict ParameterList",
    "pooling": "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
    "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d "
    "MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    "recurrent": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "reshaping": "ChannelShuffle Flatten Fold PixelShuffle PixelUnshuffle Unflatten Unfold",
    "transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
    "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}
LATER = {name: f"tallow.nn.{family}:{name}" for family, names in FAMILIES.items() for name in names.split()}

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
    "UninitializedParameter",
    "functional",
    "init",
    "utils",
]
__all__ += list(LATER)
LATER["utils"] = "tallow.nn.utils"

__getattr__, __dir__ = names_of(__name__, later=LATER)
