"""Type promotion of two dtypes."""

from __future__ import annotations

from itertools import product

import pytest

import tallow as tl

ORDER = (tl.bool, tl.int8, tl.int16, tl.int32, tl.int64)
FLOATS = (tl.float16, tl.bfloat16, tl.float32, tl.float64)


@pytest.mark.parametrize(("a", "b"), [*product(FLOATS, FLOATS)], ids=str)
def test_floats_promote_to_the_wider_and_halves_to_float32(a: tl.dtype, b: tl.dtype) -> None:
    """Neither half dtype contains the other: float16 has more digits, bfloat16 the larger range."""
    wide = FLOATS[max(FLOATS.index(a), FLOATS.index(b))]
    expected = tl.float32 if {a, b} == {tl.float16, tl.bfloat16} else wide
    assert tl.promote_types(a, b) is expected
    assert (tl.ones(2, dtype=a) * tl.ones(2, dtype=b)).dtype is expected
    assert (tl.ones(2, dtype=a) * tl.ones((), dtype=b)).dtype is a, "a tensor without dimensions must not widen others"


@pytest.mark.parametrize(("a", "b"), [*product(ORDER, ORDER)], ids=str)
def test_integers_promote_to_the_wider(a: tl.dtype, b: tl.dtype) -> None:
    assert tl.promote_types(a, b) is ORDER[max(ORDER.index(a), ORDER.index(b))]


def test_uint8_needs_the_next_signed_integer() -> None:
    assert tl.promote_types(tl.uint8, tl.int8) is tl.promote_types(tl.int8, tl.uint8) is tl.int16
    assert tl.promote_types(tl.uint8, tl.int16) is tl.int16
    assert tl.promote_types(tl.uint8, tl.bool) is tl.uint8


@pytest.mark.parametrize(("a", "b"), [*product(FLOATS, (*ORDER, tl.uint8))], ids=str)
def test_a_float_wins_over_any_integer(a: tl.dtype, b: tl.dtype) -> None:
    assert tl.promote_types(a, b) is tl.promote_types(b, a) is a
