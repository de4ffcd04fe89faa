"""A text to generate, and its state while the engine generates it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf

from tallow.devices import to_host
from tallow.dtypes import Array
from tallow.errors import GrammarError, NumericError
from tallow.generation.processors import LogitsProcessor, Preparing, Text, apply_processors
from tallow.generation.sampling import Sample, choose, greedy
from tallow.generation.sequence import Choice, scored, scored_each
from tallow.generation.streaming import StopStrings
from tallow.text.stream_decoder import TextDecoder

_READY = object()
STOP, LENGTH, CANCELLED = "stop", "length", "cancelled"


@dataclass
class TextRequest:
    """A text to generate.

    Args:
        tokens: the prompt.
        max_tokens: the most tokens to generate.
        sample: chooses tokens; it belongs to this request alone, so that other requests do not change its text.
        processors: change the logits before `sample` sees them.
        stop: strings that end the text.
        stop_ids: tokens that end the text; None means the model's.
        keep_stop: the string or token that ends the text is part of it.
        min_tokens: strings do not end the text before this many tokens; a processor does the same for tokens.
        show_special: special tokens are part of the text.
        show_marks: those around calls of tools and in channels are.
        top_logprobs: how many of the likeliest tokens to return with each token; None for no log-probabilities.
        prompt_logprobs: the same for each token of the prompt but the first.
        priority: waiting requests with a smaller number begin first, if the engine is `by_priority`.
        client: who asks; clients take turns.
        salt: prompts with another one share no memory with this one.
    """

    tokens: Sequence[int]
    max_tokens: int
    sample: Sample = greedy
    processors: Sequence[LogitsProcessor] = ()
    stop: Sequence[str] = ()
    stop_ids: frozenset[int] | None = None
    keep_stop: bool = False
    min_tokens: int = 0
    show_special: bool = False
    show_marks: bool = False
    top_logprobs: int | None = None
    prompt_logprobs: int | None = None
    priority: int = 0
    client: str = ""
    salt: str = ""


@dataclass
class Update:
    """The part of a text that a step adds.

    Attributes:
        text: the text that can be shown now; it may be empty.
        choices: the tokens with their log-probabilities, if requested.
        stop: the token that has ended the text, with its log-probability, if requested.
        prompt: the tokens of the prompt with theirs and their ranks, if requested; None for the first. The first update
            has all of them.
        finish: why the text has ended, "stop", "length" or "cancelled"; None if it goes on.
        error: why the text has failed; it has ended then.
        cached: the number of tokens of the prompt that were known when its reading began.
        by_string: a stop string has ended the text, not a stop token.
    """

    text: str = ""
    choices: list[Choice] = field(default_factory=list)
    stop: Choice | None = None
    prompt: list[tuple[Choice, int] | None] = field(default_factory=list)
    finish: str | None = None
    error: Exception | None = None
    tokens: int = 0
    cached: int = 0
    by_string: bool = False

    @property
    def is_last(self) -> bool:
        """True if the text has ended."""
        return self.finish is not None or self.error is not None


def _preparing(processors: Sequence[object]) -> list[Preparing]:
    return [each for each in processors if isinstance(each, Preparing)]


class Generation:
    """A request on its way through the engine.

    Args:
        deliver: called in the engine's thread with each Update; it must not block.
        stop_ids: the tokens that end the text if the request has none.

    Attributes:
        is_ready: whether a step may choose the next token: `prepare` has nothing left to do.
    """

    def __init__(
        self,
        request: TextRequest,
        deliver: Callable[[Update], None],
        decoder: TextDecoder,
        stop_ids: frozenset[int],
    ) -> None:
        self.request = request
        self.slot = -1
        self.cached = 0
        self.submitted = time.monotonic()
        self.first_token: float | None = None
        self.is_cancelled = False
        self.has_ended = False
        self._deliver = deliver
        self._decoder = decoder
        self._strings = StopStrings(request.stop, keep=request.keep_stop)
        self._stop_ids = stop_ids if request.stop_ids is None else request.stop_ids
        self._text = Text(request.tokens)
        self.pending: Sequence[int] = request.tokens  # not in the slot yet
        self._prompt: list[tuple[Choice, int] | None] = [None] * self.scores_prompt
        self._slow = _preparing(request.processors) if request.max_tokens else []
        self._begin_preparing()

    def _begin_preparing(self) -> None:
        self.is_ready = not self._slow
        self._preparing: Iterator[object] = chain.from_iterable(each.prepare(self._text) for each in self._slow)

    def prepare(self) -> None:
        """Do a piece of the work before the next token can be chosen, after which the text `is_ready`.

        Raises:  as `advance`
        """
        self.is_ready = next(self._preparing, _READY) is _READY

    def cancel(self) -> None:
        """End the text before its next token; from any thread."""
        self.is_cancelled = True

    @property
    def generated(self) -> int:
        """The number of tokens generated so far."""
        return len(self._text) - self._text.prompt

    @property
    def scores_prompt(self) -> bool:
        """True if the log-probabilities of the prompt's tokens are requested."""
        return self.request.prompt_logprobs is not None

    @property
    def needs_model(self) -> bool:
        """True if the model has to read the prompt."""
        return self.request.max_tokens > 0 or (self.scores_prompt and len(self.request.tokens) > 1)

    def score(self, logits_TV: Array) -> None:
        """Take the logits that follow the next tokens of the prompt.  Raises: NumericError for logits with NaN"""
        first = len(self._prompt)
        tokens = self.request.tokens[first : first + len(logits_TV)]
        self._prompt += scored_each(tokens, logits_TV[: len(tokens)], self.request.prompt_logprobs or 0)

    def skip(self, known: int) -> int:
        """Do not read the first `known` tokens of the prompt; return how many of them were left to read."""
        read = len(self.request.tokens) - len(self.pending)
        if read == 0:
            self.cached = known
        self.pending = self.request.tokens[known:]
        return known - read

    def take(self, size: int) -> Sequence[int]:
        """Remove and return the next tokens to read."""
        taken, self.pending = self.pending[:size], self.pending[size:]
        return taken

    def advance(self, logits_V: Array) -> None:
        """Choose the next token and deliver what it adds.

        Raises:  NumericError for logits with NaN; GrammarError when no token continues the text; others of processors
        """
        request = self.request
        if request.max_tokens == 0:
            self.finish(LENGTH)
            return
        token = self._choose(logits_V)
        self.first_token = self.first_token or time.monotonic()
        if token in self._stop_ids:
            last = self._strings.push(self._decoder.push(token)) if request.keep_stop else ""
            self._end(Update(last + self._rest(), stop=self._scored(token, logits_V), finish=STOP))
            return
        choice = self._scored(token, logits_V)
        choices = [] if choice is None else [choice]
        self._text.append(token)
        self.pending = [token]
        self._begin_preparing()
        text = self._decoder.push(token)
        if self.generated > request.min_tokens:
            text = self._strings.push(text)
        if self._strings.found:
            self._end(Update(text, choices, finish=STOP, tokens=1, by_string=True))
        elif self.generated >= request.max_tokens:
            self._end(Update(text + self._rest(), choices, finish=LENGTH, tokens=1))
        else:
            self._send(Update(text, choices, tokens=1, cached=self.cached))

    def _send(self, update: Update) -> None:
        update.prompt, self._prompt = self._prompt, []
        self._deliver(update)

    def _choose(self, logits_V: Array) -> int:
        request = self.request
        try:
            (token,) = choose([request.sample], logits_V[None], [self._text], request.processors)
        except NumericError as error:
            if apply_processors(to_host(logits_V), self._text, request.processors).max() != -inf:
                raise
            raise GrammarError(
                "the fields of the request rule out every token", hint="do not combine a grammar with other rules"
            ) from error
        return token

    def _scored(self, token: int, logits_V: Array) -> Choice | None:
        top = self.request.top_logprobs
        return None if top is None else scored(token, logits_V, top)

    def _rest(self) -> str:
        """Return the text that was held back, up to a stop string in it."""
        text = self._strings.push(self._decoder.finish())
        return text if self._strings.found else text + self._strings.finish()

    def finish(self, reason: str) -> None:
        """End the text with what was held back."""
        self._end(Update("" if reason == CANCELLED else self._rest(), finish=reason))

    def fail(self, error: Exception) -> None:
        """End the text with an error."""
        self._end(Update(error=error))

    def _end(self, update: Update) -> None:
        if not self.has_ended:
            self.has_ended = True
            self._preparing = iter(())  # work in progress stops here
            update.cached = self.cached
            self._send(update)
