"""Sound of texts."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError
from tallow.transformers.pipelines.base import Pipeline


class TextToAudioPipeline(Pipeline):
    """Speaks texts: {"audio": samples (N,), float32, "sampling_rate": in Hz}.

    Args of the constructor and of calls:
        forward_params: arguments of the model's `forward`, such as `speaker_id` and `speaking_rate`.
        preprocess_params: arguments of the tokenizer.
        sampling_rate: that of the sound, which only the constructor takes; None means the model's.

    Raises:  ArgumentError for a text that has no token of the model
    """

    def __init__(self, model: Any, *args: Any, sampling_rate: int | None = None, **arguments: Any) -> None:
        super().__init__(model, *args, **arguments)
        self.sampling_rate = model.config.sampling_rate if sampling_rate is None else sampling_rate

    def preprocess(self, inputs: Any, preprocess_params: dict[str, Any] | None = None) -> Any:
        found = self.tokenizer(
            [inputs] if isinstance(inputs, str) else inputs, return_tensors="pt", **(preprocess_params or {})
        )
        if not found["input_ids"].shape[-1]:
            raise ArgumentError(
                f"the text {inputs!r:.80} has nothing to say", hint="pass words in the model's language"
            )
        return {name: found[name] for name in ("input_ids", "attention_mask") if name in found}

    def _forward(self, model_inputs: Any, forward_params: dict[str, Any] | None = None) -> Any:
        result = self.model(**model_inputs, **(forward_params or {}))
        return {"audio": result.waveform, "samples": result.sequence_lengths}

    def postprocess(self, model_outputs: Any) -> dict[str, Any]:
        samples = int(model_outputs["samples"][0])
        audio = model_outputs["audio"][0, :samples].float().numpy()
        return {"audio": audio, "sampling_rate": self.sampling_rate}
