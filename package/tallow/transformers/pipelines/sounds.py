"""Labels of sounds."""

from __future__ import annotations

from typing import Any, ClassVar

from tallow.transformers.pipelines.base import Pipeline
from tallow.transformers.pipelines.inputs import samples_of
from tallow.transformers.pipelines.scores import best, floats, labelled, score_function

BY_PROBLEM = {"regression": "none", "multi_label_classification": "sigmoid"}


class AudioClassificationPipeline(Pipeline):
    """Labels sounds: [{"score", "label"}], the best first. Sounds are those that speech recognition takes.

    Args of the constructor and of calls:
        top_k: how many labels; all by default.
        function_to_apply: "softmax", "sigmoid" or "none"; by default as the model's problem needs.
    """

    parts: ClassVar[tuple[str, ...]] = ("feature_extractor",)

    def preprocess(self, inputs: Any) -> Any:
        rate = self.feature_extractor.sampling_rate
        samples, _ = samples_of(inputs, rate)
        features = self.feature_extractor(samples, sampling_rate=rate, return_tensors="pt")
        return {name: value.to(self.dtype) if value.is_floating_point() else value for name, value in features.items()}

    def postprocess(self, model_outputs: Any, top_k: int | None = None, function_to_apply: str | None = None) -> Any:
        config = self.model.config
        name = function_to_apply or BY_PROBLEM.get(config.problem_type, "softmax")
        scores_L = score_function(name, config)(floats(model_outputs["logits"][0]))
        found = best(labelled(scores_L, config.id2label), top_k)
        return [{"score": each["score"], "label": each["label"]} for each in found]
