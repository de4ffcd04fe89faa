"""ai.onnx.ml: operators that prepare features.

Source:  https://onnx.ai/onnx/operators, domain ai.onnx.ml
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


@operator("ArrayFeatureExtractor", since=1)
def array_feature_extractor(x: Tensor, y: Tensor) -> Tensor:
    """Take the elements of the last dim at `y`."""
    return tl.index_select(x, -1, y.reshape(-1))


@operator("Binarizer", since=1)
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    """Return 1 where `x` exceeds the threshold, else 0."""
    return (x > threshold).to(x.dtype)


@operator("Scaler", since=1)
def scaler(x: Tensor, *, offset: Sequence[float] = (0.0,), scale: Sequence[float] = (1.0,)) -> Tensor:
    """Return (x - offset) · scale, with one number for each feature or for all."""
    return (x.to(tl.float32) - tl.tensor(offset)) * tl.tensor(scale)


@operator("Normalizer", since=1)
def normalizer(x: Tensor, *, norm: str = "MAX") -> Tensor:
    """Divide rows by their largest element (MAX), sum (L1) or root of squares (L2).

    Raises:  ArgumentError for another norm
    """
    x = x.to(tl.float32)
    if norm == "MAX":
        size = tl.amax(x, -1, keepdim=True)
    elif norm in ("L1", "L2"):
        size = tl.linalg.vector_norm(x, int(norm[1]), -1, keepdim=True)
    else:
        raise ArgumentError(f"Normalizer: norm={norm!r}", hint="use MAX, L1 or L2")
    return tl.where(size == 0, x, x / tl.where(size == 0, tl.ones_like(size), size))


@operator("Imputer", since=1)
def imputer(
    x: Tensor,
    *,
    imputed_value_floats: Sequence[float] = (),
    imputed_value_int64s: Sequence[int] = (),
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Tensor:
    """Replace a value, which may be NaN, by one for each feature or for all."""
    if imputed_value_floats:
        is_nan = replaced_value_float != replaced_value_float
        missing = tl.isnan(x) if is_nan else x == replaced_value_float
        return tl.where(missing, tl.tensor(imputed_value_floats, dtype=x.dtype), x)
    return tl.where(x == replaced_value_int64, tl.tensor(imputed_value_int64s, dtype=x.dtype), x)


@operator("FeatureVectorizer", since=1, whole=True)
def feature_vectorizer(*inputs: Tensor, inputdimensions: Sequence[int] | None = None) -> Tensor:
    """Join features side by side.  Raises: ArgumentError if their numbers differ from `inputdimensions`"""
    columns = [each.to(tl.float32).reshape(each.shape[0], -1) for each in inputs]
    widths = [each.shape[1] for each in columns]
    if inputdimensions is not None and widths != list(inputdimensions):
        raise ArgumentError(f"FeatureVectorizer: {widths} features", hint=f"inputdimensions is {inputdimensions}")
    return tl.cat(columns, 1)


@operator("OneHotEncoder", since=1, whole=True)
def one_hot_encoder(
    x: Any, *, cats_int64s: Sequence[int] = (), cats_strings: Sequence[str] = (), zeros: int = 1
) -> Tensor:
    """Return 1 at the place of each element among the categories.

    Args:    zeros: elements that are no category give zeros, instead of an error
    Shapes:  (*) -> (*, categories)
    """
    values = x if isinstance(x, np.ndarray) else x.numpy().astype(np.int64)
    places = {each: i for i, each in enumerate(cats_strings or cats_int64s)}
    found = np.array([places.get(each, -1) for each in values.reshape(-1).tolist()], np.int64)
    if not zeros and (found < 0).any():
        unknown = values.reshape(-1)[int(np.argmin(found))]
        raise ArgumentError(f"OneHotEncoder: {unknown!r:.80} is no category", hint="the node has zeros=0")
    encoded = np.zeros((found.size, len(places)), np.float32)
    known = np.flatnonzero(found >= 0)
    encoded[known, found[known]] = 1
    return tl.tensor(encoded.reshape(*values.shape, len(places)))


def _mapped(x: Any, mapping: dict[Any, Any], default: Any, kind: Any) -> Any:
    """Look up the elements of a tensor or of an array of strings; NaN is a key too."""
    values = x if isinstance(x, np.ndarray) else x.numpy()
    missing = [value for key, value in mapping.items() if key != key]
    fallback = missing[0] if missing else default
    results = [mapping.get(each, default) if each == each else fallback for each in values.reshape(-1).tolist()]
    if kind is object:
        array = np.empty(len(results), object)
        array[:] = results
        return array.reshape(values.shape)
    return tl.tensor(np.array(results, kind).reshape(values.shape))


def _listed(value: Any) -> tuple[list[Any], Any]:
    """Return the elements of a tensor or an array of strings, and their NumPy dtype."""
    array = value if isinstance(value, np.ndarray) else value.numpy()
    return array.reshape(-1).tolist(), object if array.dtype.kind == "O" else array.dtype


@operator("LabelEncoder", since=2, whole=True)
def label_encoder(
    x: Any,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Any = None,
    keys_floats: Sequence[float] = (),
    keys_int64s: Sequence[int] = (),
    keys_strings: Sequence[str] = (),
    keys_tensor: Any = None,
    values_floats: Sequence[float] = (),
    values_int64s: Sequence[int] = (),
    values_strings: Sequence[str] = (),
    values_tensor: Any = None,
) -> Any:
    """Replace keys by values; other elements give the default of the values' type."""
    keys = _listed(keys_tensor)[0] if keys_tensor is not None else [*keys_floats, *keys_int64s, *keys_strings]
    if keys_floats:
        keys = np.array(keys_floats, np.float32).tolist()
    if values_tensor is not None:
        values, kind = _listed(values_tensor)
        default = {"O": default_string, "f": default_float}.get(np.dtype(kind).kind, default_int64)
        if default_tensor is not None:
            default = _listed(default_tensor)[0][0]
    else:
        values = [*values_floats, *values_int64s, *values_strings]
        kind = np.float32 if values_floats else np.int64 if values_int64s else object
        default = default_float if values_floats else default_int64 if values_int64s else default_string
    return _mapped(x, dict(zip(keys, values, strict=True)), default, kind)


