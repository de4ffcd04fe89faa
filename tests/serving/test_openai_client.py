"""The endpoints, as the package `openai` uses them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Literal

import numpy as np
import openai
import pytest
from openai import APIError, AsyncOpenAI, BadRequestError, OpenAI
from pydantic import BaseModel
from support.own_loop import run_coroutine
from support.small_server import KEY, Running

from tallow.generation import Sampler, decode_stream, generate
from tallow.models.built_in import spoken
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.whisper import transcribe

PROMPT = "Once upon a time"


def library_text(server: Running, max_tokens: int, sample: Sampler | None = None) -> str:
    served = server.engine.served
    prompt = served.encode(PROMPT)
    tokens = generate(served.model, prompt, max_tokens=max_tokens, sample=sample, stop_ids=served.stop_ids)
    return "".join(decode_stream(served.words, tokens, previous=prompt[-1]))


def test_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["stories", "encoder", "spoken", "voice"]
    assert client.models.retrieve("stories").owned_by == "tallow"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4")


@pytest.mark.parametrize("kind", ["greedy", "seeded"])
def test_a_completion_is_the_text_of_the_library(server: Running, client: OpenAI, kind: str) -> None:
    sample = Sampler(0) if kind == "greedy" else Sampler(0.8, top_p=0.9, seed=7)
    options = {"temperature": 0} if kind == "greedy" else {"temperature": 0.8, "top_p": 0.9, "seed": 7}
    answer = client.completions.create(model="stories", prompt=PROMPT, max_tokens=60, **options)
    assert answer.choices[0].text == library_text(server, 60, sample)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 60
    assert answer.usage.total_tokens == 60 + answer.usage.prompt_tokens


def test_a_stream_is_the_same_text_in_pieces(server: Running) -> None:
    # The package's type wants a reason in each piece; OpenAI sends null before the last, and so does this server.
    stream = server.client(strict=False).completions.create(
        model="stories",
        prompt=PROMPT,
        max_tokens=40,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == library_text(server, 40)
    assert len(chunks) > 20
    assert chunks[-1].usage.completion_tokens == 40
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]][-1] == "length"


def test_several_prompts_and_choices(client: OpenAI) -> None:
    answer = client.completions.create(model="stories", prompt=["Lily", "Tom"], n=2, seed=3, max_tokens=12)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    alone = client.completions.create(model="stories", prompt="Tom", seed=4, max_tokens=12)
    assert answer.choices[3].text == alone.choices[0].text  # the second choice of the second prompt has seed + 1


def test_ids_as_a_prompt_and_echo(server: Running, client: OpenAI) -> None:
    ids = server.engine.served.encode(PROMPT)
    by_ids = client.completions.create(model="stories", prompt=ids, temperature=0, max_tokens=8)
    echoed = client.completions.create(model="stories", prompt=PROMPT, temperature=0, max_tokens=8, echo=True)
    assert echoed.choices[0].text == PROMPT + by_ids.choices[0].text


def test_a_chat_continues_the_messages(server: Running, client: OpenAI) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]
    answer = client.chat.completions.create(model="stories", messages=messages, temperature=0, max_completion_tokens=30)
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == library_text(server, 30)
    assert answer.system_fingerprint  # which text-generation's client needs


def test_a_chat_as_a_stream(server: Running, client: OpenAI) -> None:
    messages = [{"role": "user", "content": PROMPT}]
    options = {"model": "stories", "messages": messages, "temperature": 0, "max_tokens": 30}
    chunks = list(client.chat.completions.create(**options, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == library_text(server, 30)
    assert chunks[-1].choices[0].finish_reason == "length"


def test_stop_strings(server: Running, client: OpenAI) -> None:
    whole = library_text(server, 40)
    answer = client.completions.create(model="stories", prompt=PROMPT, temperature=0, max_tokens=40, stop=whole[12:15])
    assert answer.choices[0].text == whole[: whole.index(whole[12:15])]
    assert answer.choices[0].finish_reason == "stop"


def test_log_probabilities(client: OpenAI) -> None:
    messages = [{"role": "user", "content": PROMPT}]
    answer = client.chat.completions.create(
        model="stories", messages=messages, temperature=0, max_tokens=5, logprobs=True, top_logprobs=4
    )
    entries = answer.choices[0].logprobs.content
    assert "".join(entry.token for entry in entries) == answer.choices[0].message.content
    assert all(entry.logprob == max(top.logprob for top in entry.top_logprobs) for entry in entries)
    older = client.completions.create(model="stories", prompt=PROMPT, temperature=0, max_tokens=5, logprobs=2)
    assert older.choices[0].logprobs.token_logprobs == [entry.logprob for entry in entries]
    assert older.choices[0].logprobs.text_offset == [0, *np.cumsum([len(entry.token) for entry in entries])[:-1]]


def test_a_bias_rules_tokens_out(server: Running, client: OpenAI) -> None:
    served = server.engine.served
    first = next(generate(served.model, served.encode(PROMPT), max_tokens=1))
    options = {"model": "stories", "prompt": PROMPT, "temperature": 0, "max_tokens": 1}
    plain, biased = (
        client.completions.create(**options, logit_bias=bias).choices[0].text for bias in ({}, {str(first): -100})
    )
    assert plain != biased


class Pet(BaseModel):
    kind: Literal["cat", "dog"]
    legs: int


def test_structured_output_parses(client: OpenAI) -> None:
    messages = [{"role": "user", "content": "A dog has"}]
    answer = client.chat.completions.parse(
        model="stories", messages=messages, response_format=Pet, max_tokens=100, temperature=0
    )
    assert isinstance(answer.choices[0].message.parsed, Pet)


def test_a_json_object(client: OpenAI) -> None:
    options = {"response_format": {"type": "json_object"}, "max_tokens": 60, "seed": 5}
    messages = [{"role": "user", "content": "{"}]
    choice = client.chat.completions.create(model="stories", messages=messages, **options).choices[0]
    assert choice.message.content.startswith("{")
    if choice.finish_reason == "stop":
        assert isinstance(json.loads(choice.message.content), dict)


def test_asynchronous_clients_share_the_engine(server: Running) -> None:
    async def ask(client: AsyncOpenAI, seed: int) -> str:
        stream = await client.completions.create(
            model="stories", prompt=PROMPT, max_tokens=30, seed=seed, stream=True, temperature=0.9
        )
        return "".join([chunk.choices[0].text async for chunk in stream])

    async def ask_all() -> list[str]:
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0) as client:
            return await asyncio.gather(*(ask(client, seed) for seed in range(12)))

    texts = run_coroutine(ask_all())
    assert texts == [library_text(server, 30, Sampler(0.9, seed=seed)) for seed in range(12)]


def test_embeddings(server: Running, client: OpenAI, encoder: SentenceEncoder) -> None:
    texts = ["a cat", "the dog and the cat", "a"]
    wanted = encoder.encode(texts)
    as_floats = client.embeddings.create(model="encoder", input=texts, encoding_format="float")
    lenient = server.client(strict=False)
    as_bytes = lenient.embeddings.create(model="encoder", input=texts)  # in base64, which the package's type forbids
    for answer in (as_floats, as_bytes):
        vectors = np.array([item.embedding for item in answer.data], np.float32)
        assert np.abs(vectors - wanted).max() < 1e-5
    assert as_floats.usage.prompt_tokens > len(texts)
    (short,) = lenient.embeddings.create(model="encoder", input="a cat", dimensions=4).data
    assert len(short.embedding) == 4
    assert np.linalg.norm(short.embedding) == pytest.approx(1, abs=1e-5)


def test_transcriptions(client: OpenAI, sound: Path) -> None:
    wanted = transcribe(spoken.load(), sound, condition_on_previous_text=False)
    assert len(wanted.text) > 5
    with sound.open("rb") as file:
        assert client.audio.transcriptions.create(model="spoken", file=file).text == wanted.text.strip()
    data = (sound.name, sound.read_bytes())
    plain = client.audio.transcriptions.create(model="spoken", file=data, response_format="text")
    assert plain.strip() == wanted.text.strip()
    verbose = client.audio.transcriptions.create(model="spoken", file=data, response_format="verbose_json")
    assert verbose.duration == pytest.approx(wanted.duration_s)
    assert [segment.text for segment in verbose.segments] == [segment.text for segment in wanted.segments]
    subtitles = client.audio.transcriptions.create(model="spoken", file=data, response_format="vtt")
    assert subtitles.startswith("WEBVTT")


def test_a_transcript_as_a_stream(client: OpenAI, sound: Path) -> None:
    wanted = client.audio.transcriptions.create(model="spoken", file=sound).text
    *deltas, done = client.audio.transcriptions.create(model="spoken", file=sound, stream=True)
    assert "".join(event.delta for event in deltas) == done.text == wanted
    assert len(deltas) > 1
    with pytest.raises(APIError, match="audio"):
        list(client.audio.transcriptions.create(model="spoken", file=b"not a sound", stream=True))
    with pytest.raises(BadRequestError, match="response_format"):
        client.audio.transcriptions.create(model="spoken", file=sound, stream=True, response_format="srt")


def test_embeddings_of_ids(server: Running, client: OpenAI, encoder: SentenceEncoder) -> None:
    texts = ["a cat", "the dog"]
    ids = [row.ids for row in encoder.tokenize(texts)]
    wanted = encoder.encode(texts)
    for given, vectors in ((ids, wanted), (ids[0], wanted[:1]), ([ids[1]], wanted[1:])):
        answer = client.embeddings.create(model="encoder", input=given, encoding_format="float")
        assert np.abs(np.array([item.embedding for item in answer.data]) - vectors).max() < 1e-5
        assert answer.usage.prompt_tokens == (len(given) if given is ids[0] else sum(map(len, given)))
    long = client.embeddings.create(model="encoder", input=[5] * 100, encoding_format="float")
    assert long.usage.prompt_tokens == encoder.max_length
    for bad in ([20], [[1, 2], [20]], [[1], []], [[]]):
        with pytest.raises(BadRequestError, match="input: expected"):
            client.embeddings.create(model="encoder", input=bad)
