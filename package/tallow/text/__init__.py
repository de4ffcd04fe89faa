"""Text to token ids and back."""

from tallow.text.llama2c import Llama2cTokenizer

__all__ = ["Llama2cTokenizer"]
