"""Audio: read files as samples, and compute the spectrograms that speech models need."""

from tallow.audio.mel import MelWindows, log_mel_spectrogram, mel_filters
from tallow.audio.sound import SAMPLE_RATE_HZ, Sound
from tallow.audio.wav import WavReader, write_wav
from tallow.lazy_names import names_of

__all__ = [
    "SAMPLE_RATE_HZ",
    "MelWindows",
    "Sound",
    "WavReader",
    "log_mel_spectrogram",
    "mel_filters",
    "write_wav",
]

__getattr__, __dir__ = names_of(__name__)
