"""The generated functions of ops: they compute and fail exactly as the general way does."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import kernels
from tallow.core.apply import apply_generally, inplace_generally
from tallow.core.short_runtime import RUNTIME
from tallow.core.short_source import LOCALS, MOST_LINES, RESERVED, Form, source_of
from tallow.errors import ArgumentError, GraphError
from tallow.ops.parameters import Parameter, Role
from tallow.ops.table import OPS, Op

pytestmark = pytest.mark.cpu("the short way is for NumPy arrays")

# Without those that users make, and those of modules imported late, which have the general way only.
OWN = {name: op for name, op in OPS.items() if op.function.__module__.startswith("tallow.") and op.call is not None}
WRONG: dict[str, Any] = {
    "None": None,
    "text": "north",
    "float": 3.5,
    "far": -100,
    "list": [],
    "several": (1, 0, 2),
    "shape": tl.ones(5, 7),
    "integers": tl.tensor([[1, 2, 0], [0, 1, 2]]),
    "halves": tl.ones(2, 3, dtype=tl.float16),
    "doubles": tl.ones(2, 3, dtype=tl.float64),
    "booleans": tl.ones(2, 3) > 0,
    "array": np.ones((2, 3), np.float32),
}


def plausible(p: Parameter) -> Any:
    """Return an argument that many ops take."""
    if p.role is Role.OPERAND:
        return tl.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]])
    if p.role is Role.OPERANDS:
        return [tl.ones(2, 3), tl.zeros(2, 3)]
    if p.role is Role.INDEX:
        return tl.tensor([[0, 1, 0], [1, 0, 1]])
    if p.role is Role.INTS:
        return (3, 2)
    return 1 if p.default is not None and not isinstance(p.default, str | bool | float) else p.default


def calls(op: Op) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield wrong calls of an op, and some that are right."""
    positional = [p for p in op.parameters if not p.is_keyword_only]
    usual = [plausible(p) for p in positional]
    yield [], {}
    yield usual, {}
    yield [*usual, 1, 2, 3], {}
    yield usual[:1], {"unknown": 1}
    yield usual[:1], {p.name: plausible(p) for p in positional[1:]}
    yield [], {p.name: plausible(p) for p in positional[1:]}
    for wrong in WRONG.values():
        for i in range(len(positional)):
            yield [*usual[:i], wrong, *usual[i + 1 :]], {}
        for p in op.parameters:
            if p.is_keyword_only:
                yield usual, {p.name: wrong}


