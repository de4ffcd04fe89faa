"""`memory_format`: shapes and strides equal PyTorch's for every function that accepts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tallow as tl

# Where a conversion copies an expanded dimension, NumPy makes it the innermost in memory, PyTorch keeps its position.
REPEATED = "expanded"
CONVERSIONS = ("to a dtype", "double", "half", "bfloat16", "long", "bool")
FORMATS = ("preserve_format", "contiguous_format", "channels_last", "channels_last_3d")
SOURCES: dict[str, Callable[[Any], Any]] = {
    "row-major": lambda m: m.zeros(2, 3, 4, 5),
    "channels last": lambda m: m.zeros(2, 3, 4, 5).contiguous(memory_format=m.channels_last),
    "transposed": lambda m: m.zeros(2, 3, 4, 5).transpose(1, 3),
    "permuted": lambda m: m.zeros(2, 3, 4, 5).permute(3, 0, 2, 1),
    "a part": lambda m: m.zeros(2, 3, 4, 5)[:, 1:],
    "a part of channels last": lambda m: m.zeros(2, 3, 4, 5).contiguous(memory_format=m.channels_last)[:, :, 1:],
    "steps": lambda m: m.zeros(2, 6, 4, 5)[:, ::2],
    REPEATED: lambda m: m.zeros(3, 1, 5).expand(2, 3, 4, 5),
    "expanded, transposed": lambda m: m.zeros(3, 1, 5).expand(2, 3, 4, 5).transpose(0, 3),
    "one channel": lambda m: m.zeros(2, 1, 4, 5),
    "one pixel": lambda m: m.zeros(2, 3, 1, 1),
    "empty": lambda m: m.zeros(0, 3, 4, 5),
    "five dims": lambda m: m.zeros(2, 3, 4, 5, 6),
    "five dims, channels last": lambda m: m.zeros(2, 3, 4, 5, 6).contiguous(memory_format=m.channels_last_3d),
    "a matrix": lambda m: m.zeros(2, 3).mT,
    "a vector": lambda m: m.zeros(4),
    "a number": lambda m: m.zeros(()),
}
TAKERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "clone": lambda m, x, f: x.clone(memory_format=f),
    "to": lambda m, x, f: x.to(memory_format=f),
    "to a dtype": lambda m, x, f: x.to(m.float64, memory_format=f),
    "float": lambda m, x, f: x.float(memory_format=f),
    "double": lambda m, x, f: x.double(memory_format=f),
    "half": lambda m, x, f: x.half(memory_format=f),
    "bfloat16": lambda m, x, f: x.bfloat16(memory_format=f),
    "long": lambda m, x, f: x.long(memory_format=f),
    "bool": lambda m, x, f: x.bool(memory_format=f),
    "cpu": lambda m, x, f: x.cpu(memory_format=f),
    "empty_like": lambda m, x, f: m.empty_like(x, memory_format=f),
    "zeros_like": lambda m, x, f: m.zeros_like(x, memory_format=f),
    "ones_like": lambda m, x, f: m.ones_like(x, memory_format=f),
    "full_like": lambda m, x, f: m.full_like(x, 2, memory_format=f),
    "rand_like": lambda m, x, f: m.rand_like(x, memory_format=f),
    "randn_like": lambda m, x, f: m.randn_like(x, memory_format=f),
    "randint_like": lambda m, x, f: m.randint_like(x, 7, memory_format=f),
    "contiguous": lambda m, x, f: x.contiguous(memory_format=f),
    "empty": lambda m, x, f: m.empty(x.shape, memory_format=f),
}


def layout_of(m: Any, take: Callable[[Any, Any, Any], Any], source: str, memory_format: str) -> Any:
    """Return the shape and the strides of the result, or "refused"."""
    x = SOURCES[source](m)
    try:
        y = take(m, x, getattr(m, memory_format))
    except RuntimeError:
        return "refused"
    return tuple(y.shape), tuple(s for s, n in zip(y.stride(), y.shape, strict=True) if n > 1 and y.numel()), y is x


@pytest.mark.parametrize("name", TAKERS)
def test_strides_are_pytorchs(name: str) -> None:
    take, wrong = TAKERS[name], []
    for source in SOURCES:
        for memory_format in FORMATS:
            if source.startswith(REPEATED) and memory_format == "preserve_format" and name in CONVERSIONS:
                continue
            expected, got = (layout_of(m, take, source, memory_format) for m in (torch, tl))
            if got != expected:
                wrong.append(f"{source}, {memory_format}: {got}, PyTorch {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("source", SOURCES)
def test_is_contiguous(source: str) -> None:
    for memory_format in FORMATS:
        answers = []
        for m in (torch, tl):
            try:
                answers.append(SOURCES[source](m).is_contiguous(memory_format=getattr(m, memory_format)))
            except RuntimeError:
                answers.append("refused")
        assert answers[0] == answers[1], memory_format


def test_without_a_format() -> None:
    for source, make in SOURCES.items():
        theirs, mine = make(torch), make(tl)
        assert mine.is_contiguous() == theirs.is_contiguous(), source
        if source.startswith(REPEATED):
            continue
        for take in (lambda m, x: x.clone(), lambda m, x: m.rand_like(x), lambda m, x: x.double()):
            strides = [
                tuple(s for s, n in zip(y.stride(), y.shape, strict=True) if n > 1 and y.numel())
                for y in (take(torch, theirs), take(tl, mine))
            ]
            assert strides[0] == strides[1], source


def test_values_are_unchanged() -> None:
    x = torch.arange(2.0 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    mine = tl.tensor(x.numpy())
    for name in ("float", "double", "half"):
        y = getattr(mine, name)(memory_format=tl.channels_last)
        assert y.tolist() == x.tolist()
    assert mine.requires_grad_().double(memory_format=tl.channels_last).sum().backward() is not None
    assert mine.grad is not None
    assert mine.grad.eq(1).all()


def test_random_values_do_not_depend_on_strides() -> None:
    x = tl.zeros(2, 3, 4, 5)
    tl.manual_seed(0)
    expected = tl.randn_like(x)
    tl.manual_seed(0)
    assert tl.equal(tl.randn_like(x, memory_format=tl.channels_last), expected)


def test_a_module_and_back() -> None:
    for m in (torch, tl):
        model = m.nn.Conv2d(2, 3, 3).to(memory_format=m.channels_last)
        assert model.weight.stride() == (18, 1, 6, 2)
        model.to(memory_format=m.preserve_format)
        assert model.weight.stride() == (18, 1, 6, 2)
        assert model.to(memory_format=m.contiguous_format).weight.stride() == (18, 9, 3, 1)
