"""Speak texts of any length, sentence by sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tallow import accelerator
from tallow.errors import ArgumentError, NumericError, UnsupportedError
from tallow.tape.modes import no_grad
from tallow.transformers.auto import AutoModelForTextToWaveform
from tallow.transformers.auto_tokenizer import AutoTokenizer

Samples = npt.NDArray[np.float32]
LONGEST = 300  # letters of a sentence; a longer one is split at a space
PAUSE_S = 0.2  # between sentences
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|[。！？]++|\n")  # of a sentence


class Speaker:
    """A model that speaks, with its tokenizer.

    Args:
        model: a VitsModel.
        tokenizer: its tokenizer.

    Example:
        speaker = Speaker.from_pretrained("facebook/mms-tts-eng")
        sound = speaker.joined(speaker.speak(speaker.sentences("Hello. How are you?")))
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        self.sampling_rate: int = model.config.sampling_rate
        self.voices: int = model.config.num_speakers

    @classmethod
    def from_pretrained(cls, name: str | Path, device: Any = None) -> Self:
        """Load the folder of a model, or its repository on the Hub.

        Args:    device: None means a GPU if there is one
        Raises:  as `AutoModelForTextToWaveform.from_pretrained` and `AutoTokenizer.from_pretrained`
        """
        model = AutoModelForTextToWaveform.from_pretrained(name)
        if device is not None or accelerator.is_available():
            model.to(accelerator.current_accelerator() if device is None else device)
        return cls(model, AutoTokenizer.from_pretrained(name))

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text, long ones in parts."""
        places = [0, *(end.end() for end in _END.finditer(text)), len(text)]
        found = (text[begin:end].strip() for begin, end in pairwise(places))
        return [part for each in found if each for part in _parts(each)]

    def speak(self, sentences: Iterable[str], voice: int | None = None, speed: float = 1.0) -> Iterator[Samples]:
        """Yield the sound of each sentence, (N,). Sentences without letters that the model knows have none.

        Args:
            voice: the number of the voice, of a model with several; None means 0.
            speed: 1 for the model's.

        Raises:  ArgumentError for a voice or a speed that the model does not have; NumericError for a sound that holds
                 NaN
        """
        if voice is not None and not 0 <= voice < self.voices:
            raise ArgumentError(f"voice {voice}", hint=f"the model has voices 0 to {self.voices - 1}")
        own = {} if self.voices == 1 else {"speaker_id": voice or 0}
        rate = self.model.speaking_rate * speed
        for sentence in sentences:
            ids = self.tokenizer(sentence, return_tensors="pt")["input_ids"]
            if ids.shape[-1]:
                with no_grad():
                    result = self.model(ids.to(next(self.model.parameters()).device), speaking_rate=rate, **own)
                sound = result.waveform[0].float().cpu().numpy()
                if not np.isfinite(sound).all():
                    raise NumericError("the sound holds NaN or infinities", hint="check the weights of the model")
                yield sound

    @property
    def pause(self) -> Samples:
        """The silence between sentences."""
        return np.zeros(round(PAUSE_S * self.sampling_rate), np.float32)

    def joined(self, parts: Iterable[Samples]) -> Samples:
        """Return the sound of sentences with pauses between them.  Raises: UnsupportedError if there are none"""
        found = [each for part in parts for each in (self.pause, part)][1:]
        if not found:
            raise UnsupportedError(
                "the text has nothing that the model can say", hint="check the language of the model"
            )
        return np.concatenate(found)


def _parts(sentence: str) -> Iterator[str]:
    """Yield a sentence in parts of at most LONGEST letters, split at spaces where it has any."""
    while len(sentence) > LONGEST:
        at = sentence.rfind(" ", 1, LONGEST)
        at = LONGEST if at < 0 else at
        yield sentence[:at].strip()
        sentence = sentence[at:].strip()
    if sentence:
        yield sentence
