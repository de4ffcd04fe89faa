"""The logits processor that keeps a text within a grammar."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, GrammarError
from tallow.generation.constrain.grammars import Grammar
from tallow.generation.constrain.states import DEAD, UNKNOWN, Automaton
from tallow.generation.constrain.vocabulary import Vocabulary
from tallow.generation.constrain.work import MAX_PER_TEXT, MAX_PER_TOKEN, Work, done, limited
from tallow.generation.processors import Logits, generated_part
from tallow.generation.sequence import checked_ids

Mask: TypeAlias = npt.NDArray[np.uint8]
"""Which tokens may follow, a bit for each."""

MAX_BYTES = 32 << 20  # of what is found for the texts of a grammar; then all of it is found anew
MAX_MASK_BYTES, MAX_TEXT_BYTES = 8 << 20, 4 << 20  # of these, of the latest masks and the tokens of the latest texts


class Constraint:
    """Allows only tokens with which the generated text stays in a grammar, and the stop ids where it may end.

    A `LogitsProcessor`. It may serve any number of texts. The tokens that may follow are found once for each state of
    the grammar: inside of a JSON string, for instance, a text has one state.

    Args:
        grammar: the texts.
        vocabulary: the bytes of the model's tokens; `Vocabulary(tokenizer.token_bytes())`.
        stop_ids: the tokens that end a text; at least one.

    Raises:  ArgumentError for no stop ids; at a call GrammarError for a text that has left the grammar, or that no
             token continues, or for which the grammar takes too many configurations: `work.MAX_PER_TOKEN` for a token,
             `work.MAX_PER_TEXT` for all tokens of a text

    Example:
        constraint = Constraint(regex(r"[A-Z][a-z]+"), Vocabulary(tokenizer.token_bytes()), stop_ids={2})
        generate(model, tokens, max_tokens=20, stop_ids={2}, processors=[constraint])
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, stop_ids: Collection[int]) -> None:
        self._grammar = grammar
        self._vocabulary = vocabulary
        self._stop_ids = sorted(checked_ids("stop_ids", stop_ids))
        if not self._stop_ids:
            raise ArgumentError("a constraint without stop ids could not end a text", hint="pass the model's stop_ids")
        self._size = max(len(vocabulary), self._stop_ids[-1] + 1)
        self._found = _Found(grammar, self._size)

    @property
    def nbytes(self) -> int:
        """The bytes of the grammar and of what is kept for its texts, about. Any thread may ask."""
        return self._grammar.nbytes + self._found.nbytes

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        allowed = self.allowed(generated_part(tokens), len(logits_V))
        return np.where(allowed, logits_V, logits_V.dtype.type(-np.inf))

    def allowed(self, generated: Sequence[int], vocab_size: int) -> npt.NDArray[np.bool_]:
        """Return which tokens may follow the generated ones.  Shapes: (vocab_size,)"""
        packed = done(self._mask(tuple(generated)))
        allowed = np.zeros(max(vocab_size, self._size), dtype=np.bool_)
        allowed[: self._size] = np.unpackbits(packed, count=self._size)
        if not allowed[:vocab_size].any():
            raise GrammarError(
                "no token of the vocabulary continues the text", hint="use characters that the model's tokens have"
            )
        return allowed[:vocab_size]

    def prepare(self, tokens: Sequence[int]) -> Iterator[int]:
        """Find what a call with these tokens needs, a little at a time.

        Yields:  the configurations that were looked at since the last time
        Raises:  as a call
        """
        return self._mask(tuple(generated_part(tokens)))

    def _mask(self, generated: tuple[int, ...]) -> Work[Mask]:
        """Return the tokens that may follow, packed."""
        if self._found.nbytes > MAX_BYTES:
            self._found = _Found(self._grammar, self._size)
        found = self._found  # another text may replace it between two pieces of this work
        place = yield from self._place(found, generated)
        if place.state not in found.masks:
            most = min(MAX_PER_TOKEN, MAX_PER_TEXT - place.spent)
            allowed, spent = yield from limited(self._vocabulary.allowed(found.automaton, place.state), most, "a token")
            mask = np.zeros(self._size, dtype=np.bool_)
            mask[: len(allowed)] = allowed
            mask[self._stop_ids] = found.automaton.is_accepting(place.state)
            found.masks[place.state] = np.packbits(mask)
            place = _Place(place.state, place.spent + spent)
        found.keep(generated, place)
        return found.masks[place.state]

    def _place(self, found: _Found, generated: tuple[int, ...]) -> Work[_Place]:
        """Return where a text is after the generated tokens, from the longest part of them that is known."""
        known = len(generated)
        while known and generated[:known] not in found.places:
            known -= 1
        place = found.places.get(generated[:known], _Place(UNKNOWN, 0))
        way = self._way(found.automaton, place.state, generated[known:])
        state, spent = yield from limited(way, MAX_PER_TEXT - place.spent, "the text")
        if state == DEAD:
            raise GrammarError("the generated text is not in the grammar", hint="start each text with the constraint")
        return _Place(state, place.spent + spent)

    def _way(self, automaton: Automaton, state: int, tokens: Sequence[int]) -> Work[int]:
        """Return the state after some more tokens; `state` is UNKNOWN before the first."""
        if state == UNKNOWN:
            state = yield from automaton.begin()
        for token in tokens:
            text = self._vocabulary.tokens[token] if token < len(self._vocabulary) else None
            state = (yield from automaton.advance(state, text)) if text else DEAD
        return state


class _Place(NamedTuple):
    """The state that a text is in, UNKNOWN before the first one is found, and the configurations that it took."""

    state: int
    spent: int


class _Found:
    """The states of a grammar that texts have reached, the masks of some, and where the latest texts are."""

    def __init__(self, grammar: Grammar, size: int) -> None:
        self.automaton = Automaton(grammar.program)
        self._each = -(-size // 8)  # bytes of a mask
        self.masks: OrderedDict[int, Mask] = OrderedDict()
        self.places: OrderedDict[tuple[int, ...], _Place] = OrderedDict()
        self._tokens = 0  # of all texts in `places`

    @property
    def nbytes(self) -> int:
        """The bytes that all of it takes, about."""
        return self.automaton.nbytes + self._mask_bytes + 8 * self._tokens

    @property
    def _mask_bytes(self) -> int:
        return len(self.masks) * self._each

    def keep(self, generated: tuple[int, ...], place: _Place) -> None:
        """Keep where a text is, and its mask, before those that were used less lately."""
        if generated not in self.places:
            self._tokens += len(generated)
        self.places[generated] = place
        self.places.move_to_end(generated)
        self.masks.move_to_end(place.state)
        while self._mask_bytes > MAX_MASK_BYTES:
            self.masks.popitem(last=False)
        while len(self.places) > 1 and 8 * self._tokens > MAX_TEXT_BYTES:
            self._tokens -= len(self.places.popitem(last=False)[0])
