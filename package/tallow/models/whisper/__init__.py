"""Whisper: the model, and transcription of sound to text."""

from tallow.models.whisper.decoding import DecodingOptions, DecodingResult, decode, detect_language
from tallow.models.whisper.model import Whisper, WhisperConfig
from tallow.models.whisper.segments import Segment
from tallow.models.whisper.timing import Word
from tallow.models.whisper.transcribe import (
    TranscribeOptions,
    Transcript,
    Transcription,
    transcribe,
    transcribe_next,
)

__all__ = [
    "DecodingOptions",
    "DecodingResult",
    "Segment",
    "TranscribeOptions",
    "Transcript",
    "Transcription",
    "Whisper",
    "WhisperConfig",
    "Word",
    "decode",
    "detect_language",
    "transcribe",
    "transcribe_next",
]
