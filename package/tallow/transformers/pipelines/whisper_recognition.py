"""Transcripts by a Whisper, of sounds of any length, with the times of passages or words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError
from tallow.models.whisper.timing import APPENDED, PREPENDED, Aligned, merge_marks
from tallow.text.languages import LANGUAGES, UNSPACED, language_code
from tallow.text.whisper import split_to_words
from tallow.transformers.pipelines.generating import generation_arguments
from tallow.transformers.pipelines.inputs import Samples
from tallow.transformers.pipelines.speech_recognition import AutomaticSpeechRecognitionPipeline
from tallow.transformers.pipelines.transcripts import Part, Passage, Tokens, Transcript, joined

OPENING = "¡"  # begins a word too, in transformers


class WhisperRecognition(AutomaticSpeechRecognitionPipeline):
    """Transcribes speech by a Whisper: see AutomaticSpeechRecognitionPipeline.

    Args of the constructor and of calls:
        return_timestamps: True for passages, "word" for words.
        return_language: name the language of each chunk.
        generate_kwargs: arguments of `generate`, which may also be passed as such. Without a generation config:
            max_new_tokens=256, num_beams=5.
    """

    defaults: ClassVar[Mapping[str, Any]] = {"max_new_tokens": 256, "num_beams": 5}

    def _sanitize_parameters(self, **arguments: Any) -> Any:
        generate_kwargs = arguments.pop("generate_kwargs", None)
        if arguments.get("return_timestamps") == "char":
            raise ArgumentError("a Whisper has no times of characters", hint='pass return_timestamps="word" or True')
        return super()._sanitize_parameters(**arguments, **(generate_kwargs or {}))

    def _whole(self, samples: Samples) -> dict[str, Any]:
        is_long = len(samples) > self.feature_extractor.n_samples
        return self._features(samples, **({"truncation": False, "padding": "longest"} if is_long else {}))

    def _features(self, samples: Samples, **options: Any) -> dict[str, Any]:
        rate = self.feature_extractor.sampling_rate
        features = self.feature_extractor(
            samples, sampling_rate=rate, return_tensors="pt", return_attention_mask=True, **options
        )
        found = {"input_features": features["input_features"].to(self.dtype)}
        return found | {name: features[name] for name in ("attention_mask",) if name in features}

    def _forward(
        self,
        model_inputs: Any,
        return_timestamps: Any = None,
        return_language: bool | None = None,
        **generate_kwargs: Any,
    ) -> Any:
        given = dict(generate_kwargs)
        if return_timestamps:
            given["return_timestamps"] = True
        if return_timestamps == "word":
            given["return_token_timestamps"] = True
        if return_timestamps == "word" or return_language:
            given["return_segments"] = True
        inputs = {name: value for name, value in model_inputs.items() if isinstance(value, tl.Tensor)}
        written = self.model.generate(
            **inputs, **generation_arguments(self.model, self.tokenizer, given, self.defaults)
        )
        if not isinstance(written, Mapping):
            return {"tokens": written}
        outputs = {"tokens": written["sequences"]}
        segments = written.get("segments")
        if return_timestamps == "word":
            outputs["times"] = _times(written, outputs["tokens"].shape[1])
        if return_language and segments:
            outputs["language"] = tl.tensor([[self._announced(rows)] for rows in segments])
        return outputs

    def _announced(self, segments: Sequence[Mapping[str, Any]]) -> int:
        """Return the token of the language that the model wrote first; -1 for none."""
        if not segments:
            return -1
        result = segments[0].get("result", segments[0]["tokens"])
        ids = result["sequences"] if isinstance(result, Mapping) else result
        return next((token for token in ids.reshape(-1).tolist() if token in self._languages), -1)

    @property
    def _languages(self) -> dict[int, str]:
        """The names of languages, by their tokens."""
        ids = self.tokenizer.convert_tokens_to_ids([f"<|{code}|>" for code in LANGUAGES])
        unknown = self.tokenizer.unk_token_id
        return {i: name for i, name in zip(ids, LANGUAGES.values(), strict=True) if i is not None and i != unknown}

    def postprocess(
        self, model_outputs: list[Any], return_timestamps: Any = None, return_language: bool | None = None
    ) -> dict[str, Any]:
        extractor, config = self.feature_extractor, self.model.config
        precision = extractor.chunk_length / config.max_source_positions
        begin = self.tokenizer.convert_tokens_to_ids("<|notimestamps|>") + 1
        special = frozenset(self.tokenizer.all_special_ids)
        languages = self._languages
        transcript = Transcript(begin, precision, extractor.chunk_length, languages, special, bool(return_timestamps))
        for each in model_outputs:
            ids = self._without_prompt(each["tokens"][0].tolist())
            if each.get("language") is not None and int(each["language"][0]) >= 0:
                ids = [int(each["language"][0]), *ids]
            times = each["times"][0].tolist() if "times" in each else []
            stride = None
            if "stride" in each:
                length, left, right = (value / extractor.sampling_rate for value in each["stride"])
                stride = (length, left, right)
            transcript.add(Part(ids, times, stride))
        passages = transcript.end()
        found = [(passage, joined(passage.tokens)) for passage in passages]
        texts = [self.tokenizer.decode(tokens.ids) for _, tokens in found]
        result: dict[str, Any] = {"text": "".join(texts)}
        if return_timestamps == "word":
            result["chunks"] = [word for each in found for word in self._words(*each, return_language)]
        elif return_timestamps or return_language:
            result["chunks"] = [
                self._chunk(passage, text, return_timestamps, return_language)
                for (passage, _), text in zip(found, texts, strict=True)
            ]
        return result

    def _without_prompt(self, ids: list[int]) -> list[int]:
        """Return ids without a prompt of earlier text, which ends where a transcript starts."""
        before, start = self.tokenizer.convert_tokens_to_ids(["<|startofprev|>", "<|startoftranscript|>"])
        if ids and ids[0] == before:
            return ids[ids.index(start) :] if start in ids else []
        return ids

    def _chunk(self, passage: Passage, text: str, with_times: Any, with_language: Any) -> dict[str, Any]:
        chunk: dict[str, Any] = {"language": passage.language} if with_language else {}
        if with_times:
            chunk["timestamp"] = (passage.start, passage.end)
        return {**chunk, "text": text}

    def _words(self, passage: Passage, tokens: Tokens, with_language: Any) -> list[dict[str, Any]]:
        """Return the words of a passage with their times, and punctuation as a part of them."""
        spoken = passage.language or getattr(self.tokenizer, "language", None)
        pieces = split_to_words(
            lambda ids: str(self.tokenizer.decode(ids, decode_with_timestamps=True)),
            self.tokenizer.eos_token_id,
            tokens.ids,
            by_character=spoken is not None and language_code(spoken) in UNSPACED,
        )
        words = [Aligned(word, list(ids), 0.0, 0.0, 1.0) for word, ids in zip(*pieces, strict=True)]
        merge_marks(words, OPENING + PREPENDED, APPENDED)
        language = {"language": passage.language} if with_language else {}
        found, place = [], 0
        for word in words:
            if word.word:  # with the marks that were merged into it, it has their times too
                times = tokens.times[place : place + len(word.tokens)]
                found.append({"text": word.word, "timestamp": (times[0][0], times[-1][1]), **language})
                place += len(word.tokens)
        return found


def _times(written: Mapping[str, Any], width: int) -> Any:
    """Return the times of the ends of tokens (B, T), with zeros after the last."""
    rows: Any = written.get("token_timestamps")
    if "segments" in written:  # theirs begin with the sound, not with its window
        rows = [tl.cat([segment["token_timestamps"] for segment in segments]) for segments in written["segments"]]
    times = np.zeros((len(rows), width), np.float32)
    for i, row in enumerate(rows):
        values = row.float().numpy()[:width]
        times[i, : len(values)] = values
    return tl.from_numpy(times)
