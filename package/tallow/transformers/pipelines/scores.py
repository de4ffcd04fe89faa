"""Scores of labels: which function of the logits, and the best first.

Letters: L labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError

Floats = npt.NDArray[np.float32]


def floats(tensor: Tensor) -> Floats:
    """Return a tensor as a NumPy array of float32."""
    return tensor.detach().float().cpu().numpy()


def softmax(logits: Floats) -> Floats:
    """Return probabilities along the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def sigmoid(logits: Floats) -> Floats:
    """Return 1 / (1 + exp(-x))."""
    return 0.5 * (1 + np.tanh(0.5 * logits))


def unchanged(logits: Floats) -> Floats:
    """Return the logits."""
    return logits


FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {"sigmoid": sigmoid, "softmax": softmax, "none": unchanged}


def score_function(name: Any, config: Any) -> Callable[[Floats], Floats]:
    """Return the function of a name, of any case; for None that of the model's kind of problem, and by default the
    sigmoid of one label and the softmax of several.

    Raises:  ArgumentError for another name
    """
    if name is None:
        labels = len(config.id2label)
        kind = getattr(config, "problem_type", None)
        if kind == "regression":
            return unchanged
        return sigmoid if kind == "multi_label_classification" or labels == 1 else softmax
    text = str(getattr(name, "value", name)).lower()
    if text not in FUNCTIONS:
        raise ArgumentError(f"function_to_apply={name!r:.80}", hint=f"use one of {', '.join(FUNCTIONS)}")
    return FUNCTIONS[text]


def labelled(scores_L: Floats, id2label: Any) -> list[dict[str, Any]]:
    """Return a dict of label and score for each label, in the order of the logits."""
    return [{"label": id2label[i], "score": float(score)} for i, score in enumerate(scores_L)]


def best(found: list[dict[str, Any]], count: int | None) -> list[dict[str, Any]]:
    """Return the dicts of the highest scores, the best first; None means all."""
    return sorted(found, key=lambda each: -each["score"])[:count]
