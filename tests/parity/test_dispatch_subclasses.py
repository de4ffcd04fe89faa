"""Subclasses of Tensor with `__torch_dispatch__`: the same programs under PyTorch and tallow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

import tallow as tl
from tallow.compat.torch import _ops
from tallow.compat.torch.utils import _pytree
from tallow.core import dispatch, watching
from tallow.core.overrides import without_subclasses

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

THEIRS = SimpleNamespace(m=torch, map=torch.utils._pytree.tree_map, aten=torch.ops.aten)
OURS = SimpleNamespace(m=tl, map=_pytree.tree_map, aten=_ops.ops.aten)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    with suppress(ValueError):  # no tensor was made
        watching.unwatch(dispatch.answer)


def logging_class(lib: Any, log: list[str]) -> Any:
    """Return a class that wraps a tensor and notes the names of the ops."""
    m = lib.m

    class Logging(m.Tensor):
        @staticmethod
        def __new__(cls, elem: Any) -> Any:
            own = m.Tensor._make_wrapper_subclass(
                cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, device=elem.device
            )
            own.elem = elem
            return own

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            inner_args, inner_kwargs = lib.map(lambda x: x.elem if isinstance(x, cls) else x, (args, kwargs or {}))
            log.append(func.__name__.partition(".")[0])
            result = func(*inner_args, **inner_kwargs)
            return lib.map(lambda x: cls(x) if isinstance(x, m.Tensor) else x, result)

    return Logging


def logged(lib: Any) -> tuple[list[str], list[Any]]:
    m, log, results = lib.m, [], []
    cls = logging_class(lib, log)
    x, y = cls(m.tensor([[1.0, -2.0], [3.0, 4.0]])), m.tensor([[1.0, 2.0], [0.0, 1.0]])
    made = [x * y + 1, m.relu(x), m.mm(x, y), x.sum(0), m.cat([x, x]), m.cat((y, x), 1), x.abs()]
    results += [(type(t) is cls, t.elem.tolist(), tuple(t.shape), t.stride(), str(t.device)) for t in made]
    x.mul_(2)
    results.append(x.elem.tolist())
    own_log = [*log]
    loss = m.nn.functional.cross_entropy(x, m.tensor([0, 1]))  # the ops that it is composed of differ
    values, places = x.max(1)
    results += [round(loss.elem.item(), 3), values.elem.tolist(), places.elem.tolist(), x[0].elem.tolist()]
    results += [
        x.t().elem.tolist(),
        type(x.detach()) is cls,
        x.is_cpu,
        x.is_meta,
        x.requires_grad,
        x.dtype == m.float32,
    ]
    parameter = m.nn.Parameter(x)
    results += [type(parameter) is cls, isinstance(parameter, m.nn.Parameter), parameter.requires_grad]
    return own_log, results


def test_a_tensor_that_logs_the_ops() -> None:
    assert logged(OURS) == logged(THEIRS)


def quantised(lib: Any) -> list[Any]:
    m, seen = lib.m, []

    class Quantised(m.Tensor):
        """A matrix in bytes with a scale for each row; its product is computed from them, all else is refused."""

        @staticmethod
        def __new__(cls, levels: Any, scale: Any) -> Any:
            own = m.Tensor._make_wrapper_subclass(cls, levels.shape, dtype=scale.dtype, device=levels.device)
            own.levels, own.scale = levels, scale
            return own

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is m.nn.functional.linear:
                seen.append("linear")
                x, weight, *bias = args
                y = x @ weight.levels.to(x.dtype).t() * weight.scale[:, 0]
                return y + bias[0] if bias and bias[0] is not None else y
            return super().__torch_function__(func, types, args, kwargs or {})

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__.partition(".")[0])
            if func == lib.aten.detach.default:
                return cls(args[0].levels, args[0].scale)
            if func.overloadpacket == lib.aten.mm:
                a, b = (x.levels.to(x.dtype) * x.scale if isinstance(x, cls) else x for x in args)
                return m.mm(a, b)
            raise NotImplementedError(f"{func}")

    layer = m.nn.Linear(3, 2)
    levels, scale = m.tensor([[1, -2, 3], [4, 5, -6]], dtype=m.int8), m.tensor([[0.5], [0.25]])
    layer.weight = m.nn.Parameter(Quantised(levels, scale), requires_grad=False)
    layer.bias = m.nn.Parameter(m.tensor([1.0, 2.0]))
    x = m.arange(6.0).reshape(2, 3)
    with m.no_grad():
        results: list[Any] = [layer(x).tolist(), tuple(layer.weight.shape)]
        product = m.mm(layer.weight, x.t())  # PyTorch makes a tensor of the class of it

    with pytest.raises(NotImplementedError):
        layer.weight + 1
    return [*results, product.shape == (2, 2), seen]


def test_a_quantised_weight() -> None:
    assert quantised(OURS) == quantised(THEIRS)


def sharded(lib: Any) -> list[Any]:
    m = lib.m

    class Sharded(m.Tensor):
        """A tensor in parts along the first dim, as on several devices; the parts answer one by one."""

        @staticmethod
        def __new__(cls, parts: list[Any]) -> Any:
            rows = sum(part.shape[0] for part in parts)
            own = m.Tensor._make_wrapper_subclass(cls, (rows, *parts[0].shape[1:]), dtype=parts[0].dtype)
            own.parts = parts
            return own

        def full(self) -> Any:
            return m.cat(self.parts)

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            count = next(len(x.parts) for x in args if isinstance(x, cls))
            calls = [[x.parts[i] if isinstance(x, cls) else x for x in args] for i in range(count)]
            results = [func(*call, **(kwargs or {})) for call in calls]
            return sum(results) if func.overloadpacket == lib.aten.sum else cls(results)

    x = m.arange(12.0).reshape(4, 3)
    shards = Sharded(list(x.split(2)))
    y = m.nn.functional.gelu(shards @ m.ones(3, 2) - 3) * shards.sin()[:, :2]
    return [
        type(y).__name__,
        tuple(y.shape),
        [[round(v, 5) for v in row] for row in y.full().tolist()],
        shards.sum().item(),
    ]


def test_a_tensor_in_shards() -> None:
    assert sharded(OURS) == sharded(THEIRS)


def by_table(lib: Any) -> list[Any]:
    """Compute with a class that gets its method from a mixin, finds ops in a dict, and says its device itself."""
    m, seen = lib.m, []
    table = {lib.aten.mm.default: "mm", lib.aten.detach.default: "detach"}

    class Answers:
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((func in table, table.get(func)))
            return m.tensor([7.0])

    class Tabled(Answers, m.Tensor):
        @property
        def device(self) -> Any:
            return m.device("meta")

    x = m.ones(2, 2).as_subclass(Tabled)
    with m._C.DisableTorchFunctionSubclass() if m is torch else without_subclasses():
        results = [m.mm(x, x).tolist(), m.abs(x).tolist()]
        return [*results, seen, str(x.device)]


def test_a_table_of_ops() -> None:
    assert by_table(OURS) == by_table(THEIRS)


def test_a_tensor_that_its_class_makes() -> None:
    class Called(tl.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func.__name__

    x = Called([1.0])
    with without_subclasses():
        assert tl.abs(x) == "abs.default"


def test_no_subclass_costs_nothing() -> None:
    tl.add(tl.ones(1), 1)  # the first call makes the code
    code = tl.add.__code__
    cls = logging_class(OURS, [])
    assert tl.add.__code__ is code  # a class alone
    cls(tl.ones(2))
    assert tl.add.__code__ is not code
    watching.unwatch(dispatch.answer)
    assert tl.add.__code__ is code


def test_errors() -> None:
    class Plain(tl.Tensor):
        pass

    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        tl.Tensor._make_wrapper_subclass(Plain, (2,))

    class Mute(tl.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    with pytest.raises(TypeError, match=r"'abs\.default' on types that implement __torch_dispatch__: Mute"):
        tl.abs(Mute([1.0]))
    x = logging_class(OURS, [])(tl.ones(2)).requires_grad_()
    with pytest.raises(RuntimeError, match="the gradient of what __torch_dispatch__ returns is not computed"):
        (x * 2).backward(tl.ones(2))
