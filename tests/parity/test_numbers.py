"""Functions of Python numbers alone return what PyTorch returns, or raise as it does."""

from __future__ import annotations

import enum
from itertools import product

import pytest

import tallow as tl
from tallow.ops import OPS

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.agreement import assert_agree  # noqa: E402 - imports torch

NAMES = sorted(
    name
    for op in OPS.values()
    for name in (op.name, *op.aliases)
    if "tl" in op.places and hasattr(torch, name) and all(i in op.numbers for i, _ in op.operands)
)
NUMBERS = (7, 2.5, -3)


@pytest.mark.parametrize("name", NAMES)
def test_two_numbers(name: str) -> None:
    for a, b in product(NUMBERS, repeat=2):
        assert_agree(f"m.{name}({a}, {b})")


@pytest.mark.parametrize(
    "expression",
    [
        "m.add(True, True)",
        "m.add(True, 2)",
        "m.mul(True, 2.5)",
        "m.div(True, True)",
        "m.add(1, 2.5, alpha=2)",
        "m.add(1, 2, alpha=2.5)",
        "m.sub(2.5, 1, alpha=2)",
        "m.div(7, 2, rounding_mode='floor')",
        "m.div(-7.5, 2, rounding_mode='trunc')",
        "m.mul(np.float64(2), 3)",
        "m.add(np.int8(100), np.int8(100))",
        "m.add(1, 2, out=m.empty(0))",
        "m.add(None, 1)",
        "m.where(m.tensor([True, False]), 1, 2.5)",
        "m.atan2(1.0, 2.0)",
        "m.sin(1.0)",
        "m.special.xlogy(1, 2)",
        "m.nn.functional.relu(1.0)",
    ],
)
def test_numbers_in_other_calls(expression: str) -> None:
    assert_agree(expression)


def test_there_are_functions_to_test() -> None:
    assert {"add", "subtract", "true_divide", "floor_divide", "pow", "bitwise_and"} <= set(NAMES)


def test_members_of_an_enum_are_integers_of_python() -> None:
    class Factor(enum.IntEnum):
        THREE = 3

    for ours, theirs in (
        (tl.ones(2) * Factor.THREE, torch.ones(2) * Factor.THREE),
        (tl.add(tl.ones(2), Factor.THREE), torch.add(torch.ones(2), Factor.THREE)),
        (tl.full((2,), Factor.THREE), torch.full((2,), Factor.THREE)),
        (tl.ones(2, 3).sum(Factor.THREE - 2), torch.ones(2, 3).sum(Factor.THREE - 2)),
    ):
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
        assert ours.tolist() == theirs.tolist()
