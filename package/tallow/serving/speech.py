"""Transcripts of sounds: a window of each request at a time, all of them at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tallow.audio.mel import FRAMES_PER_SECOND, MelWindows
from tallow.audio.sound import Sound
from tallow.errors import ArgumentError
from tallow.models.whisper import Transcript, Transcription, Whisper, transcribe_next
from tallow.models.whisper.segments import Segment
from tallow.models.whisper.transcribe import temperatures_from
from tallow.serving.queue import Closed
from tallow.serving.worker import Job, Worker

MAX_SECONDS = 4 * 3600
MOST_SOUNDS, MOST_BYTES = 8, 1 << 30  # that are transcribed at once, and of their keys and values


@dataclass
class SpeechRequest:
    """A sound to transcribe.

    Args:
        sound: as `SpeechWorker.read` returns it.
        prompt: text that could precede the sound, such as names to expect.
        words: also compute the time of each word.
        on_segment: called with each segment as it is heard, in the worker's thread.
        is_wanted: returns whether to go on; called before each window, in the worker's thread.
    """

    sound: MelWindows
    language: str | None = None
    prompt: str | None = None
    temperature: float = 0.0
    words: bool = False
    task: str = "transcribe"
    on_segment: Callable[[Segment], None] = lambda segment: None
    is_wanted: Callable[[], bool] = lambda: True


@dataclass
class _Active:
    """A request that is being answered."""

    job: Job[SpeechRequest, Transcript]
    run: Transcription
    started: float

    @property
    def goes_on(self) -> bool:
        """True if there is more to hear, and somebody who wants it."""
        return not self.run.is_done and self.job.request.is_wanted()


class SpeechWorker(Worker[SpeechRequest, Transcript]):
    """Transcribes sounds with one Whisper, in rounds: each decodes the next window of every request, so that a short
    sound does not wait for the end of a long one.

    Args:
        queue: how many requests may wait.
        context: use the text of one window as the context of the next.
    """

    def __init__(self, name: str, model: Whisper, *, queue: int = 32, context: bool = True) -> None:
        config = model.config
        of_sound = 2 * 4 * config.decoder_layers * config.max_source_positions * config.d_model
        super().__init__(name, queue=queue)
        self.model = model
        self._most = max(1, min(MOST_SOUNDS, MOST_BYTES // of_sound))
        self._context = context
        self._active: list[_Active] = []

    @property
    def active(self) -> int:
        """The number of sounds that are being transcribed."""
        return len(self._active)

    def read(self, data: bytes, name: str = "the file") -> MelWindows:
        """Return the sound in the bytes of an audio file.

        This takes time for a long one, and may be done in any thread.

        Raises:  AudioError; ArgumentError for a sound that is too long; Busy and Closed as `submit`, at once
        """
        self.line.require_room()
        sound = MelWindows(Sound(data, name=name), self.model.config.num_mel_bins)
        if (seconds := sound.frames // FRAMES_PER_SECOND) > MAX_SECONDS:
            raise ArgumentError(f"{name} takes {seconds} s; the limit is {MAX_SECONDS}", hint="send it in parts")
        return sound

    def _run(self) -> None:
        while (taken := self.line.take(self._most - self.active, wait=not self._active)) is not None:
            for job in taken:
                if job.result.set_running_or_notify_cancel():
                    self._begin(job)
            self._advance()
        for each in self._active:
            each.job.result.set_exception(Closed())

    def _begin(self, job: Job[SpeechRequest, Transcript]) -> None:
        started, request = time.monotonic(), job.request
        try:
            run = Transcription(
                self.model,
                request.sound,
                task=request.task,
                language=request.language,
                initial_prompt=request.prompt,
                word_timestamps=request.words,
                temperature=temperatures_from(request.temperature),
                condition_on_previous_text=self._context,
            )
        except Exception as error:  # of this request, such as an unknown language
            job.result.set_exception(error)
        else:
            self._active.append(_Active(job, run, started))

    def _advance(self) -> None:
        """Decode a window of each request; end those that are done, or no longer wanted."""
        going = [each for each in self._active if each.goes_on]
        if not self._decode(going) and len(going) > 1:
            for each in going:  # find the one that fails
                self._decode([each])
        for each in self._active:
            if not each.goes_on and not each.job.result.done():
                self.line.served((time.monotonic() - each.started) / self.active)
                each.job.result.set_result(each.run.transcript())
        self._active = [each for each in self._active if not each.job.result.done()]

    def _decode(self, those: Sequence[_Active]) -> bool:
        """Decode a window of each; return False if several fail together. One that fails alone is ended."""
        request_of = {each.run: each.job.request for each in those}
        try:
            for run, segments in transcribe_next([*request_of]):
                for segment in segments:
                    request_of[run].on_segment(segment)
        except Exception as error:  # of the model or the sound; the thread goes on
            if len(those) == 1:
                those[0].job.result.set_exception(error)
            return False
        return True
