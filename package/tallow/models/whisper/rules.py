"""Rules that exclude tokens from being the next of a transcript.

Letters: B rows, V vocabulary.

Source:  Radford et al. 2022, arXiv:2212.04356, section 4.5; https://github.com/openai/whisper, `decoding.py`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np

from tallow.models.whisper.search import Floats, Rows
from tallow.text.whisper import SECONDS_PER_TIMESTAMP, WhisperTokenizer

NON_SPEECH = -1  # in a list of tokens to suppress, stands for the tokenizer's `non_speech_tokens`

Rule = Callable[[Floats, Rows], None]  # sets the logits (B, V) of excluded tokens to -inf


class SuppressBlank:
    """Excludes a single space, and the end of the text, as the first token."""

    def __init__(self, tokenizer: WhisperTokenizer, begin: int) -> None:
        self.blank = list(tokenizer.blank_tokens)
        self.begin = begin

    def __call__(self, logits_BV: Floats, rows: Rows) -> None:
        if len(rows[0]) == self.begin:
            logits_BV[:, self.blank] = -np.inf


class SuppressTokens:
    """Excludes given tokens, and special tokens that only occur before a text."""

    def __init__(self, tokenizer: WhisperTokenizer, suppressed: Sequence[int]) -> None:
        t = tokenizer
        never = {i for i in suppressed if i >= 0} | {
            t.transcribe,
            t.translate,
            t.sot,
            t.sot_prev,
            t.sot_lm,
            t.no_speech,
        }
        if NON_SPEECH in suppressed:
            never.update(t.non_speech_tokens)
        self.suppressed = np.array(sorted(never))

    def __call__(self, logits_BV: Floats, rows: Rows) -> None:
        logits_BV[:, self.suppressed] = -np.inf


class TimestampRules:
    """The order of timestamps.

    Timestamps come in pairs, the end of a segment and the start of the next. They never decrease, and the first is
    early. If all timestamps together are likelier than any word, the next token is a timestamp.
    """

    def __init__(self, tokenizer: WhisperTokenizer, begin: int, max_initial_s: float | None) -> None:
        self.eot, self.no_timestamps = tokenizer.eot, tokenizer.no_timestamps
        self.first_time = tokenizer.timestamp_begin
        self.begin = begin
        self.latest_first = self.first_time + round(max_initial_s / SECONDS_PER_TIMESTAMP) if max_initial_s else None

    @classmethod
    def of_ids(cls, eot: int, no_timestamps: int, begin: int, latest: int | None) -> Self:
        """Return the rules for a vocabulary whose times follow `no_timestamps`.

        Args:
            eot: the end of a text.
            latest: the place of the latest first time among them; None means any.
        """
        rules = cls.__new__(cls)
        rules.eot, rules.no_timestamps, rules.first_time, rules.begin = eot, no_timestamps, no_timestamps + 1, begin
        rules.latest_first = None if latest is None else rules.first_time + latest
        return rules

    def __call__(self, logits_BV: Floats, rows: Rows) -> None:
        logits_BV[:, self.no_timestamps] = -np.inf
        for logits_V, row in zip(logits_BV, rows, strict=True):
            self._keep_order(logits_V, row[self.begin :])
        if len(rows[0]) == self.begin:
            logits_BV[:, : self.first_time] = -np.inf
            if self.latest_first is not None:
                logits_BV[:, self.latest_first + 1 :] = -np.inf
        times = np.logaddexp.reduce(logits_BV[:, self.first_time :], axis=-1)  # log-probability up to a constant
        logits_BV[times > logits_BV[:, : self.first_time].max(axis=-1), : self.first_time] = -np.inf

    def _keep_order(self, logits_V: Floats, text: list[int]) -> None:
        last_is_time = bool(text) and text[-1] >= self.first_time
        opens = last_is_time and (len(text) < 2 or text[-2] >= self.first_time)
        if opens:  # a timestamp has opened a segment: words follow
            logits_V[self.first_time :] = -np.inf
        elif last_is_time:  # a timestamp has closed a segment: the next one begins, or the text ends
            logits_V[: self.eot] = -np.inf
        times = [token for token in text if token >= self.first_time]
        if times:  # a segment must have a length, or the same window would be decoded again and again
            closes = last_is_time and not opens
            logits_V[self.first_time : times[-1] + (not closes)] = -np.inf
