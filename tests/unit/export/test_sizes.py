"""Sizes that are declared to vary: they stay sizes of the arguments, or an error names the line that fixes them."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import pytest

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError, TraceError, UnsupportedError
from tallow.export import Dim, dims, export, load, save
from tallow.export.sizes import SymInt

nn, F = tl.nn, tl.nn.functional


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: tl.Tensor) -> Any:
        return self.function(x)


def sample(*shape: int) -> tl.Tensor:
    return tl.randn(shape, generator=tl.Generator().manual_seed(1))


DEPENDS: dict[str, Callable[[tl.Tensor], Any]] = {
    "reshape": lambda x: x.reshape(x.shape[0] * x.shape[1], -1),
    "reshape back": lambda x: x.reshape(-1, 2).reshape(x.shape),
    "view": lambda x: x.view(x.size(0), 2, x.size(-1) // 2),
    "expand": lambda x: tl.ones(1, 4).expand(x.shape[0], 4) + x,
    "arange": lambda x: tl.arange(x.shape[0]),
    "arange from": lambda x: tl.arange(1, x.shape[0] + 1, dtype=tl.float32)[:, None] * x,
    "zeros": lambda x: tl.zeros(x.shape),
    "full": lambda x: tl.full((x.shape[0], 2), 3.0),
    "new": lambda x: x.new_ones(x.shape[0]),
    "like": lambda x: tl.zeros_like(x),
    "linspace": lambda x: tl.linspace(0, 1, x.shape[0]),
    "eye": lambda x: tl.eye(x.shape[0]),
    "slice": lambda x: x[: x.shape[0] - 1] + x[1:],
    "half": lambda x: x[x.shape[0] // 2 :],
    "index": lambda x: x[x.shape[0] - 1],
    "select": lambda x: x.select(0, x.shape[0] - 1),
    "narrow": lambda x: x.narrow(0, 1, x.shape[0] - 2),
    "tril": lambda x: tl.ones(x.shape[0], x.shape[0]).tril(),
    "mean by hand": lambda x: x.sum(0) / x.shape[0],
    "scale": lambda x: x * x.shape[0] ** -0.5,
    "float": lambda x: x * (x.shape[0] / 3) + math.floor(x.shape[0] * 0.5) + math.ceil(x.shape[0] / 4),
    "numel": lambda x: x / x.numel(),
    "pad": lambda x: F.pad(x, (0, 0, 0, x.shape[0])),
    "repeat": lambda x: x.repeat(2, x.shape[0]),
    "cat": lambda x: tl.cat([x, tl.zeros(x.shape[0], 1)], 1),
    "roll": lambda x: x.roll(x.shape[0] // 2, 0),
    "compared": lambda x: x if x.shape[0] > 2 else -x,
    "asserted": lambda x: x if x.shape[0] != 0 and x.shape == x.shape and len(x.shape) <= 100 else -x,
    "write": lambda x: x.clone()[: x.shape[0] - 1].mul_(2),
    "write to view": lambda x: x.clone().view(x.shape[0], 2, 2).transpose(0, 1)[1].mul_(2),
    "loss": lambda x: F.mse_loss(x, tl.zeros_like(x)),
    "cross_entropy": lambda x: F.cross_entropy(x, tl.zeros(x.shape[0], dtype=tl.int64)),
    "softmax": lambda x: F.softmax(x @ x.T, -1) @ x,
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True),
    "batch_norm": lambda x: F.batch_norm(x, tl.zeros(4), tl.ones(4), training=True),
    "einsum": lambda x: tl.einsum("ij,kj->ik", x, x),
    "interpolate": lambda x: F.interpolate(x[None], scale_factor=2.0),
    "pool": lambda x: F.adaptive_avg_pool1d(x.T[None], 2) + F.adaptive_max_pool1d(x.T[None], 2),
    "one_hot": lambda x: F.one_hot(tl.arange(x.shape[0]) % 3, 3),
    "the size": lambda x: (x.shape[0], x.numel() + 1, x.shape),
}


@pytest.mark.parametrize("name", DEPENDS)
def test_a_size_stays_a_size_of_the_argument(name: str) -> None:
    function = DEPENDS[name]
    if name == "the size":
        shapes = export(Function(lambda x: function(x)[:2]), (sample(6, 4),), dynamic_shapes=({0: Dim("rows")},))
        assert shapes.module()(sample(9, 4)) == (9, 37)
        return
    program = export(Function(function), (sample(6, 4),), dynamic_shapes=({0: Dim("rows")},))
    for rows in (4, 9, 12):
        x = sample(rows, 4)
        tl.testing.assert_close(program.module()(x), function(x.clone()))


FIXES: dict[str, tuple[Callable[[tl.Tensor], Any], str]] = {
    "reshape": (lambda x: x.reshape(6, 2, 2), "reshape works at the example's sizes only"),
    "expand": (lambda x: tl.ones(1, 4).expand(6, 4) + x, "add works at the example's sizes only"),
    "arange": (lambda x: x * tl.arange(6)[:, None], "mul works at the example's sizes only"),
    "int": (lambda x: x.reshape(int(x.shape[0] / 2), -1), "converted to one number"),
    "sqrt": (lambda x: x / math.sqrt(x.shape[0]), "converted to one number"),
    "equal": (lambda x: x if x.shape[0] == 6 else -x, r"another way at other sizes \(a size \(6\) eq 6\)"),
    "len": (lambda x: tl.arange(len(x)), r"len\(\) of a size that may vary"),
    "unbind": (lambda x: sum(x.unbind(0)), "the number of unbind's results depends on a size"),
    "split": (lambda x: x.split(3)[1], "the number of split's results depends on a size"),
}


@pytest.mark.parametrize("name", FIXES)
def test_what_fixes_a_size_is_an_error_that_names_the_line(name: str) -> None:
    function, message = FIXES[name]
    with pytest.raises(TraceError, match=f"{message}.*test_sizes.py:{function.__code__.co_firstlineno}"):
        export(Function(function), (sample(6, 4),), dynamic_shapes=({0: Dim("rows")},))


def test_a_size_that_the_recorder_does_not_see_is_found_by_the_comparison() -> None:
    def count(x: tl.Tensor) -> tl.Tensor:
        for _ in range(x.shape[0]):
            x = x + 1
        return x

    with pytest.raises(TraceError, match="another result 0 than the module at rows = 12"):
        export(Function(count), (sample(6, 4),), dynamic_shapes=({0: Dim("rows")},))


def test_a_comparison_that_decides_is_checked_in_each_call() -> None:
    program = export(
        Function(lambda x: x if x.shape[0] < 50 else -x), (sample(6, 4),), dynamic_shapes=({0: Dim("rows")},)
    )
    assert program.module()(sample(49, 4)).shape == (49, 4)
    with pytest.raises(TraceError, match=r"this size was not exported: a size \(6\) lt 50 .*test_sizes.py.* was True"):
        program.module()(sample(50, 4))


def test_the_limits_of_a_dim_are_checked() -> None:
    batch = Dim("batch", min=2, max=8)
    module = export(nn.Linear(4, 2), (sample(8, 4),), dynamic_shapes={"input": {0: batch}}).module()
    assert module(sample(2, 4)).shape == (2, 2)
    for rows in (1, 9):
        with pytest.raises(ShapeError, match=f"input has size {rows} at dim 0, but batch is at least 2 and at most 8"):
            module(sample(rows, 4))


def test_arguments_that_share_a_dim_have_one_size() -> None:
    class Add(nn.Module):
        def forward(self, x: tl.Tensor, y: tl.Tensor) -> tl.Tensor:
            return x + y

    batch = Dim("batch")
    module = export(Add(), (sample(3, 2), sample(3, 1)), dynamic_shapes=({0: batch}, (batch, None))).module()
    assert module(sample(5, 2), sample(5, 1)).shape == (5, 2)
    with pytest.raises(ShapeError, match="y has size 4 at dim 0, but batch is 5 before"):
        module(sample(5, 2), sample(4, 1))
    with pytest.raises(TraceError, match="add works at the example's sizes only"):
        export(Add(), (sample(3, 2), sample(3, 1)), dynamic_shapes=({0: batch}, {0: Dim("other")}))


def test_dynamic_and_static() -> None:
    module = export(nn.Linear(4, 2), (sample(3, 4),), dynamic_shapes=((Dim.DYNAMIC, Dim.STATIC),)).module()
    assert module(sample(7, 4)).shape == (7, 2)
    assert export(nn.Linear(4, 2), (sample(3, 4),), dynamic_shapes=({0: 3},)).range_constraints == {}


def test_a_size_is_an_int() -> None:
    seen: list[Any] = []

    def look(x: tl.Tensor) -> tl.Tensor:
        n = x.shape[0]
        seen.extend((n, n + 1, -n, n // 2, 2 * n, f"{n}", repr(n), n.__index__(), {n: 1}, x.shape[1]))
        return x

    export(Function(look), (sample(6, 4),), dynamic_shapes=({0: Dim("rows")},))
    n, *others = seen[:10]
    assert isinstance(n, SymInt)
    assert isinstance(n, int)
    assert others == [7, -6, 3, 12, "6", "6", 6, {6: 1}, 4]
    assert type(others[8]) is int
    assert n + 1 == 7
    assert type(n + 1) is int
    assert int(n) == 6


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"y": {0: Dim("a")}}, "no argument is called 'y'"),
        ({"x": {2: Dim("a")}}, "x has no dim 2"),
        ({"x": (Dim("a"),)}, "x has 2 dims, but 1 are declared"),
        ({"x": {0: Dim("a", max=5)}}, r"x has size 6 at dim 0, but Dim\('a', min=1, max=5\)"),
        ({"x": {0: Dim("a"), 1: Dim("a")}}, "two Dims have the name 'a'"),
        ({"x": {0: 5}}, "x has size 6 at dim 0, not 5"),
        ({"x": {0: Dim("a", min=6, max=6)}}, "a dim may only be at least 6 and at most 6 long"),
        (({0: Dim("a")}, None), "expected an entry for each of"),
    ],
    ids=range(8),
)
def test_declarations_that_do_not_fit(declared: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        export(Function(lambda x: x), (sample(6, 4),), dynamic_shapes=declared)


def test_wrong_dims() -> None:
    with pytest.raises(ArgumentTypeError, match="expected a Dim, got 'batch'"):
        export(Function(lambda x: x), (sample(6, 4),), dynamic_shapes=({0: "batch"},))
    with pytest.raises(ArgumentError, match="is not a name"):
        Dim("a b")
    with pytest.raises(ArgumentError, match="at least 3 and at most 2"):
        Dim("a", min=3, max=2)
    with pytest.raises(UnsupportedError, match="declare a Dim of its own"):
        2 * Dim("a")
    with pytest.raises(ArgumentError, match="cannot stand for others"):
        export(Function(lambda x: x), (sample(1, 4),), dynamic_shapes=({0: Dim("rows")},))
    same = Dim("a")
    with pytest.raises(ArgumentError, match="a is 6 elsewhere, and 4 in x"):
        export(Function(lambda x: x), (sample(6, 4),), dynamic_shapes=((same, same),))
    assert [d.__name__ for d in dims("a", "b", min=2)] == ["a", "b"]


DECIDED: dict[str, Callable[[tl.Tensor], Any]] = {
    "odd": lambda x: F.pad(x, (0, 0, 0, 1)) if x.size(0) % 2 else x,
    "even": lambda x: x if x.size(0) % 2 == 0 else -x,
    "halves": lambda x: x if x.size(0) // 2 * 2 == x.size(0) else -x,
    "factor": lambda x: x.sum() * (x.size(0) % 2 == 0),
    "as int": lambda x: x * int(x.size(0) % 2 == 0),
}


@pytest.mark.parametrize("name", DECIDED)
def test_what_decides_by_a_residue_is_checked(name: str) -> None:
    function = DECIDED[name]
    module = export(Function(function), (sample(4, 4),), dynamic_shapes=({0: Dim("rows")},)).module()
    tl.testing.assert_close(module(sample(6, 4)), function(sample(6, 4)))
    for rows in (3, 5, 9):
        with pytest.raises(TraceError, match="this size was not exported"):
            module(sample(rows, 4))


COMPUTED: dict[str, Callable[[Any], Any]] = {
    "and": lambda n: n & 3,
    "reflected and": lambda n: 3 & n,
    "or": lambda n: n | 1,
    "xor": lambda n: n ^ 5,
    "shifts": lambda n: (n >> 2) + (n << 1) + (1 << n),
    "invert": lambda n: ~n,
    "divmod": lambda n: divmod(n, 4)[1] * 10 + divmod(n, 4)[0],
    "reflected divmod": lambda n: divmod(100, n)[0] + divmod(100, n)[1],
    "trunc": lambda n: math.trunc(n / 3),
    "residue": lambda n: n % 4,
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_with_a_size_stays_one(name: str) -> None:
    function = COMPUTED[name]
    program = export(Function(lambda x: x * function(x.size(0))), (sample(4, 4),), dynamic_shapes=({0: Dim("rows")},))
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    for module in (program.module(), load(file).module()):
        for rows in (3, 4, 5, 9):
            tl.testing.assert_close(module(sample(rows, 4)), sample(rows, 4) * function(rows))


LEAKS: dict[str, Callable[[Any], Any]] = {
    "range": lambda n: len(range(n % 4)),
    "list": lambda n: len([1] * (n % 4)),
    "gcd": lambda n: math.gcd(n, 2),
    "isqrt": math.isqrt,
    "hash": lambda n: hash(n % 4),
    "text": lambda n: int(str(n)) % 4,
    "bits": lambda n: n.bit_length() - (n // 4).bit_length() + (n % 4).bit_count(),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_number_that_leaks_is_found_at_a_size_that_is_no_multiple(name: str) -> None:
    function = LEAKS[name]
    with pytest.raises(TraceError, match="another result 0 than the module at rows = "):
        export(Function(lambda x: x * function(x.size(0))), (sample(4, 4),), dynamic_shapes=({0: Dim("rows")},))


def test_a_size_that_the_module_refuses_may_be_refused_by_the_program() -> None:
    program = export(
        Function(lambda x: x.view(x.size(0) // 2, 2, 4)), (sample(4, 4),), dynamic_shapes=({0: Dim("rows")},)
    )
    assert program.module()(sample(6, 4)).shape == (3, 2, 4)
