"""`/v1/embeddings`."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tallow.serving.encoding import Embedder
from tallow.serving.http.encoding import encoded, shortened
from tallow.serving.http.fields import Fields

MAX_INPUTS = 2048


async def embeddings(request: Request, fields: Fields, worker: Embedder) -> Response:
    """Answer with the vectors of the texts in `input`.  Raises: ApiError; ClientGone"""
    texts = fields.texts("input", MAX_INPUTS)
    form = fields.choice("encoding_format", ("float", "base64"))
    dimensions = fields.integer("dimensions", 1, 1 << 16)
    rows, wanted = await encoded(request, worker, texts, param="input")
    vectors = np.asarray(rows)
    if dimensions is not None:
        if dimensions > vectors.shape[1]:
            raise fields.wrong("dimensions", f"at most {vectors.shape[1]}")
        vectors = shortened(vectors, dimensions, normalize=True)
    data = [
        {"object": "embedding", "index": i, "embedding": _encoded(vector) if form == "base64" else vector.tolist()}
        for i, vector in enumerate(vectors.astype("<f4"))
    ]
    usage = {"prompt_tokens": wanted.tokens, "total_tokens": wanted.tokens}
    return JSONResponse({"object": "list", "data": data, "model": worker.name, "usage": usage})


def _encoded(vector: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(vector.tobytes()).decode()
