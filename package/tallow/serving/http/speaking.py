"""`/v1/audio/speech`: the sound of a text, which is sent sentence by sentence."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator

import numpy as np
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tallow.audio.wav import pcm_of, wav_head
from tallow.serving.http.clients import client_of, in_turn
from tallow.serving.http.errors import ApiError
from tallow.serving.http.fields import Fields
from tallow.serving.http.running import Answer, unless_gone
from tallow.serving.queue import Busy
from tallow.serving.speaking import Samples, SpeakingWorker, Utterance

MOST_LETTERS = 4096  # as OpenAI's
SPEEDS = (0.25, 4.0)
FORMATS = ("wav", "pcm", "flac")
ROOM_S = 0.1  # before a sentence asks again for room in the queue
DEFAULT = "default"  # the name of a model's only voice, or its first


def spoken(fields: Fields, worker: SpeakingWorker) -> Answer:
    """Return what answers with the sound of `input`.  Raises: ApiError; the answer too, ClientGone"""
    speaker = worker.speaker
    text = fields.required_text("input")
    if not text.strip() or len(text) > MOST_LETTERS:
        raise fields.wrong("input", f"a text of 1 to {MOST_LETTERS} letters")
    voices = (DEFAULT, *map(str, range(speaker.voices)))
    voice = fields.choice("voice", voices)
    kind = fields.choice("response_format", FORMATS)
    speed = fields.number("speed", *SPEEDS)
    sentences = speaker.sentences(text)

    async def answer(request: Request) -> Response:
        parts = _sounds(
            worker,
            [
                Utterance(each, 0 if voice == DEFAULT else int(voice), 1.0 if speed is None else speed)
                for each in sentences
            ],
            client_of(request),
        )
        first = await unless_gone(request, anext(parts, None))
        if first is None:
            raise ApiError("input: the text has nothing that the model can say", "input")
        if kind == "flac":
            others = await unless_gone(request, _all(parts))
            whole = np.concatenate([first, *others])
            data = await in_turn(request, lambda: _flac(whole, speaker.sampling_rate))
            return Response(data, media_type="audio/flac")
        head = wav_head(speaker.sampling_rate, None) if kind == "wav" else b""
        return StreamingResponse(_bytes(head, first, parts), media_type=f"audio/{kind}")

    return answer


async def _sounds(worker: SpeakingWorker, utterances: list[Utterance], client: str) -> AsyncGenerator[Samples, None]:
    """Yield the sound of each sentence, with a pause before all but the first.

    Raises:  Busy if too many requests wait before the first; later ones wait for room
    """
    pause = np.zeros(0, np.float32)
    for i, utterance in enumerate(utterances):
        future = None
        while future is None:
            try:
                future = worker.submit(utterance, client)
            except Busy:
                if i == 0:
                    raise
                await asyncio.sleep(ROOM_S)
        sound = await asyncio.wrap_future(future)
        if len(sound):
            yield np.concatenate([pause, sound])
            pause = worker.speaker.pause


async def _all(parts: AsyncGenerator[Samples, None]) -> list[Samples]:
    return [each async for each in parts]


async def _bytes(head: bytes, first: Samples, others: AsyncGenerator[Samples, None]) -> AsyncGenerator[bytes, None]:
    yield head + pcm_of(first)
    async for sound in others:
        yield pcm_of(sound)


def _flac(sound: Samples, rate_hz: int) -> bytes:
    """Return the bytes of a FLAC file.  Raises: ApiError without the package soundfile"""
    try:
        import soundfile  # optional: the extra `audio`
    except ImportError as error:
        raise ApiError("response_format: flac needs the package soundfile on the server", "response_format") from error
    file = io.BytesIO()
    soundfile.write(file, np.clip(sound, -1, 1), rate_hz, format="FLAC", subtype="PCM_16")
    return file.getvalue()
