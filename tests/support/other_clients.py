"""Clients whose requirements conflict with those of the tests: run by tests/serving/test_other_clients.py, elsewhere.

    python other_clients.py NAME URL KEY

asks the server at URL as an example of the client does, and prints the answers as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Literal

from pydantic import BaseModel

PROMPT, TOKENS = "Once upon a time", 24
CHAT = {"model": "stories", "temperature": 0, "max_tokens": TOKENS}


class Pet(BaseModel):
    kind: Literal["cat", "dog"]
    legs: int


def langchain_openai(url: str, key: str) -> dict[str, Any]:
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    server: dict[str, Any] = {"base_url": f"{url}/v1", "api_key": key}
    chat = ChatOpenAI(**server, **CHAT)
    answer = chat.invoke(PROMPT)
    pet = ChatOpenAI(**server, **CHAT | {"max_tokens": 100}).with_structured_output(Pet, method="json_schema")
    encoder = OpenAIEmbeddings(**server, model="encoder", check_embedding_ctx_length=False)
    return {
        "text": answer.content,
        "tokens": answer.usage_metadata["output_tokens"],
        "stream": "".join(part.content for part in chat.stream(PROMPT)),
        "pet": pet.invoke("A dog has").model_dump(),
        "vectors": encoder.embed_documents(["A kitten naps.", "a young cat"]),
    }


def instructor(url: str, key: str) -> dict[str, Any]:
    from instructor import Mode, from_openai
    from openai import OpenAI

    server = OpenAI(base_url=f"{url}/v1", api_key=key)
    pets = {}
    for mode in (Mode.TOOLS, Mode.JSON_SCHEMA):
        pet = from_openai(server, mode=mode).chat.completions.create(
            model="stories",
            messages=[{"role": "user", "content": "A dog has"}],
            response_model=Pet,
            temperature=0,
            max_tokens=100,
            max_retries=0,
        )
        pets[mode.value] = pet.model_dump()
    return pets


def litellm(url: str, key: str) -> dict[str, Any]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise the import downloads one
    import litellm

    server = {"api_base": f"{url}/v1", "api_key": key}
    chat = {**server, **CHAT, "model": "openai/stories", "messages": [{"role": "user", "content": PROMPT}]}
    answer = litellm.completion(**chat)
    parts = [chunk.choices[0].delta for chunk in litellm.completion(**chat, stream=True)]
    tools = [{"type": "function", "function": {"name": "pet", "parameters": Pet.model_json_schema()}}]
    called = litellm.completion(**chat | {"max_tokens": 100}, tools=tools, tool_choice="required")
    encoded = litellm.embedding("openai/encoder", ["A kitten naps.", "a young cat"], **server)
    return {
        "text": answer.choices[0].message.content,
        "tokens": answer.usage.completion_tokens,
        "stream": "".join(part.content or "" for part in parts),
        "pet": json.loads(called.choices[0].message.tool_calls[0].function.arguments),
        "vectors": [item["embedding"] for item in encoded.data],
    }


def text_generation(url: str, key: str) -> dict[str, Any]:
    from text_generation import Client

    client = Client(url, headers={"Authorization": f"Bearer {key}"}, timeout=60)
    answer = client.generate(PROMPT, max_new_tokens=TOKENS)
    events = list(client.generate_stream(PROMPT, max_new_tokens=TOKENS))
    chat = client.chat([{"role": "user", "content": PROMPT}], max_tokens=TOKENS, temperature=0)
    return {
        "text": answer.generated_text,
        "finish": answer.details.finish_reason.value,
        "stream": "".join(event.token.text for event in events),
        "last": events[-1].generated_text,
        "chat": chat.choices[0].message.content,
    }


if __name__ == "__main__":
    name, *address = sys.argv[1:]
    clients = {client.__name__: client for client in (langchain_openai, litellm, instructor, text_generation)}
    print(json.dumps(clients[name](*address)))
