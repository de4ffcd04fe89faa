"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass

from tallow import training
from tallow.models.whisper import WhisperConfig


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """Settings of a run; equal settings give equal weights on one kind of machine. Defaults: the built-in model's.

    Attributes:
        clips, held_out: number of spoken phrases in the training set and in the test set.
        longest_phrase: in words.
        positions: encoder positions of 20 ms each: the length of a window.
        context: decoder positions in tokens.
        full_share: fraction of the steps, at the end, with windows as long as in inference; before, windows are as
            long as the longest sound in the batch.
        pool: number of batches that are sorted by length together.
        spoken_weight: weight of the loss of the encoder's temporary head, which predicts the word at each position.
        validation_clips: number of test phrases in a validation.
    """

    clips: int = 40_000
    held_out: int = 600
    longest_phrase: int = 11

    width: int = 128
    heads: int = 4
    encoder_layers: int = 3
    encoder_inner: int = 384
    decoder_layers: int = 2
    decoder_inner: int = 256
    positions: int = 250
    context: int = 64
    initializer_range: float = 0.06

    steps: int = 3000
    full_share: float = 0.3
    batch_size: int = 32
    pool: int = 8
    spoken_weight: float = 1.0
    learning_rate: float = 2e-3
    final_learning_rate: float = 2e-5
    warmup_steps: int = 150
    weight_decay: float = 0.05
    validate_every: int = 200
    validation_clips: int = 100

    def whisper_config(self, vocab_size: int) -> WhisperConfig:
        return WhisperConfig(
            vocab_size=vocab_size,
            num_mel_bins=80,
            d_model=self.width,
            encoder_layers=self.encoder_layers,
            encoder_attention_heads=self.heads,
            encoder_ffn_dim=self.encoder_inner,
            decoder_layers=self.decoder_layers,
            decoder_attention_heads=self.heads,
            decoder_ffn_dim=self.decoder_inner,
            max_source_positions=self.positions,
            max_target_positions=self.context,
            initializer_range=self.initializer_range,
        )
