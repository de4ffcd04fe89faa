"""ai.onnx.ml: ensembles of decision trees.

All rows walk all trees at once, one level in each step.

Source:  https://onnx.ai/onnx/operators, domain ai.onnx.ml
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

import tallow as tl
from tallow import Tensor
from tallow.errors import ArgumentError
from tallow.onnx.operators.ml_linear import Labels, labelled, transformed
from tallow.onnx.operators.registry import operator as any_operator

operator = partial(any_operator, domain="ai.onnx.ml")
Array = np.ndarray[Any, Any]
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
COMPARE = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
MEMBER, LEAF = 6, 7
AGGREGATES = {"SUM": 1, "AVERAGE": 0, "MIN": 2, "MAX": 3}


@dataclass(frozen=True)
class Trees:
    """Nodes of all trees.

    Attributes:
        roots: the first node of each tree.
        mode: the comparison of each node; LEAF at the ends.
        members: node -> the values that its feature is looked for in.
        leaf, target, weight: the ends that add a weight to a target, sorted by leaf.
        depth: an upper bound of the steps to a leaf.
    """

    roots: Array
    mode: Array
    feature: Array
    split: Array
    yes: Array
    no: Array
    missing_yes: Array
    members: dict[int, Array]
    leaf: Array
    target: Array
    weight: Array

    def leaves(self, x: Array) -> Array:
        """Return the leaf that each row reaches in each tree: (B, trees).  Raises: ArgumentError for a circle"""
        at = np.broadcast_to(self.roots, (len(x), len(self.roots))).copy()
        rows = np.arange(len(x))[:, None]
        for _ in range(len(self.mode) + 1):
            mode = self.mode[at]
            if (mode == LEAF).all():
                return at
            value = x[rows, self.feature[at]]
            truth = self._answers(at, mode, value)
            at = np.where(mode == LEAF, at, np.where(truth, self.yes[at], self.no[at]))
        raise ArgumentError("the nodes of a tree form a circle", hint="export the model again")

    def _answers(self, at: Array, mode: Array, value: Array) -> Array:
        split = self.split[at]
        truth = np.zeros(at.shape, bool)
        for number, compare in enumerate(COMPARE):
            chosen = mode == number
            if chosen.any():
                truth[chosen] = compare(value[chosen], split[chosen])
        for node in np.unique(at[mode == MEMBER]).tolist():
            chosen = at == node
            truth[chosen] = np.isin(value[chosen], self.members[node])
        return truth | (np.isnan(value) & self.missing_yes[at])

    def scores(self, x: Array, targets: int, aggregate: int) -> Array:
        """Return the aggregate of the weights of the leaves that each row reaches: (B, targets), in float64."""
        reached = self.leaves(x)
        of_nothing = {2: np.inf, 3: -np.inf}.get(aggregate, 0.0)
        combine = {2: np.minimum, 3: np.maximum}.get(aggregate, np.add)
        result = np.full((len(x), targets), of_nothing)
        low, high = np.searchsorted(self.leaf, reached), np.searchsorted(self.leaf, reached, side="right")
        for i in range(int((high - low).max(initial=0))):  # a leaf may have a weight for several targets
            row, tree = np.nonzero(low + i < high)
            entry = (low + i)[row, tree]
            combine.at(result, (row, self.target[entry]), self.weight[entry])
        if aggregate == 0:
            result /= len(self.roots)
        return np.where(np.isfinite(result), result, 0.0)


@lru_cache(maxsize=16)
def _trees(
    trees: tuple[int, ...],
    ids: tuple[int, ...],
    features: tuple[int, ...],
    modes: tuple[str, ...],
    values: tuple[float, ...],
    yes: tuple[int, ...],
    no: tuple[int, ...],
    missing: tuple[int, ...],
    leaf_trees: tuple[int, ...],
    leaf_ids: tuple[int, ...],
    targets: tuple[int, ...],
    weights: tuple[float, ...],
) -> Trees:
    """Return trees whose nodes are named by tree and id.  Raises: ArgumentError for nodes that are missing"""
    place = {key: i for i, key in enumerate(zip(trees, ids, strict=True))}
    numbers = {name: i for i, name in enumerate((*MODES, "LEAF"))}
    try:
        mode = np.array([numbers[each] for each in modes])
        yes_nodes, no_nodes = (
            np.array([i if m == LEAF else place[t, n] for i, (t, n, m) in enumerate(zip(trees, to, mode, strict=True))])
            for to in (yes, no)
        )
        leaf = np.array([place[key] for key in zip(leaf_trees, leaf_ids, strict=True)], np.int64)
    except (KeyError, ValueError) as error:
        raise ArgumentError(f"the trees do not fit together: {error}", hint="export the model again") from None
    children = {each for to in (yes_nodes, no_nodes) for i, each in enumerate(to.tolist()) if each != i}
    firsts = {tree: i for i, tree in reversed(list(enumerate(trees))) if i not in children}
    roots = np.array([firsts[tree] for tree in dict.fromkeys(trees) if tree in firsts], np.int64)
    order = np.argsort(leaf, kind="stable")
    return Trees(
        roots,
        mode,
        np.array(features),
        np.array(values, np.float32),
        yes_nodes,
        no_nodes,
        np.array(missing or (0,) * len(ids), bool),
        {},
        leaf[order],
        np.array(targets, np.int64)[order],
        np.array(weights, np.float64)[order],
    )


def _given(values: Sequence[float], tensor: Tensor | None) -> tuple[float, ...]:
    return tuple(values) if tensor is None else tuple(tensor.reshape(-1).tolist())


def _rows(x: Tensor) -> Array:
    return x.to(tl.float64 if x.dtype is tl.float64 else tl.float32).numpy()


def _as_input(scores: Array, x: Tensor) -> Tensor:
    return tl.tensor(scores).to(tl.float64 if x.dtype is tl.float64 else tl.float32)


@operator("TreeEnsembleRegressor", since=1, whole=True)
def tree_ensemble_regressor(
    x: Tensor,
    *,
    aggregate_function: str = "SUM",
    base_values: Sequence[float] = (),
    base_values_as_tensor: Tensor | None = None,
    n_targets: int = 1,
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Sequence[float] = (),
    nodes_hitrates_as_tensor: Tensor | None = None,
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: Sequence[str],
    nodes_nodeids: Sequence[int],
    nodes_treeids: Sequence[int],
    nodes_truenodeids: Sequence[int],
    nodes_values: Sequence[float] = (),
    nodes_values_as_tensor: Tensor | None = None,
    post_transform: str = "NONE",
    target_ids: Sequence[int],
    target_nodeids: Sequence[int],
    target_treeids: Sequence[int],
    target_weights: Sequence[float] = (),
    target_weights_as_tensor: Tensor | None = None,
) -> Tensor:
    """Combine the weights of the leaves that each row reaches.

    Shapes:  (B, features) -> (B, n_targets)
    Raises:  ArgumentError for an unknown aggregate
    """
    if aggregate_function not in AGGREGATES:
        raise ArgumentError(f"aggregate_function={aggregate_function!r}", hint="use SUM, AVERAGE, MIN or MAX")
    trees = _trees(
        tuple(nodes_treeids),
        tuple(nodes_nodeids),
        tuple(nodes_featureids),
        tuple(nodes_modes),
        _given(nodes_values, nodes_values_as_tensor),
        tuple(nodes_truenodeids),
        tuple(nodes_falsenodeids),
        tuple(nodes_missing_value_tracks_true),
        tuple(target_treeids),
        tuple(target_nodeids),
        tuple(target_ids),
        _given(target_weights, target_weights_as_tensor),
    )
    scores = trees.scores(_rows(x), n_targets, AGGREGATES[aggregate_function])
    base = _given(base_values, base_values_as_tensor)
    return transformed(_as_input(scores + np.array(base or 0.0), x), post_transform)


@operator("TreeEnsembleClassifier", since=1, whole=True)
def tree_ensemble_classifier(
    x: Tensor,
    *,
    base_values: Sequence[float] = (),
    base_values_as_tensor: Tensor | None = None,
    class_ids: Sequence[int],
    class_nodeids: Sequence[int],
    class_treeids: Sequence[int],
    class_weights: Sequence[float] = (),
    class_weights_as_tensor: Tensor | None = None,
    classlabels_int64s: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Sequence[float] = (),
    nodes_hitrates_as_tensor: Tensor | None = None,
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: Sequence[str],
    nodes_nodeids: Sequence[int],
    nodes_treeids: Sequence[int],
    nodes_truenodeids: Sequence[int],
    nodes_values: Sequence[float] = (),
    nodes_values_as_tensor: Tensor | None = None,
    post_transform: str = "NONE",
) -> tuple[Any, Tensor]:
    """Return labels and scores: sums of the weights of the leaves that each row reaches.

    Shapes:  (B, features) -> (B,), (B, classes)
    """
    weights = _given(class_weights, class_weights_as_tensor)
    trees = _trees(
        tuple(nodes_treeids),
        tuple(nodes_nodeids),
        tuple(nodes_featureids),
        tuple(nodes_modes),
        _given(nodes_values, nodes_values_as_tensor),
        tuple(nodes_truenodeids),
        tuple(nodes_falsenodeids),
        tuple(nodes_missing_value_tracks_true),
        tuple(class_treeids),
        tuple(class_nodeids),
        tuple(class_ids),
        weights,
    )
    labels: Labels = classlabels_strings or classlabels_int64s
    scores = trees.scores(_rows(x), max(len(labels), 1), AGGREGATES["SUM"])
    base = _given(base_values, base_values_as_tensor)
    if len(labels) == 2 and len(set(class_ids)) == 1:
        return _of_one_score(scores[:, class_ids[0]], base, min(weights) >= 0, labels, post_transform, x)
    scores = scores + np.array(base or 0.0)
    chosen = tl.tensor(scores.argmax(1))
    return labelled(chosen, labels), transformed(_as_input(scores, x), post_transform)


def _of_one_score(
    score: Array, base: tuple[float, ...], is_positive: bool, labels: Labels, post_transform: str, x: Tensor
) -> tuple[Any, Tensor]:
    """Return labels and scores of two classes of which the second one has a score.

    Positive weights are a probability; others are a margin, whose sign decides.
    """
    score = score + (base[-1] if base else 0.0)
    chosen = tl.tensor((score > (0.5 if is_positive else 0.0)).astype(np.int64))
    other = 1 - score if is_positive and post_transform == "NONE" else -score
    return labelled(chosen, labels), transformed(_as_input(np.stack([other, score], 1), x), post_transform)


@operator("TreeEnsemble", since=5, whole=True)
def tree_ensemble(
    x: Tensor,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Sequence[int],
    leaf_weights: Tensor,
    membership_values: Tensor | None = None,
    n_targets: int = 1,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Tensor | None = None,
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: Tensor,
    nodes_splits: Tensor,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    post_transform: int = 0,
    tree_roots: Sequence[int],
) -> Tensor:
    """Combine the weights of the leaves that each row reaches; leaves are apart from the nodes.

    Shapes:  (B, features) -> (B, n_targets)
    """
    inner, ends = len(nodes_featureids), len(leaf_targetids)

    def branch(ids: Sequence[int], are_leaves: Sequence[int]) -> Array:
        to = [i + inner if is_leaf else i for i, is_leaf in zip(ids, are_leaves, strict=True)]
        return np.array([*to, *range(inner, inner + ends)])

    # A tree of one leaf is a node whose branches both lead there.
    modes = np.concatenate([nodes_modes.to(tl.int64).numpy(), np.full(ends, LEAF)])
    nothing = np.zeros(ends, np.int64)
    trees = Trees(
        np.array(tree_roots),
        modes,
        np.concatenate([np.array(nodes_featureids), nothing]),
        np.concatenate([nodes_splits.numpy(), nothing]).astype(nodes_splits.numpy().dtype),
        branch(nodes_truenodeids, nodes_trueleafs),
        branch(nodes_falsenodeids, nodes_falseleafs),
        np.concatenate([np.array(nodes_missing_value_tracks_true or [0] * inner), nothing]).astype(bool),
        _members(modes, membership_values),
        np.arange(inner, inner + ends),
        np.array(leaf_targetids),
        leaf_weights.to(tl.float64).numpy(),
    )
    names = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    return transformed(_as_input(trees.scores(_rows(x), n_targets, aggregate_function), x), names[post_transform])


def _members(modes: Array, values: Tensor | None) -> dict[int, Array]:
    """Return the sets of the nodes that have one: in the order of the nodes, each ended by NaN."""
    nodes = np.flatnonzero(modes == MEMBER).tolist()
    if values is None:
        return {node: np.empty(0) for node in nodes}
    flat = values.numpy().reshape(-1)
    ends = np.flatnonzero(np.isnan(flat)).tolist()
    starts = [0, *(end + 1 for end in ends)]
    return {node: flat[start:end] for node, start, end in zip(nodes, starts, ends, strict=False)}
