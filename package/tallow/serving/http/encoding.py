"""The tokens of a request's texts and the arrays of a worker, for the APIs of embeddings."""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Sequence

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from tallow.errors import ArgumentError, TallowError
from tallow.models.sentence import SentenceEncoder
from tallow.models.text_batches import Text, Vectors
from tallow.serving.encoding import Arrays, E, EncoderWorker, Rows
from tallow.serving.http.errors import TOO_LONG, ApiError, api_error
from tallow.serving.http.running import unless_gone

MOST_POSITIONS = 1 << 15  # whose vectors are some 250 MB of JSON


async def encoded(
    request: Request,
    worker: EncoderWorker[E],
    texts: Sequence[Text],
    *,
    param: str,
    truncate: bool = True,
    prompt_name: str | None = None,
    each_position: bool = False,
) -> tuple[Arrays, Rows]:
    """Return the arrays of texts, and their tokens.

    Args:
        param: the field of the texts.
        truncate: texts that are too long; else they are an error.
        prompt_name: which of the model's prompts to write before each text; None means its default.

    Raises:  ApiError; ClientGone
    """
    # In a thread: other requests go on meanwhile.
    rows = await run_in_threadpool(tokens, worker, texts, param, truncate, prompt_name)
    wanted = Rows(rows.rows, each_position)
    if each_position and wanted.tokens > MOST_POSITIONS:
        raise ApiError(
            f"{param}: {wanted.tokens} tokens; the limit is {MOST_POSITIONS} where each gets a vector",
            param,
            code="too_many_items",
        )

    async def answer() -> Arrays:
        return await wrap_future(worker.submit(wanted))

    return await unless_gone(request, answer()), wanted


def tokens(
    worker: EncoderWorker[E], texts: Sequence[Text], param: str, truncate: bool, prompt_name: str | None
) -> Rows:
    """Return the tokens of texts.  Raises: ApiError"""
    encoder = worker.encoder
    try:
        if isinstance(encoder, SentenceEncoder):
            texts = encoder.prompted([text for text in texts if isinstance(text, str)], prompt_name)
        elif prompt_name is not None:
            raise ArgumentError(f"{worker.name} has no prompts", hint="leave out prompt_name")
        rows = encoder.tokenize(texts, truncate=truncate)
    except TallowError as error:
        raise api_error(error, param) from error
    limit, longest = encoder.max_length, max(len(row.ids) for row in rows)
    if limit is not None and longest > limit:
        raise ApiError(
            f"{param}: a text takes {longest} tokens, the limit is {limit}; set truncate, or send less",
            param,
            code=TOO_LONG,
        )
    return Rows(rows)


def shortened(vectors_ND: Vectors, dimensions: int | None, *, normalize: bool) -> Vectors:
    """Return the first `dimensions` of vectors.

    Args:  normalize: scale them to length 1
    """
    vectors_ND = vectors_ND[:, :dimensions]
    if normalize:
        vectors_ND = vectors_ND / np.maximum(np.linalg.norm(vectors_ND, axis=1, keepdims=True), 1e-12)
    return vectors_ND
