"""All that a training run depends on."""

from __future__ import annotations

from dataclasses import dataclass

from tallow import training
from tallow.models.whisper import WhisperConfig


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """Equal settings give equal weights, on one kind of machine. The defaults are those of the model in the wheel.

    Attributes:
        clips, held_out: how many phrases are said for training, and how many for evaluation.
        longest_phrase: words.
        positions: of the encoder, 20 ms each: what the model hears at once.
        context: tokens that the decoder reads.
        full_share: the share of the last steps, whose windows are as long as those of inference; before, they are no
            longer than the longest sound in them.
        pool: how many batches are sorted by length together.
        spoken_weight: of the loss by which the encoder alone is to tell which word is being said when.
        validation_clips: how many held-out ones the validation is of.
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
