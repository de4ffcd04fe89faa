"""Convert text to token ids and back."""

from tallow.lazy_names import names_of
from tallow.text.llama2c import Llama2cTokenizer

__all__ = ["ChatTemplate", "Llama2cTokenizer", "Tokenizer"]

__getattr__, __dir__ = names_of(
    __name__, {"ChatTemplate": "tallow.text.chat:ChatTemplate", "Tokenizer": "tallow.text.tokenizer:Tokenizer"}
)
