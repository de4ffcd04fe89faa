"""Short programs that must do the same under `import tallow as tl` and `import torch as tl`.

Each is a few statements and an expression; its value (tensors by dtype, shape, elements, requires_grad) or the built-in
class of its error is compared.
"""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import tallow
import tallow.nn.functional
from tallow.errors import TallowError

GRAPHS = """
x = R(3, rg=True); y = x * 2; y.retain_grad(); y.mul_(3); y.sum().backward(); (y.grad, x.grad, y.retains_grad)
x = R(3, rg=True); y = x * 2; y.retain_grad(); y[0] = 5; y.sum().backward(); (y.grad, x.grad)
x = R(3, rg=True); y = x * 2; v = y[:2]; v.retain_grad(); y.mul_(3); (v * v).sum().backward(); (v.grad, x.grad)
x = R(3, rg=True); h = x * 2; (h * h).sum().backward(inputs=[h]); (x.grad, h.grad)
x = R(3, rg=True); h = x * 2; (h * h).sum().backward(inputs=[h, x]); (x.grad, h.grad)
x = R(3, rg=True); h = x * 2; h.retain_grad(); (h * h).sum().backward(inputs=[h]); (x.grad, h.grad)
x = R(3, rg=True); x.sum().backward(inputs=[])
x = R(3, rg=True); x.sum().backward(inputs=[tl.ones(3)])
x = R(3, rg=True); y = x * 2; (y.long().requires_grad, y.int().is_leaf, (y > 0).requires_grad, y.to(tl.uint8).sum())
x = R(3, rg=True); i = tl.zeros(3, dtype=tl.int64); i.copy_(x); i.requires_grad
x = R(3, rg=True); h = x * 2; h.register_hook(lambda g: g[:1]); h.sum().backward()
x = R(3, rg=True); x.register_hook(lambda g: g[:1]); x.sum().backward()
x = R(3, rg=True); x.register_hook(lambda g: 3); x.sum().backward()
x = R(3, rg=True); h = x * 2; h.register_hook(lambda g: "no"); h.sum().backward()
x = R(3, rg=True); w = R(3, 3, rg=True, seed=1); tl.autograd.grad((w @ x).sum(), x)
x = R(3, rg=True); w = R(3, rg=True, seed=1); h = x * w; k = h.exp(); tl.autograd.grad((k * h * w).sum(), [h, x])
"""


def R(tl: Any, *size: int, seed: int = 0, rg: bool = False) -> Any:
    x = tl.tensor(np.random.RandomState(seed).randn(*size).astype(np.float32))
    return x.requires_grad_() if rg else x


def outcome(program: str, tl: Any) -> Any:
    *statements, expression = program.split("; ")
    names: dict[str, Any] = {"tl": tl, "F": tl.nn.functional, "np": np, "copy": copy, "math": math, "pickle": pickle}
    names["R"] = lambda *args, **kwargs: R(tl, *args, **kwargs)
    try:
        exec("\n".join(statements), names)
        return described(eval(expression, names), tl)
    except Exception as error:
        return error


def described(x: Any, tl: Any) -> Any:
    if isinstance(x, tl.Tensor):
        plain = x.detach()
        numbers = (plain.float() if plain.dtype is tl.bfloat16 else plain).numpy()
        return str(x.dtype).split(".")[-1], tuple(x.shape), numbers, x.requires_grad
    return type(x)(described(item, tl) for item in x) if type(x) in (list, tuple) else x


def assert_same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    if isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    else:
        assert ours == theirs


@pytest.mark.parametrize("program", GRAPHS.strip().splitlines())
def test_program_does_the_same_as_under_pytorch(program: str) -> None:
    ours, theirs = outcome(program, tallow), outcome(program, torch)
    if isinstance(theirs, Exception):
        expected = next(c for c in type(theirs).__mro__ if c.__module__ == "builtins")
        assert isinstance(ours, TallowError), ours
        assert isinstance(ours, expected), ours
    elif isinstance(ours, Exception):
        raise ours
    else:
        assert_same(ours, theirs)
