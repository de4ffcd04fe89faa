"""tl.testing.assert_close passes and fails as PyTorch's does, with the same messages."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl

# pairs of expressions, with further arguments
CASES = """
m.tensor([1.0, 2.0]), m.tensor([1.0, 2.0])
m.tensor([1.0, 2.0]), m.tensor([1.0, 2.00002])
m.tensor([1.0, 2.0]), m.tensor([1.0, 2.000001])
m.tensor([1.0, 2.0]), m.tensor([1.0, 2.1]), rtol=0.1, atol=0.0
m.tensor([1.0, 2.0, 3.0]), m.tensor([1.5, 2.0, 2.0])
m.tensor([[1.0, 2.0], [3.0, 4.0]]), m.tensor([[1.0, 2.0], [3.0, 5.0]])
m.tensor([1, 2, 3]), m.tensor([1, 2, 4])
m.tensor([1, 2, 3], dtype=m.uint8), m.tensor([1, 2, 4], dtype=m.uint8)
m.tensor([True, False]), m.tensor([True, True])
m.tensor([1.0]), m.tensor([1.0], dtype=m.float64)
m.tensor([1.0]), m.tensor([1.0], dtype=m.float64), check_dtype=False
m.tensor([1.0]), m.tensor([[1.0]])
m.tensor([float("nan")]), m.tensor([float("nan")])
m.tensor([float("nan")]), m.tensor([float("nan")]), equal_nan=True
m.tensor([float("inf")]), m.tensor([float("inf")])
m.tensor([1.0]).half(), m.tensor([1.0009]).half()
m.tensor([1.0]).bfloat16(), m.tensor([1.01]).bfloat16()
m.zeros(2, 3).T, m.zeros(3, 2), check_stride=True
1.0, 1.0
1.0, 1.1
1, 1
[m.ones(2), 3.0], [m.ones(2), 3.0]
[m.ones(2), 3.0], [m.ones(2), 4.0]
(m.ones(2), m.ones(2)), (m.ones(2), m.zeros(2))
[m.ones(2)], [m.ones(2), m.ones(2)]
{"a": m.ones(2)}, {"a": m.ones(2)}
{"a": m.ones(2)}, {"b": m.ones(2)}
{"a": [m.ones(2)]}, {"a": [m.zeros(2)]}
m.ones(2), m.zeros(2), msg="no good"
m.ones(2), m.zeros(2), msg=lambda text: "so: " + text[:10]
m.ones(2), m.ones(2), rtol=0.1
np.ones(2), np.ones(2)
np.ones(2), np.zeros(2)
"a", "a"
"""


def outcome(m: Any, arguments: str) -> Exception | None:
    try:
        eval(f"m.testing.assert_close({arguments})", {"m": m, "np": np})
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("arguments", CASES.strip().splitlines())
def test_agrees_with_pytorch(arguments: str) -> None:
    ours, theirs = outcome(tl, arguments), outcome(torch, arguments)
    if theirs is None:
        assert ours is None
        return
    assert ours is not None
    assert isinstance(ours, type(theirs))
    if isinstance(theirs, AssertionError) and "differ" not in str(ours):
        numbers = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
        mine, expected = (str(e).replace("torch.", "").replace("tallow.", "") for e in (ours, theirs))
        if "Tensor-likes" in expected or "attribute" in expected or "msg" in arguments:
            assert numbers.sub("#", mine).split() == numbers.sub("#", expected).split()
            our_numbers, their_numbers = numbers.findall(mine), numbers.findall(expected)
            assert [float(x) for x in our_numbers] == pytest.approx([float(x) for x in their_numbers], rel=1e-3)
