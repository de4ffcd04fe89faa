"""Compiled functions compute what the functions themselves compute, bit for bit, and run eagerly where plans cannot."""

from __future__ import annotations

import gc
import itertools
import logging
import math
import random
import reprlib
import sys
import warnings
import weakref
from collections.abc import Callable
from datetime import datetime
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from support.functions import Cube

import tallow as tl
from tallow import nn
from tallow.nn import functional as F

pytestmark = [pytest.mark.cpu("plans are for the CPU"), pytest.mark.early]


def same(a: Any, b: Any) -> None:
    """Assert that two results are equal bit for bit."""
    if isinstance(a, tl.Tensor):
        assert isinstance(b, tl.Tensor)
        assert a.dtype is b.dtype
        assert a.requires_grad == b.requires_grad
        np.testing.assert_array_equal(a.numpy(force=True), b.numpy(force=True))
    elif isinstance(a, list | tuple):
        assert type(a) is type(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key, value in a.items():
            same(value, b[key])
    else:
        assert a == b


def trained_alike(make: Callable[[], tuple[nn.Module, Callable[[], Any]]], steps: int = 8) -> tl.compiler.Compiled:
    """Train two equal models, one compiled, and assert that they stay equal. Return the compiled step."""
    tl.manual_seed(1)
    model, step = make()
    tl.manual_seed(1)
    compiled_model, compiled_step = make()
    compiled: tl.compiler.Compiled = tl.compile(compiled_step)
    losses = []
    tl.manual_seed(2)
    losses += [step() for _ in range(steps)]
    tl.manual_seed(2)
    for loss in losses:
        same(loss, compiled())
    same(model.state_dict(), compiled_model.state_dict())
    same([p.grad for p in model.parameters()], [p.grad for p in compiled_model.parameters()])
    return compiled


def training_step(
    model: nn.Module, optimizer: Any, x: tl.Tensor, y: tl.Tensor, after: Callable[[], Any] = lambda: None
) -> Callable[[], Any]:
    """Return a step of regression."""

    def step() -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        after()
        return loss.detach()

    return step


def data(*shape: int) -> tl.Tensor:
    return tl.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32))


def has_plan(compiled: Any) -> bool:
    """Return whether the latest calls came from a plan."""
    return bool(compiled.plans) and compiled.reason is None


# ---------------------------------------------------------------------------------------------------------- training


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: tl.optim.SGD(p, lr=0.1),
        lambda p: tl.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, dampening=0, weight_decay=0.01),
        lambda p: tl.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
        lambda p: tl.optim.Adam(p, lr=0.01),
        lambda p: tl.optim.AdamW(p, lr=0.01, amsgrad=True),
        lambda p: tl.optim.RMSprop(p, lr=0.01, momentum=0.5),
        lambda p: tl.optim.Adagrad(p, lr=0.1),
    ],
)
def test_a_step_of_each_optimizer(optimizer: Any) -> None:
    def make() -> Any:
        model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
        return model, training_step(model, optimizer(model.parameters()), data(5, 3), data(5, 1))

    assert has_plan(trained_alike(make, steps=30))


def test_dropout_and_batch_norm() -> None:
    def make() -> Any:
        model = nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(64, 1)
        )
        return model, training_step(model, tl.optim.Adam(model.parameters()), data(3, 2, 6, 6), data(3, 1))

    assert has_plan(trained_alike(make))


def test_a_schedule_within_the_step() -> None:
    def make() -> Any:
        model = nn.Linear(3, 1)
        optimizer = tl.optim.SGD(model.parameters(), lr=0.1)
        schedule = tl.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        return model, training_step(model, optimizer, data(5, 3), data(5, 1), schedule.step)

    assert has_plan(trained_alike(make))


def test_a_learning_rate_that_is_changed_between_steps() -> None:
    def make() -> Any:
        model = nn.Linear(3, 1)
        optimizer = tl.optim.SGD(model.parameters(), lr=0.1)
        step = training_step(model, optimizer, data(5, 3), data(5, 1))
        return model, optimizer, step

    tl.manual_seed(0)
    model, optimizer, step = make()
    tl.manual_seed(0)
    other, other_optimizer, other_step = make()
    compiled = tl.compile(other_step)
    for i in range(6):
        optimizer.param_groups[0]["lr"] = other_optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
        same(step(), compiled())
    same(model.state_dict(), other.state_dict())
    assert len(compiled.plans) == 1


