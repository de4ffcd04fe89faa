"""Gradients of gradients compared with PyTorch, for every case whose ops have a rule in tallow.autograd.recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl
from tallow.autograd.recorded import RULES
from tallow.errors import UnsupportedError
from tallow.ops.table import OPS

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

CASES = [
    case
    for case in load_all()
    if case.grad and (case.op in RULES or case.op not in OPS) and any(x.dtype.kind == "f" for x in case.inputs)
]
# Ops with a rule for some arguments only, with what it lacks.
PARTLY = {
    "addcmul": "a factor",
    "clamp": "bounds with gradients",
    "clamp_max": "a bound with a gradient",
    "clamp_min": "a bound with a gradient",
    "conv1d": "an input without batch dim",
    "conv2d": "an input without batch dim",
    "div": "rounding",
    "linear": "a weight that is a vector",
    "log_softmax": "no dims",
    "logit": "eps",
    "linalg_vector_norm": "an order below 1, or infinite",
    "cat": "tensors without elements",
    "pad": "modes that repeat elements",
}


def derivatives(module: Any, case: Case) -> tuple[list[Any], list[Any]]:
    """Return the gradients of a case's inputs, and the gradients of a function of those."""
    arrays = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in case.inputs]
    inputs = [module.tensor(x) for x in arrays]
    for x in inputs:
        x.requires_grad_(x.is_floating_point())
    own = [x for x in inputs if x.requires_grad]
    result = case.call(module, *inputs)
    outputs = [y for y in _leaves(result) if getattr(y, "requires_grad", False)]
    rng = np.random.default_rng(1)
    seeds = [module.tensor(rng.standard_normal(tuple(y.shape))).to(y.dtype) for y in outputs]
    first = module.autograd.grad(outputs, own, seeds, create_graph=True, allow_unused=True)
    total = sum(
        (g.double() * g.double() * module.tensor(rng.standard_normal(tuple(g.shape)))).sum()
        for g in first
        if g is not None
    )
    second = module.autograd.grad(total, own, allow_unused=True) if total.requires_grad else [None for _ in own]
    return list(first), list(second)


def _as_node(name: str) -> str:
    """Return the name of an op as nodes have it."""
    return "".join(word.capitalize() for word in name.split("_"))


WITH_RULE = set(map(_as_node, RULES))


def _leaves(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in _leaves(item)] if isinstance(result, list | tuple) else [result]


@pytest.mark.filterwarnings("ignore")  # raised by PyTorch
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_equal_pytorchs(case: Case) -> None:
    try:
        ours = derivatives(tl, case)
    except UnsupportedError as error:
        name = str(error).partition("Backward0")[0]
        assert name not in WITH_RULE or name in map(_as_node, PARTLY)
        pytest.skip(f"no rule: {error}")
    try:
        theirs = derivatives(torch, case)
    except RuntimeError as error:
        pytest.skip(f"PyTorch has none: {error}")
    for mine, expected in zip([*ours[0], *ours[1]], [*theirs[0], *theirs[1]], strict=True):
        if expected is None or mine is None:
            given = expected if mine is None else mine
            assert given is None or not given.numpy(force=True).any()
            continue
        tolerance = max(case.rtol64, 1e-8)
        np.testing.assert_allclose(mine.numpy(force=True), expected.numpy(force=True), rtol=tolerance, atol=tolerance)
