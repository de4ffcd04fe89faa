"""Attributes of modules: what is registered is found by its class, and as PyTorch's modules find it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import tallow as tl
from tallow import nn
from tallow.nn.registered import Registered


class Layer(nn.Module):
    """A module that registers one part of each kind under the names of `parts`."""

    def __init__(self, **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.register_buffer("mean", tl.zeros(2))
        self.register_parameter("shift", None)


def test_parts_are_attributes_of_the_class_that_it_does_not_have_itself() -> None:
    layer = Layer(weight=nn.Parameter(tl.ones(2)), inner=nn.Linear(2, 2))
    assert isinstance(vars(Layer)["weight"], Registered)
    assert layer.weight is layer._parameters["weight"]
    assert layer.inner is layer._modules["inner"]
    assert layer.mean is layer._buffers["mean"]
    assert layer.shift is None
    for name in ("weight", "inner", "mean", "shift"):
        assert not hasattr(Layer, name)


def test_a_bare_module_does_not_change_what_all_inherit() -> None:
    bare = nn.Module()
    bare.weight = nn.Parameter(tl.ones(2))
    assert bare.weight is bare._parameters["weight"]
    assert "weight" not in vars(nn.Module)


def test_instances_of_one_class_may_differ() -> None:
    first, second = Layer(part=nn.Parameter(tl.ones(2))), Layer(part=nn.Linear(2, 2))
    third, without = Layer(part=5), Layer()
    assert isinstance(first.part, nn.Parameter)
    assert isinstance(second.part, nn.Linear)
    assert third.part == 5
    with pytest.raises(AttributeError, match="'Layer' object has no attribute 'part'"):
        without.part  # noqa: B018 - reading it raises
    del first.part
    assert not hasattr(first, "part")
    first.part = None
    assert first.part is None


def test_what_a_class_defines_comes_first() -> None:
    class Own(Layer):
        weight = "of the class"

        @property
        def scale(self) -> str:
            return "computed"

    own = Own(weight=nn.Parameter(tl.ones(2)))
    own.register_buffer("other", tl.zeros(1))
    own._parameters["scale"] = nn.Parameter(tl.ones(1))
    assert own.weight == "of the class"
    assert own.scale == "computed"


def test_a_class_that_looks_in_its_own_way_is_asked() -> None:
    class Doubling(Layer):
        def __getattr__(self, name: str) -> Any:
            value = super().__getattr__(name)
            return 2 * value if name == "weight" else value

    Layer(weight=nn.Parameter(tl.ones(2)))  # whose class has the attribute
    assert Doubling(weight=nn.Parameter(tl.ones(2))).weight.tolist() == [2.0, 2.0]


def test_attributes_from_elsewhere_are_found_whatever_other_instances_have() -> None:
    class Base(nn.Module):
        def __init__(self, **parts: Any) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

    class Others:
        scale = 2.0

        @property
        def weight(self) -> str:
            return "computed"

        def head(self) -> str:
            return type(self).__name__

    class Joined(Base, Others):
        pass

    parts = {name: nn.Parameter(tl.ones(1)) for name in ("scale", "weight", "head")}
    assert Base(**parts).head.item() == 1
    joined = Joined()
    assert (joined.scale, joined.weight, joined.head()) == (2.0, "computed", "Joined")
    assert Joined.scale == 2.0


def test_no_trace_in_the_names_of_a_class() -> None:
    Layer(weight=nn.Parameter(tl.ones(2)))
    assert "weight" not in dir(Layer())
    assert "weight" in dir(Layer(weight=nn.Parameter(tl.ones(2))))
    with pytest.raises(AttributeError, match="type object 'Layer' has no attribute 'weight'"):
        Layer.weight  # noqa: B018
    with pytest.raises(AttributeError) as caught:
        Layer().weight  # noqa: B018
    assert "Did you mean" not in str(caught.value)


def test_a_class_whose_class_forbids_new_attributes() -> None:
    class Fixed(type):
        def __setattr__(cls, name: str, value: object) -> None:
            raise TypeError(f"{name} is fixed")

    class Net(nn.Module, metaclass=Fixed):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(tl.ones(2))

    assert Net().weight.tolist() == [1.0, 1.0]


def test_a_part_that_is_replaced_in_the_registry_is_found() -> None:
    layer = Layer(weight=nn.Parameter(tl.ones(2)))
    layer._parameters["weight"] = other = nn.Parameter(tl.zeros(2))
    assert layer.weight is other


def test_containers_keep_the_names_of_their_parts_to_themselves() -> None:
    parts = nn.ModuleDict({"first": nn.Linear(2, 2)})
    assert isinstance(parts.first, nn.Linear)
    assert "first" not in vars(nn.ModuleDict)


def test_before_init_there_is_nothing() -> None:
    Layer(weight=nn.Parameter(tl.ones(2)))
    with pytest.raises(AttributeError):
        Layer.__new__(Layer).weight  # noqa: B018


def test_copies() -> None:
    layer = Layer(weight=nn.Parameter(tl.ones(2)))
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.weight.tolist() == [1.0, 1.0]
        assert other.weight is other._parameters["weight"] is not layer.weight
