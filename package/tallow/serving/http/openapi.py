"""The OpenAPI document, and the page at `/`, which sends its examples."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from tallow.serving.http.errors import TEI_PATHS

TEXT, TEXTS = "Once upon a time", ["A kitten naps.", "a young cat that is asleep"]
PROMPT = {"inputs": TEXT, "parameters": {"max_new_tokens": 50}}
# A request of each endpoint; those that are not here take a file.
EXAMPLES: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": TEXT, "max_tokens": 50, "stream": True},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 50, "stream": True},
    "/v1/responses": {"input": TEXT, "max_output_tokens": 50, "stream": True},
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
SOUNDS = ("/v1/audio/transcriptions", "/v1/audio/translations")
GETS = ("/v1/models", "/v1/models/{name}", "/info", "/health", "/ready", "/metrics")
NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
ANSWERS = {"200": {"description": "the answer"}, "default": {"description": "an error"}}
FORM = {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}


def document(version: str) -> dict[str, Any]:
    """Return the OpenAPI document.

    It has a request for each endpoint; all fields are in the documents of the API that the endpoint belongs to.
    """
    paths: dict[str, Any] = {path: _post(path, "application/json", {"example": it}) for path, it in EXAMPLES.items()}
    paths |= {path: _post(path, "multipart/form-data", {"schema": FORM}) for path in SOUNDS}
    paths |= {path: {"get": {"responses": ANSWERS}} for path in GETS}
    paths["/v1/models/{name}"]["parameters"] = [NAME]
    return {
        "openapi": "3.1.0",
        "info": {"title": "tallow serve", "version": version},
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}, {}],
        "paths": paths,
    }


def _post(path: str, media_type: str, body: dict[str, Any]) -> dict[str, Any]:
    name = "text-embeddings-inference" if path in TEI_PATHS else "text-generation-inference"
    api = "OpenAI's API" if path.startswith("/v1/") else f"API of {name}"
    content = {"required": True, "content": {media_type: body}}
    return {"post": {"summary": api, "requestBody": content, "responses": ANSWERS}}


async def page(request: Request) -> Response:
    """Show a page that sends requests."""
    return HTMLResponse((files(__package__) / "page.html").read_bytes())
