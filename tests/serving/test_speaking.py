"""`/v1/audio/speech`: OpenAI's client saves the sound of a text; limits and errors."""

from __future__ import annotations

import asyncio
import io
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from openai import BadRequestError, OpenAI
from starlette.requests import Request
from support.own_loop import run_coroutine
from support.small_server import Running
from support.small_speaker import small_speaker

from tallow.audio.sound import Sound
from tallow.audio.wav import WavReader
from tallow.serving.http.clients import CLIENT
from tallow.serving.http.fields import Fields
from tallow.serving.http.running import ClientGone
from tallow.serving.http.speaking import spoken as spoken_by
from tallow.serving.queue import Busy


def spoken(client: OpenAI, text: str = "Hello there. How are you?", **options: Any) -> bytes:
    return client.audio.speech.create(**{"model": "voice", "voice": "default", "input": text, **options}).content


def test_sounds_are_wav_pcm_and_flac(client: OpenAI, server: Running) -> None:
    pytest.importorskip("soundfile")
    speaker = server.catalog.speakers["voice"].speaker
    speaker.model.noise_scale = speaker.model.noise_scale_duration = 0.0
    wanted = speaker.joined(speaker.speak(speaker.sentences("Hello there. How are you?")))
    wav, pcm, flac = (spoken(client, response_format=kind) for kind in ("wav", "pcm", "flac"))
    assert len(pcm) == 2 * len(wanted)
    for data in (wav, flac):
        np.testing.assert_allclose(Sound(data, sample_rate_hz=speaker.sampling_rate).read(), wanted, atol=1e-4)
    np.testing.assert_allclose(np.frombuffer(pcm, "<i2") / 32768, wanted, atol=1e-4)
    assert WavReader(io.BytesIO(wav), "a").sample_rate_hz == speaker.sampling_rate
    assert len(spoken(client, response_format="pcm", speed=0.25)) > len(pcm)
    assert spoken(client, response_format="pcm", voice="1") != pcm


def test_a_stream_that_has_begun_waits_for_room() -> None:
    calls = iter(("sound", "busy", "busy", "sound"))

    def submit(*_: Any) -> Future[Any]:
        if next(calls) == "busy":
            raise Busy(1, 1)
        future = Future[Any]()
        future.set_result(np.full(8, 0.5, np.float32))
        return future

    worker: Any = SimpleNamespace(speaker=small_speaker(), submit=submit)
    answer = spoken_by(Fields({"input": "One. Two.", "voice": "default", "response_format": "pcm"}), worker)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(10)
        return {"type": "http.disconnect"}

    async def ask() -> bytes:
        response: Any = await answer(Request({"type": "http", "headers": [], CLIENT: ""}, receive))
        return b"".join([part async for part in response.body_iterator])

    assert len(run_coroutine(ask())) == 2 * (8 + len(worker.speaker.pause) + 8)


def test_a_file_for_a_client_that_left_is_not_computed_further() -> None:
    pytest.importorskip("soundfile")
    first, second = Future[Any](), Future[Any]()
    first.set_result(np.zeros(8, np.float32))
    left = iter((first, second))
    worker: Any = SimpleNamespace(speaker=small_speaker(), submit=lambda *_: next(left))
    answer = spoken_by(Fields({"input": "One. Two.", "voice": "default", "response_format": "flac"}), worker)

    async def ask() -> None:
        gone = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        asyncio.get_running_loop().call_later(0.05, gone.set)
        await asyncio.wait_for(answer(Request({"type": "http", "headers": [], CLIENT: ""}, receive)), 5)

    with pytest.raises(ClientGone):
        run_coroutine(ask())
    assert second.cancelled()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"text": ""}, "input: expected a text of 1 to 4096 letters"),
        ({"text": "a" * 4097}, "input: expected a text of 1 to 4096 letters"),
        ({"text": "123"}, "nothing that the model can say"),
        ({"voice": "alloy"}, "voice: expected one of default, 0, 1"),
        ({"response_format": "mp3"}, "response_format: expected one of wav, pcm, flac"),
        ({"speed": 5}, "speed"),
        ({"instructions": "whisper"}, "instructions is not supported"),
    ],
)
def test_errors(client: OpenAI, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequestError, match=words):
        spoken(client, **options)
