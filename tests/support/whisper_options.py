"""Whisper decoding and transcription options compared with OpenAI's code, also inside Pyodide."""

from __future__ import annotations

from typing import Any

DECODING: dict[str, dict[str, Any]] = {
    "greedy": {"sample_len": 30},
    "beams": {"beam_size": 3, "without_timestamps": True, "sample_len": 12},
    "prompt and prefix": {"prompt": "Hello there.", "prefix": "So it", "sample_len": 20},
}
# Accept every decoded text: a fallback would sample at a higher temperature.
TRANSCRIBING: dict[str, Any] = {
    "temperature": 0.0,
    "sample_len": 30,
    "logprob_threshold": None,
    "compression_ratio_threshold": None,
    "no_speech_threshold": None,
}
