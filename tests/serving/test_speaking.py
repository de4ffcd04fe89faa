"""`/v1/audio/speech`: OpenAI's client saves the sound of a text; limits and errors."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from openai import BadRequestError, OpenAI
from support.small_server import Running

from tallow.audio.sound import Sound
from tallow.audio.wav import WavReader


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
