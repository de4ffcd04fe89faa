"""The OpenAPI document, and the page at `/`, which sends its examples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from tallow.serving.http import open_inference
from tallow.serving.http.errors import TEI_PATHS
from tallow.serving.http.known_fields import Table

TEXT, TEXTS = "Once upon a time", ["A kitten naps.", "a young cat that is asleep"]
PROMPT = {"inputs": TEXT, "parameters": {"max_new_tokens": 50}}
# A request of each endpoint; those that are not here take a file.
EXAMPLES: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": TEXT, "max_tokens": 50, "stream": True},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 50, "stream": True},
    "/v1/responses": {"input": TEXT, "max_output_tokens": 50, "stream": True},
    "/v1/audio/speech": {"input": TEXT, "voice": "default"},
    "/v1/embeddings": {"input": TEXTS},
    "/generate": PROMPT,
    "/generate_stream": PROMPT,
    "/embed": {"inputs": TEXTS},
    "/embed_all": {"inputs": TEXTS},
    "/embed_sparse": {"inputs": TEXTS},
    "/similarity": {"inputs": {"source_sentence": TEXT, "sentences": TEXTS}},
    "/rerank": {"query": TEXT, "texts": TEXTS},
    "/predict": {"inputs": TEXT},
    "/tokenize": {"inputs": TEXT},
    "/decode": {"ids": [5, 6]},
}
GETS = ("/v1/models", "/v1/models/{name}", "/info", "/health", "/ready", "/metrics")
LISTS = ("messages", "input")  # whose items have fields
NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
ANSWERS = {"200": {"description": "the answer"}, "default": {"description": "an error"}}


def document(version: str, tables: Mapping[str, Table]) -> dict[str, Any]:
    """Return the OpenAPI document: of each endpoint a request, and the fields that it reads or refuses.

    Args:  tables: by the paths that take a request
    """
    paths: dict[str, Any] = {path: _post(path, table) for path, table in tables.items()}
    paths |= {path: {"get": {"responses": ANSWERS}} for path in GETS}
    paths["/v1/models/{name}"]["parameters"] = [NAME]
    paths |= _of_open_inference()
    return {
        "openapi": "3.1.0",
        "info": {"title": "tallow serve", "version": version},
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}, {}],
        "paths": paths,
    }


def _of_open_inference() -> dict[str, Any]:
    """Return the endpoints of the open inference protocol."""
    paths: dict[str, Any] = {path: {"get": {"responses": ANSWERS}} for path in open_inference.GETS}
    schema = {"type": "object", "required": ["inputs"], "properties": open_inference.FIELDS}
    body = {"required": True, "content": {"application/json": {"schema": schema, "example": open_inference.EXAMPLE}}}
    post = {"summary": "open inference protocol", "requestBody": body, "responses": ANSWERS}
    paths |= {f"{path}/infer": {"post": post} for path in open_inference.RUNNERS}
    for path, calls in paths.items():
        named = re.findall(r"{(\w+)}", path)
        calls |= {"parameters": [{**NAME, "name": name} for name in named]} if named else {}
    return paths


def _post(path: str, table: Table) -> dict[str, Any]:
    name = "text-embeddings-inference" if path in TEI_PATHS else "text-generation-inference"
    api = "OpenAI's API" if path.startswith("/v1/") else f"API of {name}"
    is_sound = path not in EXAMPLES
    body: dict[str, Any] = {"schema": _schema(table)}
    if is_sound:
        body["schema"]["required"] = ["file"]
        body["schema"]["properties"]["file"] |= {"type": "string", "format": "binary"}
    else:
        body["example"] = EXAMPLES[path]
    content = {"required": True, "content": {"multipart/form-data" if is_sound else "application/json": body}}
    return {"post": {"summary": api, "requestBody": content, "responses": ANSWERS}}


def _schema(table: Table) -> dict[str, Any]:
    """Return the schema of a request: its fields, and those that are refused unless they have no effect."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for name, text in table.read.items():
        _place(schema, name)["description"] = text
    for name, refusal in table.refused.items():
        if name.partition(".")[0] not in LISTS or "." not in name:
            hint = f"; {refusal.hint}" if refusal.hint else ""
            place = _place(schema, name)
            place |= {"description": f"not supported{hint}", "enum": [None, *refusal.without_effect]}
    return schema


def _place(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the schema of a field, which may be one of an object within the request."""
    first, _, rest = name.partition(".")
    entry: dict[str, Any] = schema.setdefault("properties", {}).setdefault(first, {})
    return _place(entry, rest) if rest else entry


async def page(request: Request) -> Response:
    """Show a page that sends requests."""
    return HTMLResponse((files(__package__) / "page.html").read_bytes())
