"""`/v1/embeddings`."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from tallow.serving.encoding import Embedder
from tallow.serving.http.encoding import encoded, inputs_of, shortened
from tallow.serving.http.fields import Fields
from tallow.serving.http.large_json import large_json
from tallow.serving.http.running import Answer


def embeddings(fields: Fields, worker: Embedder) -> Answer:
    """Return what answers with the vectors of the texts in `input`.  Raises: ApiError; the answer too, ClientGone"""
    texts, rows = inputs_of(fields, "input", worker)
    is_base64 = fields.choice("encoding_format", ("float", "base64")) == "base64"
    dimensions = fields.integer("dimensions", 1, 1 << 16)

    async def answer(request: Request) -> Response:
        computed, wanted = await encoded(request, worker, texts, param="input", rows=rows)
        vectors = np.asarray(computed)
        if dimensions is not None:
            if dimensions > vectors.shape[1]:
                raise fields.wrong("dimensions", f"at most {vectors.shape[1]}")
            vectors = shortened(vectors, dimensions, normalize=True)

        def whole() -> dict[str, Any]:
            data = [
                {"object": "embedding", "index": i, "embedding": _encoded(vector) if is_base64 else vector.tolist()}
                for i, vector in enumerate(vectors.astype("<f4"))
            ]
            usage = {"prompt_tokens": wanted.tokens, "total_tokens": wanted.tokens}
            return {"object": "list", "data": data, "model": worker.name, "usage": usage}

        return await large_json(request, whole)

    return answer


def _encoded(vector: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(vector.tobytes()).decode()
