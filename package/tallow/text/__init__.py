"""Text to token ids and back."""

from tallow.names import names_of
from tallow.text.llama2c import Llama2cTokenizer

__all__ = ["Llama2cTokenizer", "Tokenizer"]

__getattr__, __dir__ = names_of(__name__, {"Tokenizer": "tallow.text.tokenizer:Tokenizer"})
