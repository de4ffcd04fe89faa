"""The API of text-embeddings-inference: `/embed`, `/rerank`, `/predict` and their relatives.

A request may name a model in the field `model`, which that API lacks; without it, the first of its kind answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tallow.errors import TallowError
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.encoders.text_classifier import TextClassifier, probabilities
from tallow.models.text_batches import Text
from tallow.serving.encoding import Embedder, EncoderWorker, Labeller, Weigher
from tallow.serving.http.encoding import MAX_INPUTS, encoded, inputs_of, shortened
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.http.fields import Fields, as_ids
from tallow.serving.http.large_json import large_json
from tallow.serving.http.running import Answer
from tallow.text.tokenizer import Tokenizer


def embed(fields: Fields, worker: Embedder) -> Answer:
    """`/embed`: a vector for each text, of length 1 unless `normalize` is false."""
    texts, rows = inputs_of(fields, "inputs", worker)
    dimensions = fields.integer("dimensions", 1, 1 << 16)
    normalize = fields.flag("normalize", True)
    options = _options(fields)

    async def answer(request: Request) -> Response:
        computed, _ = await encoded(request, worker, texts, rows=rows, **options)
        vectors = np.asarray(computed)
        if dimensions is not None and dimensions > vectors.shape[1]:
            raise fields.wrong("dimensions", f"at most {vectors.shape[1]}")
        return await large_json(
            request, lambda: map(np.ndarray.tolist, shortened(vectors, dimensions, normalize=normalize))
        )

    return answer


def embed_all(fields: Fields, worker: Embedder) -> Answer:
    """`/embed_all`: a vector for each token of each text, before pooling."""
    texts, rows = inputs_of(fields, "inputs", worker)
    options = _options(fields)

    async def answer(request: Request) -> Response:
        computed, _ = await encoded(request, worker, texts, rows=rows, each_position=True, **options)
        return await large_json(request, lambda: map(np.ndarray.tolist, computed))

    return answer


def embed_sparse(fields: Fields, worker: Weigher) -> Answer:
    """`/embed_sparse`: for each text the tokens with a weight, in the order of their ids."""
    texts, rows = inputs_of(fields, "inputs", worker)
    options = _options(fields)

    async def answer(request: Request) -> Response:
        computed, _ = await encoded(request, worker, texts, rows=rows, **options)
        return await large_json(
            request,
            lambda: (
                [{"index": int(i), "value": float(weights[i])} for i in np.flatnonzero(weights)] for weights in computed
            ),
        )

    return answer


def similarity(fields: Fields, worker: Embedder) -> Answer:
    """`/similarity`: the cosine between a sentence and others."""
    inputs = fields.inner("inputs")
    if inputs is None:
        raise fields.wrong("inputs", "an object with source_sentence and sentences")
    texts = [inputs.required_text("source_sentence"), *inputs.texts("sentences", MAX_INPUTS)]
    options = _options(fields.inner("parameters") or Fields({}))

    async def answer(request: Request) -> Response:
        rows, _ = await encoded(request, worker, texts, **options)
        vectors = shortened(np.asarray(rows), None, normalize=True)
        return JSONResponse((vectors[1:] @ vectors[0]).tolist())

    return answer


def rerank(fields: Fields, worker: Labeller) -> Answer:
    """`/rerank`: texts in the order in which they answer a query."""
    if len(worker.encoder.labels) != 1:
        raise ApiError(f"{worker.name} has several labels: it does not rank texts; use /predict", "model")
    query = fields.required_text("query")
    texts = fields.texts("texts", MAX_INPUTS)
    return_text = fields.flag("return_text")
    scores_of = _scores(fields, worker, [(query, text) for text in texts])

    async def answer(request: Request) -> Response:
        scores = (await scores_of(request))[:, 0]
        order = np.argsort(-scores, kind="stable").tolist()
        return JSONResponse(
            [{"index": i} | ({"text": texts[i]} if return_text else {}) | {"score": float(scores[i])} for i in order]
        )

    return answer


def predict(fields: Fields, worker: Labeller) -> Answer:
    """`/predict`: the labels of a text, a pair, or a list of both, the likeliest first."""
    inputs = fields.get("inputs")
    is_one = isinstance(inputs, str) or (isinstance(inputs, list) and all(isinstance(item, str) for item in inputs))
    items = [inputs] if is_one else fields.items("inputs", MAX_INPUTS, least=1)
    scores_of = _scores(fields, worker, [_pair(item, fields) for item in items])

    async def answer(request: Request) -> Response:
        names, scores = worker.encoder.labels, await scores_of(request)

        def labelled() -> Any:
            rows = (
                [{"score": float(row[i]), "label": names[i]} for i in np.argsort(-row, kind="stable").tolist()]
                for row in scores
            )
            return next(rows) if is_one else rows

        return await large_json(request, labelled)

    return answer


def _scores(fields: Fields, worker: Labeller, texts: Sequence[Text]) -> Callable[[Request], Awaitable[Any]]:
    """Return what computes the scores of the texts' labels, (N, L)."""
    raw = fields.flag("raw_scores")
    options = _options(fields)

    async def scores(request: Request) -> Any:
        rows, _ = await encoded(request, worker, texts, **options)
        return np.asarray(rows) if raw else probabilities(np.asarray(rows))

    return scores


def tokenize(fields: Fields, words: Tokenizer) -> Answer:
    """`/tokenize`: the tokens of each text, with their places in it, in characters."""
    texts = fields.texts("inputs", MAX_INPUTS)
    special = fields.flag("add_special_tokens", True)

    def split(text: str) -> list[dict[str, Any]]:
        return [
            {"id": token.id, "text": token.token, "special": token.is_special}
            | {"start": token.start if shown else None, "stop": token.end if shown else None}
            for token in words.split(text, add_special_tokens=special)
            for shown in (not token.is_special,)
        ]

    async def answer(request: Request) -> Response:
        try:
            return await large_json(request, lambda: map(split, texts))
        except TallowError as error:
            raise api_error(error, "inputs") from error

    return answer


def decode(fields: Fields, words: Tokenizer) -> Answer:
    """`/decode`: the texts of ids."""
    ids = fields.items("ids", 1 << 16, least=1)
    rows = [as_ids(row) for row in (ids if isinstance(ids[0], list) else [ids])]
    if not all(row is not None and all(0 <= token < 1 << 31 for token in row) for row in rows):
        raise fields.wrong("ids", "ids of tokens, or lists of them")
    hide = fields.flag("skip_special_tokens", True)

    async def answer(request: Request) -> Response:
        try:
            return await large_json(
                request, lambda: (words.decode(row or (), skip_special_tokens=hide) for row in rows)
            )
        except TallowError as error:
            raise api_error(error, "ids") from error

    return answer


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
    side = fields.choice("truncation_direction", ("Right", "right", "Left", "left")).lower()
    truncate, name = fields.flag("truncate"), fields.text("prompt_name")
    return {"param": "inputs", "truncate": truncate, "side": side, "prompt_name": name}
