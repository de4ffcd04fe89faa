"""Text generation: choosing the next token, the loop that feeds it back, and text from tokens as they come.

Everything here works on NumPy arrays and ints, not on Tensors: a step costs microseconds, and a small model's whole
token takes less than a millisecond.

    tokens = tokenizer.encode("Once upon a time")
    sample = Sampler(temperature=0.8, top_p=0.9, seed=1)
    for piece in decode_stream(tokenizer, generate(model, tokens, max_tokens=256, sample=sample, stop_ids={1, 2})):
        print(piece, end="", flush=True)
"""

from __future__ import annotations

import codecs
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, NumericError
from tallow.random import Generator

Logits: TypeAlias = npt.NDArray[np.float32]
Sample: TypeAlias = Callable[[Logits, Sequence[int]], int]
"""Chooses the next token from logits (V,) and the tokens before it; it may not change the logits."""


class LanguageModel(Protocol):
    """What `generate` needs of a model."""

    @property
    def context_length(self) -> int:
        """The most tokens that a cache can hold."""

    @property
    def vocab_size(self) -> int: ...

    def new_cache(self, *, length: int) -> Any:
        """An empty cache for one sequence of at most `length` tokens."""

    def next_logits(self, tokens: Sequence[int], cache: Any) -> Logits:
        """Append `tokens` to the cache; the logits (V,) of the token that follows, on the host."""


class Tokenizer(Protocol):
    def decode(self, previous: int | None, token: int) -> bytes: ...


def generate(
    model: LanguageModel,
    tokens: Sequence[int],
    *,
    max_tokens: int,
    sample: Sample | None = None,
    stop_ids: Collection[int] = (),
) -> Iterator[int]:
    """Continue `tokens`, one id at a time, until `max_tokens` are made, a stop id comes, or the context is full.

    Args:
        tokens: the prompt; at least one id, such as BOS. It is not repeated in the output.
        sample: `greedy` if None; a `Sampler`, or any function of its signature.
        stop_ids: ids that end the text; they are not part of the output.

    Raises:  ArgumentError when the prompt is empty, holds an id outside the vocabulary or exceeds the context, or
             max_tokens is negative, all at the call; NumericError, at the token, when the logits hold NaN
    """
    if max_tokens < 0:
        raise ArgumentError(f"max_tokens={max_tokens}", mend="pass 0 or more")
    if not tokens:
        raise ArgumentError("the prompt holds no token", mend="start it with BOS: encode(text, bos=True)")
    if min(tokens) < 0 or max(tokens) >= model.vocab_size:
        raise ArgumentError(
            f"the prompt holds an id outside 0..{model.vocab_size - 1}", mend="encode it with the model's own tokenizer"
        )
    if len(tokens) > model.context_length:
        raise ArgumentError(
            f"the prompt takes {len(tokens)} tokens, the model's context holds {model.context_length}",
            mend="shorten the prompt",
        )
    # The last token is never fed back, so it needs no place in the context.
    max_tokens = min(max_tokens, model.context_length - len(tokens) + 1)
    return _generate(model, list(tokens), max_tokens, sample or greedy, frozenset(stop_ids))


def _generate(
    model: LanguageModel, tokens: list[int], max_tokens: int, sample: Sample, stop_ids: frozenset[int]
) -> Iterator[int]:
    if not max_tokens:
        return
    cache = model.new_cache(length=len(tokens) + max_tokens - 1)
    pending = tuple(tokens)
    for _ in range(max_tokens):
        token = sample(model.next_logits(pending, cache), tokens)
        if token in stop_ids:
            return
        yield token
        tokens.append(token)
        pending = (token,)  # the cache already holds everything before it


def greedy(logits_V: Logits, tokens: Sequence[int] = ()) -> int:
    """The likeliest token, the first of equals.

    Raises:  NumericError when there is a NaN among the logits
    """
    token = int(logits_V.argmax())  # NumPy counts NaN as the largest, so it cannot hide behind a number
    if np.isnan(logits_V[token]):
        raise _not_a_number()
    return token


