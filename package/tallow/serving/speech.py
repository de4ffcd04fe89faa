"""Transcripts of sounds: a window of each request at a time, all of them at once."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tallow.audio.mel import MelWindows
from tallow.audio.sound import Sound
from tallow.errors import TallowError
from tallow.models.whisper import Transcript, Transcription, Whisper, transcribe_next
from tallow.models.whisper.segments import Segment
from tallow.models.whisper.transcribe import temperatures_from
from tallow.serving.queue import Busy, Closed
from tallow.serving.worker import Job, Threads, Worker

LIMIT_S = 4 * 3600.0  # of a sound, which is read in some seconds
MOST_SOUND_BYTES = 512 << 20  # of the files of all sounds that are read, or wait for that or for the model
READERS = 4  # threads that read sounds, apart from those that all endpoints share: a long one keeps none of them
MOST_SOUNDS, MOST_BYTES = 8, 1 << 30  # that are transcribed at once, and of their keys and values


@dataclass
class SpeechRequest:
    """A sound to transcribe.

    Args:
        sound: as `SpeechWorker.read` reads it.
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


class Unwanted(TallowError, RuntimeError):
    """The client has left, or the server stops."""

    def __init__(self) -> None:
        super().__init__("nobody waits for the transcript")


class _Wanted:
    """The blocks of a sound, while they are wanted.  Raises: while iterating, Unwanted"""

    def __init__(self, sound: Sound, is_wanted: Callable[[], bool]) -> None:
        self._sound = sound
        self._is_wanted = is_wanted

    def __iter__(self) -> Iterator[npt.NDArray[np.float32]]:
        with closing(iter(self._sound)) as blocks:
            for block in blocks:
                if not self._is_wanted():
                    raise Unwanted
                yield block


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
        self._bins = config.num_mel_bins
        self._readers = Threads(f"{name} reader", READERS, queue=queue)
        self._lock = threading.Lock()
        self._reading: Counter[str] = Counter()  # by client, the sounds that are read, or wait for that
        self._unread = 0  # bytes of their files
        self._sounds: WeakKeyDictionary[MelWindows, int] = WeakKeyDictionary()  # those that were read, with their bytes
        self._active: list[_Active] = []

    @property
    def active(self) -> int:
        """The number of sounds that are being transcribed."""
        return len(self._active)

    def read(self, file: BinaryIO, name: str, is_wanted: Callable[[], bool], client: str = "") -> Future[MelWindows]:
        """Read the sound in an audio file, in one of the worker's threads for that.

        Args:
            is_wanted: returns whether to go on; called between the blocks of the sound, also while it is transcribed.

        Raises:  Busy and Closed as `submit`, at once; the future AudioError, and Unwanted
        """
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        with self._lock:
            self.line.require_room(client, 1 + self._reading[client])  # those that are read will wait in the line
            held = self._unread + sum(self._sounds.values())
            if held and held + size > MOST_SOUND_BYTES:
                raise Busy(len(self.line) + self._reading.total(), self.line.retry_after_s)
            reading = self._readers.submit(partial(self._read, file, name, is_wanted), client)
            self._reading[client] += 1
            self._unread += size
        reading.add_done_callback(partial(self._has_read, client, size))
        return reading

    def _has_read(self, client: str, size: int, reading: Future[MelWindows]) -> None:
        with self._lock:
            self._reading[client] -= 1
            self._reading += Counter()  # without the clients that have none
            self._unread -= size
            if not reading.cancelled() and reading.exception() is None:
                self._sounds[reading.result()] = size

    def _read(self, file: BinaryIO, name: str, is_wanted: Callable[[], bool]) -> MelWindows:
        def goes_on() -> bool:
            return is_wanted() and not self.line.is_closed

        if not goes_on():
            raise Unwanted
        return MelWindows(_Wanted(Sound(file.read(), name=name, limit_s=LIMIT_S), goes_on), self._bins)

    def start(self) -> None:
        """Start the threads."""
        super().start()
        self._readers.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Refuse further requests, also those that wait, and wait for the threads to end."""
        super().stop(timeout_s)
        self._readers.stop(timeout_s)  # those that run end after their blocks

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
