"""Files: reading and writing arrays, each format in a module of its own."""

from tallow.io import llama2c, safetensors

__all__ = ["llama2c", "safetensors"]
