"""Compiled functions see each change between calls of what they read, and compute what an eager call would."""

from __future__ import annotations

import functools
import types
from collections import ChainMap, UserDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.random as drawing
import pytest

import tallow as tl
from tallow import nn
from tallow.nn.hooks import register_module_forward_hook

pytestmark = [pytest.mark.cpu("plans are for the CPU"), pytest.mark.filterwarnings("ignore:tl.compile")]


def data(*shape: int) -> tl.Tensor:
    return tl.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32))


def same(a: Any, b: Any) -> None:
    """Assert that two tensors are equal bit for bit, with the signs of zeros."""
    assert a.dtype is b.dtype
    assert a.detach().numpy().tobytes() == b.detach().numpy().tobytes()


# Each yields the function first, and after each change that an eager call would see once more.


def attributes_of_a_namespace() -> Iterator[Any]:
    config = types.SimpleNamespace(scale=1)
    for config.scale in (1, 2, 2):
        yield lambda x: x * config.scale


def contents_of_a_user_dict() -> Iterator[Any]:
    config = UserDict(scale=1)
    for scale in (1, 2, 2):
        config["scale"] = scale
        yield lambda x: x * config["scale"]


def contents_of_a_chain_of_maps() -> Iterator[Any]:
    config = {"scale": 1}
    chain = ChainMap({}, config)
    for scale in (1, 2, 2):
        config["scale"] = scale
        yield lambda x: x * chain["scale"]


def contents_behind_a_proxy() -> Iterator[Any]:
    config = {"scale": 1}
    proxy = types.MappingProxyType(config)
    for scale in (1, 2, 2):
        config["scale"] = scale
        yield lambda x: x * proxy["scale"]


def contents_behind_a_view() -> Iterator[Any]:
    config = {"scale": 1}
    values = config.values()
    for scale in (1, 2, 2):
        config["scale"] = scale
        yield lambda x: x * sum(values)


def the_order_of_keys() -> Iterator[Any]:
    config = {"a": 1, "b": 2}
    for _ in range(3):
        yield lambda x: x * int("".join(str(value) for value in config.values()))
        config["a"] = config.pop("a")
        yield lambda x: x * int("".join(str(value) for value in config.values()))
        config["b"] = config.pop("b")


def a_length_by_a_bound_method() -> Iterator[Any]:
    parts: list[int] = []
    length = parts.__len__
    for i in range(3):
        parts.append(i)
        yield lambda x: x * length()


def the_sign_of_zero() -> Iterator[Any]:
    scale = [0.0]
    for scale[0] in (0.0, -0.0, 0.0):
        yield lambda x: x * scale[0]


def a_method_of_a_class() -> Iterator[Any]:
    class Scaled(nn.Module):
        def forward(self, x: Any) -> Any:
            return self.scaled(x)

        def scaled(self, x: Any) -> Any:
            return x

        @staticmethod
        def other(x: Any) -> Any:
            return x * 3

    model = Scaled()
    yield model
    Scaled.scaled = lambda self, x: self.other(x)  # type: ignore[method-assign]
    yield model
    Scaled.other = staticmethod(lambda x: x * 4)  # type: ignore[method-assign]
    yield model


def what_a_descriptor_reads() -> Iterator[Any]:
    config = {"scale": 1}

    class Reading:
        def __get__(self, instance: Any, owner: Any) -> Any:
            return config["scale"]

    class Scale:
        scale = Reading()

    scale = Scale()
    for number in (1, 2, 2):
        config["scale"] = number
        yield lambda x: x * scale.scale


def what_a_metaclass_reads() -> Iterator[Any]:
    config = {"scale": 1}

    class Kind(type):
        @property
        def scale(cls) -> int:
            return config["scale"]

    class Scale(metaclass=Kind):
        pass

    for scale in (1, 2, 2):
        config["scale"] = scale
        yield lambda x: x * Scale.scale


