"""Layers under Keras' names."""

from __future__ import annotations

from tallow.keras.layers.activation import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax
from tallow.keras.layers.attention import MultiHeadAttention
from tallow.keras.layers.augmentation import (
    RandomBrightness,
    RandomContrast,
    RandomFlip,
    RandomRotation,
    RandomTranslation,
    RandomZoom,
)
from tallow.keras.layers.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    DepthwiseConv2D,
    SeparableConv2D,
)
from tallow.keras.layers.dense import Dense, Embedding
from tallow.keras.layers.input_layer import Input, InputLayer
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.lambda_layer import Identity, Lambda, Masking
from tallow.keras.layers.layer import Layer
from tallow.keras.layers.merging import (
    Add,
    Average,
    Concatenate,
    Dot,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
    add,
    average,
    concatenate,
    dot,
    maximum,
    minimum,
    multiply,
    subtract,
)
from tallow.keras.layers.normalization import (
    BatchNormalization,
    GroupNormalization,
    LayerNormalization,
    Normalization,
    Rescaling,
    RMSNormalization,
    UnitNormalization,
)
from tallow.keras.layers.operator import Operator
from tallow.keras.layers.pooling import (
    AveragePooling1D,
    AveragePooling2D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    MaxPooling1D,
    MaxPooling2D,
)
from tallow.keras.layers.recurrent import GRU, LSTM, SimpleRNN
from tallow.keras.layers.regularization import (
    ActivityRegularization,
    Dropout,
    GaussianDropout,
    GaussianNoise,
    SpatialDropout1D,
    SpatialDropout2D,
)
from tallow.keras.layers.reshaping import (
    Cropping1D,
    Cropping2D,
    Flatten,
    Permute,
    RepeatVector,
    Reshape,
    UpSampling1D,
    UpSampling2D,
    ZeroPadding1D,
    ZeroPadding2D,
)
from tallow.keras.layers.variable import Variable
from tallow.keras.layers.wrappers import Bidirectional, TimeDistributed

# Keras' other names for the same.
AvgPool1D, AvgPool2D = AveragePooling1D, AveragePooling2D
MaxPool1D, MaxPool2D = MaxPooling1D, MaxPooling2D
GlobalAvgPool1D, GlobalAvgPool2D = GlobalAveragePooling1D, GlobalAveragePooling2D
GlobalMaxPool1D, GlobalMaxPool2D = GlobalMaxPooling1D, GlobalMaxPooling2D
Convolution1D, Convolution2D = Conv1D, Conv2D
Convolution1DTranspose, Convolution2DTranspose = Conv1DTranspose, Conv2DTranspose
SeparableConvolution2D = SeparableConv2D

__all__ = [
    "ELU",
    "GRU",
    "LSTM",
    "Activation",
    "ActivityRegularization",
    "Add",
    "Average",
    "AveragePooling1D",
    "AveragePooling2D",
    "AvgPool1D",
    "AvgPool2D",
    "BatchNormalization",
    "Bidirectional",
    "Concatenate",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Convolution1D",
    "Convolution1DTranspose",
    "Convolution2D",
    "Convolution2DTranspose",
    "Cropping1D",
    "Cropping2D",
    "Dense",
    "DepthwiseConv2D",
    "Dot",
    "Dropout",
    "Embedding",
    "Flatten",
    "GaussianDropout",
    "GaussianNoise",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GroupNormalization",
    "Identity",
    "Input",
    "InputLayer",
    "InputSpec",
    "Lambda",
    "Layer",
    "LayerNormalization",
    "LeakyReLU",
    "Masking",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPooling1D",
    "MaxPooling2D",
    "Maximum",
    "Minimum",
    "MultiHeadAttention",
    "Multiply",
    "Normalization",
    "Operator",
    "PReLU",
    "Permute",
    "RMSNormalization",
    "RandomBrightness",
    "RandomContrast",
    "RandomFlip",
    "RandomRotation",
    "RandomTranslation",
    "RandomZoom",
    "ReLU",
    "RepeatVector",
    "Rescaling",
    "Reshape",
    "SeparableConv2D",
    "SeparableConvolution2D",
    "SimpleRNN",
    "Softmax",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "Subtract",
    "TimeDistributed",
    "UnitNormalization",
    "UpSampling1D",
    "UpSampling2D",
    "Variable",
    "ZeroPadding1D",
    "ZeroPadding2D",
    "add",
    "average",
    "concatenate",
    "dot",
    "maximum",
    "minimum",
    "multiply",
    "subtract",
]