class Sampler:
    """Draws the next token at random from the model's distribution, reshaped in this order:

    1. `repetition_penalty` r > 1 makes tokens that occurred less likely: a positive logit is divided by r, a negative
       one multiplied.
    2. `temperature` t divides the logits; 0 takes the likeliest token and draws nothing.
    3. `top_k` keeps the k likeliest tokens, and any that equal the last of them.
    4. `top_p` keeps the likeliest tokens up to the first whose running sum exceeds p.

    Probabilities are float64, and one number is drawn per token from PCG64 seeded by `seed`, so that one seed gives one
    text on every platform, as far as the logits agree. Without a seed, `seed` is chosen at random and can be read.

    Raises:  ArgumentError for a parameter out of range; NumericError when drawing from logits that hold NaN or +inf
    Source:  Keskar et al. 2019, arXiv:1909.05858, section 4.1 (penalty); Holtzman et al. 2020, arXiv:1904.09751 (top_p)
    """

    def __init__(
        self,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        seed: int | None = None,
    ) -> None:
        _require(0 <= temperature < float("inf"), "temperature", temperature, "0 (the likeliest token) or more")
        _require(top_k is None or top_k >= 1, "top_k", top_k, "1 or more, or None for all")
        _require(0 < top_p <= 1, "top_p", top_p, "more than 0 and at most 1, which keeps all")
        _require(
            0 < repetition_penalty < float("inf"), "repetition_penalty", repetition_penalty, "more than 0; 1 is off"
        )
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.repetition_penalty = repetition_penalty
        self.seed = secrets.randbits(32) if seed is None else seed
        self._random = Generator().manual_seed(self.seed).numpy

    def __call__(self, logits_V: Logits, tokens: Sequence[int] = ()) -> int:
        if self.repetition_penalty != 1 and tokens:
            logits_V = _penalized(logits_V, tokens, self.repetition_penalty)
        if self.temperature == 0:
            return greedy(logits_V)
        scores_V = logits_V.astype(np.float64)
        highest = scores_V.max()
        if not np.isfinite(highest):
            raise _not_a_number()
        # Shifted before the division: at a tiny temperature the quotient of a large logit would overflow to inf.
        scores_V -= highest
        scores_V /= self.temperature
        if self.top_k is not None and self.top_k < len(scores_V):
            scores_V[scores_V < np.partition(scores_V, -self.top_k)[-self.top_k]] = -np.inf
        weights_V = np.exp(scores_V)
        if self.top_p < 1:
            return self._draw_from_top(weights_V)
        return self._draw(weights_V)

    def _draw(self, weights_N: npt.NDArray[np.float64]) -> int:
        """An index, each in proportion to its weight; one of weight zero never."""
        running_N = weights_N.cumsum()
        return int(running_N.searchsorted(self._random.random() * running_N[-1], side="right"))

    def _draw_from_top(self, weights_V: npt.NDArray[np.float64]) -> int:
        total = weights_V.sum()
        # Sorting is the dear part. What is below (1 - p) / V sums to less than 1 - p, so none of it can be kept. (run.c
        # divides by V - 1, which at a small p can leave nothing.)
        floor = total * (1 - self.top_p) / len(weights_V)
        candidates_N = np.flatnonzero(weights_V >= floor)
        candidates_N = candidates_N[np.argsort(-weights_V[candidates_N], kind="stable")]
        running_N = weights_V[candidates_N].cumsum()
        kept = int(running_N.searchsorted(self.top_p * total, side="right")) + 1
        return int(candidates_N[self._draw(weights_V[candidates_N[:kept]])])


def _penalized(logits_V: Logits, tokens: Sequence[int], penalty: float) -> Logits:
    seen = np.array(sorted(set(tokens)), dtype=np.int64)
    logits_V = logits_V.copy()
    chosen = logits_V[seen]
    logits_V[seen] = np.where(chosen > 0, chosen / np.float32(penalty), chosen * np.float32(penalty))
    return logits_V


def _require(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:  # a NaN holds nothing
        raise ArgumentError(f"{name}={value}", mend=f"pass {expected}")


def _not_a_number() -> NumericError:
    return NumericError(
        "the logits hold NaN or infinity, so no token can be chosen",
        mend="check the weights for NaN; if they are float16, try float32, which does not overflow",
    )


def decode_stream(tokenizer: Tokenizer, tokens: Iterable[int], *, previous: int | None = None) -> Iterator[str]:
    """Text from tokens as they come, in pieces that never split a character.

    Bytes that are no UTF-8 become U+FFFD. An unfinished character waits for its next byte, or for the end.

    Args:
        previous: the token before the first of `tokens`, where there is one. After BOS a word loses its leading space,
            so `decode_stream(t, ids[1:], previous=ids[0])` is the text that was encoded.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for token in tokens:
        if text := decoder.decode(tokenizer.decode(previous, token)):
            yield text
        previous = token
    if text := decoder.decode(b"", final=True):
        yield text