def what_a_setter_does() -> Iterator[Any]:
    class Scale:
        calls = 0

        @property
        def scale(self) -> int:
            return 2

        @scale.setter
        def scale(self, value: int) -> None:
            vars(self)["calls"] = self.calls + value

    scale = Scale()

    def scaled(x: Any) -> Any:
        scale.scale = 1
        return x * scale.scale

    for _ in range(3):
        yield scaled
        yield lambda x: x * scale.calls


def layers_put_into_registries() -> Iterator[Any]:
    model: Any = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    yield model
    model._modules["0"] = nn.Identity()
    yield model
    model[1]._parameters["weight"] = nn.Parameter(tl.ones(3) * 2)
    yield model
    model[1]._buffers["running_mean"] = tl.ones(3)
    yield model
    model.register_forward_hook(lambda *given: given[-1] * 2)
    yield model
    model._forward_hooks.clear()
    yield model


def hooks_of_all_modules() -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    yield lambda x: model(x)
    handle = register_module_forward_hook(lambda *given: given[-1] * 2)
    yield lambda x: model(x)
    handle.remove()
    yield lambda x: model(x)


def random_numbers_that_are_kept() -> Iterator[Any]:
    @functools.lru_cache
    def noise(size: int) -> Any:
        return tl.rand(size)

    for _ in range(3):
        yield lambda x: x * noise(3)


def random_numbers_of_a_module_of_numpy() -> Iterator[Any]:
    drawing.seed(0)
    for _ in range(3):
        yield lambda x: x * drawing.rand()


def what_is_asked_of_tensors_that_no_op_reads() -> Iterator[Any]:
    w: Any = nn.Parameter(tl.ones(2))
    w.scale = 1

    def scaled(x: Any) -> Any:
        return x * len(w) * (2 if w.requires_grad else 1) * (3 if w.dtype is tl.float32 else 1)

    yield scaled
    yield lambda x: x * w.scale
    w.requires_grad_(False)
    yield scaled
    w.data = tl.ones(4)
    yield scaled
    w.data = tl.ones(4, dtype=tl.float64)
    yield scaled
    w.scale = 5
    yield lambda x: x * w.scale


def what_is_asked_of_a_schedule() -> Iterator[Any]:
    optimizer = tl.optim.SGD([tl.ones(1, requires_grad=True)], lr=1.0)
    schedule = tl.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(4):
        yield lambda x: x * schedule.last_epoch
        optimizer.step()
        schedule.step()


def the_step_of_an_optimizer() -> Iterator[Any]:
    w = tl.ones(3, requires_grad=True)
    optimizer: Any = tl.optim.SGD([w], lr=1.0)

    def step(x: Any) -> Any:
        (w * x).sum().backward()
        optimizer.step()
        return w.detach() * 1

    for _ in range(3):
        yield step
    optimizer.step = lambda: None
    yield step


def an_attribute_of_a_class_in_between() -> Iterator[Any]:
    class Base:
        factor = 2

        def scaled(self, x: Any) -> Any:
            return x * self.factor

    class Scaled(Base):
        pass

    scaled = Scaled()

    def call(x: Any) -> Any:
        return scaled.scaled(x)

    yield call
    Scaled.factor = 3
    yield call
    Scaled.scaled = lambda self, x: x * 5  # type: ignore[method-assign]
    yield call


