"""A small Whisper for one second of audio."""

from __future__ import annotations

from tallow.models.whisper import WhisperConfig


def small_config(vocab_size: int) -> WhisperConfig:
    return WhisperConfig(
        vocab_size=vocab_size,
        num_mel_bins=8,
        d_model=16,
        encoder_layers=1,
        encoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_layers=2,
        decoder_attention_heads=2,
        decoder_ffn_dim=32,
        max_source_positions=50,  # one second
        max_target_positions=40,
        initializer_range=0.5,
    )
