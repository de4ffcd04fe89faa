"""Transcripts of sounds, one request after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tallow.audio.sound import Sound
from tallow.errors import ArgumentError
from tallow.models.whisper import Transcript, Transcription, Whisper
from tallow.models.whisper.segments import Segment
from tallow.models.whisper.transcribe import temperatures_from
from tallow.serving.worker import Worker

MAX_SECONDS = 4 * 3600


@dataclass
class SpeechRequest:
    """A sound to transcribe.

    Args:
        data: the bytes of an audio file.
        prompt: text that could precede the sound, such as names to expect.
        words: also compute the time of each word.
        on_segment: called with each segment as it is heard, in the worker's thread. Returns whether to go on.
    """

    data: bytes
    name: str = "the file"
    language: str | None = None
    prompt: str | None = None
    temperature: float = 0.0
    words: bool = False
    task: str = "transcribe"
    on_segment: Callable[[Segment], bool] = lambda segment: True


class SpeechWorker(Worker[SpeechRequest, Transcript]):
    """Transcribes sounds with one Whisper.

    Args:
        queue: how many requests may wait.
        context: use the text of one window as the context of the next.
    """

    def __init__(self, name: str, model: Whisper, *, queue: int = 32, context: bool = True) -> None:
        super().__init__(name, queue=queue)
        self.model = model
        self._context = context

    def answer(self, requests: Sequence[SpeechRequest]) -> Sequence[Transcript]:
        return [self._transcribe(request) for request in requests]

    def _transcribe(self, request: SpeechRequest) -> Transcript:
        transcription = Transcription(
            self.model,
            Sound(request.data, name=request.name),
            task=request.task,
            language=request.language,
            initial_prompt=request.prompt,
            word_timestamps=request.words,
            temperature=temperatures_from(request.temperature),
            condition_on_previous_text=self._context,
        )
        if transcription.duration_s > MAX_SECONDS:
            raise ArgumentError(
                f"{request.name} takes {transcription.duration_s:.0f} s; the limit is {MAX_SECONDS}",
                hint="send it in parts",
            )
        for segment in transcription:
            if not request.on_segment(segment):
                break
        return transcription.transcript()
