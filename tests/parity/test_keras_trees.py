"""keras.tree, and the order of dicts of inputs and outputs, compared with Keras."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from support.keras_reference import KERAS_WARNS, keras

from tallow import keras as ours

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

NESTED = {"b": 1, "a": {"y": 3, "z": 2}, "c": [None, (5,)]}
CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("flatten", (NESTED,)),
    ("flatten", (OrderedDict(b=1, a=2),)),
    ("flatten_with_path", (NESTED,)),
    ("is_nested", (NESTED,)),
    ("is_nested", (3,)),
    ("lists_to_tuples", (NESTED,)),
    ("map_structure", (lambda *leaves: leaves, NESTED, NESTED)),
    ("map_structure_up_to", ({"b": 1, "a": 2}, lambda *parts: parts, {"a": [1, 2], "b": 3}, {"b": 4, "a": 5})),
    ("map_shape_structure", (len, {"a": (1, None), "b": [(2, 3, 4), (3,)]})),
    ("pack_sequence_as", ({"b": 1, "a": [2, 3]}, "xyz")),
    ("traverse", (lambda x: "dict" if isinstance(x, dict) and "y" in x else None, NESTED)),
    ("traverse", (lambda x: [x, 1] if isinstance(x, int) else None, NESTED, False)),
    *(
        (check, pair)
        for check in ("assert_same_structure", "assert_same_paths")
        for pair in ((NESTED, NESTED), ({"a": 1}, {"b": 1}), ([1, 2], (1, 2)), ([1], [1, 2]), (1, [1]))
    ),
]


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_trees(name: str, arguments: tuple[Any, ...]) -> None:
    results = []
    for tree in (keras.tree, ours.tree):
        try:
            results.append(getattr(tree, name)(*arguments))
        except ValueError:
            results.append("a ValueError")
    assert results[0] == results[1]
    assert type(results[0]) is type(results[1])


@pytest.mark.parametrize("loss", [{"a": "mse", "b": "mae"}, ["mse", "mae"], {"b": "mae"}])
def test_outputs_in_a_dict_come_by_name(loss: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 3)).astype(np.float32), rng.normal(size=(8, 1)).astype(np.float32)
    results = []
    for library in (keras, ours):
        symbolic_inputs = {"v": library.Input((3,), name="v"), "u": library.Input((3,), name="u")}
        v, u = (
            library.layers.Dense(1, name="dense_v")(symbolic_inputs["v"]),
            library.layers.Dense(1, name="dense_u")(symbolic_inputs["u"]),
        )
        model = library.Model(symbolic_inputs, {"b": library.layers.add([v, u]), "a": u})
        if results:
            model.set_weights(results[0][-1])
        weights = [np.asarray(w) for w in model.get_weights()]
        model.compile("sgd", loss, metrics={"b": ["mae"], "a": ["mse"]})
        inputs, targets = {"u": x, "v": 2 * x}, {"b": y, "a": -y}
        history = model.fit(inputs, targets, batch_size=4, shuffle=False, verbose=0).history
        names = [tensor.name for tensor in model.inputs]
        outputs = model.predict(inputs, verbose=0)
        measured = model.evaluate(inputs, targets, verbose=0)
        results.append((list(history), names, list(outputs), history, outputs, measured, weights))
    theirs, mine = results
    assert theirs[:3] == mine[:3]
    assert theirs[2] == ["a", "b"]
    for name in theirs[3]:
        np.testing.assert_allclose(mine[3][name], theirs[3][name], rtol=1e-5)
    for name in theirs[4]:
        np.testing.assert_allclose(mine[4][name], theirs[4][name], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mine[5], theirs[5], rtol=1e-5)
