"""ONNX operators on strings, which are NumPy arrays of dtype object.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.onnx.operators.bounds import check_made
from tallow.onnx.operators.registry import operator

Strings = np.ndarray[Any, np.dtype[np.object_]]


def _strings(values: Sequence[str], shape: tuple[int, ...]) -> Strings:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


@operator("StringConcat", since=20, whole=True)
def string_concat(x: Strings, y: Strings) -> Strings:
    """Join the strings of two arrays, which broadcast."""
    x, y = np.broadcast_arrays(x, y)
    return _strings([str(a) + str(b) for a, b in zip(x.flat, y.flat, strict=True)], x.shape)


@operator("StringSplit", since=20, whole=True)
def string_split(x: Strings, *, delimiter: str | None = None, maxsplit: int | None = None) -> tuple[Strings, Tensor]:
    """Split strings, at white space by default; return the parts, with "" after the last, and their numbers."""
    most = -1 if maxsplit is None else maxsplit
    parts = [str(each).split(delimiter or None, most) for each in x.flat]
    width = max(map(len, parts), default=0)
    padded = [word for each in parts for word in (*each, *[""] * (width - len(each)))]
    counts = np.array([len(each) for each in parts], np.int64).reshape(x.shape)
    return _strings(padded, (*x.shape, width)), tl.tensor(counts)


@operator("RegexFullMatch", since=20, whole=True)
def regex_full_match(x: Strings, *, pattern: str) -> Tensor:
    """Return which strings match a pattern as a whole.  Raises: ArgumentError for a pattern that Python refuses"""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ArgumentError(f"RegexFullMatch: {pattern!r:.80}: {error}", hint="write it as for Python's re") from None
    found = [compiled.fullmatch(str(each)) is not None for each in x.flat]
    return tl.tensor(np.array(found, bool).reshape(x.shape))


@operator("StringNormalizer", since=10, whole=True)
def string_normalizer(
    x: Strings,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "en_US",
    stopwords: Sequence[str] = (),
) -> Strings:
    """Leave out stop words, and change the case of the rest.

    `locale` is not read: case changes as Unicode says.

    Shapes:  (N,) or (1, N) -> (M,) or (1, M); [""] if nothing is left
    Raises:  ArgumentError for an unknown action; ShapeError for another shape
    """
    changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    change = changes.get(case_change_action)
    if change is None:
        raise ArgumentError(f"StringNormalizer: case_change_action={case_change_action!r}", hint="NONE, LOWER or UPPER")
    if x.ndim > 2 or (x.ndim == 2 and x.shape[0] != 1):
        raise ShapeError(f"StringNormalizer: strings of shape {x.shape}", hint="pass (N,) or (1, N)")
    fold = str if is_case_sensitive else str.lower
    stops = {fold(word) for word in stopwords}
    kept = [change(word) for word in map(str, x.flat) if fold(word) not in stops] or [""]
    return _strings(kept, (len(kept),) if x.ndim < 2 else (1, len(kept)))


@operator("TfIdfVectorizer", since=9, whole=True, folds=False)
def tf_idf_vectorizer(
    x: Any,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] = (),
    pool_strings: Sequence[str] = (),
    weights: Sequence[float] | None = None,
) -> Tensor:
    """Count the n-grams of a pool in each row, also with elements between theirs.

    Args:
        ngram_counts: where the n-grams of each length begin in the pool.
        ngram_indexes: the output of each n-gram.
        mode: TF counts, IDF weighs whether it occurs, TFIDF weighs counts.

    Shapes:  (N,) or (B, N) -> (outputs,) or (B, outputs)
    Raises:  ArgumentError for an unknown mode
    """
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ArgumentError(f"TfIdfVectorizer: mode={mode!r}", hint="use TF, IDF or TFIDF")
    rows = x if isinstance(x, np.ndarray) else x.numpy()
    known = _grams(list(pool_strings or pool_int64s), ngram_counts, min_gram_length, max_gram_length)
    width = max(ngram_indexes, default=-1) + 1
    check_made("TfIdfVectorizer", (len(np.atleast_2d(rows)), width))
    counts = [_counts(row.tolist(), known, ngram_indexes, width, max_skip_count) for row in np.atleast_2d(rows)]
    result = np.array(counts, np.float32).reshape(-1, width)
    factors = np.zeros(width, np.float32)
    factors[list(ngram_indexes)] = np.ones(len(ngram_indexes)) if weights is None else weights
    if mode != "TF":
        result = (result if mode == "TFIDF" else result > 0) * factors
    return tl.tensor(result.astype(np.float32).reshape((*rows.shape[:-1], width)))


def _grams(pool: list[Any], starts: Sequence[int], least: int, most: int) -> dict[tuple[Any, ...], int]:
    """Return n-gram -> its number in the pool, of the lengths that count."""
    grams, number = {}, 0
    for n, start in enumerate(starts, 1):
        end = min(starts[n], len(pool)) if n < len(starts) else len(pool)
        for at in range(max(start, 0), end - n + 1, n):
            if least <= n <= most:
                grams[tuple(pool[at : at + n])] = number
            number += 1
    return grams


def _counts(
    row: list[Any], known: dict[tuple[Any, ...], int], outputs: Sequence[int], width: int, skips: int
) -> np.ndarray[Any, Any]:
    counts = np.zeros(width, np.float32)
    lengths = {len(gram) for gram in known}
    for n in lengths:
        for step in range(1, (min(skips, len(row)) if n > 1 else 0) + 2):
            for at in range(len(row) - (n - 1) * step):
                number = known.get(tuple(row[at : at + (n - 1) * step + 1 : step]))
                if number is not None:
                    counts[outputs[number]] += 1
    return counts
