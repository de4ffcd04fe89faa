"""`/v1/audio/transcriptions` and `/v1/audio/translations`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tallow.models.whisper import Transcript
from tallow.models.whisper.segments import Segment
from tallow.models.whisper.writers import WRITERS
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.http.fields import Fields
from tallow.serving.http.running import unless_gone
from tallow.serving.http.streaming import EventStream
from tallow.serving.speech import SpeechRequest, SpeechWorker

FORMATS = ("json", "text", "srt", "verbose_json", "vtt")


async def transcripts(request: Request, form: Mapping[str, Any], worker: SpeechWorker, task: str) -> Response:
    """Answer with the transcript of a file.

    Args:    form: the fields of a multipart request
    Raises:  ApiError; ClientGone
    """
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise ApiError("file: expected an audio file, as a part of multipart/form-data", "file")
    fields = Fields({name: value for name, value in form.items() if isinstance(value, str)})
    kind = fields.choice("response_format", FORMATS)
    # FormData lists the values of a repeated name; `words` is one of two.
    granularities = form.getlist("timestamp_granularities[]") if hasattr(form, "getlist") else []
    temperature = _temperature(fields)
    is_stream = fields.choice("stream", ("false", "true")) == "true"
    if is_stream and kind not in ("json", "text"):
        raise ApiError("response_format: a stream has the format json or text", "response_format")

    wanted = SpeechRequest(
        await run_in_threadpool(worker.read, await file.read(), file.filename or "the file"),
        language=fields.text("language") or None,
        prompt=fields.text("prompt") or None,
        temperature=temperature,
        words="word" in granularities,
        task=task,
    )
    run = _Run(worker, wanted)
    if is_stream:
        return EventStream(run.events(), run.cancel, path=request.url.path, done=None)
    try:
        transcript = await unless_gone(request, run.result())
    finally:
        run.cancel()
    if kind == "json":
        return JSONResponse({"text": transcript.text.strip()})
    if kind == "verbose_json":
        return JSONResponse(_verbose(transcript, task, words=wanted.words))
    text = transcript.text.strip() + "\n" if kind == "text" else WRITERS[kind](transcript)
    return PlainTextResponse(text)


class _Run:
    """A request while a worker transcribes it.  Raises: Busy if too many wait; Closed"""

    def __init__(self, worker: SpeechWorker, wanted: SpeechRequest) -> None:
        loop = asyncio.get_running_loop()
        self._is_wanted = True
        self._heard: asyncio.Queue[str | None] = asyncio.Queue()  # None at the end

        def put(text: str | None) -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(self._heard.put_nowait, text)

        def on_segment(segment: Segment) -> None:
            put(segment.text)

        self._result = worker.submit(replace(wanted, on_segment=on_segment, is_wanted=lambda: self._is_wanted))
        self._result.add_done_callback(lambda _: put(None))

    def cancel(self) -> None:
        """Leave the queue, or end after the window that is being heard."""
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
