"""LangChain, LiteLLM, Instructor and the client of text-generation-inference, in an environment of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openai import OpenAI
from support import other_clients, pythons
from support.small_server import KEY, Running

from tallow.models.encoders.sentence import SentenceEncoder

CLIENTS = ["langchain-openai==1.7.4", "litellm==1.110.2", "instructor==1.17.0", "text-generation==0.7.0"]
Ask = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def ask(server: Running) -> Ask:
    """Return a function that runs a function of `support.other_clients`."""
    python = Path(sys.base_prefix, "bin", "python3")  # not of this environment, whose packages conflict
    try:
        folder = pythons.packages(python, CLIENTS)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the clients cannot be installed: {error}")

    def run(name: str) -> dict[str, Any]:
        command = [python, "-S", other_clients.__file__, name, server.url, KEY]
        environment = pythons.environment() | {"PYTHONPATH": str(folder)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="module")
def text(client: OpenAI) -> str:
    """The text of the package `openai`."""
    messages = [{"role": "user", "content": other_clients.PROMPT}]
    return client.chat.completions.create(messages=messages, **other_clients.CHAT).choices[0].message.content or ""


def test_langchain(ask: Ask, text: str, encoder: SentenceEncoder) -> None:
    answers = ask("langchain_openai")
    assert answers["text"] == answers["stream"] == text
    assert answers["tokens"] == other_clients.TOKENS
    other_clients.Pet.model_validate(answers["pet"])
    vectors = encoder.encode(["A kitten naps.", "a young cat"])
    np.testing.assert_allclose(answers["vectors"], vectors, atol=1e-6)


def test_litellm(ask: Ask, text: str, encoder: SentenceEncoder) -> None:
    answers = ask("litellm")
    assert answers["text"] == answers["stream"] == text
    assert answers["tokens"] == other_clients.TOKENS
    other_clients.Pet.model_validate(answers["pet"])
    np.testing.assert_allclose(answers["vectors"], encoder.encode(["A kitten naps.", "a young cat"]), atol=1e-6)


def test_instructor(ask: Ask) -> None:
    answers = ask("instructor")
    assert len(answers) == 2
    for pet in answers.values():
        other_clients.Pet.model_validate(pet)


def test_text_generation(ask: Ask, client: OpenAI, text: str) -> None:
    answers = ask("text_generation")
    completion = client.completions.create(
        model="stories", prompt=other_clients.PROMPT, max_tokens=other_clients.TOKENS, temperature=0
    )
    assert answers["text"] == answers["stream"] == answers["last"] == completion.choices[0].text
    assert answers["finish"] == "length"
    assert answers["chat"] == text
