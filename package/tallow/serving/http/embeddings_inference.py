"""The API of text-embeddings-inference: `/embed`, `/rerank`, `/predict` and their relatives.

A request may name a model in the field `model`, which that API lacks; without it, the first of its kind answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tallow.errors import TallowError
from tallow.models.sentence import SentenceEncoder
from tallow.models.text_batches import Text
from tallow.models.text_classifier import TextClassifier, probabilities
from tallow.serving.encoding import Embedder, EncoderWorker, Labeller, Weigher
from tallow.serving.http.encoding import encoded, shortened
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.http.fields import Fields
from tallow.text.tokenizer import Tokenizer

MAX_INPUTS = 2048


async def embed(request: Request, fields: Fields, worker: Embedder) -> Response:
    """`/embed`: a vector for each text, of length 1 unless `normalize` is false."""
    texts = fields.texts("inputs", MAX_INPUTS)
    dimensions = fields.integer("dimensions", 1, 1 << 16)
    rows, _ = await encoded(request, worker, texts, **_options(fields))
    vectors = np.asarray(rows)
    if dimensions is not None and dimensions > vectors.shape[1]:
        raise fields.wrong("dimensions", f"at most {vectors.shape[1]}")
    return await _each(shortened(vectors, dimensions, normalize=fields.flag("normalize", True)), np.ndarray.tolist)


async def embed_all(request: Request, fields: Fields, worker: Embedder) -> Response:
    """`/embed_all`: a vector for each token of each text, before pooling."""
    texts = fields.texts("inputs", MAX_INPUTS)
    rows, _ = await encoded(request, worker, texts, each_position=True, **_options(fields))
    return await _each(rows, np.ndarray.tolist)


async def embed_sparse(request: Request, fields: Fields, worker: Weigher) -> Response:
    """`/embed_sparse`: for each text the tokens with a weight, in the order of their ids."""
    texts = fields.texts("inputs", MAX_INPUTS)
    rows, _ = await encoded(request, worker, texts, **_options(fields))
    return JSONResponse(
        [[{"index": int(i), "value": float(weights[i])} for i in np.flatnonzero(weights)] for weights in rows]
    )


async def similarity(request: Request, fields: Fields, worker: Embedder) -> Response:
    """`/similarity`: the cosine between a sentence and others."""
    inputs = fields.inner("inputs")
    if inputs is None:
        raise fields.wrong("inputs", "an object with source_sentence and sentences")
    texts = [inputs.required_text("source_sentence"), *inputs.texts("sentences", MAX_INPUTS)]
    options = _options(fields.inner("parameters") or Fields({}))
    rows, _ = await encoded(request, worker, texts, **options)
    vectors = shortened(np.asarray(rows), None, normalize=True)
    return JSONResponse((vectors[1:] @ vectors[0]).tolist())


async def rerank(request: Request, fields: Fields, worker: Labeller) -> Response:
    """`/rerank`: texts in the order in which they answer a query."""
    if len(worker.encoder.labels) != 1:
        raise ApiError(f"{worker.name} has several labels: it does not rank texts; use /predict", "model")
    query = fields.required_text("query")
    texts = fields.texts("texts", MAX_INPUTS)
    return_text = fields.flag("return_text")
    scores = (await _scores(request, fields, worker, [(query, text) for text in texts]))[:, 0]
    order = np.argsort(-scores, kind="stable").tolist()
    return JSONResponse(
        [{"index": i} | ({"text": texts[i]} if return_text else {}) | {"score": float(scores[i])} for i in order]
    )


async def predict(request: Request, fields: Fields, worker: Labeller) -> Response:
    """`/predict`: the labels of a text, a pair, or a list of both, the likeliest first."""
    inputs = fields.get("inputs")
    is_one = isinstance(inputs, str) or (isinstance(inputs, list) and all(isinstance(item, str) for item in inputs))
    items = [inputs] if is_one else fields.items("inputs", MAX_INPUTS, least=1)
    scores = await _scores(request, fields, worker, [_pair(item, fields) for item in items])
    names = worker.encoder.labels
    labelled = [
        [{"score": float(row[i]), "label": names[i]} for i in np.argsort(-row, kind="stable").tolist()]
        for row in scores
    ]
    return JSONResponse(labelled[0] if is_one else labelled)


async def _scores(request: Request, fields: Fields, worker: Labeller, texts: Sequence[Text]) -> Any:
    raw = fields.flag("raw_scores")
    rows, _ = await encoded(request, worker, texts, **_options(fields))
    return np.asarray(rows) if raw else probabilities(np.asarray(rows))


async def tokenize(request: Request, fields: Fields, words: Tokenizer) -> Response:
    """`/tokenize`: the tokens of each text, with their places in it, in characters."""
    texts = fields.texts("inputs", MAX_INPUTS)
    special = fields.flag("add_special_tokens", True)
    fields.refuse("prompt_name")

    def split(text: str) -> list[dict[str, Any]]:
        return [
            {"id": token.id, "text": token.token, "special": token.is_special}
            | {"start": token.start if shown else None, "stop": token.end if shown else None}
            for token in words.split(text, add_special_tokens=special)
            for shown in (not token.is_special,)
        ]

    try:
        return await _each(texts, split)
    except TallowError as error:
        raise api_error(error, "inputs") from error


async def decode(request: Request, fields: Fields, words: Tokenizer) -> Response:
    """`/decode`: the texts of ids."""
    ids = fields.items("ids", 1 << 16, least=1)
    rows = ids if all(isinstance(row, list) for row in ids) else [ids]
    if not all(type(token) is int and 0 <= token < 1 << 31 for row in rows for token in row):
        raise fields.wrong("ids", "ids of tokens, or lists of them")
    hide = fields.flag("skip_special_tokens", True)
    try:
        return await _each(rows, lambda row: words.decode(row, skip_special_tokens=hide))
    except TallowError as error:
        raise api_error(error, "ids") from error


async def _each(items: Iterable[Any], value: Callable[[Any], Any]) -> Response:
    """Answer with the values of items. They are computed in a thread, and become JSON one by one: a hundred megabytes
    in one call would hold up all streams for seconds.
    """

    def join() -> bytes:
        as_json = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return f"[{','.join(as_json(value(item)) for item in items)}]".encode()

    return Response(await run_in_threadpool(join), media_type="application/json")


def describe(worker: EncoderWorker[Any]) -> dict[str, Any]:
    """Return what `/info` says of a model."""
    encoder = worker.encoder
    kind: dict[str, Any] = {"embedding": {"pooling": "splade"}}
    if isinstance(encoder, SentenceEncoder):
        kind = {"embedding": {"pooling": "_".join(encoder.pooling.modes)}}
    elif isinstance(encoder, TextClassifier):
        by_id = {str(i): label for i, label in enumerate(encoder.labels)}
        names = {"id2label": by_id, "label2id": {label: int(i) for i, label in by_id.items()}}
        kind = {"reranker" if len(by_id) == 1 else "classifier": names}
    parameter = next(encoder.model.parameters())
    return {
        "model_id": worker.name,
        "model_sha": None,
        "model_dtype": str(parameter.dtype).rpartition(".")[2],
        "model_type": kind,
        "max_concurrent_requests": worker.line.limit,
        "max_input_length": encoder.max_length or encoder.tokenizer.model_max_length,
        "max_batch_tokens": encoder.batch_tokens,
        "max_client_batch_size": MAX_INPUTS,
        "auto_truncate": False,
    }


def _pair(item: Any, fields: Fields) -> Text:
    texts = [item] if isinstance(item, str) else item
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or not 1 <= len(texts) <= 2:
        raise fields.wrong("inputs", "a text, a list of two texts, or a list of lists of one or two texts")
    return (texts[0], texts[1]) if len(texts) == 2 else texts[0]


def _options(fields: Fields) -> dict[str, Any]:
    """Return the options that all requests have."""
    if fields.choice("truncation_direction", ("Right", "right", "Left", "left")).lower() == "left":
        raise ApiError("truncation_direction: texts are truncated on the right only", "truncation_direction")
    truncate, name = fields.flag("truncate"), fields.text("prompt_name")
    return {"param": "inputs", "truncate": truncate, "prompt_name": name}
