"""Subclasses of Tensor and Parameter whose constructors take arguments of their own."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.compat.torch import overrides as compat_overrides
from tallow.core import overrides

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


def names(m: Any) -> Any:
    """Return what has the contexts that switch answers off."""
    return m._C if m is torch else SimpleNamespace(DisableTorchFunctionSubclass=overrides.without_subclasses)


def logging(m: Any) -> tuple[Any, list[str]]:
    """Return a subclass that notes the functions that it is asked about, and the list."""
    seen: list[str] = []

    class Logged(m.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    return Logged, seen


# What is called, and the names by which the class is asked.
CALLS = {
    "add": lambda m, x: x + 1,
    "neg": lambda m, x: -x,
    "mul": lambda m, x: m.ones(2, 3) * x,
    "matmul": lambda m, x: x @ m.ones(3, 2),
    "__getitem__": lambda m, x: x[0, None],
    "__setitem__": lambda m, x: x.__setitem__((0, slice(1, None)), 5.0),
    "sum": lambda m, x: x.sum(),
    "relu": lambda m, x: m.relu(x),
    "softmax": lambda m, x: m.nn.functional.softmax(x, dim=-1),
    "linear": lambda m, x: m.nn.functional.linear(x, x),
    "cat": lambda m, x: m.cat([m.ones(1, 3), x]),
    "split": lambda m, x: x.split(1),
    "max": lambda m, x: m.max(x, 0),
    "exp": lambda m, x: m.exp(x, out=m.empty(2, 3)),
    "add_": lambda m, x: x.add_(1),
    "to": lambda m, x: x.to(m.float64),
    "new_zeros": lambda m, x: x.new_zeros(2),
    "zeros_like": lambda m, x: m.zeros_like(x),
    "rand_like": lambda m, x: m.rand_like(x),
    "dropout": lambda m, x: m.nn.functional.dropout(x),
    "pad": lambda m, x: m.nn.functional.pad(x, (1, 1)),
    "einsum": lambda m, x: m.einsum("ij->ji", x),
    "detach": lambda m, x: x.detach(),
    "tolist": lambda m, x: x.tolist(),
    "normal": lambda m, x: m.normal(x, 0.0),
    "constant_pad_nd": lambda m, x: m.constant_pad_nd(x, (1, 1)),
    "t_copy": lambda m, x: m.t_copy(x),
    "size": lambda m, x: x.size(),
    "__len__": lambda m, x: len(x),
    "equal": lambda m, x: m.equal(x, x),
    "cross_entropy": lambda m, x: m.nn.functional.cross_entropy(x, m.zeros(2, dtype=m.int64)),
}
ATTRIBUTES = ["shape", "dtype", "requires_grad", "grad", "is_leaf", "data", "T", "mT", "real"]


@pytest.mark.parametrize("name", [*CALLS, *ATTRIBUTES])
def test_results_are_of_the_subclass(m: Any, name: str) -> None:
    (kinds, values), (their_kinds, their_values) = outcome(m, name), outcome(torch, name)
    assert kinds == their_kinds
    for ours, theirs in zip(values, their_values, strict=True):
        if name not in ("dropout", "rand_like"):
            assert ours == theirs if isinstance(ours, str) else np.allclose(ours, theirs)


def outcome(m: Any, name: str) -> tuple[list[str], list[Any]]:
    """Return the classes and the values of what a call with a tensor of a subclass returns, and of this tensor."""
    Logged, seen = logging(m)
    x = (m.arange(6.0).reshape(2, 3) - 2).as_subclass(Logged)
    y = CALLS[name](m, x) if name in CALLS else getattr(x, name)
    assert seen == [name if name in CALLS else "__get__"]
    parts = y if isinstance(y, tuple) else (y,)
    with names(m).DisableTorchFunctionSubclass():
        values = [p.tolist() if isinstance(p, m.Tensor) else str(p).rpartition(".")[2] for p in (*parts, x)]
    return [type(p).__name__ for p in parts], values


def test_iteration(m: Any) -> None:
    Logged, _ = logging(m)
    assert [(type(row), row.tolist()) for row in m.ones(2, 1).as_subclass(Logged)] == [(Logged, [1]), (Logged, [1])]
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        list(m.tensor(1.0).as_subclass(Logged))


def test_gradients_flow_through_a_subclass(m: Any) -> None:
    Logged, _ = logging(m)
    x = m.tensor([1.0, 2.0]).as_subclass(Logged).requires_grad_()
    y = (x**2 + x.exp()).sum()
    assert type(y) is Logged
    y.backward()
    assert type(x.grad) is m.Tensor
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.array([1, 2]) + np.exp([1, 2]), rtol=1e-6)


def test_random_numbers_are_drawn_once(m: Any) -> None:
    Logged, _ = logging(m)
    m.manual_seed(0)
    plain = [m.nn.functional.dropout(m.ones(8)), m.rand_like(m.ones(3)), m.ones(3).normal_(), m.rand(2)]
    m.manual_seed(0)
    x = m.ones(8).as_subclass(Logged)
    own = [m.nn.functional.dropout(x), m.rand_like(x[:3]), x[:3].clone().normal_(), m.rand(2)]
    assert [t.tolist() for t in own] == [t.tolist() for t in plain]


def test_a_class_can_answer_for_some_functions(m: Any) -> None:
    handled: dict[Any, Any] = {}

    class Diagonal:
        """An object that is no tensor: PyTorch's guide to `__torch_function__` has one like it."""

        def __init__(self, value: float) -> None:
            self.value = value

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func not in handled or not all(issubclass(t, (m.Tensor, Diagonal)) for t in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    handled[m.mean] = lambda x: x.value
    handled[m.mm] = lambda a, b: (
        (a if isinstance(a, m.Tensor) else b) * (b.value if isinstance(a, m.Tensor) else a.value)
    )
    assert m.mean(Diagonal(3.0)) == 3.0
    assert m.mm(m.ones(2, 2), Diagonal(2.0)).tolist() == [[2, 2], [2, 2]]
    with pytest.raises(TypeError, match=r"no implementation found|Multiple dispatch failed"):
        m.sum(Diagonal(1.0))


def test_subclasses_of_subclasses_are_asked_first(m: Any) -> None:
    asked: list[str] = []

    class A(m.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(cls.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    class B(A):
        pass

    class C(m.Tensor):
        pass

    a, b, c = (m.ones(2).as_subclass(cls) for cls in (A, B, C))
    assert type(a + b) is B
    assert asked == ["B"]
    with pytest.raises(TypeError):
        b + c


def test_a_class_that_does_not_answer(m: Any) -> None:
    disabled = torch._C._disabled_torch_function_impl if m is torch else overrides.disabled

    class Quiet(m.Tensor):
        __torch_function__ = disabled

    x = m.ones(2).as_subclass(Quiet)
    assert type(x + 1) is m.Tensor
    Logged, seen = logging(m)
    y = m.ones(2).as_subclass(Logged)
    with names(m).DisableTorchFunctionSubclass():
        assert type(y + 1) is m.Tensor
    assert seen == []
    assert type(m.nn.Parameter(m.ones(2)) * 1) is m.Tensor


class Kept(tl.Tensor):
    """A class that pickle finds."""


class KeptByTorch(torch.Tensor):
    """A class that pickle finds."""


def test_copies_and_pickles_keep_class_and_attributes(m: Any) -> None:
    x = m.ones(2).as_subclass(KeptByTorch if m is torch else Kept)
    x.unit = "km"
    for y in (copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert (type(y), y.unit, y.tolist()) == (type(x), "km", [1, 1])
    y = m.zeros(3).as_subclass(type(x))
    y.__dict__ = x.__dict__
    assert (y.unit, y.tolist()) == ("km", [0, 0, 0])


def test_modules_and_optimizers_take_them(m: Any) -> None:
    Logged, _ = logging(m)
    layer = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.ReLU(), m.nn.Linear(4, 1))
    loss = layer(m.ones(2, 3).as_subclass(Logged)).mean()
    assert type(loss) is Logged
    loss.backward()
    m.optim.SGD(layer.parameters(), lr=0.1).step()
    assert type(layer[0].weight.grad) is m.Tensor


def test_a_mode_sees_the_functions(m: Any) -> None:
    base = torch.overrides.TorchFunctionMode if m is torch else compat_overrides.TorchFunctionMode
    seen: list[str] = []

    class Log(base):  # type: ignore[misc,valid-type]
        def __init__(self, label: str) -> None:
            self.label = label

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f"{self.label} {func.__name__}")
            return func(*args, **(kwargs or {}))

    with Log("a"):
        x = m.zeros(2, 3)
        x[0] = 1 + m.nn.functional.interpolate(x[None], scale_factor=2)[0, 0, :3]
        with Log("b"):
            y = m.relu(x)
    assert seen == [
        f"a {name}" for name in ("zeros", "__getitem__", "interpolate", "__getitem__", "add", "__setitem__")
    ] + ["b relu", "a relu"]
    assert (x + y).sum().item() == 6
    assert len(seen) == 8


def test_a_parameter_of_a_subclass_keeps_its_class(m: Any) -> None:
    class Tagged(m.Tensor):
        pass

    p = m.nn.Parameter(m.ones(2).as_subclass(Tagged))
    assert type(p) is Tagged
    assert isinstance(p, m.nn.Parameter)
    assert p.is_leaf
    assert p.requires_grad
    assert not isinstance(m.ones(2).as_subclass(Tagged), m.nn.Parameter)
    assert not isinstance(p, m.nn.parameter.UninitializedParameter)
    layer = m.nn.Linear(2, 1, bias=False)
    layer.weight = m.nn.Parameter(m.ones(1, 2).as_subclass(Tagged), requires_grad=False)
    assert [type(q) for q in layer.parameters()] == [Tagged]
    assert not layer.weight.requires_grad
    (p * 3).sum().backward()
    assert p.grad.tolist() == [3, 3]


def test_a_parameter_of_a_class_that_detach_loses(m: Any) -> None:
    class Lost(m.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = super().__torch_function__(func, types, args, kwargs)
            return result.as_subclass(m.Tensor) if isinstance(result, m.Tensor) else result

    with pytest.raises((RuntimeError, TypeError), match="requires that detach"):
        m.nn.Parameter(m.ones(2).as_subclass(Lost))


def test_parameters_on_meta_as_accelerate_makes_them(m: Any) -> None:
    layer = m.nn.Linear(2, 3)
    for name, p in list(layer._parameters.items()):
        attributes = p.__dict__
        attributes["requires_grad"] = p.requires_grad
        layer._parameters[name] = type(p)(p.to("meta"), **attributes)
    assert {p.device.type for p in layer.parameters()} == {"meta"}
    with pytest.raises(TypeError, match="unexpected"):
        m.nn.Parameter(m.ones(2), unknown=1)


def test_an_error_of_an_argument_that_answers_is_its_own(m: Any) -> None:
    class Refusing:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise ValueError("of the class")

    for function in (m.std, m.nn.functional.cross_entropy, m.nn.functional.cosine_similarity):
        with pytest.raises(ValueError, match="of the class"):
            function(Refusing(), Refusing())
    with pytest.raises(ValueError, match="of the class"):
        m.tile(Refusing(), (2,))


def test_an_operand_without_operators_answers(m: Any) -> None:
    class Plain:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func.__name__, [isinstance(x, cls) for x in args]

    x = m.ones(1)
    assert x + Plain() == ("add", [False, True])
    assert (x * Plain())[0] == "mul"
    assert (x @ Plain())[0] == "matmul"
    assert m.fft.rfft(Plain(), 4) == ("fft_rfft" if m.__name__ == "torch" else "rfft", [True, False])