def test_clipped_gradients() -> None:
    def make() -> Any:
        model = nn.Linear(3, 1)
        optimizer = tl.optim.SGD(model.parameters(), lr=0.1)

        def step() -> Any:
            optimizer.zero_grad()
            loss = F.mse_loss(model(data_x), data_y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            optimizer.step()
            return loss, norm

        return model, step

    data_x, data_y = data(5, 3), data(5, 1)
    assert has_plan(trained_alike(make))


def test_gradients_that_are_accumulated() -> None:
    def make() -> Any:
        model = nn.Linear(3, 1)

        def step() -> Any:
            F.mse_loss(model(x), y).backward()
            F.mse_loss(model(x * 2), y).backward()

        return model, step

    x, y = data(5, 3), data(5, 1)
    assert has_plan(trained_alike(make))


def test_a_tensor_that_is_used_twice_and_an_embedding() -> None:
    def make() -> Any:
        table = nn.Embedding(7, 4)
        optimizer = tl.optim.Adam(table.parameters())

        def step() -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(table(tokens) @ table.weight.t(), tokens)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return table, step

    tokens = tl.tensor([1, 2, 6, 2])
    assert has_plan(trained_alike(make))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(kind: Any) -> None:
    def make() -> Any:
        layer = kind(3, 4, num_layers=2, dropout=0.25)
        optimizer = tl.optim.SGD(layer.parameters(), lr=0.1)

        def step() -> Any:
            optimizer.zero_grad()
            loss = layer(x)[0].square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return layer, step

    x = data(5, 2, 3)
    assert has_plan(trained_alike(make))


def test_an_in_place_activation_and_a_residual() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.act = nn.Linear(4, 4), nn.Linear(4, 4), nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            y = self.two(self.act(self.one(x)))
            y += x
            return self.act(y)

    def make() -> Any:
        model = nn.Sequential(Block(), Block(), nn.Linear(4, 1))
        return model, training_step(model, tl.optim.SGD(model.parameters(), lr=0.1), data(5, 4), data(5, 1))

    assert has_plan(trained_alike(make))


def test_bfloat16_under_autocast() -> None:
    def make() -> Any:
        model = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 1))
        optimizer = tl.optim.AdamW(model.parameters())

        def step() -> Any:
            optimizer.zero_grad()
            with tl.autocast("cpu", tl.bfloat16):
                loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return model, step

    x = data(5, 3)
    assert has_plan(trained_alike(make))


# ----------------------------------------------------------------------------------------------------------- forward


def test_the_gradient_of_a_compiled_module() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    compiled = tl.compile(model)
    assert isinstance(compiled, nn.Module)
    assert list(compiled.parameters()) == list(model.parameters())
    for size in (5, 5, 2, 5):
        x = data(size, 3).requires_grad_()
        y = compiled(x)
        y.square().sum().backward()
        got = [x.grad, *(p.grad for p in model.parameters())]
        model.zero_grad()
        x.grad = None
        expected_y = model(x)
        expected_y.square().sum().backward()
        same(y, expected_y)
        same(got, [x.grad, *(p.grad for p in model.parameters())])
        model.zero_grad()
    assert len(compiled._compiled.plans) == 2


def test_arguments_of_many_kinds() -> None:
    @tl.compile
    def f(pair: Any, scale: float, *, options: Any) -> Any:
        a, b = pair
        return {"sum": a * scale + b, "parts": [a - b, options["flag"]]}

    for scale in (2.0, 2.0, 3.0, 2):
        a, b = data(2, 3), data(3)
        same(
            f((a, b), scale, options={"flag": True}),
            {"sum": a * scale + b, "parts": [a - b, True]},
        )
    assert len(f.plans) == 3


def test_modes_are_conditions() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    compiled = tl.compile(model)
    x = data(2, 3)
    for _ in range(2):
        for training in (True, False):
            model.train(training)
            tl.manual_seed(0)
            expected = model(x)
            tl.manual_seed(0)
            same(compiled(x), expected)
        with tl.no_grad():
            assert not compiled(x).requires_grad
        with tl.inference_mode():
            assert compiled(x).is_inference()


