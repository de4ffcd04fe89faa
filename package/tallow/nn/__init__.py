"""Layers and models, as torch.nn: modules in files by family, their functions in `functional`."""

from tallow.nn import functional, init
from tallow.nn.container import ModuleDict, ModuleList, Sequential
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm, RMSNorm
from tallow.nn.parameter import Buffer, Parameter

__all__ = [
    "Buffer",
    "Dropout",
    "Embedding",
    "Identity",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "RMSNorm",
    "Sequential",
    "functional",
    "init",
]
