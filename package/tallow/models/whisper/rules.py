"""What may not come next in a transcript.

Letters: B rows, V vocabulary.

Source:  Radford et al. 2022, arXiv:2212.04356, section 4.5; https://github.com/openai/whisper, `decoding.py`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tallow.models.whisper.search import Floats, Rows
from tallow.text.whisper import SECONDS_PER_TIMESTAMP, WhisperTokenizer

NON_SPEECH = -1  # among the tokens to suppress, stands for the tokenizer's `non_speech_tokens`

Rule = Callable[[Floats, Rows], None]  # sets logits (B, V) of what may not follow the rows to -inf


class SuppressBlank:
    """A text begins neither with a space alone nor with its end."""

    def __init__(self, tokenizer: WhisperTokenizer, begin: int) -> None:
        self.blank = list(tokenizer.blank_tokens)
        self.begin = begin

    def __call__(self, logits_BV: Floats, rows: Rows) -> None:
        if len(rows[0]) == self.begin:
            logits_BV[:, self.blank] = -np.inf


class SuppressTokens:
    """Some tokens are never chosen, nor those that only stand before a text."""

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
    """Times come in pairs, the end of one segment and the start of the next; they never go back; the first is early;
    and where all times together are likelier than any word, it is one of them."""

    def __init__(self, tokenizer: WhisperTokenizer, begin: int, max_initial_s: float | None) -> None:
        self.eot, self.no_timestamps = tokenizer.eot, tokenizer.no_timestamps
        self.first_time = tokenizer.timestamp_begin
        self.begin = begin
        self.latest_first = self.first_time + round(max_initial_s / SECONDS_PER_TIMESTAMP) if max_initial_s else None

    def __call__(self, logits_BV: Floats, rows: Rows) -> None:
        logits_BV[:, self.no_timestamps] = -np.inf
        for logits_V, row in zip(logits_BV, rows, strict=True):
            self._keep_order(logits_V, row[self.begin :])
        if len(rows[0]) == self.begin:
            logits_BV[:, : self.first_time] = -np.inf
            if self.latest_first is not None:
                logits_BV[:, self.latest_first + 1 :] = -np.inf
        times = np.logaddexp.reduce(logits_BV[:, self.first_time :], axis=-1)  # probabilities, but for one factor
        logits_BV[times > logits_BV[:, : self.first_time].max(axis=-1), : self.first_time] = -np.inf

    def _keep_order(self, logits_V: Floats, text: list[int]) -> None:
        last_is_time = bool(text) and text[-1] >= self.first_time
        opens = last_is_time and (len(text) < 2 or text[-2] >= self.first_time)
        if opens:  # a segment: words follow
            logits_V[self.first_time :] = -np.inf
        elif last_is_time:  # a segment has ended: the next one begins, or the text ends
            logits_V[: self.eot] = -np.inf
        times = [token for token in text if token >= self.first_time]
        if times:  # a segment lasts for some time, or the same would be heard again and again
            closes = last_is_time and not opens
            logits_V[self.first_time : times[-1] + (not closes)] = -np.inf
