"""The functions of tallow.keras.ops against those of keras.ops: of tensors, and of symbolic tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.keras_reference import KERAS_WARNS, keras

import tallow as tl
from tallow import keras as ours
from tallow.keras.functions import ELEMENTWISE, FUNCTIONS, REDUCTIONS, RENAMED

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4)).astype(np.float32)
Y = rng.normal(size=(2, 3, 4)).astype(np.float32)
UNIT = (rng.random((2, 3, 4)) * 0.9 + 0.05).astype(np.float32)
BITS = rng.random((2, 3, 4)) > 0.5
INDICES = rng.integers(0, 3, (2, 2))
BINARY = ("arctan2", "logaddexp", "maximum", "minimum")

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[(name, (UNIT + 1,) if name == "arccosh" else (UNIT, Y) if name in BINARY else (UNIT,), {})
      for name in ELEMENTWISE.split() if not name.startswith("logical")],
    *[(name, (BITS,) if name == "logical_not" else (BITS, BITS[::-1].copy()), {})
      for name in ELEMENTWISE.split() if name.startswith("logical")],
    *[(name, (X, UNIT + 0.5), {}) for name in RENAMED if name not in ("matmul", "power")],
    ("power", (UNIT, Y), {}),
    ("matmul", (X, np.swapaxes(Y, 1, 2).copy()), {}),
    *[(name, (X > 0 if name in ("any", "all") else X,), {"axis": axis, "keepdims": keep})
      for name in REDUCTIONS for axis in (None, 1, (0, 2)) for keep in (False, True)
      if not (name == "prod" and isinstance(axis, tuple))],
    *[(name, (X,), {"axis": axis}) for name in ("argmax", "argmin", "cumsum") for axis in (None, 1)],
    ("sort", (X,), {"axis": 1}),
    ("argsort", (X,), {}),
    ("top_k", (X, 2), {}),
    ("reshape", (X, (4, -1)), {}),
    ("transpose", (X, (0, 2, 1)), {}),
    ("expand_dims", (X, -1), {}),
    ("expand_dims", (X, (0, 2)), {}),
    ("squeeze", (X[:, :1],), {"axis": 1}),
    ("concatenate", ([X, Y],), {"axis": 1}),
    ("stack", ([X, Y],), {"axis": -1}),
    ("split", (X, 2), {"axis": -1}),
    ("split", (X, [1, 3]), {"axis": 2}),
    ("repeat", (X, 2), {"axis": 1}),
    ("tile", (X, (1, 2, 1)), {}),
    ("flip", (X,), {"axis": 1}),
    ("roll", (X, 1), {"axis": 1}),
    ("swapaxes", (X, 0, 2), {}),
    ("moveaxis", (X, 0, -1), {}),
    ("broadcast_to", (X[:1], (2, 3, 4)), {}),
    ("pad", (X, ((0, 0), (1, 2), (0, 1))), {}),
    ("pad", (X, ((1, 1),) * 3), {"constant_values": 2.0}),
    ("ravel", (X,), {}),
    ("tril", (X,), {}),
    ("triu", (X,), {"k": 1}),
    ("cast", (X, "int32"), {}),
    ("where", (BITS, X, Y), {}),
    ("clip", (X, -0.5, 0.5), {}),
    ("take", (X, INDICES), {"axis": 1}),
    ("take", (X, INDICES), {}),
    ("take_along_axis", (X, INDICES[:, :, None]), {"axis": 1}),
    ("one_hot", (INDICES, 4), {}),
    ("one_hot", (INDICES, 4), {"axis": 1}),
    ("einsum", ("bij,bkj->bik", X, Y), {}),
    ("dot", (X, Y[0].T.copy()), {}),
    ("norm", (X,), {"axis": -1}),
    ("normalize", (X,), {"axis": 1}),
    ("stop_gradient", (X,), {}),
    ("zeros_like", (X,), {}),
    ("ones_like", (X,), {}),
    ("full_like", (X, 3.0), {}),
    *[(name, (X,), {}) for name in ("relu", "softmax", "gelu", "sigmoid", "tanh", "leaky_relu", "silu", "log_softmax")],
]  # fmt: skip


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def as_(make: Any, leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return make(leaf)
    return [as_(make, part) for part in leaf] if isinstance(leaf, list) and isinstance(leaf[0], np.ndarray) else leaf


def same(found: Any, expected: Any) -> None:
    assert len(flat(found)) == len(flat(expected))
    for one, other in zip(flat(found), flat(expected), strict=True):
        np.testing.assert_allclose(one.numpy(force=True), np.asarray(other.cpu()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "args", "options"), CASES, ids=[name for name, _, _ in CASES])
def test_function(name: str, args: Any, options: dict[str, Any]) -> None:
    expected = getattr(keras.ops, name)(*(as_(torch.tensor, arg) for arg in args), **options)
    function = getattr(ours.ops, name)
    same(function(*(as_(tl.tensor, arg) for arg in args), **options), expected)
    same(function(*args, **options), expected)  # arrays are taken as well


@pytest.mark.parametrize(
    ("name", "args", "options"), [case for case in CASES if case[0] not in ("cast",)], ids=lambda v: str(v)[:20]
)
def test_function_of_a_symbolic_tensor(name: str, args: Any, options: dict[str, Any]) -> None:
    """The result of a model is that of the function; and a model that was saved and loaded gives it, too."""
    inputs: list[Any] = []

    def symbolic(array: Any) -> Any:
        inputs.append(ours.Input(batch_shape=array.shape, dtype=str(array.dtype)))
        return inputs[-1]

    arrays = [a for arg in args for a in (arg if isinstance(arg, list) else [arg]) if isinstance(a, np.ndarray)]
    outputs = getattr(ours.ops, name)(*(as_(symbolic, arg) for arg in args), **options)
    model = ours.Model(inputs, list(flat(outputs)))
    expected = flat(getattr(ours.ops, name)(*args, **options))
    again = ours.models.model_from_json(model.to_json())
    for found in (model(arrays), again(arrays)):
        for symbol, one, other in zip(flat(outputs), found, expected, strict=True):
            assert symbol.shape == tuple(other.shape)
            np.testing.assert_array_equal(one.numpy(force=True), other.numpy(force=True))


@pytest.mark.parametrize(("name", "args"), [
    ("zeros", ((2, 3),)), ("ones", ((2, 3), "int32")), ("full", ((2, 3), 4.0)), ("eye", (3,)), ("arange", (5,)),
    ("arange", (1, 7, 2)), ("linspace", (0.0, 1.0, 5)),
])  # fmt: skip
def test_new_tensors(name: str, args: Any) -> None:
    found, expected = getattr(ours.ops, name)(*args), getattr(keras.ops, name)(*args)
    same(found, expected)
    assert found.dtype.is_floating_point == expected.dtype.is_floating_point


def test_every_function_is_one_of_keras() -> None:
    assert [name for name in FUNCTIONS if not hasattr(keras.ops, name)] == []
    assert ours.ops.shape(X) == (2, 3, 4)
    assert ours.ops.shape(ours.Input((3,))) == (None, 3)
    assert ours.ops.ndim(ours.Input((3,))) == 2
