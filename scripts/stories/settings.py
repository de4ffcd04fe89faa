"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass

from tallow import training
from tallow.models.decoders.llama import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """Settings of a run; equal settings give equal weights on one kind of machine. Defaults: the built-in model's.

    Attributes:
        stories: number of generated stories; the first `held_out` are the test set.
        tokenizer_stories: number of stories for training the tokenizer.
        context: length of a training row in tokens; no story with its marks is longer.
        validation_rows: number of rows of the test set for the validation loss.
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
        """BOS ends a text: it precedes the next one."""
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
