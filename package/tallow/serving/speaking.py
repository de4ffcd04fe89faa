"""Sounds of sentences: one request at a time, so that a short text does not wait for the end of a long one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.serving.worker import GroupWorker

if TYPE_CHECKING:  # servers that do not speak start without it
    from tallow.transformers.speaking import Speaker

Samples = npt.NDArray[np.float32]


class Utterance(NamedTuple):
    """A sentence to speak.

    Args:    voice, speed: as for `Speaker.speak`
    """

    sentence: str
    voice: int | None = None
    speed: float = 1.0


class SpeakingWorker(GroupWorker[Utterance, Samples]):
    """Speaks sentences with one model. The sound of a sentence without letters that the model knows is empty.

    Args:
        queue: how many sentences may wait.
    """

    def __init__(self, name: str, speaker: Speaker, *, queue: int = 128) -> None:
        super().__init__(name, queue=queue, group=1)
        self.speaker = speaker

    def answer(self, requests: Sequence[Utterance]) -> Sequence[Samples]:
        return [self._sound(each) for each in requests]

    def _sound(self, request: Utterance) -> Samples:
        found = list(self.speaker.speak([request.sentence], request.voice, request.speed))
        return found[0] if found else np.zeros(0, np.float32)
