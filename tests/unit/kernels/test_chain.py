"""Chains of elementwise operations: the compiled interpreter against one NumPy operation after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallow import kernels
from tallow.errors import TallowError
from tallow.kernels import library
from tallow.ops.chain import Chain, Instruction, Operation

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")
ROUNDED_ALIKE = [op for op in Operation if op < Operation.EXP or op is Operation.RELU]
rng = np.random.default_rng(3)


def run_compiled(chain: Chain, *arrays: Any) -> list[Any]:
    values: list[Any] = kernels.KERNELS["chain", library.BACKEND].fn(arrays[0], arrays, chain)
    return values


def run_array(chain: Chain, *arrays: Any) -> list[Any]:
    with kernels.off(), np.errstate(all="ignore"):
        return chain(*arrays)


def single(operation: Operation, shape: tuple[int, ...]) -> Chain:
    return Chain([Instruction(operation, 2, 0, 1)], 2, [2], 3, shape)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 1e-40, 3e38, -1e-20, 88.0, -104.0], np.float32)


@pytest.mark.parametrize("operation", Operation)
def test_each_operation_on_special_values(operation: Operation) -> None:
    a, b = (x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL))
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    chain = single(operation, a.shape)
    (got,), (expected,) = run_compiled(chain, a, b), run_array(chain, a, b)
    if operation in ROUNDED_ALIKE:
        np.testing.assert_array_equal(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=6e-7, atol=1e-38)


@pytest.mark.parametrize("operation", [op for op in Operation if op not in ROUNDED_ALIKE])
def test_functions_against_float64(operation: Operation) -> None:
    x = (rng.standard_normal(5000) * 5).astype(np.float32)
    chain = single(operation, x.shape)
    (got,) = run_compiled(chain, x, x)
    (expected,) = run_array(chain, x.astype(np.float64), x)
    np.testing.assert_allclose(got, expected, rtol=6e-7)


@given(st.data())
def test_programs_of_any_form(data: st.DataObject) -> None:
    """Random programs over whole arrays, rows that repeat and numbers, with temporaries that are used again."""
    shape = data.draw(st.sampled_from([(1,), (5,), (3, 7), (1023,), (1024,), (1025,), (4, 1031), (2, 3, 700)]))
    kinds = data.draw(st.lists(st.sampled_from([shape, shape[-1:], (), (1,)]), min_size=1, max_size=4))
    arrays = [rng.standard_normal(kind).astype(np.float32) for kind in kinds]
    operands = len(arrays) + data.draw(st.integers(1, 6))
    defined = list(range(len(arrays)))
    instructions = []
    for _ in range(data.draw(st.integers(1, 9))):
        result = data.draw(st.integers(len(arrays), operands - 1))
        a, b = data.draw(st.sampled_from(defined)), data.draw(st.sampled_from(defined))
        instructions.append(Instruction(data.draw(st.sampled_from(ROUNDED_ALIKE)), result, a, b))
        defined = sorted({*defined, result})
    made = [i for i in defined if i >= len(arrays)]
    outputs = data.draw(st.lists(st.sampled_from(made), min_size=1, unique=True))
    chain = Chain(instructions, len(arrays), outputs, operands, shape)
    before = [a.copy() for a in arrays]
    expected = run_array(chain, *(np.broadcast_to(a, shape) for a in arrays))
    for got, wanted in zip(run_compiled(chain, *arrays), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    for a, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, copy)


@pytest.mark.threads
def test_the_same_bits_on_several_threads() -> None:
    from tallow.kernels.threads import thread_count

    x, row = rng.standard_normal((50, 12345)).astype(np.float32), rng.standard_normal(12345).astype(np.float32)
    program = [Instruction(Operation.EXP, 2, 0, 0), Instruction(Operation.MUL, 2, 2, 1)] * 3
    chain = Chain(program, 2, [2], 3, x.shape)
    assert thread_count() >= 1
    (whole,) = run_compiled(chain, x, row)
    by_row = [run_compiled(Chain(program, 2, [2], 3, (12345,)), part, row)[0] for part in x]
    np.testing.assert_array_equal(whole, np.stack(by_row))


def test_the_binding_refuses_what_does_not_fit() -> None:
    chain = single(Operation.ADD, (4, 8))
    x = np.ones((4, 8), np.float32)
    for other in (x.T, x[:, :7], x[:, ::2], x.astype(np.float64), np.ones(4, np.float32)):
        with pytest.raises(TallowError):
            run_compiled(chain, x, other)
