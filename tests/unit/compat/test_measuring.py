"""Profilers, counters of work and TorchDispatchMode: what watches the ops that run."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tallow as tl
from tallow.compat import install_torch
from tallow.core import watching


@pytest.fixture
def torch() -> Iterator[Any]:
    with install_torch(replace=True):
        yield importlib.import_module("torch")


def test_a_watcher_gets_each_op_once_and_leaves_no_trace(torch: Any) -> None:
    x, seen = torch.ones(2, requires_grad=True), []

    def watcher(op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        seen.append(op.name)
        return function(*args, **kwargs) * 1  # an op of the watcher itself is not watched

    watching.watch(watcher)
    y = 2 * (x * 3).relu() - 1
    assert y.detach().add_(1).tolist() == [6.0, 6.0]
    watching.unwatch(watcher)
    y.sum().backward()
    assert seen == ["mul", "relu", "mul", "sub", "add"]
    assert x.grad.tolist() == [6.0, 6.0]


def _pass_on(op: Any, function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def test_a_call_that_another_thread_began_outlasts_the_last_watcher() -> None:
    watching.watch(_pass_on)
    begun = tl.relu.__globals__["first_call"]  # type: ignore[attr-defined]
    watching.unwatch(_pass_on)
    assert begun(-tl.ones(1)).item() == 0.0


@pytest.mark.native
def test_watchers_that_come_and_go_in_threads_leave_no_trace() -> None:
    def come_and_go(_: int) -> list[float]:
        watching.watch(_pass_on)
        try:
            return [(-tl.ones(1)).relu().item() for _ in range(3)]
        finally:
            watching.unwatch(_pass_on)

    tl.ones(1).relu()
    code = tl.relu.__code__
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(come_and_go, range(16))) == 16 * [[0.0, 0.0, 0.0]]
    finally:
        sys.setswitchinterval(before)
    assert tl.relu.__code__ is code


def test_a_dispatch_mode_answers_for_ops(torch: Any) -> None:
    from_module = importlib.import_module("torch.utils._python_dispatch")

    class Doubling(from_module.TorchDispatchMode):  # type: ignore[misc, name-defined]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(func.name())
            result = func(*args, **(kwargs or {}))
            return result * 2 if func == torch.ops.aten.exp.default else result

    names: list[str] = []
    with Doubling(), Doubling():
        y = torch.zeros(1).exp() + 1
    assert y.item() == 5.0
    assert names == ["aten::exp", "aten::exp", "aten::add", "aten::add"]


@pytest.mark.native
def test_a_dispatch_mode_sees_the_ops_of_its_thread(torch: Any) -> None:
    from_module = importlib.import_module("torch.utils._python_dispatch")

    class Answering(from_module.TorchDispatchMode):  # type: ignore[misc, name-defined]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "here"

    x = torch.ones(1)
    with ThreadPoolExecutor(1) as threads, Answering():
        assert x.exp() == "here"
        assert threads.submit(lambda: (x + 1).item()).result() == 2.0


def test_a_profile_of_some_steps(torch: Any, tmp_path: Path) -> None:
    traced = []
    profiler = importlib.import_module("torch.profiler")
    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    x = torch.ones(3, requires_grad=True)
    with profiler.profile(schedule=plan, on_trace_ready=lambda p: traced.append(p.step_num), record_shapes=True) as p:
        for _ in range(6):
            block = torch.ops.profiler._record_function_enter("forward")  # as graphs have it
            y = x.exp().sum()
            torch.ops.profiler._record_function_exit(block)
            y.backward()
            p.step()
    assert traced == [4]
    sums = {event.key: event for event in p.key_averages()}
    assert {name: sums[name].count for name in ("aten::exp", "forward", "ProfilerStep*")} == {
        "aten::exp": 2,
        "forward": 2,
        "ProfilerStep*": 2,
    }
    assert sums["autograd::engine::evaluate_function: ExpBackward0"].count == 2
    assert sums["forward"].cpu_time_total >= sums["aten::exp"].cpu_time_total + sums["aten::sum"].cpu_time_total
    assert sums["aten::exp"].input_shapes == [[3]]
    assert "aten::exp" in p.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    p.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    stacks = dict(line.rsplit(" ", 1) for line in (tmp_path / "stacks").read_text().splitlines())
    assert any(stack.startswith("ProfilerStep#") and ";aten::" in stack for stack in stacks), stacks
    assert all(int(microseconds) > 0 for microseconds in stacks.values())
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert sum(event["name"] == "aten::exp" for event in trace["traceEvents"]) == 2


def test_flops_are_pytorchs(torch: Any) -> None:
    """The totals are those of PyTorch 2.13 for the same calls."""
    nn, counter = torch.nn, importlib.import_module("torch.utils.flop_counter").FlopCounterMode
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.Conv2d(8, 8, 3, groups=2),
        nn.ConvTranspose2d(8, 4, 2, stride=2),
        nn.Flatten(),
        nn.Linear(4 * 12 * 12, 5),
    )
    with counter(display=False) as forward:
        y = model(torch.ones(2, 3, 8, 8))
    counts = forward.get_flop_counts()
    assert forward.get_total_flops() == 126720
    assert sum(counts["Sequential.1"].values()) == 41472
    with counter(display=False) as both:
        model(torch.ones(2, 3, 8, 8)).sum().backward()
    assert both.get_total_flops() == 366336
    assert y.shape == (2, 5)
