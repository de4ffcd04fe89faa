"""Transcripts of several requests: a window of each at a time, at once where they allow it."""

from __future__ import annotations

import gc
import io
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.long_sounds import flac_of_silence
from support.small_server import HANG_S, KEY, Running, connected

import tallow as tl
from tallow.audio import Sound
from tallow.audio.mel import MelWindows
from tallow.errors import AudioError
from tallow.models.built_in import spoken
from tallow.models.whisper import Transcript, Transcription, decoding, transcribe
from tallow.serving import speech
from tallow.serving.catalog import built_in_speech
from tallow.serving.queue import Busy, Closed
from tallow.serving.speech import SpeechRequest, SpeechWorker


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of windows that were decoded at once."""
    sizes: list[int] = []

    def decode_batch(model: Any, audio: tl.Tensor, options: Sequence[Any]) -> Any:
        sizes.append(len(options))
        return decoding.decode_batch(model, audio, options)

    monkeypatch.setattr(sys.modules[Transcription.__module__], "decode_batch", decode_batch)
    return sizes


@pytest.fixture
def worker() -> Iterator[SpeechWorker]:
    """A worker that is not started yet, so that requests wait for each other."""
    worker = built_in_speech(queue=8)
    yield worker
    worker.stop()


@pytest.fixture(scope="module")
def samples(sound: Path) -> npt.NDArray[np.float32]:
    """Six seconds; the model hears five at once."""
    return Sound(sound).read()


def request_of(samples: npt.NDArray[np.float32], **options: Any) -> SpeechRequest:
    return SpeechRequest(MelWindows([samples], spoken.load().config.num_mel_bins), **options)


def heard(transcript: Transcript) -> list[tuple[float, float, str]]:
    return [(segment.start, segment.end, segment.text) for segment in transcript.segments]


def test_windows_of_several_requests_are_decoded_at_once(
    worker: SpeechWorker, samples: npt.NDArray[np.float32], batches: list[int]
) -> None:
    parts = [samples, samples[20_000:], samples[-30_000:], np.tile(samples, 3)]
    futures = [worker.submit(request_of(part)) for part in parts]
    worker.start()
    found = [future.result(60) for future in futures]
    assert batches[0] == 4
    for part, transcript in zip(parts, found, strict=True):
        assert heard(transcript)
        assert heard(transcript) == heard(transcribe(worker.model, part, condition_on_previous_text=False))


def test_a_short_sound_does_not_wait_for_the_end_of_a_long_one(
    worker: SpeechWorker, samples: npt.NDArray[np.float32]
) -> None:
    segments: list[float] = []
    before: list[int] = []  # the segments of the long sound until the short one had ended
    long = worker.submit(request_of(np.tile(samples, 6), on_segment=lambda segment: segments.append(segment.end)))
    short = worker.submit(request_of(samples[-30_000:]))
    short.add_done_callback(lambda _: before.append(len(segments)))
    worker.start()
    assert heard(short.result(60))
    assert segments == [segment.end for segment in long.result(60).segments]
    assert before[0] < len(segments) / 3


@pytest.mark.parametrize("loudness", [0, 1], ids=["silence", "speech"])
def test_a_request_that_nobody_wants_ends_before_its_next_window(
    worker: SpeechWorker, samples: npt.NDArray[np.float32], loudness: float, batches: list[int]
) -> None:
    future = worker.submit(request_of(np.tile(samples * loudness, 6), is_wanted=lambda: not batches))
    worker.start()
    assert len(future.result(60).segments) < 6
    assert len(batches) <= 6  # one window, at the temperatures of a text that is unlikely


def test_a_request_that_fails_leaves_the_others_alone(
    worker: SpeechWorker, samples: npt.NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [request_of(samples) for _ in range(3)]
    bad = requests[1].sound
    window: Callable[[int, int], Any] = bad.window
    monkeypatch.setattr(bad, "window", lambda start, count: window(start, count) * np.float32("nan"))
    futures: list[Future[Transcript]] = [worker.submit(request) for request in requests]
    unknown = worker.submit(request_of(samples, language="xx"))
    worker.start()
    assert [future.exception(60) is None for future in futures] == [True, False, True]
    assert heard(futures[0].result()) == heard(futures[2].result())
    with pytest.raises(ValueError, match="unknown language"):
        unknown.result(60)


def test_the_queue_is_bounded_and_closes(worker: SpeechWorker, samples: npt.NDArray[np.float32]) -> None:
    futures = [worker.submit(request_of(samples)) for _ in range(8)]
    with pytest.raises(Busy):
        worker.read(io.BytesIO(), "a file", lambda: True)  # before it is decoded
    worker.stop()
    for future in futures:
        with pytest.raises(Closed):
            future.result(60)
    with pytest.raises(Closed):
        worker.read(io.BytesIO(), "a file", lambda: True)


def test_a_worker_that_stops_ends_its_requests(worker: SpeechWorker, samples: npt.NDArray[np.float32]) -> None:
    future = worker.submit(request_of(np.tile(samples, 6), on_segment=lambda segment: worker.line.close()))
    worker.start()
    with pytest.raises(Closed):
        future.result(60)


# ------------------------------------------------------------------------------------------------------------- reading


class Endless:
    """Stands for `Sound`: a sound without an end, for as long as it is wanted, but an hour at most."""

    def __init__(self) -> None:
        self.active = 0
        self.most = 0
        self.begun = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)
        self._lock = threading.Lock()

    def __call__(self, data: bytes, name: str, limit_s: float) -> Iterator[npt.NDArray[np.float32]]:
        with self._lock:
            self.active += 1
            self.most = max(self.most, self.active)
        self.begun.release()
        try:
            for _ in range(3600):
                yield np.zeros(16000, np.float32)
        finally:
            self.active -= 1
            self.ended.release()


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Endless:
    found = Endless()
    monkeypatch.setattr(speech, "Sound", found)
    return found


def test_a_sound_that_is_too_long_is_refused_at_the_limit(
    worker: SpeechWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("soundfile")
    monkeypatch.setattr(speech, "LIMIT_S", 30.0)
    sound = io.BytesIO(flac_of_silence(1000, says=0))
    worker.start()
    with pytest.raises(AudioError, match=r"a\.flac takes 3[0-9] s; the limit is 30"):
        worker.read(sound, "a.flac", lambda: True).result(HANG_S)


def test_reading_ends_when_nobody_wants_the_sound(worker: SpeechWorker, endless: Endless) -> None:
    left = threading.Event()
    worker.start()
    reading = worker.read(io.BytesIO(), "a file", lambda: not left.is_set())
    assert endless.begun.acquire(timeout=HANG_S)
    left.set()
    assert isinstance(reading.exception(HANG_S), speech.Unwanted)
    assert endless.ended.acquire(timeout=HANG_S)


def test_sounds_are_read_in_threads_of_their_own_and_a_few_at_once(worker: SpeechWorker, endless: Endless) -> None:
    worker.start()
    readings = [worker.read(io.BytesIO(), "a file", lambda: True) for _ in range(worker.line.limit)]
    with pytest.raises(Busy):
        worker.read(io.BytesIO(), "a file", lambda: True)
    for _ in range(speech.READERS):
        assert endless.begun.acquire(timeout=HANG_S)
    worker.stop()
    assert all(reading.done() for reading in readings)
    assert endless.most == speech.READERS < len(readings)
    with pytest.raises(Closed):
        worker.read(io.BytesIO(), "a file", lambda: True)


def test_sounds_that_wait_are_bounded_by_their_bytes(
    worker: SpeechWorker, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("soundfile")
    data = sound.read_bytes()
    monkeypatch.setattr(speech, "MOST_SOUND_BYTES", 2 * len(data))
    worker.start()
    kept = [worker.read(io.BytesIO(data), "a file", lambda: True).result(HANG_S) for _ in range(2)]
    with pytest.raises(Busy):
        worker.read(io.BytesIO(data), "a file", lambda: True)
    del kept[0]
    gc.collect()
    with pytest.raises(AudioError):
        worker.read(io.BytesIO(b"not a sound"), "a file", lambda: True).result(HANG_S)
    worker.read(io.BytesIO(data), "a file", lambda: True).result(HANG_S)


@pytest.mark.parametrize("stream", ["false", "true"])
def test_a_client_that_leaves_ends_the_reading_of_its_sound(server: Running, endless: Endless, stream: str) -> None:
    part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    file = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n0\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Authorization": f"Bearer {KEY}"}
    with connected(server) as connection:
        connection.request("POST", "/v1/audio/transcriptions", part.format("stream", stream) + file, headers)
        assert endless.begun.acquire(timeout=HANG_S)
    assert endless.ended.acquire(timeout=HANG_S)
    assert endless.active == 0