@operator("LabelEncoder", since=1, until=1, whole=True)
def label_encoder_of_classes(
    x: Any, *, classes_strings: Sequence[str] = (), default_int64: int = -1, default_string: str = "_Unused"
) -> Any:
    """Replace strings by their places among the classes, and places by strings."""
    if isinstance(x, np.ndarray):
        return _mapped(x, {each: i for i, each in enumerate(classes_strings)}, default_int64, np.int64)
    return _mapped(x, dict(enumerate(classes_strings)), default_string, object)


@operator("CategoryMapper", since=1, whole=True)
def category_mapper(
    x: Any,
    *,
    cats_int64s: Sequence[int] = (),
    cats_strings: Sequence[str] = (),
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Any:
    """Replace strings by integers, and integers by strings."""
    if isinstance(x, np.ndarray):
        return _mapped(x, dict(zip(cats_strings, cats_int64s, strict=True)), default_int64, np.int64)
    return _mapped(x, dict(zip(cats_int64s, cats_strings, strict=True)), default_string, object)


@operator("DictVectorizer", since=1, whole=True)
def dict_vectorizer(
    x: dict[Any, Any], *, int64_vocabulary: Sequence[int] = (), string_vocabulary: Sequence[str] = ()
) -> Any:
    """Return the values of a dict in the order of a vocabulary; zero for keys that are missing.

    Shapes:  -> (1, vocabulary)
    """
    values = [x.get(key) for key in string_vocabulary or int64_vocabulary]
    if any(isinstance(value, str) for value in values):
        return np.array([[value or "" for value in values]], object)
    return tl.tensor([[0 if value is None else value for value in values]])


@operator("ZipMap", since=1, whole=True)
def zip_map(
    x: Tensor, *, classlabels_int64s: Sequence[int] = (), classlabels_strings: Sequence[str] = ()
) -> list[dict[Any, float]]:
    """Return a dict of labels and scores for each row."""
    labels = classlabels_strings or classlabels_int64s
    return [dict(zip(labels, row, strict=True)) for row in x.reshape(-1, len(labels)).tolist()]
