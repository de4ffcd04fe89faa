"""The tokens of a request's texts and the arrays of a worker, for the APIs of embeddings."""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Sequence
from functools import partial

import numpy as np
from starlette.requests import Request

from tallow.errors import ArgumentError, TallowError
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.text_batches import Text, Vectors
from tallow.serving.encoding import Arrays, E, EncoderWorker, Rows
from tallow.serving.http.clients import client_of, in_turn
from tallow.serving.http.errors import TOO_LONG, ApiError, api_error
from tallow.serving.http.fields import Fields, as_ids
from tallow.serving.http.running import unless_gone
from tallow.text.marks import Encoded

MAX_INPUTS = 2048
MOST_TOKENS = 1 << 17  # of a text for a model without a limit, whose vectors for all of them may take 512 MB
MOST_POSITIONS = 1 << 15  # whose vectors are some 250 MB of JSON


def inputs_of(fields: Fields, field: str, worker: EncoderWorker[E]) -> tuple[list[str], list[Encoded]]:
    """Return the texts of a field and no tokens; or, for ids of the model's tokenizer, no texts and their tokens.

    Raises:  ApiError
    """
    value = fields.get(field)
    items = [value] if as_ids(value) else value if isinstance(value, list) else []
    if not items or not all(isinstance(item, list) for item in items):
        return fields.texts(field, MAX_INPUTS), []
    if len(items) > MAX_INPUTS:
        fields.items(field, MAX_INPUTS)  # raises
    size = worker.encoder.vocab_size
    rows = [as_ids(item) for item in items]
    if not all(row and all(0 <= token < size for token in row) for row in rows):
        raise fields.wrong(field, f"texts, or ids of the model's own tokenizer, from 0 to {size - 1}")
    return [], [Encoded(row, [0] * len(row)) for row in rows if row]


async def encoded(
    request: Request,
    worker: EncoderWorker[E],
    texts: Sequence[Text],
    *,
    param: str,
    rows: Sequence[Encoded] = (),
    truncate: bool = True,
    side: str | None = None,
    prompt_name: str | None = None,
    each_position: bool = False,
) -> tuple[Arrays, Rows]:
    """Return the arrays of texts, and their tokens.

    Args:
        param: the field of the texts.
        rows: the tokens in place of the texts.
        truncate: texts that are too long; else they are an error.
        side: where they are cut, "right" or "left"; None means as the tokenizer says.
        prompt_name: which of the model's prompts to write before each text; None means its default.

    Raises:  ApiError; ClientGone
    """
    if not rows:
        rows = await in_turn(request, partial(tokens, worker, texts, param, truncate, side, prompt_name))
    limit, longest = worker.encoder.max_length, max(len(row.ids) for row in rows)
    if limit is None and longest > MOST_TOKENS:
        raise ApiError(f"{param}: a text takes {longest} tokens, the limit is {MOST_TOKENS}", param, code=TOO_LONG)
    if limit is not None and longest > limit and truncate:
        rows = [Encoded(row.ids[:limit], row.segments[:limit]) for row in rows]
    elif limit is not None and longest > limit:
        raise ApiError(
            f"{param}: a text takes {longest} tokens, the limit is {limit}; set truncate, or send less",
            param,
            code=TOO_LONG,
        )
    wanted = Rows(rows, each_position)
    if each_position and wanted.tokens > MOST_POSITIONS:
        raise ApiError(
            f"{param}: {wanted.tokens} tokens; the limit is {MOST_POSITIONS} where each gets a vector",
            param,
            code="too_many_items",
        )

    async def answer() -> Arrays:
        return await wrap_future(worker.submit(wanted, client_of(request)))

    return await unless_gone(request, answer()), wanted


def tokens(
    worker: EncoderWorker[E],
    texts: Sequence[Text],
    param: str,
    truncate: bool,
    side: str | None,
    prompt_name: str | None,
) -> Sequence[Encoded]:
    """Return the tokens of texts.  Raises: ApiError"""
    encoder = worker.encoder
    try:
        if isinstance(encoder, SentenceEncoder):
            if encoder.left_out(prompt_name):
                raise ArgumentError(
                    f"{worker.name} leaves its prompts out of the pooling, which only SentenceEncoder.encode computes",
                    hint="choose a prompt that is empty, or none",
                )
            texts = encoder.prompted([text for text in texts if isinstance(text, str)], prompt_name)
        elif prompt_name is not None:
            raise ArgumentError(f"{worker.name} has no prompts", hint="leave out prompt_name")
        return encoder.tokenize(texts, truncate=truncate, side=side)
    except TallowError as error:
        raise api_error(error, param) from error


def shortened(vectors_ND: Vectors, dimensions: int | None, *, normalize: bool) -> Vectors:
    """Return the first `dimensions` of vectors.

    Args:  normalize: scale them to length 1
    """
    vectors_ND = vectors_ND[:, :dimensions]
    if normalize:
        vectors_ND = vectors_ND / np.maximum(np.linalg.norm(vectors_ND, axis=1, keepdims=True), 1e-12)
    return vectors_ND
