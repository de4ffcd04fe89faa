"""A text to generate, and its state while the engine generates it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tallow.dtypes import Array
from tallow.generation.processors import LogitsProcessor, Text
from tallow.generation.sampling import Sample, choose, greedy
from tallow.generation.sequence import Choice, scored
from tallow.generation.streaming import StopStrings, TextDecoder

STOP, LENGTH, CANCELLED = "stop", "length", "cancelled"


@dataclass
class TextRequest:
    """A text to generate.

    Args:
        tokens: the prompt.
        max_tokens: the most tokens to generate.
        sample: chooses tokens; it belongs to this request alone, so that other requests do not change its text.
        processors: change the logits before `sample` sees them.
        stop: strings that end the text and are not part of it.
        top_logprobs: how many of the likeliest tokens to return with each token; None for no log-probabilities.
        priority: waiting requests with a smaller number begin first.
    """

    tokens: Sequence[int]
    max_tokens: int
    sample: Sample = greedy
    processors: Sequence[LogitsProcessor] = ()
    stop: Sequence[str] = ()
    top_logprobs: int | None = None
    priority: int = 0


@dataclass
class Update:
    """The part of a text that a step adds.

    Attributes:
        text: the text that can be shown now; it may be empty.
        choices: the tokens with their log-probabilities, if requested.
        finish: why the text has ended, "stop", "length" or "cancelled"; None if it goes on.
        error: why the text has failed; it has ended then.
        cached: the number of tokens of the prompt that were known when its reading began.
        by_string: a stop string has ended the text, not a stop token.
    """

    text: str = ""
    choices: list[Choice] = field(default_factory=list)
    finish: str | None = None
    error: Exception | None = None
    tokens: int = 0
    cached: int = 0
    by_string: bool = False

    @property
    def is_last(self) -> bool:
        """True if the text has ended."""
        return self.finish is not None or self.error is not None


class Generation:
    """A request on its way through the engine.

    Args:
        deliver: called in the engine's thread with each Update; it must not block.
        stop_ids: the tokens that end the text.
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
        self._strings = StopStrings(request.stop)
        self._stop_ids = stop_ids
        self._text = Text(request.tokens)
        self.pending: Sequence[int] = request.tokens  # not in the slot yet

    def cancel(self) -> None:
        """End the text before its next token; from any thread."""
        self.is_cancelled = True

    @property
    def generated(self) -> int:
        """The number of tokens generated so far."""
        return len(self._text) - self._text.prompt

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
        (token,) = choose([request.sample], logits_V[None], [self._text], request.processors)
        self.first_token = self.first_token or time.monotonic()
        if token in self._stop_ids:
            self.finish(STOP)
            return
        choices = [] if request.top_logprobs is None else [scored(token, logits_V, request.top_logprobs)]
        self._text.append(token)
        self.pending = [token]
        text = self._strings.push(self._decoder.push(token))
        if self._strings.found:
            self._end(Update(text, choices, STOP, tokens=1, by_string=True))
        elif self.generated >= request.max_tokens:
            self._end(Update(text + self._rest(), choices, LENGTH, tokens=1))
        else:
            self._deliver(Update(text, choices, tokens=1, cached=self.cached))

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
            update.cached = self.cached
            self._deliver(update)
