"""Subclasses of Tensor and Parameter whose constructors take arguments of their own."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

pytestmark = pytest.mark.parametrize("m", [torch, tl], ids=["torch", "tallow"])


def test_new_with_keywords(m: Any) -> None:
    class Length(m.Tensor):
        def __new__(cls, *args: Any, unit: str = "m") -> Any:
            self = super().__new__(cls, *args)
            self.unit = unit
            return self

        def __init__(self, *args: Any, unit: str = "m") -> None:
            super().__init__()

    x = Length([1.0, 2.0], unit="km")
    assert (type(x), x.unit, x.tolist()) == (Length, "km", [1, 2])
    assert Length(2, 3).shape == (2, 3)
    assert copy.copy(x).unit == "km"
    assert (x * 2).tolist() == [2, 4]


def test_new_without_init(m: Any) -> None:
    class Tagged(m.Tensor):
        def __new__(cls, data: Any, tag: str) -> Any:
            self = m.Tensor._make_subclass(cls, m.as_tensor(data))
            self.tag = tag
            return self

    x = Tagged([1, 2], "a")
    assert (type(x), x.tag, x.dtype) == (Tagged, "a", m.int64)


def test_parameter(m: Any) -> None:
    class Scaled(m.nn.Parameter):
        def __new__(cls, data: Any = None, requires_grad: bool = True, scale: float = 1.0) -> Any:
            self = super().__new__(cls, data, requires_grad)
            self.scale = scale
            return self

    layer = m.nn.Module()
    layer.weight = Scaled(m.ones(2), scale=3.0)
    assert isinstance(layer.weight, m.nn.Parameter)
    assert [p.scale for p in layer.parameters()] == [3.0]
    (layer.weight * layer.weight.scale).sum().backward()
    assert layer.weight.grad.tolist() == [3, 3]
    assert m.nn.Parameter().shape == (0,)
    assert m.nn.Buffer(m.ones(2), persistent=False).persistent is False


def test_as_subclass_keeps_the_history(m: Any) -> None:
    class Plain(m.Tensor):
        pass

    x = m.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(Plain)
    assert type(y) is Plain
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_make_subclass_is_a_leaf(m: Any) -> None:
    data = m.ones(2)
    x = m.Tensor._make_subclass(m.nn.Parameter, data, True)
    assert x.is_leaf
    assert x.requires_grad
    data[0] = 5
    assert x.tolist() == [5, 1]


def test_other_arguments_are_refused(m: Any) -> None:
    class Plain(m.Tensor):
        pass

    with pytest.raises(TypeError):
        Plain([1.0], tag="a")
    with pytest.raises(TypeError):
        m.nn.Parameter([1.0], tag="a")


def test_data_by_name(m: Any) -> None:
    assert m.Tensor(data=[1.0, 2.0], device="cpu").tolist() == [1, 2]
