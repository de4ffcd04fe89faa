"""Modules that assign while they are exported: buffers are outputs, and afterwards all is as before."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import tallow as tl
from tallow.errors import TraceError
from tallow.export import Dim, export

nn = tl.nn


def sample(*shape: int) -> tl.Tensor:
    return tl.randn(shape, generator=tl.Generator().manual_seed(1))


class Keeps(nn.Module):
    def __init__(self, how: Callable[[Any, tl.Tensor], Any]) -> None:
        super().__init__()
        self.register_buffer("n", tl.zeros(3))
        self.register_buffer("m", tl.ones(3))
        self.k, self.last, self.how = 1, None, how

    def forward(self, x: tl.Tensor) -> Any:
        result = self.how(self, x)
        return x * self.n if result is None else result


def swap(module: Any, x: tl.Tensor) -> None:
    module.n, module.m = module.m, module.n + x[0]


def written_first(module: Any, x: tl.Tensor) -> None:
    module.n += 1
    module.n = module.n * 0.5 + x[0]


ASSIGNS: dict[str, Callable[[Any, tl.Tensor], Any]] = {
    "mean": lambda m, x: setattr(m, "n", m.n * 0.9 + x.mean(0)),
    "swap": swap,
    "view": lambda m, x: setattr(m, "n", m.m[:] + 0 if m.k > 1 else m.m[:]),
    "argument": lambda m, x: setattr(m, "n", x[0]),
    "written first": written_first,
    "returned": lambda m, x: setattr(m, "n", m.n + x[0]) or m.n,
}


@pytest.mark.parametrize("name", ASSIGNS)
def test_buffers_that_are_assigned_anew_are_outputs(name: str) -> None:
    model = Keeps(ASSIGNS[name])
    own = dict(model._buffers)
    program = export(model, (sample(4, 3),), dynamic_shapes=({0: Dim("rows")},))
    assert all(model._buffers[key] is value for key, value in own.items())
    assert tl.equal(model.n, tl.zeros(3))
    assert "n" in program.graph_signature.buffers_to_mutate.values()
    expected, module = copy.deepcopy(model), program.module()
    for rows in (4, 5, 6):
        tl.testing.assert_close(module(sample(rows, 3)), expected(sample(rows, 3)))
        tl.testing.assert_close((module.n, module.m), (expected.n, expected.m))


def counts(module: Any, x: tl.Tensor) -> None:
    module.k += 1
    module.last = x * 2
    module.new = x


def counts_and_fails(module: Any, x: tl.Tensor) -> None:
    counts(module, x)
    module.n = module.n + 1
    module.n = module.n if x.sum() > 0 else -module.n


def test_attributes_are_as_before_also_after_an_error() -> None:
    for how in (counts, counts_and_fails):
        model = Keeps(how)
        before, buffers = dict(vars(model)), dict(model._buffers)
        if how is counts:
            export(model, (sample(4, 3),))
        else:
            with pytest.raises(TraceError, match="asks for a value"):
                export(model, (sample(4, 3),))
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
        assert all(model._buffers[name] is value for name, value in buffers.items())
        assert (model.k, model.last) == (1, None)
        assert tl.equal(model.n, tl.zeros(3))


REFUSES: dict[str, tuple[Callable[[Any, tl.Tensor], Any], str]] = {
    "shape": (lambda m, x: setattr(m, "n", x), r"assigns the buffer n anew, not as \(3,\) of float32"),
    "dtype": (lambda m, x: setattr(m, "n", m.n.double()), r"assigns the buffer n anew, not as \(3,\) of float32"),
    "none": (lambda m, x: setattr(m, "n", None) or x, "assigns the buffer n anew"),
    "parameter": (lambda m, x: setattr(m, "w", nn.Parameter(tl.ones(3))), "assigns the parameter w anew"),
    "attribute": (lambda m, x: setattr(m, "h", m.h + x), "assigns h anew"),
    "varies": (lambda m, x: setattr(m, "v", x[:, 0] * 1), "the buffer v is assigned a tensor whose shape varies"),
}


@pytest.mark.parametrize("name", REFUSES)
def test_what_cannot_be_assigned_anew_is_named(name: str) -> None:
    how, message = REFUSES[name]
    model: Any = Keeps(how)
    model.w, model.h = nn.Parameter(tl.ones(3)), tl.ones(1)
    model.register_buffer("v", tl.zeros(4))
    with pytest.raises(TraceError, match=message):
        export(model, (sample(4, 3),), dynamic_shapes=({0: Dim("rows")},))


def test_after_an_error_tensors_are_as_before() -> None:
    with pytest.raises(TraceError):
        export(Keeps(lambda m, x: x * 2 if x.sum() > 0 else x), (sample(3),))
    assert bool(tl.ones(1))
    assert tl.ones(3).sum().item() == 3
    assert tl.ones(2).tolist() == [1, 1]
    assert tl.tape.modes.mode.tracer is None
    assert type(tl.ones(3).shape[0]) is int


def test_objects_elsewhere_are_not_asked_for_their_class() -> None:
    class Lazy:
        @property
        def __class__(self) -> Any:
            raise RuntimeError("asked")

    class Gone:
        pass

    others = [Lazy(), weakref.proxy(Gone())]
    assert len(others) == 2
    export(Keeps(lambda m, x: x), (sample(2),))


@pytest.mark.threads
def test_exports_in_two_threads_follow_each_other() -> None:
    before, inside, release = dict(vars(tl.Tensor)), threading.Event(), threading.Event()
    running: list[int] = []

    def first(module: Any, x: tl.Tensor) -> tl.Tensor:
        inside.set()
        release.wait(0.3)
        running.append(1)
        return x * 2

    def second(module: Any, x: tl.Tensor) -> tl.Tensor:
        running.append(2)
        release.set()
        return x * 3

    threads = [threading.Thread(target=export, args=(Keeps(f), (sample(2),))) for f in (first, second)]
    threads[0].start()
    inside.wait()
    threads[1].start()
    for thread in threads:
        thread.join()
    assert running == [1, 2]
    assert dict(vars(tl.Tensor)) == before