def outcome(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Return the values and dtypes of a call, or its error."""
    tl.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return described(function(*args, **kwargs))
        except Exception as error:  # the test is about all of them
            return type(error), str(error)


def described(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value), [described(v) for v in value]
    if isinstance(value, tl.Tensor):
        return value.dtype, value.array.shape, value.array.tobytes(), value.requires_grad, value._base is not None
    return value


@pytest.mark.parametrize("name", sorted(OWN))
def test_both_ways_give_the_same_values_and_the_same_errors(name: str) -> None:
    op = OWN[name]
    errors = 0
    for args, kwargs in calls(op):
        expected = outcome(lambda *a, **k: apply_generally(op, *a, **k), args, kwargs)
        assert outcome(op.call, args, kwargs) == expected, (args, kwargs)
        errors += isinstance(expected[0], type) and issubclass(expected[0], Exception)
    assert errors


@pytest.mark.parametrize("context", [tl.no_grad, tl.enable_grad])
@pytest.mark.parametrize("name", sorted(OWN))
def test_both_ways_need_the_same_kernels(name: str, context: Any) -> None:
    op = OWN[name]
    with context(), kernels.require("a backend without kernels"):
        for args, kwargs in calls(op):
            expected = outcome(lambda *a, **k: apply_generally(op, *a, **k), args, kwargs)
            assert outcome(op.call, args, kwargs) == expected, (args, kwargs)


@pytest.mark.parametrize("name", sorted(name for name, op in OWN.items() if op.inplace is not None))
def test_both_ways_write_the_same(name: str) -> None:
    op = OWN[name]
    for args, kwargs in calls(op):
        results = []
        for function in (op.inplace, lambda *a, **k: inplace_generally(op, *a, **k)):
            copies = [a.clone() if isinstance(a, tl.Tensor) else a for a in args]
            if not copies:
                continue
            version = copies[0]._version if isinstance(copies[0], tl.Tensor) else 0
            result = outcome(function, copies, kwargs)
            target = copies[0]
            is_tensor = isinstance(target, tl.Tensor)
            results.append((result, described(target), target._version - version if is_tensor else 0))
        assert len(results) < 2 or results[0] == results[1], (args, kwargs)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "pow", "matmul", "eq", "lt", "radd", "rsub", "rtruediv"]
)
def test_operators_refuse_unknown_types_and_take_the_others(name: str) -> None:
    operator = getattr(tl.Tensor, f"__{name}__")
    x = tl.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert operator(x, "text") is NotImplemented
    assert operator(x, None) is NotImplemented
    for other in (x, x.double(), x.half(), x.array, np.float32(2), 2, True, tl.tensor([1, 2])):
        if name != "matmul" or isinstance(other, tl.Tensor | np.ndarray):
            assert outcome(operator, [x, other], {}) is not NotImplemented


@pytest.mark.parametrize("context", [tl.no_grad, tl.inference_mode, tl.enable_grad])
def test_modes(context: Any) -> None:
    x = tl.ones(3, requires_grad=True)
    with context():
        results = [x + 1, x.exp(), x.reshape(3, 1), tl.cat([x, x]), x.reshape(1, 3).max(-1)[0]]
        assert [y.requires_grad for y in results] == [tl.is_grad_enabled()] * len(results)
        assert [y.is_inference() for y in results] == [
            tl.is_inference_mode_enabled() and y._base is None for y in results
        ]


def test_writes_to_tensors_made_in_inference_mode_go_the_short_way_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    with tl.inference_mode():
        x = tl.ones(2, 3)
        x.add_(1)  # generates the function
        monkeypatch.setattr("tallow.core.apply.inplace_generally", None)
        x.add_(tl.ones(2, 3)).mul_(2).clamp_(0.0, 5.0)
        assert (x == 5).all()
        assert x.is_inference()
    monkeypatch.undo()
    for write in (lambda: x.add_(1), lambda: x.__setitem__(0, 2.0)):
        with pytest.raises(GraphError, match="made in inference_mode cannot be changed in place outside"):
            write()
    assert (x == 5).all()


def test_warnings_become_none_even_if_numpy_raises() -> None:
    zero = tl.zeros(2)
    with np.errstate(all="raise"):
        assert (1 / zero).tolist() == [float("inf")] * 2
        assert (zero / zero).isnan().all()
        assert zero.log().tolist() == [-float("inf")] * 2


@pytest.mark.usefixtures("forget_new_ops")
def test_a_user_op_with_names_of_the_source_goes_the_general_way() -> None:
    @tl.op
    def plus(modes, result):  # type: ignore[no-untyped-def]
        return modes + result, lambda g: (g, g)

    assert plus(tl.ones(2), tl.ones(2)).tolist() == [2.0, 2.0]
    assert "of_arrays" not in tl.op.source("plus")
    assert {"of_arrays", "op", "value_of", "defaults", *RUNTIME} <= RESERVED
    assert not RESERVED & LOCALS


def test_source_and_traceback() -> None:
    assert "def softmax(input=ABSENT, dim=None, dtype=None" in tl.op.source("softmax")
    with pytest.raises(ArgumentError, match="no op 'softmux'"):
        tl.op.source("softmux")
    try:
        tl.ones(2).reshape(3)
    except Exception as error:
        lines = traceback.format_exception(error)
        assert any("return generally(op, (input, *shape" in line for line in lines)


@pytest.mark.parametrize("form", Form)
def test_the_source_of_each_op_compiles_and_is_short(form: Form) -> None:
    for op in OWN.values():
        operands = [p for p in op.parameters if p.is_operand]
        if form in (Form.function, Form.inplace) or (len(operands) > 1 and form in (Form.operator, Form.reflected)):
            source = source_of(op, form)
            compile(source, op.name, "exec")
            assert len(source.splitlines()) <= MOST_LINES, source
