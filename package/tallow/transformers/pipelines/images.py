"""Labels of pictures, by a classifier or, with any texts as labels, by a CLIP; and the vectors of their patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import tallow as tl
from tallow.errors import ArgumentError
from tallow.transformers.pipelines.base import Pipeline
from tallow.transformers.pipelines.inputs import picture_of
from tallow.transformers.pipelines.scores import best, floats, labelled, score_function, sigmoid, softmax


class ImagePipeline(Pipeline):
    """The base of pipelines that take pictures: paths, addresses, base64, arrays, or pictures of Pillow."""

    parts: ClassVar[tuple[str, ...]] = ("image_processor",)

    def pixels(self, image: Any, timeout: float | None, **options: Any) -> dict[str, Any]:
        """Return the model's input for a picture."""
        inputs = self.image_processor(images=picture_of(image, timeout), return_tensors="pt", **options)
        tensors = {name: value for name, value in inputs.items() if isinstance(value, tl.Tensor)}
        return {name: each.to(self.dtype) if each.is_floating_point() else each for name, each in tensors.items()}


class ImageClassificationPipeline(ImagePipeline):
    """Labels pictures: [{"label", "score"}], the best first.

    Args of the constructor and of calls:
        top_k: how many labels; 5 by default.
        function_to_apply: "sigmoid", "softmax" or "none"; by default as the model's problem needs.
        timeout: seconds to wait for a picture of the web.
    """

    def __call__(self, inputs: Any = None, *, images: Any = None, **arguments: Any) -> Any:
        """Return the labels of a picture, or a list for several.

        Raises:  ArgumentError for no picture; as `Pipeline`
        """
        return super().__call__(one_of(inputs, images), **arguments)

    def preprocess(self, image: Any, timeout: float | None = None) -> Any:
        return self.pixels(image, timeout)

    def postprocess(self, model_outputs: Any, top_k: int | None = 5, function_to_apply: Any = None) -> Any:
        config = self.model.config
        scores_L = score_function(function_to_apply, config)(floats(model_outputs["logits"][0]))
        return best(labelled(scores_L, config.id2label), top_k)


class ImageFeatureExtractionPipeline(ImagePipeline):
    """Returns the hidden states (1, T, D) of a picture as nested lists, or with `return_tensors` as a tensor.

    Args of the constructor and of calls:
        pool: return the vector (1, D) of the model's pooling.
        return_tensors: return a tensor.
        image_processor_kwargs: arguments of the image processor.
        timeout: seconds to wait for a picture of the web.
    """

    def preprocess(
        self, image: Any, timeout: float | None = None, image_processor_kwargs: dict[str, Any] | None = None
    ) -> Any:
        return self.pixels(image, timeout, **(image_processor_kwargs or {}))

    def postprocess(self, model_outputs: Any, pool: bool = False, return_tensors: bool = False) -> Any:
        if pool and model_outputs.get("pooler_output") is None:
            raise ArgumentError(f"{type(self.model).__name__} has no pooler", hint="leave out pool")
        chosen = model_outputs["pooler_output"] if pool else model_outputs[0]
        return chosen if return_tensors else chosen.tolist()


class ZeroShotImageClassificationPipeline(ImagePipeline):
    """Labels pictures with labels of one's choice, by a CLIP: [{"score", "label"}], the best first.

    Args of the constructor and of calls:
        candidate_labels: the labels.
        hypothesis_template: a sentence with {} in place of a label; "This is a photo of {}." by default.
        tokenizer_kwargs: arguments of the tokenizer.
        timeout: seconds to wait for a picture of the web.
    """

    parts = ("tokenizer", "image_processor")

    def __call__(  # type: ignore[override]
        self, image: Any = None, candidate_labels: Any = None, *, images: Any = None, **arguments: Any
    ) -> Any:
        """Return the labels of a picture, or a list for several.

        Raises:  ArgumentError for no picture and no labels; as `Pipeline`
        """
        if candidate_labels is not None:
            arguments["candidate_labels"] = candidate_labels
        return super().__call__(one_of(image, images), **arguments)

    def preprocess(self, image: Any, timeout: float | None = None) -> Any:
        return self.pixels(image, timeout)

    def _forward(
        self,
        model_inputs: Any,
        candidate_labels: Sequence[str] | None = None,
        hypothesis_template: str = "This is a photo of {}.",
        tokenizer_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if not candidate_labels:
            raise ArgumentError("zero-shot image classification needs labels", hint="pass candidate_labels")
        texts = [hypothesis_template.format(label) for label in candidate_labels]
        options: dict[str, Any] = {"padding": True}
        if "siglip" in self.model.config.model_type:  # it was trained on texts of this length
            options = {"padding": "max_length", "max_length": 64, "truncation": True}
        encoded = self.tokenizer(texts, return_tensors="pt", **options, **(tokenizer_kwargs or {})).to(self.device)
        return {"logits": self.model(**encoded, **model_inputs).logits_per_image}

    def postprocess(self, model_outputs: Any, candidate_labels: Sequence[str] = ()) -> Any:
        function = sigmoid if "siglip" in self.model.config.model_type else softmax
        scores_L = function(floats(model_outputs["logits"][0]))
        found = [
            {"score": float(score), "label": label} for score, label in zip(scores_L, candidate_labels, strict=True)
        ]
        return best(found, None)


def one_of(inputs: Any, images: Any) -> Any:
    """Return the pictures of a call, which version 4 names `images`.  Raises: ArgumentError if there are none"""
    if inputs is None and images is None:
        raise ArgumentError("the pipeline got no picture", hint="pass a path, an address, or a picture of Pillow")
    return images if inputs is None else inputs
