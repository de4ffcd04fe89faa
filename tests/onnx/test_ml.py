"""Operators of ai.onnx.ml give what onnxruntime gives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from support.onnx_nodes import check_node

pytestmark = pytest.mark.native

RANDOM = np.random.default_rng(4)
check = partial(check_node, domain="ai.onnx.ml")
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


def floats(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RANDOM.standard_normal(shape).astype(np.float32)


def words(*content: str) -> np.ndarray[Any, np.dtype[np.object_]]:
    return np.array(content, object)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_features_are_scaled(norm: str) -> None:
    x = np.abs(floats(4, 3))
    check("Normalizer", [x], norm=norm)
    check("Scaler", [x], offset=[0.5, 0.1, 0.0], scale=[2.0, 1.0, 0.5])
    check("Binarizer", [x], threshold=0.4)
    check(
        "Imputer",
        [np.where(x > 0.9, np.float32("nan"), x)],
        imputed_value_floats=[1.0, 2.0, 3.0],
        replaced_value_float=float("nan"),
    )
    check("ArrayFeatureExtractor", [x, np.array([2, 0], np.int64)])
    check("FeatureVectorizer", [x, floats(4, 2)], inputdimensions=[3, 2])


def test_categories_become_numbers() -> None:
    check("OneHotEncoder", [words("b", "a", "z")], cats_strings=["a", "b", "c"], zeros=1)
    check("OneHotEncoder", [np.array([[3], [1]], np.int64)], cats_int64s=[1, 2, 3])
    check("LabelEncoder", [words("b", "z")], keys_strings=["a", "b"], values_int64s=[4, 5], default_int64=-3)
    check("LabelEncoder", [np.array([1, 9], np.int64)], keys_int64s=[1, 2], values_strings=["x", "y"])
    check(
        "LabelEncoder",
        [np.array([0.1, 9], np.float32)],
        keys_floats=[0.1, 2],
        values_floats=[1.5, 2.5],
        default_float=7.0,
    )
    check("CategoryMapper", [words("b", "z")], cats_strings=["a", "b"], cats_int64s=[4, 5], default_int64=-3)


@pytest.mark.parametrize("post_transform", TRANSFORMS)
def test_linear_models(post_transform: str) -> None:
    x, weights = floats(6, 3), floats(3, 3).ravel().tolist()
    check("LinearRegressor", [x], coefficients=weights[:6], intercepts=[0.5, -1.0], targets=2)
    options = {"post_transform": post_transform, "intercepts": [0.1, 0.2, 0.3]}
    check("LinearClassifier", [x], outputs=2, coefficients=weights, classlabels_ints=[5, 6, 7], **options)
    check("LinearClassifier", [x], outputs=2, coefficients=weights, classlabels_strings=["a", "b", "c"], **options)


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_support_vector_machines(kernel: str) -> None:
    options = {"kernel_type": kernel, "kernel_params": [0.3, 0.5, 2.0], "rtol": 1e-4, "atol": 1e-4}
    vectors = floats(7, 3).ravel().tolist()
    check(
        "SVMRegressor",
        [floats(6, 3)],
        n_supports=7,
        support_vectors=vectors,
        coefficients=floats(7).tolist(),
        rho=[0.2],
        **options,
    )
    options |= {"support_vectors": vectors, "vectors_per_class": [2, 2, 3], "rho": [0.1, -0.2, 0.3]}
    options |= {"coefficients": floats(14).tolist(), "classlabels_ints": [0, 1, 2]}
    check("SVMClassifier", [floats(6, 3)], outputs=2, **options)
    options |= {"prob_a": [-1.2, -0.8, -1.0], "prob_b": [0.1, 0.0, -0.1], "atol": 2e-3}  # solved to 0.005 / classes
    check("SVMClassifier", [floats(6, 3)], outputs=2, compared=(1,), **options)


def trees(count: int, features: int) -> dict[str, Any]:
    """Return the attributes of complete trees of depth 2: nodes 0 to 2 branch, 3 to 6 are leaves."""
    nodes = [(t, n) for t in range(count) for n in range(7)]
    return {
        "nodes_treeids": [t for t, _ in nodes],
        "nodes_nodeids": [n for _, n in nodes],
        "nodes_featureids": [int(RANDOM.integers(features)) if n < 3 else 0 for _, n in nodes],
        "nodes_modes": [["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT"][n] if n < 3 else "LEAF" for _, n in nodes],
        "nodes_values": [float(RANDOM.standard_normal()) if n < 3 else 0.0 for _, n in nodes],
        "nodes_truenodeids": [2 * n + 1 if n < 3 else 0 for _, n in nodes],
        "nodes_falsenodeids": [2 * n + 2 if n < 3 else 0 for _, n in nodes],
        "nodes_missing_value_tracks_true": [n % 2 for _, n in nodes],
    }


def leaves(kind: str, count: int, targets: int, low: float = -1.0) -> dict[str, Any]:
    ends = [(t, n, k) for t in range(count) for n in range(3, 7) for k in range(targets)]
    return {
        f"{kind}_treeids": [t for t, _, _ in ends],
        f"{kind}_nodeids": [n for _, n, _ in ends],
        f"{kind}_ids": [k for _, _, k in ends],
        f"{kind}_weights": RANDOM.uniform(low, 1, len(ends)).tolist(),
    }


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees_regress(aggregate: str) -> None:
    x = np.where(floats(50, 4) > 1.5, np.float32("nan"), floats(50, 4))
    options = trees(5, 4) | leaves("target", 5, 2) | {"n_targets": 2, "aggregate_function": aggregate}
    check("TreeEnsembleRegressor", [x], **options)
    check("TreeEnsembleRegressor", [x], base_values=[0.5, -0.5], **options)


@pytest.mark.parametrize("post_transform", TRANSFORMS)
def test_trees_classify(post_transform: str) -> None:
    x = floats(50, 4)
    options = trees(5, 4) | leaves("class", 5, 3) | {"post_transform": post_transform}
    check("TreeEnsembleClassifier", [x], outputs=2, classlabels_int64s=[3, 4, 5], **options)
    check("TreeEnsembleClassifier", [x], outputs=2, classlabels_strings=["a", "b", "c"], **options)


@pytest.mark.parametrize("low", [-1.0, 0.0])
@pytest.mark.parametrize("post_transform", ["NONE", "LOGISTIC"])
def test_trees_with_one_score_choose_between_two_classes(low: float, post_transform: str) -> None:
    options = trees(3, 4) | leaves("class", 3, 1, low) | {"post_transform": post_transform}
    options["class_weights"] = [each / 3 for each in options["class_weights"]]
    check("TreeEnsembleClassifier", [floats(50, 4)], outputs=2, classlabels_int64s=[0, 1], **options)