def a_method_that_a_module_inherits() -> Iterator[Any]:
    class Scaled(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * (2 + len(self.extra_repr()))

    model = Scaled()
    yield model
    Scaled.extra_repr = lambda self: "four"  # type: ignore[method-assign]
    yield model


def a_global_that_hides_a_builtin() -> Iterator[Any]:
    namespace: dict[str, Any] = {}
    exec("def scaled(x): return x * sum((1, 2))", namespace)
    yield namespace["scaled"]
    namespace["sum"] = len
    yield namespace["scaled"]


def code_that_is_loaded_again() -> Iterator[Any]:
    def scaled(x: Any) -> Any:
        return x * 2

    def call(x: Any) -> Any:
        return scaled(x)

    yield call
    scaled.__code__ = (lambda x: x * 3).__code__
    yield call


CHANGES: list[Callable[[], Iterator[Any]]] = [
    attributes_of_a_namespace, contents_of_a_user_dict, contents_of_a_chain_of_maps, contents_behind_a_proxy,
    contents_behind_a_view, the_order_of_keys, a_length_by_a_bound_method, the_sign_of_zero, a_method_of_a_class,
    what_a_descriptor_reads, what_a_setter_does, layers_put_into_registries, hooks_of_all_modules,
    random_numbers_that_are_kept, random_numbers_of_a_module_of_numpy, what_is_asked_of_tensors_that_no_op_reads,
    what_a_metaclass_reads, what_is_asked_of_a_schedule, the_step_of_an_optimizer, an_attribute_of_a_class_in_between,
    a_method_that_a_module_inherits, a_global_that_hides_a_builtin, code_that_is_loaded_again,
]  # fmt: skip


@pytest.mark.parametrize("changes", CHANGES)
def test_a_change_between_calls(changes: Callable[[], Iterator[Any]]) -> None:
    x, results = data(2, 3), []
    transforms: tuple[Any, ...] = (lambda f: f, tl.compile)
    for transform in transforms:
        tl.manual_seed(0)
        seen: dict[Any, Any] = {}  # code -> the first function of this code, which sees what the later ones see
        made = []
        for function in changes():
            call: Any = function.__call__ if isinstance(function, nn.Module) else function
            made.append(seen.setdefault(call.__code__, transform(call))(x))
        results.append(made)
    for a, b in zip(*results, strict=True):
        same(a, b)


def test_hooks_of_all_modules_run_once_for_a_compiled_module() -> None:
    model, seen = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), []
    compiled = tl.compile(model)
    compiled(data(2, 3))
    with register_module_forward_hook(lambda module, *_: seen.append(module)):
        for _ in range(3):
            compiled(data(2, 3))
    assert seen == [model[0], model[1], model] * 3


def test_a_search_for_nan_within_the_function() -> None:
    def step(x: Any) -> None:
        with tl.autograd.detect_anomaly():
            (w * x).sqrt().sum().backward()

    w, compiled = tl.ones(3, requires_grad=True), tl.compile(step)
    for _ in range(2):
        compiled(tl.ones(3))
    with pytest.raises(tl.errors.GraphError, match="nan"):
        compiled(-tl.ones(3))
    assert compiled.plans
    (w * -tl.ones(3)).sqrt().sum().backward()  # the search has ended with the call


def test_an_optimizer_of_the_program_that_counts_its_steps() -> None:
    class Slowing(tl.optim.SGD):
        count = 0

        def step(self, closure: Any = None) -> Any:
            self.count += 1
            self.param_groups[0]["lr"] = 1 / self.count
            return super().step(closure)

    def trained(transform: Callable[[Any], Any]) -> Any:
        w = tl.ones(3, requires_grad=True)
        optimizer = Slowing([w], lr=1.0)

        def step(x: Any) -> None:
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()

        call = transform(step)
        for _ in range(3):
            call(data(3))
        return w, call

    (w, _), (compiled_w, compiled) = trained(lambda step: step), trained(tl.compile)
    same(compiled_w, w)
    assert compiled.plans


def test_an_attribute_that_is_set_by_a_computed_name() -> None:
    class Results:
        last_1 = None

    results, name = Results(), "last_{}"

    def keep(x: Any) -> Any:
        setattr(results, name.format(1), x * 2)
        return x

    compiled = tl.compile(keep)
    for factor in range(1, 5):
        compiled(data(3) * factor)
        same(vars(results)["last_1"], data(3) * factor * 2)


def test_an_argument_that_is_a_tensor_of_the_program() -> None:
    known = data(3)
    compiled = tl.compile(lambda x: x * 2 if x is known else x * 3)
    for x, factor in ((data(3), 3), (known, 2), (data(3), 3), (known, 2)):
        same(compiled(x), data(3) * factor)


