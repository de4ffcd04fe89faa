"""`require`, `off` and registered kernels hold for operands of every size, and `explain` says the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tallow as tl
import tallow.nn.functional as F
from tallow import kernels
from tallow.errors import KernelUnavailable
from tallow.kernels import library, table

pytestmark = pytest.mark.cpu("the small calls are those of NumPy arrays")

Array = np.ndarray[Any, Any]
SIZES = (1, 8, 32, 300)
LIBRARY = kernels.info()
compiled = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")
enabled = pytest.mark.skipif(not LIBRARY.enabled, reason="kernels are switched off")
# Kernel -> an op on a square tensor that calls it.
FORWARD: dict[str, Callable[[tl.Tensor], tl.Tensor]] = {
    "matmul": lambda x: x @ x,
    "linear": lambda x: F.linear(x, x, x[0]),
    "add": lambda x: x + x,
    "sub": lambda x: x - x,
    "mul": lambda x: x * x,
    "div": lambda x: x / x,
    "relu": lambda x: x.relu(),
    "sigmoid": lambda x: x.sigmoid(),
    "silu": lambda x: F.silu(x),
    "gelu": lambda x: F.gelu(x),
    "row_sums": lambda x: x.sum(-1),
    "running_sum": lambda x: x.cumsum(0),
    "clamp_min": lambda x: x.clamp(min=0.5),
    "clamp_max": lambda x: x.clamp(max=0.5),
    "select": lambda x: tl.where(x > 0, x, x),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:], x[0], x[0]),
    "take_rows": lambda x: F.embedding(tl.zeros(len(x), dtype=tl.int64), x),
}
# Other ways to the same kernels: operators with a number, in place, and without dims.
OTHERS: list[tuple[str, Callable[[tl.Tensor], tl.Tensor]]] = [
    ("add", lambda x: x + 2),
    ("sub", lambda x: 2 - x),
    ("sub", lambda x: tl.rsub(x, x)),
    ("div", lambda x: 2 / x),
    ("mul", lambda x: x.detach().clone().mul_(x)),
    ("add", lambda x: x.detach().clone().add_(2)),
    ("sub", lambda x: x.detach().clone().sub_(x)),
    ("div", lambda x: x.detach().clone().div_(x)),
    ("relu", lambda x: x.detach().clone().relu_()),
    ("row_sums", lambda x: x.sum()),
    ("column_sums", lambda x: x.sum(0)),
    ("matmul", lambda x: tl.outer(x[0], x[0])),
    ("matmul", lambda x: tl.mm(x, x)),
    ("matmul", lambda x: x[0] @ x),
    ("clamp", lambda x: x.clamp(-0.5, 0.5)),
    ("clamp_min", lambda x: x.clamp(min=-0.5)),
    ("take_along", lambda x: x.max(0)[0]),
    ("hardswish", lambda x: F.hardswish(x)),
    ("formula", lambda x: tl.sub(2, x, alpha=3)),
    ("cast_half", lambda x: x.half().to(x.dtype)),
]
# Kernel -> an op whose backward calls it.
BACKWARD: dict[str, Callable[[tl.Tensor], tl.Tensor]] = {
    "matmul": lambda x: x @ x,
    "mul": lambda x: x * x,
    "div": lambda x: x / x,
    "column_sums": lambda x: F.linear(x.detach(), x.detach(), x[0]),
    "relu_backward": lambda x: x.relu(),
    "formula": lambda x: x.sigmoid(),
    "running_sum": lambda x: x.cumsum(0),
    "softmax_backward": lambda x: x.softmax(-1),
    "layer_norm_backward": lambda x: F.layer_norm(x, x.shape[-1:]),
}
CALLS = [*FORWARD.items(), *OTHERS]
NAMES = [f"{i}-{name}" for i, (name, _) in enumerate(CALLS)]
modes = pytest.mark.parametrize("context", [tl.no_grad, tl.enable_grad])


def square(n: int, **kwargs: Any) -> tl.Tensor:
    numbers = np.random.default_rng(n).uniform(0.5, 1.5, (n, n)).astype(np.float32)
    return tl.tensor(numbers, **kwargs)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[str]]]:
    """Return a function that replaces a kernel by one that adds its backend to a list, which it returns."""
    monkeypatch.setattr(table, "KERNELS", dict(table.KERNELS))

    def count(name: str, backend: str) -> list[str]:
        calls: list[str] = []
        original = table.KERNELS[name, backend].fn

        @kernels.kernel(name, backend)
        def noted(*args: Any) -> Any:
            calls.append(backend)
            return original(*args)

        return calls

    yield count
    monkeypatch.undo()
    table.forget_choices()


@pytest.mark.parametrize("n", SIZES)
@modes
@pytest.mark.parametrize(("name", "function"), CALLS, ids=NAMES)
def test_a_backend_that_is_not_there_is_refused(name: str, function: Any, context: Any, n: int) -> None:
    x = square(n, requires_grad=True)
    with context():
        function(x)
        with kernels.require("nothing"), pytest.raises(KernelUnavailable, match=f"{name} on cpu"):
            function(x)
        function(x)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", BACKWARD)
def test_a_backend_that_is_not_there_is_refused_in_backward(name: str, n: int) -> None:
    y = BACKWARD[name](square(n, requires_grad=True))
    g = tl.ones(y.shape)
    with kernels.require("nothing"), pytest.raises(KernelUnavailable, match=f"{name} on cpu"):
        y.backward(g)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("name", "function"), CALLS, ids=NAMES)
def test_the_array_code_can_be_required_and_is_left_by_off(name: str, function: Any, n: int, counted: Any) -> None:
    calls = counted(name, library.BACKEND) if (name, library.BACKEND) in table.KERNELS else []
    x = square(n)
    for context in (kernels.require("array"), kernels.off()):
        with context:
            expected = function(x.double())
            tl.testing.assert_close(function(x).double(), expected, rtol=1e-4, atol=1e-4)
    assert not calls


@pytest.mark.parametrize("n", SIZES)
@modes
@pytest.mark.parametrize(("name", "function"), CALLS, ids=NAMES)
def test_a_registered_array_kernel_is_called(name: str, function: Any, context: Any, n: int, counted: Any) -> None:
    calls = counted(name, "array")
    with context(), kernels.off():
        function(square(n))
    assert calls


@pytest.mark.parametrize("n", SIZES)
@modes
@pytest.mark.parametrize(("name", "function"), CALLS, ids=NAMES)
def test_a_registered_compiled_kernel_is_called(
    name: str, function: Any, context: Any, n: int, counted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.kernel(name, library.BACKEND)(table.KERNELS[name, "array"].fn)
    monkeypatch.setattr(table, "KERNELS", dict(table.KERNELS))
    calls = counted(name, library.BACKEND)
    with context():
        function(square(n))
    assert bool(calls) == LIBRARY.enabled


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "arguments",
    [
        ("matmul", lambda x: (x, x), FORWARD["matmul"]),
        ("linear", lambda x: (x, x, x[0]), FORWARD["linear"]),
        ("add", lambda x: (x, x), FORWARD["add"]),
        ("relu", lambda x: (x,), FORWARD["relu"]),
        ("row_sums", lambda x: (x,), FORWARD["row_sums"]),
        ("softmax", lambda x: (x,), FORWARD["softmax"]),
        ("layer_norm", lambda x: (x, x[0], x[0], 1e-5), FORWARD["layer_norm"]),
        ("select", lambda x: (x > 0, x, x), FORWARD["select"]),
    ],
    ids=lambda a: a[0] if isinstance(a, tuple) else "",
)
def test_require_agrees_with_explain(arguments: Any, n: int) -> None:
    name, of_kernel, function = arguments
    x = square(n)
    lines = table.explanation(name, "cpu", of_kernel(x.numpy())).splitlines()
    (chosen,) = [line.split()[0] for line in lines if line.endswith("chosen")]
    for backend in (library.BACKEND, "array"):
        refusal = pytest.raises(KernelUnavailable, match=name)
        is_native_refused = backend != "array" and chosen == "array"
        with kernels.require(backend), refusal if is_native_refused else contextlib.nullcontext():
            function(x)


@compiled
@enabled
def test_explain_prints_the_smallest_size(capsys: pytest.CaptureFixture[str]) -> None:
    kernels.explain("matmul", np.ones((8, 8), np.float32), np.ones((8, 8), np.float32))
    kernels.explain("relu", np.ones((8, 8), np.float32))
    printed = capsys.readouterr().out
    assert "32,768 multiplications" in printed
    assert "takes a contiguous float32 array of at least 4,096 elements" in printed


@enabled
@pytest.mark.parametrize("operator", ["add", "sub", "mul", "div"])
def test_a_kernel_of_large_arrays_computes_in_place(operator: str, counted: Any) -> None:
    kernels.kernel(operator, "wasm", accepts=table.minimum(1000)(lambda a, b: a.size >= 1000))(lambda a, b: a * 0 + 7)
    for n, is_large in ((8, False), (300, True)):
        x = square(n)
        expected = getattr(x, operator)(2)
        assert tl.equal(getattr(x, operator + "_")(2), expected)
        assert bool((x == 7).all()) == is_large


@compiled
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_kernels_write_to_memory_that_overlaps_an_operand(name: str) -> None:
    entry, array = table.KERNELS[name, library.BACKEND], table.KERNELS[name, "array"]
    n = entry.accepts.minimum + 3
    numbers = np.random.default_rng(0).uniform(0.5, 1.5, n + 1).astype(np.float32)
    for a, b, y in ((0, 1, 0), (1, 0, 1), (0, 0, 1), (1, 0, 0)):
        memory, expected = numbers.copy(), numbers.copy()
        for into, x in ((entry.into, memory), (array.into, expected)):
            into(x[a : a + n], x[b : b + n], x[y : y + n])
        np.testing.assert_array_equal(memory, expected)


LIMITED = sorted(name for name in table._limits if (name, library.BACKEND) in table.KERNELS)


def operands(name: str, rng: np.random.Generator) -> tuple[int, tuple[Any, ...]]:
    """Return random arguments of a kernel that has a limit, and their size."""
    a, b, c = (int(n) for n in rng.integers(1, [200, 200, 200]))
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((a, b), (b, c)))
    if name == "matmul":
        return a * b * c, (x, y)
    if name == "linear":
        return a * b * c, (x, np.ascontiguousarray(y.T), None)
    if name in ("add", "sub", "mul", "div"):
        return x.size, (x, x)
    if name == "take_along":
        return a * c, (x, rng.integers(0, b, (a, c)), 1)
    if name == "formula":
        return x.size, (x, None, (x, 0.5))
    if name == "cast_half":
        return x.size, (x, tl.bfloat16)
    extra = {"running_sum": (1, False), "clamp_min": (0.0,), "clamp_max": (0.0,), "clamp": (0.0, 1.0)}
    return x.size, (x > 0, x, x) if name == "select" else (x, *extra.get(name, ()))


@compiled
@pytest.mark.parametrize("name", LIMITED)
def test_no_compiled_kernel_takes_fewer_than_it_declares(name: str) -> None:
    accepts: Any = table.KERNELS[name, library.BACKEND].accepts
    assert accepts.minimum >= table.LIMIT_BEFORE_LOADING
    rng = np.random.default_rng(0)
    for _ in range(300):
        size, args = operands(name, rng)
        assert size >= accepts.minimum or not accepts(*args)


@enabled
def test_a_limit_follows_the_table(counted: Any) -> None:
    limit = table._limits["add"][0]
    before = limit.size
    assert before >= table.LIMIT_BEFORE_LOADING
    with kernels.require("nothing"):
        assert limit.size == 0
        with kernels.off():
            assert limit.size == 0
    with kernels.off():
        assert limit.size == table.LARGEST_LIMIT
    assert limit.size == before
    kernels.kernel("add", "wasm", accepts=lambda a, b: True)(lambda a, b: a + b)
    assert limit.size == 0
    kernels.kernel("add", "wasm", accepts=table.minimum(10)(lambda a, b: True))(lambda a, b: a + b)
    assert limit.size == 10
    counted("add", "array")
    assert limit.size == 0


@compiled
@enabled
@pytest.mark.parametrize("n", [8, 300])
def test_conversions_of_halves_follow_require_and_off(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import casting

    calls: list[int] = []
    monkeypatch.setattr(casting, "by_rows", lambda *args: calls.append(args[2]))
    x = square(n)
    for context in (kernels.require("array"), kernels.off()):
        with context:
            assert tl.equal(x.half().float(), tl.tensor(x.numpy().astype(np.float16).astype(np.float32)))
    assert not calls
    x.half()
    assert bool(calls) == (n * n >= casting.LEAST)
