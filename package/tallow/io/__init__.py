"""Read and write files of arrays; one module per format."""

from tallow.io import gguf, llama2c, npz, pytorch, safetensors
from tallow.io.checkpoint import load_checkpoint, save_checkpoint
from tallow.io.files import load, save
from tallow.lazy_names import names_of

__all__ = ["gguf", "llama2c", "load", "load_checkpoint", "npz", "pytorch", "safetensors", "save", "save_checkpoint"]

__getattr__, __dir__ = names_of(__name__)
