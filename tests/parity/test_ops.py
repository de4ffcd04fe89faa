"""Every case compared with PyTorch: values, dtypes and gradients, in float32 and float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

CASES = load_all()


def leaves(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in leaves(item)] if isinstance(result, list | tuple) else [result]


def narrow(case: Case, dtype: Any) -> list[np.ndarray[Any, Any]]:
    return [a.astype(dtype) if a.dtype.kind == "f" else a for a in case.inputs]


def run(module: Any, case: Case, dtype: Any) -> tuple[list[Any], list[Any]]:
    inputs = [module.from_numpy(a.copy()) if a.ndim else module.tensor(a[()]) for a in narrow(case, dtype)]
    for t in inputs:
        if case.grad and t.is_floating_point():
            t.requires_grad_()
    return inputs, leaves(case.call(module, *inputs))


@pytest.mark.filterwarnings(r"ignore:index_reduce\(\) is in beta")  # raised by PyTorch
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_equals_pytorch(case: Case, dtype: Any) -> None:
    ours, our_outputs = run(tl, case, dtype)
    theirs, their_outputs = run(torch, case, dtype)
    single = {"rtol": case.rtol, "atol": case.atol}
    tolerance = single if dtype is np.float32 else {"rtol": case.rtol64, "atol": 1e-10}
    assert len(our_outputs) == len(their_outputs)
    for y, expected in zip(our_outputs, their_outputs, strict=True):
        if not isinstance(expected, torch.Tensor):
            assert y == expected or str(y).replace("tallow", "torch") == str(expected)
            continue
        assert str(y.dtype).removeprefix("tallow.") == str(expected.dtype).removeprefix("torch.")
        assert tuple(y.shape) == tuple(expected.shape)
        assert y.requires_grad == expected.requires_grad
        within = single if expected.dtype is torch.float32 else tolerance  # as for integers, whatever `dtype`
        np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), **within)
    if not case.grad:
        return
    rng = np.random.default_rng(1)
    pairs = [
        (y, e)
        for y, e in zip(our_outputs, their_outputs, strict=True)
        if isinstance(e, torch.Tensor) and e.requires_grad
    ]
    gs = [rng.standard_normal(tuple(e.shape)).astype(e.detach().numpy().dtype) for _, e in pairs]
    tl.autograd.backward([y for y, _ in pairs], [tl.tensor(g) for g in gs])
    torch.autograd.backward([e for _, e in pairs], [torch.tensor(g) for g in gs])
    for mine, expected in zip(ours, theirs, strict=True):
        if expected.grad is None:
            assert mine.grad is None or not mine.grad.numpy().any()
        else:
            expected_grad = expected.grad.numpy(force=True)  # PyTorch, too, may have zeros without memory
            np.testing.assert_allclose(mine.grad.numpy(), expected_grad, **tolerance)