def test_a_replaced_parameter_and_a_frozen_one() -> None:
    model = nn.Linear(3, 2)
    compiled = tl.compile(model)
    x = data(2, 3)
    compiled(x)
    model.weight = nn.Parameter(tl.ones(2, 3))
    same(compiled(x), model(x))
    model.requires_grad_(False)
    same(compiled(x), model(x))
    model.load_state_dict({"weight": tl.zeros(2, 3), "bias": tl.ones(2)})
    same(compiled(x), tl.ones(2, 2))


def test_attributes_globals_and_closures_are_conditions() -> None:
    class Scaled(nn.Module):
        scale = 2.0

        def forward(self, x: Any) -> Any:
            return x * self.scale + shift + SETTINGS["offset"]

    shift = 1.0
    model = Scaled()
    compiled = tl.compile(model)
    x = data(2, 3)
    for scale in (2.0, 3.0):
        model.scale = scale
        for shift in (1.0, 2.0):  # noqa: B007 - a variable of the closure
            for offset in (0.5, 1.5):
                SETTINGS["offset"] = offset
                same(compiled(x), model(x))


SETTINGS = {"offset": 0.0}


def test_views_and_writes_to_an_argument() -> None:
    def f(x: Any) -> Any:
        x[0] = 1.0
        x[:, 1].mul_(3)
        y = x.t()[1:]
        y.add_(1)
        return y.sum()

    compiled = tl.compile(f)
    for _ in range(3):
        a, b = data(3, 4).clone(), data(3, 4).clone()
        same(compiled(a), f(b))
        same(a, b)
    assert has_plan(compiled)


def test_a_view_of_a_view() -> None:
    """Writes to the result reach the tensor behind the argument, and its gradient."""

    def run(call: Callable[[Any], Any]) -> Any:
        x = data(4, 3).requires_grad_()
        base = x * 1
        for part in (base[:2], base[2:]):
            call(part).mul_(3)
        base.square().sum().backward()
        return x.grad, base._version

    compiled = tl.compile(lambda x: x.t()[1:])
    same(run(compiled), run(lambda x: x.t()[1:]))
    assert has_plan(compiled)


def test_two_views_of_one_value() -> None:
    """A write to one of the results is part of the history of the other."""

    def run(call: Callable[[Any], Any]) -> Any:
        x = data(4, 3).requires_grad_()
        first, second = call(x)
        first.mul_(3)
        second.square().sum().backward()
        return x.grad

    def two(x: Any) -> Any:
        y = x * 2
        return y[:3], y[1:]

    compiled = tl.compile(two)
    for _ in range(3):
        same(run(compiled), run(two))
    assert has_plan(compiled)


@pytest.mark.filterwarnings("ignore:tl.compile")  # the function runs eagerly
@pytest.mark.parametrize("view", [lambda y: y[0], lambda y: y.t()[1], lambda y: y.unbind(1)[1]])
@pytest.mark.parametrize("write", [lambda y, x: y.mul_(3), lambda y, x: y.copy_(x), lambda y, x: y[0].fill_(2)])
def test_a_view_returned_after_its_base_was_written(write: Callable[[Any, Any], Any], view: Any) -> None:
    """Its history begins with the write, not with what the base was when the view was made."""

    def f(x: Any) -> Any:
        y = x * 2
        v = view(y)
        write(y, x)
        return v

    compiled = tl.compile(f)
    for _ in range(3):
        gradients = []
        for call in (f, compiled):
            x = data(2, 3).requires_grad_()
            call(x).square().sum().backward()
            gradients.append(x.grad)
        same(*gradients)


SAVING: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda y, w: y.mul_(w),
    "div": lambda y, w: y.div_(w),
    "pow": lambda y, w: y.pow_(w),
    "addcmul": lambda y, w: y.addcmul_(w, w),
    "hypot": lambda y, w: y.hypot_(w),
    "atan2": lambda y, w: y.atan2_(w),
    "fmod": lambda y, w: y.fmod_(w),
    "silu": lambda y, w: F.silu(y, inplace=True) * w,
}


