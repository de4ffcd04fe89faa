"""Tensors print as in PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.core import printing

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def usual_options() -> Iterator[None]:
    yield
    set_options(profile="default")


def set_options(**options: Any) -> None:
    torch.set_printoptions(**options)
    tl.set_printoptions(**options)


def normalize(text: str) -> str:
    """Replace tallow's dtype names, which are longer, so that only they may move a line break."""
    return re.sub(r",\s+(dtype|requires_grad)=", r", \1=", text.replace("torch.", "tallow."))


def assert_same(array: Array, dtype: str | None = None, requires_grad: bool = False) -> None:
    theirs, ours = torch.from_numpy(np.array(array)), tl.from_numpy(np.array(array))
    if dtype is not None:
        theirs, ours = theirs.to(getattr(torch, dtype)), ours.to(getattr(tl, dtype))
    if requires_grad:
        theirs.requires_grad_()
        ours.requires_grad_()
    expected = repr(theirs)
    if "dtype" in expected:
        assert normalize(repr(ours)) == normalize(expected)
    else:
        assert repr(ours) == expected


def random_array(rng: np.random.Generator) -> Array:
    """Return an array of any shape and scale, sometimes rounded, of mixed scales, infinite, NaN or constant."""
    shape = tuple(rng.integers(0, 9, rng.integers(0, 5))) if rng.random() < 0.8 else tuple(rng.integers(1, 60, 3))
    x = np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 10))
    if rng.random() < 0.3:
        x = x * 10.0 ** rng.integers(-3, 4, shape)
    if rng.random() < 0.3:
        x = np.round(x)
    x = np.array(x)
    if rng.random() < 0.2 and x.size:
        x.flat[rng.integers(0, x.size)] = rng.choice([np.nan, np.inf, -np.inf, 0, -0.0])
    if rng.random() < 0.1:
        x[...] = rng.choice([0, np.nan, np.inf])
    return x


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i8", "i4", "i1", "u1", "?"])
def test_any_tensor_prints_as_in_pytorch(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        with np.errstate(all="ignore"):
            array = np.asarray(random_array(rng)).astype(dtype)
        assert_same(array, requires_grad=bool(array.dtype.kind == "f" and rng.random() < 0.3))


def test_bfloat16_prints_as_in_pytorch() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert_same(random_array(rng), "bfloat16")


@pytest.mark.parametrize(
    "options",
    [
        {"precision": 2},
        {"linewidth": 40},
        {"edgeitems": 1, "threshold": 5},
        {"profile": "short"},
        {"profile": "full"},
        {"sci_mode": True},
        {"sci_mode": False},
        {"edgeitems": 0, "threshold": 2},
    ],
    ids=str,
)
def test_print_options_work_as_in_pytorch(options: dict[str, Any]) -> None:
    set_options(**options)
    rng = np.random.default_rng(0)
    for shape in [(), (3,), (20,), (4, 5), (2, 3, 4), (12, 12), (1, 40), (0,), (0, 3), (1001,)]:
        for scale in (1, 1e-5, 1e4):
            assert_same(rng.standard_normal(shape) * scale)
        assert_same(np.asarray(rng.integers(0, 1000, shape)))
        assert_same(np.round(rng.standard_normal(shape) * 100).astype(np.float32))


def test_printoptions_restores_the_options() -> None:
    with printing.printoptions(precision=1):
        assert repr(tl.tensor(1.55555)) == "tensor(1.6)"
    assert repr(tl.tensor(1.55555)) == repr(torch.tensor(1.55555))
    with torch._tensor_str.printoptions(precision=2), printing.printoptions(precision=2):
        assert printing.get_printoptions() == torch._tensor_str.get_printoptions()


@pytest.mark.parametrize("rows", range(8, 30))
def test_grad_fn_and_requires_grad_break_the_line_where_pytorch_breaks_it(rows: int) -> None:
    for module in (torch, tl):
        x = module.arange(rows).double().mul(1.1).to(module.float32).requires_grad_()
        texts = (repr(x), repr(x * 2), repr(x.expand(2, rows) * 2))
        if module is torch:
            expected = texts
    assert texts == expected


def test_default_dtype_is_omitted() -> None:
    try:
        for module in (torch, tl):
            module.set_default_dtype(module.float64)
        assert repr(tl.tensor(1.5)) == repr(torch.tensor(1.5)) == "tensor(1.5000)"
        assert_same(np.ones(2, np.float32))
        assert_same(np.ones((0, 2), np.float32))
    finally:
        for module in (torch, tl):
            module.set_default_dtype(module.float32)


def test_meta_tensors_print_as_in_pytorch() -> None:
    for size in [(2, 3), (0,), ()]:
        for dtype in ("float32", "int64"):
            ours = tl.zeros(size, dtype=getattr(tl, dtype)).to("meta")
            theirs = torch.zeros(size, dtype=getattr(torch, dtype), device="meta")
            assert repr(ours) == repr(theirs).replace("torch.", "tallow.")


def test_subclasses_print_their_name() -> None:
    class Ours(tl.Tensor):
        pass

    class Hers(torch.Tensor):
        pass

    theirs = torch.arange(30.0).as_subclass(Hers)
    assert repr(Ours(np.arange(30, dtype=np.float32))) == repr(theirs).replace("Hers(", "Ours(")


@pytest.mark.parametrize("value", [3, True, 0.1, 1e-10, float("nan")])
def test_0d_tensors_format_as_numbers(value: float) -> None:
    theirs, ours = torch.tensor(value), tl.tensor(value)
    assert f"{ours} {ours:>8}" == f"{theirs} {theirs:>8}"
    if isinstance(value, float):
        assert f"{ours.requires_grad_()} {ours:.2f}" == f"{theirs.requires_grad_()} {theirs:.2f}"
        assert f"{tl.nn.Parameter(ours)}" == f"{torch.nn.Parameter(theirs)}"
    meta = ours.detach().to("meta")
    assert f"{meta}" == str(meta)
