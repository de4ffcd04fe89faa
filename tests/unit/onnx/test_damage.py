"""Damaged files: a fixed sample of what long runs of the fuzzer draw. Each gives a value or an error of tallow."""

from __future__ import annotations

from random import Random

import pytest
from support.onnx_damage import change, valid_file

import tallow as tl
from tallow.errors import ArgumentTypeError, TallowError

CASES = 40


def error_of_a_call(model: tl.onnx.OnnxModule) -> str:
    """Return the error of a call with its notes; "no node" if there is none, or the inputs are others."""
    try:
        with tl.no_grad():
            model(tl.ones(2, 1, 4, 4))
    except ArgumentTypeError:
        return "no node"
    except TallowError as error:
        return f"{error} {getattr(error, '__notes__', '')}"
    return "no node"


@pytest.mark.parametrize("part", range(3))
def test_damaged_files_give_values_or_errors_that_name_the_node(part: int) -> None:
    loads = 0
    for number in range(part * CASES, (part + 1) * CASES):
        rng = Random(number)
        raw = valid_file()
        for _ in range(rng.choice((1, 1, 2))):
            raw = change(rng, raw)
        try:
            model = tl.onnx.load(raw, max_trips=100)
        except TallowError:
            continue
        loads += 1
        assert "node" in error_of_a_call(model), number
    assert loads > CASES // 8  # most damage is refused, but not all
