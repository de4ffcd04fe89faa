"""Synthetic voices: the library of eSpeak NG through ctypes, which reports the start of each word.

Source:  https://github.com/espeak-ng/espeak-ng, `speak_lib.h`
"""

from __future__ import annotations

import ctypes
import ctypes.util
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from tallow.errors import MissingPackageError, TallowError

SYNCHRONOUS, CHARACTERS, UTF8 = 2, 1, 1
RATE, PITCH, PITCH_RANGE = 1, 3, 4
WORD_EVENT = 1

Int16 = npt.NDArray[np.int16]


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),  # from 1
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),  # milliseconds
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


@dataclass(frozen=True)
class Voice:
    """A way to speak.

    Attributes:
        name: a language and, after "+", a variant, as for `espeak-ng -v`.
        rate: words per minute.
        pitch, pitch_range: 0 to 99.
    """

    name: str
    rate: int = 175
    pitch: int = 50
    pitch_range: int = 50


@dataclass(frozen=True)
class Speech:
    """Attributes:  word_starts: the sample at which each word begins"""

    samples: Int16
    word_starts: list[int]


class Espeak:
    """eSpeak NG.

    Attributes:  sample_rate_hz: sample rate of its output
    Raises:  MissingPackageError if the library is not installed
    """

    def __init__(self) -> None:
        self._library, self.sample_rate_hz = _started()
        self._blocks: list[Int16] = []
        self._events: list[tuple[int, int]] = []  # positions in the text and in the sound
        self._callback = _CALLBACK(self._take)  # the library does not keep it alive

    def say(self, words: tuple[str, ...], voice: Voice) -> Speech:
        """Raises:  TallowError for a voice that is not installed"""
        self._library.espeak_SetSynthCallback(self._callback)  # the library has global state
        if self._library.espeak_SetVoiceByName(voice.name.encode()):
            raise TallowError(f"eSpeak NG has no voice {voice.name}")
        for parameter, value in ((RATE, voice.rate), (PITCH, voice.pitch), (PITCH_RANGE, voice.pitch_range)):
            self._library.espeak_SetParameter(parameter, value, 0)
        self._blocks, self._events = [], []
        text = " ".join(words).encode()
        self._library.espeak_Synth(text, len(text) + 1, 0, CHARACTERS, 0, UTF8, None, None)
        samples = np.concatenate([np.zeros(0, np.int16), *self._blocks])
        return Speech(samples, self._word_starts(words, len(samples)))

    def _take(self, samples: ctypes._Pointer[ctypes.c_short], count: int, events: ctypes._Pointer[_Event]) -> int:
        if samples and count > 0:
            self._blocks.append(np.ctypeslib.as_array(samples, (count,)).copy())
        i = 0
        while events[i].type:
            if events[i].type == WORD_EVENT:
                at = events[i].audio_position * self.sample_rate_hz // 1000
                self._events.append((events[i].text_position - 1, at))
            i += 1
        return 0

    def _word_starts(self, words: tuple[str, ...], end: int) -> list[int]:
        """Return the start of each word. A word spoken together with the next, such as "on the", starts with it."""
        starts_at = dict(self._events)
        places = np.cumsum([0, *(len(word) + 1 for word in words[:-1])]).tolist()
        starts = []
        following = end
        for place in reversed(places):
            following = min(following, starts_at.get(place, following))
            starts.append(following)
        return starts[::-1]


@cache
def _started() -> tuple[ctypes.CDLL, int]:
    """Load and start the library, once per process; return it and its sample rate."""
    name = ctypes.util.find_library("espeak-ng")
    if name is None:
        raise MissingPackageError("libespeak-ng", "speech synthesis: apt-get install espeak-ng", "train")
    library = ctypes.CDLL(name)
    sample_rate_hz = library.espeak_Initialize(SYNCHRONOUS, 0, None, 0)
    if sample_rate_hz <= 0:
        raise TallowError("eSpeak NG does not start: its voices are missing")
    return library, sample_rate_hz
