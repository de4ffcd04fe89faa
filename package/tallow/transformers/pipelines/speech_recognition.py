"""Transcripts of speech: what Whisper and models of letters have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, Self

from tallow.errors import ArgumentError, AudioError, UnsupportedError
from tallow.lazy_names import import_name
from tallow.transformers.pipelines.base import ChunkPipeline
from tallow.transformers.pipelines.inputs import Samples, samples_of

# The end of a model's class -> the pipeline that reads its outputs.
READERS = {
    "ForCTC": "tallow.transformers.pipelines.letter_recognition:LetterRecognition",
    "WhisperForConditionalGeneration": "tallow.transformers.pipelines.whisper_recognition:WhisperRecognition",
}


class AutomaticSpeechRecognitionPipeline(ChunkPipeline):
    """Transcribes speech: {"text": ..., "chunks": [{"text", "timestamp"}]}; `chunks` only with timestamps.

    The class for a model is WhisperRecognition or LetterRecognition, which have further arguments.

    Args of the constructor and of calls:
        return_timestamps: of what to give the times.
        chunk_length_s: read a sound in parts of so many seconds; by default Whisper reads a long one window by window,
            and other models read it whole.
        stride_length_s: how much parts overlap at each side, or at the left and the right; a sixth by default.

    Raises:  UnsupportedError for a model that does not transcribe; AudioError for a sound without samples;
             ArgumentError for lengths of parts that are negative or not finite, or of no more than their overlaps
    """

    parts = ("tokenizer", "feature_extractor")

    def __new__(cls, model: Any, *_args: Any, **_arguments: Any) -> Self:
        """Make an object of the class for the model; of that and a class that a program wrote."""
        name = (getattr(model.config, "architectures", None) or [type(model).__name__])[0]
        for end, place in READERS.items():
            if name.endswith(end):
                reader = import_name(place)
                own = (cls,) if issubclass(cls, reader) else (reader,) if issubclass(reader, cls) else (cls, reader)
                made: Self = super().__new__(own[0] if len(own) == 1 else type(cls.__name__, own, {}))
                return made
        raise UnsupportedError(
            f"speech recognition with a {name}", hint="choose a Whisper, such as openai/whisper-tiny, or a wav2vec2"
        )

    def _sanitize_parameters(self, **arguments: Any) -> Any:
        arguments.pop("ignore_warning", None)  # there is none about parts
        if arguments.get("stride_length_s") is not None and not arguments.get("chunk_length_s", 1):
            raise ArgumentError("stride_length_s without parts", hint="pass chunk_length_s too")
        return super()._sanitize_parameters(**arguments)

    @property
    def _step(self) -> int:
        """The samples of which parts and their overlaps have a multiple."""
        return 1

    @property
    def _least(self) -> int:
        """The samples of the shortest part that says anything."""
        return 1

    def _whole(self, samples: Samples) -> dict[str, Any]:
        """Return the model's input for a sound that is not read in parts."""
        return self._features(samples)

    def _features(self, samples: Samples) -> dict[str, Any]:
        """Return the model's input for samples."""
        raise NotImplementedError

    def preprocess(
        self,
        inputs: Any,
        chunk_length_s: float = 0,
        stride_length_s: float | Sequence[float] | None = None,
    ) -> Iterator[Any]:
        rate, step = self.feature_extractor.sampling_rate, self._step
        samples, others = samples_of(inputs, rate)
        if not len(samples):
            raise AudioError("a sound without samples", hint="record something, or pass another file")
        if not chunk_length_s:
            yield {**self._whole(samples), **others}
            return
        around = chunk_length_s / 6 if stride_length_s is None else stride_length_s
        lengths = (chunk_length_s, *((around, around) if isinstance(around, int | float) else around))
        if len(lengths) != 3 or not all(0 <= seconds < inf for seconds in lengths):
            raise ArgumentError(
                f"chunk_length_s={chunk_length_s!r:.80} and stride_length_s={stride_length_s!r:.80}",
                hint="pass seconds; for the overlaps of both sides one number or two",
            )
        left_s, right_s = lengths[1:]
        length, left, right = (round(seconds * rate / step) * step for seconds in lengths)
        if length <= left + right:
            raise ArgumentError(
                f"parts of {chunk_length_s} s that overlap by {left_s} and {right_s} s",
                hint="pass a longer chunk_length_s",
            )
        for begin in range(0, len(samples), length - left - right):
            chunk = samples[begin : begin + length]
            is_last = begin + length >= len(samples)
            stride = [len(chunk), left if begin else 0, 0 if is_last else right]
            if len(chunk) > stride[1] and (not begin or len(chunk) >= self._least):
                yield {**self._features(chunk), "stride": stride, **others}
            if is_last:
                break
