"""Modules as graphs of ops, to be saved, run elsewhere and compiled. The names are those of torch.export."""

from tallow.export.capture import export
from tallow.export.dims import Dim, dims
from tallow.export.program import ExportedProgram
from tallow.export.signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from tallow.lazy_names import names_of

__all__ = [
    "ConstantArgument",
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymIntArgument",
    "TensorArgument",
    "dims",
    "export",
]

LAZY = {"load": "tallow.export.files:load", "save": "tallow.export.files:save"}
__all__ += list(LAZY)

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
