"""Every module compared with torch.nn: arguments, repr, state, and equal results and gradients.

A line is one configuration. Each runs in training and in evaluation mode, in float64, so that a difference is a mistake
and not rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.module_cases import CASES, Case, build, convert, flat, ids

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

RTOL, ATOL = 1e-7, 1e-9  # float64, after long sums


def run(lib: Any, module: Any, line: Case) -> list[Any]:
    """Return results, and gradients of inputs and parameters for fixed weights of the results."""
    leaves = []

    def operand(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(operand(item) for item in value)
        tensor = convert(lib, value)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            leaves.append(tensor.requires_grad_())
            return tensor * 1  # in-place layers may not write to leaves
        return tensor

    args = [convert(lib, v) if i in line.constants else operand(v) for i, v in enumerate(line.inputs)]
    results = list(flat(module(*args, **convert(lib, line.call))))
    rng = np.random.default_rng(1)
    for result in results:
        if result.requires_grad:
            weighting = lib.from_numpy(np.asarray(rng.standard_normal(tuple(result.shape))))
            result.backward(weighting.to(result.dtype), retain_graph=True)
    leaves += [parameter for _, parameter in module.named_parameters()]
    grads = [None if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]
    for parameter in module.parameters():
        parameter.grad = None
    return [result.detach().numpy() for result in results] + grads


def assert_same(mine: list[Any], theirs: list[Any]) -> None:
    assert len(mine) == len(theirs)
    for m, t in zip(mine, theirs, strict=True):
        assert (m is None) == (t is None)
        if m is not None:
            assert m.shape == t.shape
            assert m.dtype == t.dtype
            np.testing.assert_allclose(m, t, rtol=RTOL, atol=ATOL)


def state(module: Any) -> dict[str, np.ndarray[Any, Any]]:
    return {name: tensor.numpy().copy() for name, tensor in module.state_dict().items()}


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.filterwarnings("ignore:size_average and reduce args will be deprecated")
@pytest.mark.parametrize("line", CASES, ids=ids(CASES))
def test_module_is_pytorchs(line: Case) -> None:
    torch.manual_seed(0)
    theirs, mine = build(torch, line), build(tl, line)
    assert repr(mine) == repr(theirs)
    assert {n: t.shape for n, t in state(mine).items()} == {n: t.shape for n, t in state(theirs).items()}
    assert list(mine.state_dict()) == list(theirs.state_dict())
    mine.load_state_dict({name: tl.from_numpy(t) for name, t in state(theirs).items()})
    for training in line.modes:
        theirs.train(training)
        mine.train(training)
        assert_same(run(tl, mine, line), run(torch, theirs, line))
        assert_same(list(state(mine).values()), list(state(theirs).values()))


def test_every_module_has_a_line() -> None:
    modules = {name for name in tl.nn.__all__ if isinstance(getattr(tl.nn, name), type)}
    elsewhere = {
        "Module",
        "Parameter",
        "Buffer",
        "DataParallel",
        "DistributedDataParallel",
        "Init",  # this one and the two Var... are candle's
        "ModuleDict",
        "ModuleList",
        "ParameterDict",
        "ParameterList",
        "RNNBase",
        "RNNCellBase",
        "Sequential",
        "SyncBatchNorm",  # PyTorch's is for GPUs only
        "UninitializedBuffer",
        "UninitializedParameter",
        "VarBuilder",
        "VarMap",
        *(name for name in modules if name.startswith("Lazy")),  # in test_lazy_modules.py
    }
    assert modules - elsewhere == {line.name for line in CASES}
