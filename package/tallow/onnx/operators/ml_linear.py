"""ai.onnx.ml: linear models and support vector machines.

Source:  https://onnx.ai/onnx/operators, domain ai.onnx.ml; Wu, Lin and Weng 2004, "Probability Estimates for
         Multi-class Classification by Pairwise Coupling" (probabilities of support vector machines)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import tallow as tl
from tallow import Tensor
from tallow.errors import ArgumentError
from tallow.onnx.operators.registry import operator as any_operator

operator = partial(any_operator, domain="ai.onnx.ml")
Labels = Sequence[int] | Sequence[str]


def transformed(scores: Tensor, post_transform: str) -> Tensor:
    """Turn scores (B, C) into probabilities as `post_transform` says.  Raises: ArgumentError for another word"""
    if post_transform == "NONE":
        return scores
    if post_transform == "LOGISTIC":
        return tl.sigmoid(scores)
    if post_transform == "PROBIT":
        return 2**0.5 * tl.erfinv(2 * scores - 1)
    if post_transform == "SOFTMAX":
        return tl.softmax(scores, -1)
    if post_transform == "SOFTMAX_ZERO":  # scores of zero take no part
        present = scores != 0
        shares = tl.softmax(tl.where(present, scores, tl.full_like(scores, -tl.inf)), -1)
        return tl.where(present, shares, tl.zeros_like(scores))
    raise ArgumentError(
        f"post_transform={post_transform!r}", hint="use NONE, LOGISTIC, PROBIT, SOFTMAX or SOFTMAX_ZERO"
    )


def labelled(chosen: Tensor, labels: Labels) -> Any:
    """Return the labels of classes: int64, or strings."""
    if labels and isinstance(labels[0], str):
        return np.array(labels, object)[chosen.numpy()]
    return tl.tensor(labels, dtype=tl.int64)[chosen] if labels else chosen


@operator("LinearRegressor", since=1)
def linear_regressor(
    x: Tensor,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    post_transform: str = "NONE",
    targets: int = 1,
) -> Tensor:
    """Return x @ coefficients + intercepts.

    Shapes:  (B, features) -> (B, targets)
    """
    y = x.to(tl.float32) @ tl.tensor(coefficients).reshape(targets, -1).T
    return transformed(y + tl.tensor(intercepts) if intercepts else y, post_transform)


@operator("LinearClassifier", since=1, whole=True)
def linear_classifier(
    x: Tensor,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Any, Tensor]:
    """Return labels and scores; of one score the first of two classes has the opposite.

    `multi_class` says how the model was fitted.

    Shapes:  (B, features) -> (B,), (B, classes)
    """
    labels = classlabels_strings or classlabels_ints
    count = len(intercepts) or len(labels)
    x = x.to(tl.float32).reshape(x.shape[0] if x.dim() > 1 else 1, -1)
    scores = x @ tl.tensor(coefficients).reshape(count, -1).T
    if intercepts:
        scores = scores + tl.tensor(intercepts)
    if count == 1 and len(labels) == 2:
        chosen = (scores[:, 0] > (0.5 if post_transform == "LOGISTIC" else 0)).to(tl.int64)
        if post_transform == "LOGISTIC":
            chosen = (scores[:, 0] > 0).to(tl.int64)
        scores = tl.cat([-scores, scores], 1)
    else:
        chosen = tl.argmax(scores, 1)
    return labelled(chosen, labels), transformed(scores, post_transform)


def _kernel(x: Tensor, vectors: Tensor, kernel_type: str, kernel_params: Sequence[float]) -> Tensor:
    """Return the kernel of rows and support vectors: (B, vectors).  Raises: ArgumentError for an unknown kernel"""
    gamma, coef0, degree = (*kernel_params, 0.0, 0.0, 0.0)[:3]
    if kernel_type == "RBF":
        distance = (x.unsqueeze(1) - vectors) ** 2
        return tl.exp(-gamma * distance.sum(-1))
    products = x @ vectors.T
    if kernel_type == "LINEAR":
        return products
    if kernel_type == "POLY":
        return (gamma * products + coef0) ** degree
    if kernel_type == "SIGMOID":
        return tl.tanh(gamma * products + coef0)
    raise ArgumentError(f"kernel_type={kernel_type!r}", hint="use LINEAR, POLY, RBF or SIGMOID")


@operator("SVMRegressor", since=1)
def svm_regressor(
    x: Tensor,
    *,
    coefficients: Sequence[float],
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float],
    support_vectors: Sequence[float] = (),
) -> Tensor:
    """Return the sum of weighted kernels plus `rho`; with `one_class` its sign.

    Shapes:  (B, features) -> (B, 1)
    """
    x = x.to(tl.float32)
    weights = tl.tensor(coefficients).reshape(-1, 1)
    if n_supports:
        x = _kernel(x, tl.tensor(support_vectors).reshape(n_supports, -1), kernel_type, kernel_params)
    y = x @ weights + rho[0]
    if one_class:
        y = tl.where(y > 0, tl.ones_like(y), -tl.ones_like(y))
    return transformed(y, post_transform)


@operator("SVMClassifier", since=1, whole=True)
def svm_classifier(
    x: Tensor,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float],
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] = (),
    prob_b: Sequence[float] = (),
    rho: Sequence[float],
    support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (),
) -> tuple[Any, Tensor]:
    """Return labels and scores: of pairs of classes, which vote, or with `prob_a` the probabilities of classes.

    Shapes:  (B, features) -> (B,), (B, classes or pairs)
    """
    labels = classlabels_strings or classlabels_ints
    x = x.to(tl.float32)
    if not vectors_per_class:
        scores = x @ tl.tensor(coefficients).reshape(len(labels), -1).T + rho[0]
        return labelled(tl.argmax(scores, 1), labels), transformed(scores, post_transform)
    count = sum(vectors_per_class)
    kernels = _kernel(x, tl.tensor(support_vectors).reshape(count, -1), kernel_type, kernel_params)
    scores, votes = _pairs(kernels, tl.tensor(coefficients).reshape(-1, count), vectors_per_class, rho)
    if prob_a:
        shares = 1 / (1 + tl.exp(scores * tl.tensor(prob_a) + tl.tensor(prob_b)))
        probabilities = _coupled(shares.to(tl.float64).numpy(), len(labels)).astype(np.float32)
        chosen = tl.argmax(votes if len(labels) > 2 else tl.tensor(probabilities), 1)
        return labelled(chosen, labels), transformed(tl.tensor(probabilities), post_transform)
    chosen = tl.argmax(votes, 1)
    if len(labels) == 2:
        scores = tl.cat([-scores, scores], 1)
    return labelled(chosen, labels), transformed(scores, post_transform)


def _pairs(
    kernels: Tensor, weights: Tensor, vectors_per_class: Sequence[int], rho: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Return the scores of all pairs of classes and the votes for each class."""
    starts = np.cumsum([0, *vectors_per_class]).tolist()
    classes = len(vectors_per_class)
    scores: list[Tensor] = []
    votes = [tl.zeros(kernels.shape[0]) for _ in range(classes)]
    for i in range(classes):
        for j in range(i + 1, classes):
            own, other = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            score = kernels[:, own] @ weights[j - 1, own] + kernels[:, other] @ weights[i, other] + rho[len(scores)]
            scores.append(score)
            votes[i] = votes[i] + (score > 0).to(tl.float32)
            votes[j] = votes[j] + (score <= 0).to(tl.float32)
    return tl.stack(scores, 1), tl.stack(votes, 1)


def _coupled(shares: Any, classes: int) -> Any:
    """Return the probabilities of classes that fit those of pairs best: (B, pairs) -> (B, classes)."""
    rows = []
    for row in shares:
        r = np.zeros((classes, classes))
        r[np.triu_indices(classes, 1)] = np.clip(row, 1e-7, 1 - 1e-7)
        r += np.tril(1 - r.T, -1)
        q = -r.T * r
        np.fill_diagonal(q, (r.T**2).sum(1) - np.diag(r) ** 2)
        # The minimum of p @ q @ p with sum 1: the conditions of Lagrange are linear.
        system = np.block([[q, np.ones((classes, 1))], [np.ones((1, classes)), np.zeros((1, 1))]])
        rows.append(np.linalg.solve(system, np.r_[np.zeros(classes), 1.0])[:classes])
    return np.array(rows).reshape(len(shares), classes)
