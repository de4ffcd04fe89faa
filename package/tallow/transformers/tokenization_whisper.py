"""Whisper's tokenizer: the tokens that begin a transcript, and times in it.

Source:  transformers 5.23, `WhisperTokenizer`
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from tallow.errors import ArgumentError, UnsupportedError
from tallow.text.languages import language_code
from tallow.transformers.tensor_types import plain
from tallow.transformers.tokenization import TokenizersBackend
from tallow.transformers.tokenization_files import library

START, PREVIOUS, NO_TIMES = "<|startoftranscript|>", "<|startofprev|>", "<|notimestamps|>"
TASKS = ("translate", "transcribe")
SEGMENT = 1500  # steps of time in the model's input
_TIME = re.compile(r"<\|(\d+\.\d+)\|>")
_BRACKETS = re.compile(r"[<\[][^>\]]*[>\]]|\(([^)]+?)\)")


class WhisperTokenizer(TokenizersBackend):
    """The tokenizer of Whisper: see `TokenizersBackend`.

    Attributes:
        language, task: what a transcript begins with; None for none.
        predict_timestamps: a transcript has times.
    """

    kind = "WhisperTokenizer"
    language: str | None
    task: str | None
    predict_timestamps: bool

    def _set_up(self, files: Any, given: Any, name: str = "") -> None:
        super()._set_up(files, given, name)
        config = self.init_kwargs
        self.language, self.task = config.get("language"), config.get("task")
        self.predict_timestamps = bool(config.get("predict_timestamps"))
        self.set_prefix_tokens()

    def set_prefix_tokens(
        self, language: str | None = None, task: str | None = None, predict_timestamps: bool | None = None
    ) -> None:
        """Set what transcripts begin with; None leaves a setting as it is.

        Args:
            language: a name or code, such as "french" or "fr".
            task: "transcribe" or "translate".
            predict_timestamps: transcripts have times.

        Raises:  ArgumentError for an unknown language or task
        """
        self.language = self.language if language is None else language
        self.task = self.task if task is None else task
        if predict_timestamps is not None:
            self.predict_timestamps = predict_timestamps
        ids = self.prefix_tokens
        first = self.convert_ids_to_tokens(ids)
        before = " ".join(f"{token}:0" for token in first)
        self._tokenizer.post_processor = library().processors.TemplateProcessing(
            single=f"{before} $A:0 {self.eos_token}:0",
            pair=f"{before} $A:0 $B:1 {self.eos_token}:1",
            special_tokens=[(self.eos_token, self.eos_token_id), *zip(first, ids, strict=True)],
        )

    @property
    def prefix_tokens(self) -> list[int]:
        """The ids that transcripts begin with."""
        tokens = [START]
        if self.language is not None:
            tokens.append(f"<|{language_code(self.language)}|>")
        if self.task is not None:
            if self.task not in TASKS:
                raise ArgumentError(f"a task {self.task!r:.80}", hint=f"the tasks are {', '.join(TASKS)}")
            tokens.append(f"<|{self.task}|>")
        if not self.predict_timestamps:
            tokens.append(NO_TIMES)
        return self.convert_tokens_to_ids(tokens)

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """Return the ids of a transcript with what begins and ends it."""
        return [*self.prefix_tokens, *token_ids_0, *(token_ids_1 or ()), self.eos_token_id]

    def get_decoder_prompt_ids(
        self, task: str | None = None, language: str | None = None, no_timestamps: bool = True
    ) -> list[tuple[int, int]]:
        """Return the ids after the first that begin a transcript, with their places.  Raises: as `set_prefix_tokens`"""
        self.set_prefix_tokens(task=task, language=language, predict_timestamps=not no_timestamps)
        return list(enumerate(self.prefix_tokens[1:], 1))

    def get_prompt_ids(self, text: str, return_tensors: str = "np") -> Any:
        """Return the ids of a text that came before, for `generate(prompt_ids=...)`.

        Raises:  ArgumentError for a text with special tokens
        """
        encoded = self(PREVIOUS, " " + text.strip(), add_special_tokens=False)
        special = next((id for id in encoded["input_ids"][1:] if id >= self.all_special_ids[0]), None)
        if special is not None:
            token = self.convert_ids_to_tokens(special)
            raise ArgumentError(f"the prompt has the special token {token}", hint="remove it")
        return encoded.convert_to_tensors(return_tensors)["input_ids"]

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        output_offsets: bool = False,
        time_precision: float = 0.02,
        decode_with_timestamps: bool = False,
        normalize: bool = False,
        basic_normalize: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Return the text of a transcript, or the texts of several.

        Args:
            skip_special_tokens: leave them out, and with them what came before the transcript.
            output_offsets: return {"text": ..., "offsets": ...}, with the times of parts.
            time_precision: seconds of a step of time.
            decode_with_timestamps: the text has times, as <|1.08|>.
            basic_normalize: lower case, without punctuation and what is in brackets.
            clean_up_tokenization_spaces: as in `TokenizersBackend.decode`.

        Raises:  UnsupportedError for normalize=True, English spelling
        """
        if normalize:
            raise UnsupportedError("normalize=True: English spelling", hint="pass basic_normalize=True")
        ids = plain(token_ids["input_ids"] if hasattr(token_ids, "keys") else token_ids)
        if isinstance(ids, list) and ids and isinstance(ids[0], list):
            options = (clean_up_tokenization_spaces, output_offsets, time_precision, decode_with_timestamps)
            return [self.decode(row, skip_special_tokens, *options, False, basic_normalize, **kwargs) for row in ids]
        kept = self._transcript([ids] if isinstance(ids, int) else ids) if skip_special_tokens else ids
        if decode_with_timestamps:
            text = self._with_times(kept, skip_special_tokens, time_precision)
        else:
            text = super().decode(kept, skip_special_tokens, clean_up_tokenization_spaces, **kwargs)
            text = _TIME.sub("", self.basic_normalize(text) if basic_normalize else text)
        return {"text": text, "offsets": self._offsets(ids, time_precision)} if output_offsets else text

    def _transcript(self, ids: list[int]) -> list[int]:
        """Return ids without the prompt before the transcript."""
        previous, start = self.convert_tokens_to_ids([PREVIOUS, START])
        if not ids or ids[0] != previous:
            return ids
        return ids[ids.index(start) :] if start in ids else []

    @property
    def _first_time(self) -> int:
        return self.all_special_ids[-1] + 1

    def _with_times(self, ids: Sequence[int], skips: bool, precision: float) -> str:
        """Return the text with times, which go on where a window ends and the next begins."""
        first, latest, before, penultimate = self._first_time, 0.0, 0.0, 0.0
        parts: list[Any] = [[]]
        for i, id in enumerate(ids):
            if id < first:
                parts[-1].append(id)
                continue
            time = (id - first) * precision
            if time < latest:  # a new window
                if i >= 2 and not (ids[i - 1] >= first and ids[i - 2] >= first):
                    before += precision * SEGMENT
                else:
                    latest = penultimate
                    before += penultimate
                    parts = parts[:-2]
            penultimate, latest = latest, time
            parts += [f"<|{time + before:.2f}|>", []]
        texts = (part if isinstance(part, str) else self._decode(part, skips, None) if part else "" for part in parts)
        return "".join(texts)

    def _offsets(self, ids: Sequence[int], precision: float) -> list[dict[str, Any]]:
        """Return the parts of a transcript between times."""
        first = self._first_time
        times = [i for i, id in enumerate(ids) if id >= first]
        ends = [i for i in times if i and ids[i - 1] >= first]
        if not ends and len(times) <= 1:
            return []
        if times[-1] + 1 not in ends:
            ends.append(times[-1] + 1)
        found, begin, latest, before = [], times[0], 0, 0
        for end in ends:
            if end - begin > 1:
                start, stop = ids[begin] - first, ids[end - 1] - first
                if start < latest:
                    is_single = begin >= 2 and not (ids[begin - 2] >= first and ids[begin - 1] >= first)
                    before += SEGMENT if is_single else latest
                latest = stop
                text = _TIME.sub("", self._decode(list(ids[begin:end]), False, None))
                times_of = tuple(step * precision + before * precision for step in (start, stop))
                found.append({"text": text, "timestamp": times_of})
            begin = end
        return found

    @staticmethod
    def basic_normalize(text: str) -> str:
        """Return a text in lower case, without punctuation and what is in brackets."""
        text = _BRACKETS.sub("", text.lower())
        letters = (" " if unicodedata.category(c)[0] in "MSP" else c for c in unicodedata.normalize("NFKC", text))
        return re.sub(r"\s+", " ", "".join(letters).lower())
