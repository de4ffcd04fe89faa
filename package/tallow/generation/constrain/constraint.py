"""The logits processor that keeps a text within a grammar."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, GrammarError
from tallow.generation.constrain.grammars import Grammar
from tallow.generation.constrain.states import DEAD
from tallow.generation.constrain.vocabulary import Vocabulary
from tallow.generation.processors import Logits, generated_part
from tallow.generation.sequence import checked_ids

_MASKS, _TEXTS = 512, 256  # kept


class Constraint:
    """Allows only tokens with which the generated text stays in a grammar, and the stop ids where it may end.

    A `LogitsProcessor`. It may serve any number of texts. The tokens that may follow are found once for each state of
    the grammar: inside of a JSON string, for instance, a text has one state.

    Args:
        grammar: the texts.
        vocabulary: the bytes of the model's tokens; `Vocabulary(tokenizer.token_bytes())`.
        stop_ids: the tokens that end a text; at least one.

    Raises:  ArgumentError for no stop ids; at a call GrammarError for a text that has left the grammar, or that no
             token continues

    Example:
        constraint = Constraint(regex(r"[A-Z][a-z]+"), Vocabulary(tokenizer.token_bytes()), stop_ids={2})
        generate(model, tokens, max_tokens=20, stop_ids={2}, processors=[constraint])
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, stop_ids: Collection[int]) -> None:
        self._automaton = grammar.automaton
        self._vocabulary = vocabulary
        self._stop_ids = sorted(checked_ids("stop_ids", stop_ids))
        if not self._stop_ids:
            raise ArgumentError("a constraint without stop ids could not end a text", hint="pass the model's stop_ids")
        self._masks: OrderedDict[int, npt.NDArray[np.uint8]] = OrderedDict()
        self._states: OrderedDict[tuple[int, ...], int] = OrderedDict()

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        allowed = self.allowed(generated_part(tokens), len(logits_V))
        return np.where(allowed, logits_V, logits_V.dtype.type(-np.inf))

    def allowed(self, generated: Sequence[int], vocab_size: int) -> npt.NDArray[np.bool_]:
        """Return which tokens may follow the generated ones.  Shapes: (vocab_size,)"""
        state = self._state(tuple(generated))
        if (packed := self._masks.get(state)) is None:
            packed = self._masks[state] = np.packbits(self._mask(state, vocab_size))
            if len(self._masks) > _MASKS:
                self._masks.popitem(last=False)
        else:
            self._masks.move_to_end(state)
        return np.unpackbits(packed, count=vocab_size).view(np.bool_)

    def _mask(self, state: int, vocab_size: int) -> npt.NDArray[np.bool_]:
        mask = np.zeros(max(vocab_size, len(self._vocabulary)), dtype=np.bool_)
        mask[: len(self._vocabulary)] = self._vocabulary.allowed(self._automaton, state)
        mask[self._stop_ids] = self._automaton.is_accepting(state)
        if not mask[:vocab_size].any():
            raise GrammarError(
                "no token of the vocabulary continues the text", hint="use characters that the model's tokens have"
            )
        return mask[:vocab_size]

    def _state(self, generated: tuple[int, ...]) -> int:
        """Return the state after the generated tokens, from that of the longest part of them that is known."""
        known = len(generated)
        while known and generated[:known] not in self._states:
            known -= 1
        state = self._states[generated[:known]] if known else self._automaton.start
        for token in generated[known:]:
            text = self._vocabulary.tokens[token] if token < len(self._vocabulary) else None
            state = self._automaton.advance(state, text) if text else DEAD
        if state == DEAD:
            raise GrammarError("the generated text is not in the grammar", hint="start each text with the constraint")
        self._states[generated] = state
        self._states.move_to_end(generated)
        if len(self._states) > _TEXTS:
            self._states.popitem(last=False)
        return state