@pytest.mark.filterwarnings("ignore:tl.compile")  # of several dtypes, they run eagerly
@pytest.mark.parametrize("dtypes", ["float32 float16", "float64 float32", "bfloat16 bfloat16", "float32 float32"])
@pytest.mark.parametrize("name", SAVING)
def test_a_write_saves_what_it_overwrites(name: str, dtypes: str) -> None:
    kinds = [getattr(tl, kind) for kind in dtypes.split()]

    def step(x: Any, w: Any) -> Any:
        y = x * 2
        z = SAVING[name](y, w)
        z.float().square().sum().backward()
        return y.detach()

    compiled = tl.compile(step)
    for i in range(3):
        results = []
        for call in (step, compiled):
            x = tl.tensor([1.5 + i, 0.75]).to(kinds[0]).requires_grad_()
            w = tl.tensor([0.5, 2.0]).to(kinds[1]).requires_grad_()
            results.append([call(x, w), x.grad, w.grad])
        same(*results)


def test_shapes_as_arguments_and_results() -> None:
    def f(x: Any, size: Any) -> Any:
        return x.reshape(size) * 2, x.shape, x.shape[1:]

    compiled = tl.compile(f)
    for _ in range(3):
        same(compiled(data(2, 3), tl.zeros(5, 3, 2).shape[1:]), f(data(2, 3), tl.zeros(3, 2).shape))
    assert len(compiled.plans) == 1
    assert has_plan(compiled)


def test_one_of_the_outputs_of_an_op_as_argument() -> None:
    compiled = tl.compile(lambda x: x.square())
    for _ in range(3):
        x = data(4, 3).requires_grad_()
        compiled(x.sort(1)[0]).sum().backward()
        same(x.grad, 2 * x.detach())
    assert has_plan(compiled)


def test_an_inference_tensor_cannot_be_saved_by_a_plan() -> None:
    weight = data(3).requires_grad_()
    compiled = tl.compile(lambda x: x * weight)
    for _ in range(2):
        compiled(data(3))
    with tl.inference_mode():
        x = data(3).clone()
    with pytest.raises(tl.errors.GraphError, match="inference_mode"):
        compiled(x)


def test_the_values_of_the_recorded_run_die_with_its_result() -> None:
    compiled = tl.compile(lambda x: x + 1)
    gc.disable()
    try:
        value = weakref.ref(compiled(data(3)).array)
        assert value() is None
    finally:
        gc.enable()


