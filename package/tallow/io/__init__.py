"""Files: reading and writing arrays, each format in a module of its own."""

from tallow.io import gguf, llama2c, npz, pytorch, safetensors
from tallow.io.files import load, save
from tallow.names import names_of

__all__ = ["gguf", "llama2c", "load", "npz", "pytorch", "safetensors", "save"]

__getattr__, __dir__ = names_of(__name__)