def test_signs_of_zeros_and_odd_keys_among_the_arguments() -> None:
    class Key:
        pass

    key = Key()
    compiled = tl.compile(lambda x, scale, parts: x * scale + parts[key])
    for scale in (0.0, -0.0, 0.0, -0.0):
        same(compiled(data(3), scale, {key: tl.zeros(3) * -1}), data(3) * scale + tl.zeros(3) * -1)
    assert len(compiled.plans) == 2


def test_a_function_that_wraps_what_has_no_code() -> None:
    @functools.wraps(np.sin)
    def doubled(x: Any) -> Any:
        return x * 2

    same(tl.compile(lambda x: doubled(x))(data(3)), data(3) * 2)


SHAPED: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda x, n: x[:n],
    "arange": lambda x, n: tl.arange(n),
    "zeros": lambda x, n: tl.zeros(n),
    "new_ones": lambda x, n: x.new_ones((n, 2)),
    "repeat_interleave": lambda x, n: tl.repeat_interleave(x[:2], tl.stack([n, n])),
}


@pytest.mark.parametrize("name", SHAPED)
def test_a_shape_that_depends_on_a_tensor(name: str) -> None:
    compiled = tl.compile(lambda x, n: x.sum() * SHAPED[name](x, n).shape[0])
    for n in (1, 2, 3):
        same(compiled(data(4), tl.tensor(n)), data(4).sum() * SHAPED[name](data(4), tl.tensor(n)).shape[0])


def test_a_container_of_the_program_that_is_returned() -> None:
    settings = {"scale": 2}
    compiled = tl.compile(lambda x: (x * settings["scale"], settings))
    for _ in range(3):
        result, returned = compiled(data(3))
        same(result, data(3) * 2)
        assert returned is settings


def test_the_seed_as_a_number() -> None:
    compiled = tl.compile(lambda x: x * tl.initial_seed())
    for seed in (1, 2, 3):
        tl.manual_seed(seed)
        same(compiled(data(3)), data(3) * seed)


READERS: dict[str, Callable[[Any], Any]] = {
    "named": lambda x: x * x.scale,
    "getattr": lambda x: x * getattr(x, "scale", 1),
    "hasattr": lambda x: x * (x.scale if hasattr(x, "scale") else 1),
}


@pytest.mark.parametrize("name", READERS)
def test_an_attribute_of_an_argument(name: str) -> None:
    compiled = tl.compile(READERS[name])
    for scale in ([None] if name != "named" else []) + [2, 3]:
        x: Any = data(3)
        if scale is not None:
            x.scale = scale
        same(compiled(x), data(3) * (scale or 1))


def test_an_attribute_that_the_program_gives_a_tensor() -> None:
    known = data(3)

    def mark(x: Any) -> Any:
        y = x * 2
        x.place, known.place, y.place = 1, 2, 3
        return y

    compiled = tl.compile(mark)
    for _ in range(3):
        x = data(3)
        assert (compiled(x).place, known.place, x.place) == (3, 2, 1)  # type: ignore[attr-defined]
        del known.place  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", [id, lambda x: x], ids=["id", "hash"])
def test_an_argument_as_a_key(key: Callable[[Any], Any]) -> None:
    tensors = [data(3), data(3)]
    scales = {key(x): i + 2 for i, x in enumerate(tensors)}
    by_id, by_hash = (lambda x: x * scales.get(id(x), 1)), (lambda x: x * scales.get(x, 1))
    compiled = tl.compile(by_id if key is id else by_hash)
    for i in (0, 1, 0):
        same(compiled(tensors[i]), data(3) * (i + 2))


def test_an_error_that_the_program_catches_after_an_effect() -> None:
    table, count = tl.eye(3), tl.zeros(3)

    def row(place: Any) -> Any:
        count.add_(1)
        try:
            return nn.functional.embedding(place, table)
        except IndexError:
            return count * 1

    compiled = tl.compile(row)
    for calls, place in enumerate((1, 2, 7, 0), 1):
        same(compiled(tl.tensor(place)), tl.ones(3) * calls if place == 7 else table[place])
