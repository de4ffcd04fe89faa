"""Whisper: the model, and how it makes texts of sound."""

from tallow.models.whisper.model import Whisper, WhisperConfig

__all__ = ["Whisper", "WhisperConfig"]
