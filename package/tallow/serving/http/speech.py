"""`/v1/audio/transcriptions` and `/v1/audio/translations`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tallow.audio.mel import MelWindows
from tallow.models.whisper import Transcript
from tallow.models.whisper.segments import Segment
from tallow.models.whisper.writers import WRITERS
from tallow.serving.http.clients import client_of
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.http.fields import Fields
from tallow.serving.http.running import Answer, unless_gone
from tallow.serving.http.streaming import EventStream
from tallow.serving.speech import SpeechRequest, SpeechWorker

FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
GRANULARITIES = ("segment", "word")


def transcripts(fields: Fields, worker: SpeechWorker, task: str) -> Answer:
    """Return what answers with the transcript of a file.

    Args:    fields: of a multipart request
    Raises:  ApiError; the answer too, ClientGone
    """
    file = fields.get("file")
    if not isinstance(file, UploadFile):
        raise ApiError("file: expected an audio file, as a part of multipart/form-data", "file")
    kind = fields.choice("response_format", FORMATS)
    granularities = fields.items("timestamp_granularities[]", len(GRANULARITIES))
    if not set(granularities) <= set(GRANULARITIES):
        raise fields.wrong("timestamp_granularities[]", f"some of {', '.join(GRANULARITIES)}")
    temperature = _temperature(fields)
    language, prompt = fields.text("language") or None, fields.text("prompt") or None
    is_stream = fields.choice("stream", ("false", "true")) == "true"
    if is_stream and kind not in ("json", "text"):
        raise ApiError("response_format: a stream has the format json or text", "response_format")

    async def answer(request: Request) -> Response:
        run = _Run(worker, client_of(request))
        try:
            sound = await unless_gone(request, run.read(file))
            run.begin(
                SpeechRequest(
                    sound,
                    language=language,
                    prompt=prompt,
                    temperature=temperature,
                    words="word" in granularities,
                    task=task,
                )
            )
            if is_stream:
                return EventStream(run.events(), run.cancel, path=request.url.path, done=None)
            transcript = await unless_gone(request, run.result())
        except BaseException:
            run.cancel()
            raise
        if kind == "json":
            return JSONResponse({"text": transcript.text.strip()})
        if kind == "verbose_json":
            return JSONResponse(_verbose(transcript, task, words="word" in granularities))
        text = transcript.text.strip() + "\n" if kind == "text" else WRITERS[kind](transcript)
        return PlainTextResponse(text)

    return answer


class _Run:
    """A request while a worker reads and transcribes it."""

    def __init__(self, worker: SpeechWorker, client: str) -> None:
        self._worker = worker
        self._client = client
        self._is_wanted = True
        self._heard: asyncio.Queue[str | None] = asyncio.Queue()  # None at the end
        self._result: Future[Transcript] = Future()

    async def read(self, file: UploadFile) -> MelWindows:
        """Read the sound.  Raises: as the worker"""
        reading = self._worker.read(file.file, file.filename or "the file", lambda: self._is_wanted, self._client)
        return await asyncio.wrap_future(reading)

    def begin(self, request: SpeechRequest) -> None:
        """Enqueue the request.  Raises: Busy if too many wait; Closed"""
        loop = asyncio.get_running_loop()

        def put(text: str | None) -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(self._heard.put_nowait, text)

        def on_segment(segment: Segment) -> None:
            put(segment.text)

        request = replace(request, on_segment=on_segment, is_wanted=lambda: self._is_wanted)
        self._result = self._worker.submit(request, self._client)
        self._result.add_done_callback(lambda _: put(None))

    def cancel(self) -> None:
        """Leave the queue, or end after the block that is being read, or the window that is being heard."""
        self._is_wanted = False
        self._result.cancel()

    async def result(self) -> Transcript:
        """Return the transcript."""
        return await asyncio.wrap_future(self._result)

    async def events(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events of a stream.  Raises: ApiError"""
        is_first = True
        while (text := await self._heard.get()) is not None:
            if text := text.lstrip() if is_first else text:
                is_first = False
                yield {"type": "transcript.text.delta", "delta": text}
        try:
            transcript = self._result.result()
        except Exception as error:
            raise api_error(error) from error
        yield {"type": "transcript.text.done", "text": transcript.text.strip()}


def _temperature(fields: Fields) -> float:
    text = fields.text("temperature") or "0"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise fields.wrong("temperature", "a number from 0 to 1")
    return value


def _verbose(transcript: Transcript, task: str, *, words: bool) -> dict[str, Any]:
    segments = [asdict(segment) for segment in transcript.segments]
    spoken = [
        {name: word[name] for name in ("word", "start", "end")}
        for segment in segments
        for word in segment.pop("words") or ()
    ]
    return {
        "task": task,
        "language": transcript.language,
        "duration": transcript.duration_s,
        "text": transcript.text.strip(),
        "segments": segments,
    } | ({"words": spoken} if words else {})
