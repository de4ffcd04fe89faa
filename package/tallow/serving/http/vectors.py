"""`/v1/embeddings`."""

from __future__ import annotations

import base64
from asyncio import wrap_future
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tallow.serving.embedding import Embedded, EmbeddingWorker
from tallow.serving.http.fields import Fields
from tallow.serving.http.running import unless_gone

MAX_INPUTS = 2048


async def embeddings(request: Request, fields: Fields, worker: EmbeddingWorker) -> Response:
    """Answer with the vectors of the texts in `input`.  Raises: ApiError; ClientGone"""
    texts = fields.get("input")
    texts = [texts] if isinstance(texts, str) else fields.items("input", MAX_INPUTS, least=1)
    if not all(isinstance(text, str) and text for text in texts):
        raise fields.wrong("input", "a string that is not empty, or a list of them")
    form = fields.choice("encoding_format", ("float", "base64"))
    dimensions = fields.integer("dimensions", 1, 1 << 16)

    async def answer() -> Embedded:
        return await wrap_future(worker.submit(texts))

    embedded = await unless_gone(request, answer())
    vectors = embedded.vectors
    if dimensions is not None:
        if dimensions > vectors.shape[1]:
            raise fields.wrong("dimensions", f"at most {vectors.shape[1]}")
        vectors = vectors[:, :dimensions]
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    data = [
        {"object": "embedding", "index": i, "embedding": _encoded(vector) if form == "base64" else vector.tolist()}
        for i, vector in enumerate(vectors.astype("<f4"))
    ]
    usage = {"prompt_tokens": embedded.tokens, "total_tokens": embedded.tokens}
    return JSONResponse({"object": "list", "data": data, "model": worker.name, "usage": usage})


def _encoded(vector: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(vector.tobytes()).decode()
