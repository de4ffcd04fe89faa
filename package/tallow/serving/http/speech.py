"""`/v1/audio/transcriptions` and `/v1/audio/translations`."""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tallow.models.whisper import Transcript
from tallow.models.whisper.writers import WRITERS
from tallow.serving.http.errors import ApiError
from tallow.serving.http.fields import Fields
from tallow.serving.http.running import unless_gone
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
    wanted = SpeechRequest(
        await file.read(),
        name=file.filename or "the file",
        language=fields.text("language") or None,
        prompt=fields.text("prompt") or None,
        temperature=_temperature(fields),
        words="word" in granularities,
        task=task,
    )

    async def answer() -> Transcript:
        return await wrap_future(worker.submit(wanted))

    transcript = await unless_gone(request, answer())
    if kind == "json":
        return JSONResponse({"text": transcript.text.strip()})
    if kind == "verbose_json":
        return JSONResponse(_verbose(transcript, task, words=wanted.words))
    text = transcript.text.strip() + "\n" if kind == "text" else WRITERS[kind](transcript)
    return PlainTextResponse(text)


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
