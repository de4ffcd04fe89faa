"""`Op.value` computes what the op does, in arrays of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl
from tallow.ops.table import OPS

pytestmark = pytest.mark.cpu("values without a closure are NumPy's")

WITH_VALUE = {name for name, op in OPS.items() if op.value is not None}
OWN = [case for case in load_all() if case.op in WITH_VALUE]


def tensors(case: Case, requires_grad: bool) -> list[tl.Tensor]:
    """Return the inputs of a case as float32 tensors, and those that are no floats as they are."""
    made = [tl.from_numpy(x.astype(np.float32) if x.dtype.kind == "f" else x.copy()) for x in case.inputs]
    return [t.requires_grad_(requires_grad and t.is_floating_point()) for t in made]


def parts(result: Any) -> list[Any]:
    """Return the tensors, and other values, of a result."""
    return [part for each in result for part in parts(each)] if isinstance(result, tuple | list) else [result]


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.id)
def test_the_value_is_that_of_the_recorded_op(case: Case) -> None:
    inputs = tensors(case, requires_grad=False)
    with tl.no_grad():
        values = parts(case.call(tl, *inputs))
    recorded = parts(case.call(tl, *tensors(case, requires_grad=True)))
    for value, expected in zip(values, recorded, strict=True):
        if not isinstance(value, tl.Tensor):
            assert value == expected
            continue
        np.testing.assert_array_equal(value.array, expected.array, strict=True)
        assert not any(value is not x and value.array is x.array for x in inputs)


def test_each_value_has_a_case() -> None:
    assert {case.op for case in OWN} == WITH_VALUE
