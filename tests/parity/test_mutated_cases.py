"""Every case with other shapes: broadcast, empty, zero-dim, one element. tallow computes or raises as PyTorch does.

A normal run draws a few shapes per op, always the same ones. `--fuzz-seconds N` draws others, for N seconds.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from typing import Any

import hypothesis
import pytest
from cases import Case, load_all
from hypothesis import strategies as st

pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.mutations import FORMULAS, UNRELIABLE, disagreement, mutate  # after the check

BY_OP: dict[str, list[Case]] = defaultdict(list)
for _case in load_all():
    if _case.op not in FORMULAS:
        BY_OP[_case.op].append(_case)
OPS = sorted(op for op in BY_OP if op not in UNRELIABLE or UNRELIABLE[op].startswith("empty"))
FEW, MANY = 3, 30  # examples per op in a normal run (a few seconds in all), and between checks of the time


def check(case: Case, choose: Any) -> None:
    inputs = mutate(case, choose)
    difference = disagreement(case, inputs)
    assert difference is None, f"{case.id} {[a.shape for a in inputs]}: {difference}"


def draws(data: st.DataObject) -> Any:
    return lambda options: options[data.draw(st.integers(0, len(options) - 1))]


@pytest.fixture
def seconds(request: pytest.FixtureRequest) -> float:
    """Return the time for this op: its share of `--fuzz-seconds`, an option that another conftest may define."""
    return float(request.config.getoption("--fuzz-seconds", default=0) or 0) / len(OPS)


@pytest.mark.parametrize("op", OPS)
def test_other_shapes_are_as_in_pytorch(op: str, seconds: float) -> None:
    @hypothesis.settings(
        max_examples=MANY if seconds else FEW,
        derandomize=not seconds,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=list(hypothesis.Phase) if seconds else [hypothesis.Phase.generate],
    )
    @hypothesis.given(data=st.data())
    def run(data: st.DataObject) -> None:
        choose = draws(data)
        check(choose(BY_OP[op]), choose)

    end = time.monotonic() + seconds
    run()
    while time.monotonic() < end:
        run()


def test_exceptions_name_existing_ops() -> None:
    """Exceptions must name existing ops that have cases."""
    ops = {case.op for case in load_all()}
    assert ops >= FORMULAS
    assert ops >= UNRELIABLE.keys()
    assert math.isclose(len(OPS) / len(ops), 1, abs_tol=0.15)  # nearly all are compared
