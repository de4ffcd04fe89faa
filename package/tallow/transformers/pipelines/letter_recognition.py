"""Transcripts by models that write a letter, or none, for each frame: wav2vec2, HuBERT and WavLM."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError
from tallow.transformers.pipelines.inputs import Samples
from tallow.transformers.pipelines.speech_recognition import AutomaticSpeechRecognitionPipeline

LONGEST_S = 300  # of a sound that is read whole: attention grows with its square
TIMES = ("char", "word")
OWN = ("tokens", "stride")  # what is not an entry of the input


class LetterRecognition(AutomaticSpeechRecognitionPipeline):
    """Transcribes speech by a model of letters: see AutomaticSpeechRecognitionPipeline.

    Args of the constructor and of calls:
        return_timestamps: "char" for letters, "word" for words.

    Raises:  ArgumentError for a long sound without chunk_length_s
    """

    def _sanitize_parameters(self, **arguments: Any) -> Any:
        if (times := arguments.get("return_timestamps")) and times not in TIMES:
            raise ArgumentError(
                f"return_timestamps={times!r:.80}: a model of letters has no passages", hint='pass "char" or "word"'
            )
        return super()._sanitize_parameters(**arguments)

    @property
    def _step(self) -> int:
        return int(self.model.config.inputs_to_logits_ratio)

    @property
    def _least(self) -> int:
        return int(self.model.config.samples_of_frame)

    def _whole(self, samples: Samples) -> dict[str, Any]:
        seconds = len(samples) / self.feature_extractor.sampling_rate
        if seconds > LONGEST_S:
            raise ArgumentError(
                f"a sound of {seconds:.0f} s; at most {LONGEST_S} s are read at once", hint="pass chunk_length_s=30"
            )
        return self._features(samples)

    def _features(self, samples: Samples) -> dict[str, Any]:
        rate = self.feature_extractor.sampling_rate
        found = self.feature_extractor(samples, sampling_rate=rate, return_tensors="pt", return_attention_mask=True)
        return {"input_values": found["input_values"].to(self.dtype), "attention_mask": found["attention_mask"]}

    def _forward(self, model_inputs: Any) -> Any:
        return {"tokens": self.run(model_inputs).logits.argmax(-1)}

    def postprocess(self, model_outputs: list[Any], return_timestamps: str | None = None) -> dict[str, Any]:
        step, rate = self._step, self.feature_extractor.sampling_rate
        parts: list[int] = []
        others: dict[str, list[Any]] = {}
        for each in model_outputs:
            tokens = each["tokens"][0].tolist()
            if "stride" in each:  # without what other parts have read too, and padding
                samples, left, right = each["stride"]
                frames = round(samples / step)
                tokens = tokens[round(left / samples * frames) : frames - round(right / samples * frames)]
            parts += tokens
            for name, value in each.items():
                if name not in OWN:
                    others.setdefault(name, []).append(value)
        result: dict[str, Any] = {"text": self.tokenizer.decode(parts, skip_special_tokens=False)}
        if return_timestamps:
            kind = {f"output_{return_timestamps}_offsets": True}
            found = self.tokenizer.decode(parts, skip_special_tokens=False, **kind)[f"{return_timestamps}_offsets"]
            result["chunks"] = [
                {
                    "text": each[return_timestamps],
                    "timestamp": (each["start_offset"] * step / rate, each["end_offset"] * step / rate),
                }
                for each in found
            ]
        return result | others
