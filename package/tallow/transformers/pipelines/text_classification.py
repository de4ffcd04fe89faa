"""Labels of texts: those that a model was trained with, or any, as hypotheses that a text entails (zero-shot).

Source:  Yin, Hay & Roth 2019, arXiv:1909.00161 (zero-shot by entailment)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tallow.errors import ArgumentError, TallowWarning, warn
from tallow.transformers.pipelines.base import ChunkPipeline, Pipeline
from tallow.transformers.pipelines.scores import best, floats, labelled, score_function, softmax

ONE = object()  # top_k that was not given: one label, without a list around it


class TextClassificationPipeline(Pipeline):
    """Labels texts, or pairs of texts: {"label": ..., "score": ...}.

    Args of the constructor and of calls:
        top_k: how many labels, the best first, as a list; None means all.
        function_to_apply: "sigmoid", "softmax" or "none"; by default as the model's problem needs.
        return_all_scores: as `top_k=None`, in the order of the logits (version 4).
        Others are of the tokenizer.
    """

    def __call__(self, inputs: Any, **arguments: Any) -> Any:
        """Return the label of a text in a list; for a list of texts, one label each. With `top_k`, lists of labels.

        Args:    inputs: texts, or dicts of `text` and `text_pair`
        Raises:  ArgumentError for a list of lists, which would be pairs; as `Pipeline`
        """
        result = super().__call__(inputs, **arguments)
        is_plain = isinstance(inputs, str) and "top_k" not in arguments
        return [result] if is_plain else result

    def preprocess(self, inputs: Any, **tokenizer_arguments: Any) -> Any:
        if isinstance(inputs, dict):
            return self.tokenizer(**inputs, return_tensors="pt", **tokenizer_arguments)
        if isinstance(inputs, list) and len(inputs) == 1 and isinstance(inputs[0], list) and len(inputs[0]) == 2:
            text, pair = inputs[0]
            return self.tokenizer(text, pair, return_tensors="pt", **tokenizer_arguments)
        if isinstance(inputs, list | tuple):
            raise ArgumentError(
                "a text to classify is a list", hint='pass a pair as {"text": "one text", "text_pair": "another"}'
            )
        return self.tokenizer(inputs, return_tensors="pt", **tokenizer_arguments)

    def postprocess(
        self,
        model_outputs: Any,
        top_k: Any = ONE,
        function_to_apply: Any = None,
        return_all_scores: bool | None = None,
    ) -> Any:
        config = self.model.config
        scores_L = score_function(function_to_apply, config)(floats(model_outputs["logits"][0]))
        found = labelled(scores_L, config.id2label)
        if return_all_scores and top_k is ONE:
            return found
        return best(found, 1)[0] if top_k is ONE else best(found, top_k)


class ZeroShotClassificationPipeline(ChunkPipeline):
    """Labels texts with labels of one's choice, by a model that was trained on entailment.

    Args of the constructor and of calls:
        candidate_labels: a list, or a string of labels with commas.
        hypothesis_template: a sentence with {} in place of a label.
        multi_label: the labels do not exclude each other: each has the probability of entailment against
            contradiction. By default the probabilities of all labels add up to 1.

    Warns:  TallowWarning for a model without a label that starts with "entail"
    """

    def __init__(self, model: Any, tokenizer: Any = None, **arguments: Any) -> None:
        super().__init__(model, tokenizer, **arguments)
        if self.entailment_id == -1:
            warn(
                f"no label of the model starts with 'entail': {list(model.config.id2label.values())}; the last one "
                "stands for it",
                TallowWarning,
            )

    @property
    def entailment_id(self) -> int:
        """The index of the logit of entailment; -1 if no label says so."""
        found = (i for label, i in self.model.config.label2id.items() if label.lower().startswith("entail"))
        return int(next(found, -1))

    def __call__(  # type: ignore[override]
        self, sequences: Any, candidate_labels: Any = None, **arguments: Any
    ) -> Any:
        """Return {"sequence", "labels", "scores"} for a text, the best label first.

        Raises:  ArgumentError for no labels, and a template without {}; as `Pipeline`
        """
        if candidate_labels is not None:
            arguments["candidate_labels"] = candidate_labels
        return super().__call__(sequences, **arguments)

    def preprocess(
        self,
        sequence: str,
        candidate_labels: str | Sequence[str] | None = None,
        hypothesis_template: str = "This example is {}.",
    ) -> Iterator[Any]:
        labels = candidate_labels or ()
        if isinstance(labels, str):
            labels = [label.strip() for label in labels.split(",") if label.strip()]
        if not labels or not sequence:
            raise ArgumentError("zero-shot classification needs a text and labels", hint="pass candidate_labels")
        if hypothesis_template.format(labels[0]) == hypothesis_template:
            raise ArgumentError(
                f"hypothesis_template={hypothesis_template!r:.80} has no place for a label", hint="write {} there"
            )
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        for label in labels:
            pair = [[sequence, hypothesis_template.format(label)]]
            # The text is cut, not the label.
            inputs = self.tokenizer(pair, return_tensors="pt", padding=True, truncation="only_first")
            yield {"candidate_label": label, "sequence": sequence, **inputs}

    def postprocess(self, model_outputs: list[Any], multi_label: bool = False) -> dict[str, Any]:
        labels = [each["candidate_label"] for each in model_outputs]
        logits_NL = np.concatenate([floats(each["logits"]) for each in model_outputs])
        entails = self.entailment_id
        if multi_label or len(labels) == 1:
            contradicts = -1 if entails == 0 else 0
            scores = softmax(logits_NL[:, [contradicts, entails]])[:, 1]
        else:
            scores = softmax(logits_NL[:, entails])
        order = np.argsort(scores)[::-1]
        return {
            "sequence": model_outputs[0]["sequence"],
            "labels": [labels[i] for i in order],
            "scores": [float(scores[i]) for i in order],
        }
