"""All that a training run depends on."""

from __future__ import annotations

from dataclasses import dataclass

from tallow import training
from tallow.models.llama import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """Equal settings give equal weights, on one kind of machine. The defaults are those of the model in the wheel.

    Attributes:
        stories: how many are told; the first `held_out` of them are for evaluation only.
        tokenizer_stories: how many the vocabulary is learnt from.
        context: the length of a training row; no story with its marks is longer.
        validation_rows: how many rows of held-out stories the validation loss is taken of.
    """

    stories: int = 64_000
    held_out: int = 2_000
    tokenizer_stories: int = 20_000

    vocab_size: int = 1024
    hidden_size: int = 96
    intermediate_size: int = 256
    layers: int = 4
    heads: int = 4
    context: int = 256
    initializer_range: float = 0.1

    steps: int = 3600
    learning_rate: float = 4e-3
    validation_rows: int = 64

    def llama_config(self) -> LlamaConfig:
        """BOS ends a text: it stands before the next."""
        return LlamaConfig(
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            intermediate_size=self.intermediate_size,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.heads,
            max_position_embeddings=self.context,
            rms_norm_eps=1e-5,
            tie_word_embeddings=True,
            initializer_range=self.initializer_range,
            eos_token_id=(1, 2),
        )
