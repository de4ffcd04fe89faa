"""The vectors of a text's positions, as a model without a head computes them."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError
from tallow.transformers.pipelines.base import Pipeline


class FeatureExtractionPipeline(Pipeline):
    """Returns the hidden states (1, T, D) of a text as nested lists, or with `return_tensors` as a tensor.

    Args of the constructor and of calls:
        tokenize_kwargs: arguments of the tokenizer.
        truncation: one of those.
        return_tensors: return a tensor.
    """

    def preprocess(self, inputs: str, truncation: Any = None, tokenize_kwargs: dict[str, Any] | None = None) -> Any:
        options = dict(tokenize_kwargs or {})
        if truncation is not None:
            if "truncation" in options:
                raise ArgumentError("truncation is an argument, and in tokenize_kwargs too", hint="pass one of them")
            options["truncation"] = truncation
        return self.tokenizer(inputs, return_tensors="pt", **options)

    def postprocess(self, model_outputs: Any, return_tensors: bool = False) -> Any:
        first = model_outputs[0]  # the logits of a model with a head, or the last hidden states
        return first if return_tensors else first.tolist()