def test_a_buffer_that_is_updated() -> None:
    class Count(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", tl.zeros(3))

        def forward(self, x: Any) -> Any:
            with tl.no_grad():
                self.total.add_(x.sum(0))
            return x * self.total

    compiled, model = tl.compile(Count()), Count()
    for _ in range(4):
        same(compiled(data(2, 3)), model(data(2, 3)))
    assert has_plan(compiled._compiled)


def test_a_buffer_that_gets_a_gradient() -> None:
    """A plan would compute the gradients of its own ops only, not those of the ops in earlier calls."""
    gradients = []
    for transform in (tl.compile, lambda f: f):
        weight, total = tl.ones(2, requires_grad=True), tl.zeros(2)

        def f(x: Any, weight: Any = weight, total: Any = total) -> Any:
            total.copy_(total * 0.5 + x * weight)
            return total * 1

        call = transform(f)
        with warnings.catch_warnings(action="ignore"):
            results = [call(data(2)) for _ in range(4)]
        results[-1].sum().backward()
        gradients.append(weight.grad)
    same(*gradients)


def test_a_cache_of_fixed_size() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("keys", tl.zeros(1, 2, 16, 4))
            self.register_buffer("allowed", tl.ones(16, 16, dtype=tl.bool).tril())

        def forward(self, x: Any, place: Any) -> Any:
            self.keys[:, :, place] = x
            y = F.scaled_dot_product_attention(x, self.keys, self.keys, self.allowed[None, None, place])
            return y[:, :, [-1]]

    model, place = Attention(), tl.tensor([0])
    compiled = tl.compile(model)
    seen = []
    with tl.no_grad():
        for i in range(12):
            x = data(1, 2, 1, 4) * (i + 1)
            seen.append(x)
            before = tl.cat(seen, 2)  # a cache that grows
            got = compiled(x, place)
            same(model.keys[:, :, : i + 1], before)
            np.testing.assert_allclose(
                got.numpy(), F.scaled_dot_product_attention(x, before, before).numpy(), rtol=1e-5
            )
            place = place + 1
    assert has_plan(compiled._compiled)
    assert len(compiled._compiled.plans) == 1


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "places": lambda x, i: x.__setitem__(i, 2.5),
    "places behind a slice": lambda x, i: x.__setitem__((slice(1, 3), i), x[0, 0]),
    "a list": lambda x, i: x.__setitem__([0, 2], x[1]),
    "a mask": lambda x, i: x.__setitem__(x > 0, 0.0),
    "accumulated": lambda x, i: x.index_put_((i, i), x[:2, 0], accumulate=True),
    "a view": lambda x, i: x[1:].__setitem__((None, i), 7.0),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_to_places(name: str) -> None:
    def write(x: Any, i: Any) -> Any:
        y = x * 2
        WRITES[name](x, i)
        return y + x, x[:, i], x[i, None]

    compiled = tl.compile(write)
    for places in ([0, 1], [1, 0], [1, 1], [2, -1], [0, 0]):
        a, b = data(4, 4).clone(), data(4, 4).clone()
        same(compiled(a, tl.tensor(places)), write(b, tl.tensor(places)))
        same(a, b)
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(data(4, 4).clone(), tl.tensor([0, 9]))
    assert has_plan(compiled)


def test_random_numbers_are_drawn_anew() -> None:
    @tl.compile
    def f() -> Any:
        return tl.rand(3), tl.randn(2, 2) + tl.arange(2)

    tl.manual_seed(3)
    got = [f() for _ in range(3)]
    tl.manual_seed(3)
    same(got, [(tl.rand(3), tl.randn(2, 2) + tl.arange(2)) for _ in range(3)])
    assert has_plan(f)


def test_strides_are_conditions() -> None:
    compiled = tl.compile(lambda x: x.reshape(-1))
    x = data(3, 4)
    for _ in range(2):
        same(compiled(x), x.reshape(-1))
        same(compiled(x.t()), x.t().reshape(-1))


def test_new_arrays_for_every_call() -> None:
    compiled = tl.compile(lambda x: (x + 1, tl.zeros(2)))
    results = [compiled(data(2)) for _ in range(3)]
    for y, z in results[1:]:
        z.add_(1)
        y.add_(1)
    same(results[0], (data(2) + 1, tl.zeros(2)))
    same(compiled(data(2)), (data(2) + 1, tl.zeros(2)))


def test_one_tensor_as_two_arguments() -> None:
    def f(a: Any, b: Any) -> Any:
        a.add_(1)
        return a * b

    compiled = tl.compile(f)
    compiled(data(3).clone(), data(3).clone())
    a, b = data(3).clone(), data(3).clone()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(compiled(a, a), f(b, b))


def test_an_error_is_raised_as_in_an_eager_call() -> None:
    table = nn.Embedding(4, 2)
    compiled = tl.compile(table)
    compiled(tl.tensor([1]))
    with pytest.raises(IndexError) as eager:
        table(tl.tensor([9]))
    with pytest.raises(IndexError) as raised:
        compiled(tl.tensor([9]))
    assert str(raised.value) == str(eager.value)


# ------------------------------------------------------------------------------------------------------------ breaks


log: list[Any] = []


def appends(x: Any) -> Any:
    log.append(1)
    return x + len(log)


BREAKS: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x * x.sum().item(),
    "bool": lambda x: x if x.sum() > 0 else -x,
    "float": lambda x: x * float(x[0]),
    "tolist": lambda x: x + tl.tensor(x.tolist()),
    "numpy": lambda x: x + tl.from_numpy(x.numpy() * 2),
    "print": lambda x: print(x.shape) or x,
    "repr": lambda x: (x, repr(x)),
    "iteration": lambda x: sum(float(part) for part in x),
    "python's random": lambda x: x * random.Random(0).random(),
    "numpy's random": lambda x: x * np.random.default_rng(0).random(),
    "array": lambda x: tl.Tensor(x.array * 2),
    "function": lambda x: Cube.apply(x),
    "mask": lambda x: x[x > 0],
    "nonzero": lambda x: x.nonzero().shape[0],
    "data": lambda x: x.data + 1,
    "side effect": appends,
    "detached history": lambda x: x.clone().detach_(),
    "numpy function": lambda x: np.sin(x),
    "number of a tensor": lambda x: tl.add(x, x, alpha=x[0]),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_a_plan_cannot_repeat_runs_eagerly(name: str, capsys: Any) -> None:
    function = BREAKS[name]
    compiled = tl.compile(function)
    results = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for sign in (1, -1, 1, 1, -1):
            log.clear()
            results.append(compiled(data(4) * sign))
    for sign, result in zip((1, -1, 1, 1, -1), results, strict=True):
        log.clear()
        same(result, function(data(4) * sign))
    assert not has_plan(compiled)
    assert sum("tl.compile" in str(w.message) for w in caught) == 1


def counts() -> Any:
    iterator = itertools.count(1)
    return lambda x: x * next(iterator)


def reads_an_array() -> Any:
    array = np.zeros(1)

    def scaled(x: Any) -> Any:
        array[0] += 1
        return x * array[0]

    return scaled


def reads_bytes() -> Any:
    content = bytearray(1)

    def scaled(x: Any) -> Any:
        content[0] += 1
        return x * content[0]

    return scaled


def counts_its_calls() -> Any:
    def scaled(x: Any) -> Any:
        scaled.calls = getattr(scaled, "calls", 0) + 1
        return x * scaled.calls

    return scaled


def prints_by_another_name() -> Any:
    show = print
    return lambda x: show(end="") or x


def draws_by_another_name() -> Any:
    return lambda x: x * default_rng(0).random()


def holds_a_method() -> Any:
    total = tl.zeros(())
    read = total.item

    def scaled(x: Any) -> Any:
        total.add_(1)
        return x * read()

    return scaled


def reads_the_time() -> Any:
    return lambda x: x * (datetime.now().year > 0)


def logs() -> Any:
    logger = logging.getLogger("tallow.test")
    return lambda x: logger.debug("called") or x


def takes_from_an_argument() -> Any:
    return lambda x, numbers=itertools.count(): x * next(numbers)  # noqa: B008


STATE = (counts, reads_an_array, reads_bytes, counts_its_calls, prints_by_another_name, draws_by_another_name)
MORE_STATE = (holds_a_method, reads_the_time, logs, takes_from_an_argument)


@pytest.mark.filterwarnings("ignore:tl.compile")
@pytest.mark.parametrize("make", [*STATE, *MORE_STATE])
def test_contents_that_no_guard_compares(make: Callable[[], Any]) -> None:
    function, compiled = make(), tl.compile(make())
    for _ in range(6):
        same(compiled(data(3)), function(data(3)))
    assert not has_plan(compiled)


@pytest.mark.filterwarnings("ignore:tl.compile")
def test_containers_and_iterators_among_the_arguments() -> None:
    compiled = tl.compile(lambda parts: parts.append(parts[0] * 2) or parts[1])
    for _ in range(3):
        parts = [data(3)]
        same(compiled(parts), data(3) * 2)
        assert len(parts) == 2
    compiled, numbers = tl.compile(lambda x, iterator: x * next(iterator)), itertools.count()
    assert [compiled(tl.ones(()), numbers).item() for _ in range(4)] == [0, 1, 2, 3]


def test_an_error_that_the_program_catches() -> None:
    table = tl.eye(3)

    def row(place: Any) -> Any:
        try:
            return F.embedding(place, table)
        except IndexError:
            return tl.zeros(3)

    compiled = tl.compile(row)
    for place in (1, 2, 7, 0):
        same(compiled(tl.tensor(place)), row(tl.tensor(place)))
    assert has_plan(compiled)


def joined(model: Any, w: Any, x: Any, y: Any) -> Any:
    h = tl.tanh(model(x)) * w
    unused = y * 2
    loss = ((h * h + w - y).square() + h).mean()
    loss.backward()
    return loss, unused


@pytest.mark.parametrize("hooked", [False, True])
def test_forward_and_backward_are_joined(hooked: bool) -> None:
    """Shared and repeated operands, broadcast weights, values that are returned, gradients that add up, and hooks."""
    results = []
    for call in (joined, compiled := tl.compile(joined)):
        tl.manual_seed(4)
        model, w = nn.Linear(3, 4), tl.randn(4).requires_grad_()
        seen: list[Any] = []
        if hooked:
            w.register_hook(lambda g, seen=seen: seen.append(g) or g * 2)
        for _ in range(3):
            loss, unused = call(model, w, data(2, 3), data(2, 4))
        results.append([loss.detach(), unused, w.grad, *(p.grad for p in model.parameters()), seen])
        with pytest.raises(tl.errors.GraphError, match="second time"):
            loss.backward()
    same(*results)
    assert "forward_and_backward" in compiled.plans[0].source


@pytest.mark.parametrize("name", ["numpy_helpers", "tallow_helpers", "abc_of_models", "enum"])
def test_a_module_of_the_program_whose_name_begins_as_a_librarys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType(f"{name}_")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec("factor = 2\nclass Scale:\n    by = 3\ndef scaled(x):\n    return x * factor * Scale.by", vars(module))
    compiled = tl.compile(lambda x: module.scaled(x))
    for module.factor, module.Scale.by in ((2, 3), (2, 3), (5, 3), (5, 7)):
        same(compiled(data(3)), data(3) * module.factor * module.Scale.by)


def test_a_class_whose_repr_is_guarded_against_recursion() -> None:
    """Dataclasses of Python 3.13 are."""

    class Config:
        width = 2.0

        @reprlib.recursive_repr()
        def __repr__(self) -> str:
            return "Config()"

    config, x = Config(), tl.ones(2)
    compiled = tl.compile(lambda x: x * config.width)
    assert [compiled(x).tolist() for _ in range(3)] == 3 * [[2.0, 2.0]]


@pytest.mark.filterwarnings("ignore:tl.compile")
def test_a_set_that_changes_between_calls() -> None:
    names = {"a"}
    compiled = tl.compile(lambda x: x * ("b" in names))
    same(compiled(data(3)), data(3) * 0)
    names.add("b")
    names.remove("a")
    same(compiled(data(3)), data(3))


def test_a_break_says_why_and_where() -> None:
    compiled = tl.compile(lambda x: x * x.sum().item())
    with pytest.warns(
        UserWarning, match=r"runs eagerly: it reads a value with item \(test_compile.py:\d+, in <lambda>"
    ):
        compiled(data(3))
    assert "item" in compiled.explain()
    with pytest.raises(tl.compiler.GraphBreak, match="item"):
        tl.compile(lambda x: x.sum().item(), fullgraph=True)(data(3))


def test_a_full_graph_is_demanded_in_every_call() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x.sum().item()

    compiled = tl.compile(f, fullgraph=True)
    for _ in range(3):
        with pytest.raises(tl.compiler.GraphBreak):
            compiled(data(3))
    assert len(calls) == 1


def test_a_growing_text_has_one_plan_for_its_last_tokens() -> None:
    """The strides of the view differ at each call, in a dimension of one entry."""
    compiled = tl.compile(lambda x: x.cos() * 2 + x[:, :1])
    text = data(1, 4)
    for _ in range(10):
        same(compiled(text[:, -4:]), text[:, -4:].cos() * 2 + text[:, -4:-3])
        text = tl.cat([text, text[:, -1:] * 0.9], 1)
    assert len(compiled.plans) <= 2  # the first argument is no view
    rows = data(2, 8)
    same(compiled(rows[:, -4:]), rows[:, -4:].cos() * 2 + rows[:, 4:5])


def test_plans_are_used_while_other_calls_run_eagerly() -> None:
    compiled = tl.compile(lambda x, n: x * n)
    for n in range(8):
        same(compiled(data(3), n), data(3) * n)
    with pytest.warns(UserWarning, match="calls without a plan eagerly: it has 8 plans"):
        same(compiled(data(3), 8), data(3) * 8)
    same(compiled(data(3), 9), data(3) * 9)
    assert len(compiled.plans) == 8
    assert compiled.plans[5].run((data(3), 5), {}).tolist() == (data(3) * 5).tolist()


def test_a_compiled_module_has_the_attributes_of_the_original() -> None:
    class Power(nn.Module):
        exponent = 2

        def forward(self, x: Any) -> Any:
            return x**self.exponent

    model = Power()
    compiled = tl.compile(model)
    same(compiled(data(3)), data(3) ** 2)
    compiled.exponent = 3
    assert model.exponent == 3
    same(compiled(data(3)), data(3) ** 3)
    del compiled.exponent
    same(compiled(data(3)), data(3) ** 2)
    model.eval()
    assert not compiled.training
    seen: list[Any] = []
    compiled.register_forward_hook(lambda *_: seen.append(1))
    compiled(data(3))
    assert seen == [1]


def test_a_parameter_replaced_within_a_compiled_module() -> None:
    inner = nn.Linear(3, 2, bias=False)
    outer = tl.compile(nn.Sequential(tl.compile(inner)))
    for _ in range(2):
        outer(data(1, 3))
    inner.weight = nn.Parameter(tl.zeros(2, 3))
    assert not outer(data(1, 3)).any()


def test_a_disabled_function() -> None:
    @tl.compiler.disable
    def inner(x: Any) -> Any:
        return x + 1

    compiled = tl.compile(lambda x: inner(x) * 2)
    with pytest.warns(UserWarning, match="inner is not to be compiled"):
        same(compiled(data(3)), (data(3) + 1) * 2)


def test_hooks() -> None:
    seen = []
    model = nn.Linear(3, 1)
    compiled = tl.compile(training_step(model, tl.optim.SGD(model.parameters(), lr=0.1), data(5, 3), data(5, 1)))
    compiled()
    model.weight.register_hook(lambda g: seen.append(g) or g * 0)
    before = model.weight.detach().clone()
    compiled()
    assert len(seen) == 1
    same(model.weight.detach(), before)


def test_a_python_counter() -> None:
    class Counting(nn.Module):
        calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x * self.calls

    model, compiled = Counting(), tl.compile(Counting())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            same(compiled(data(3)), model(data(3)))


def test_explain_lists_the_calls(capsys: Any) -> None:
    compiled = tl.compile(lambda x: F.relu(x) + math.pi)
    compiled(data(3))
    assert "(a)" in compiled.explain()
    assert "relu" in capsys.readouterr().out


def test_a_function_that_reaches_very_many_objects() -> None:
    many = [[] for _ in range(100_001)]  # type: ignore[var-annotated]
    compiled = tl.compile(lambda x: x + len(many))
    with pytest.warns(UserWarning, match="objects"):
        same(compiled(data(2)), data(2) + 100_001)


def test_a_compiled_function_that_its_own_code_names() -> None:
    namespace: dict[str, Any] = {}
    exec("def mean(x): return x.mean()", namespace)
    namespace["mean"] = compiled = tl.compile(namespace["mean"])
    for _ in range(3):
        same(compiled(data(2)), data(2).mean())
    assert len(compiled.plans) == 1


def test_compiling_within_a_recording() -> None:
    inner = tl.compile(lambda x: (x + 1, tl.compiler.is_compiling()))
    outer = tl.compile(lambda x: inner(x))
    assert outer(data(3))[1]
    assert not tl.compiler.is_compiling()


def test_an_optimizer_whose_name_a_plan_uses() -> None:
    class Args(tl.optim.SGD):
        pass

    w = tl.ones(2, requires_grad=True)
    optimizer = Args([w], lr=0.5)

    def step(x: Any) -> None:
        (w * x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    compiled = tl.compile(step, fullgraph=True)
    for _ in range(3):
        compiled(tl.ones(2))
    assert w.tolist() == [-0.5, -0.5]


def test_a_step_of_gradient_descent_written_out() -> None:
    """A plan reads the gradient that its own backward pass has made, writes to the weight, and drops the gradient."""

    def step(w: tl.Tensor, x: tl.Tensor) -> tl.Tensor:
        loss = (w * x).square().sum()
        loss.backward()
        with tl.no_grad():
            w -= 0.01 * w.grad
        w.grad = None
        return loss

    compiled = tl.compile(step, fullgraph=True)
    w, v = (tl.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
    for i in range(4):
        x = tl.tensor([1.0, -1.0, 0.5]) * i
        assert tl.equal(compiled(w, x), step(v, x))
        assert tl.equal(w, v)
        assert w.grad is None
    assert len(compiled.plans) == 1
