"""User-defined ops: the decorator that also defines the built-in ones."""

from __future__ import annotations

import re
import typing
from collections.abc import Sequence  # noqa: F401
from typing import Any, Optional, Union  # noqa: F401 - used in the annotations below

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray  # noqa: F401

import tallow as tl
from tallow import Tensor  # noqa: F401
from tallow.dtypes import Array, Scalar
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError
from tallow.ops.parameters import REQUIRED, form_of
from tallow.ops.table import OPS, Index, Ints, op  # noqa: F401

pytestmark = pytest.mark.usefixtures("forget_new_ops")


def test_a_function_without_annotations_takes_its_positional_arguments_as_operands():
    @tl.op
    def scaled_cube(x, *, scale=1.0):
        def backward(g):
            return (3 * scale * x * x * g,)

        return scale * x**3, backward

    x = tl.tensor([1.0, 2.0], dtype=tl.float64, requires_grad=True)
    y = scaled_cube(x, scale=2.0)
    assert y.tolist() == [2.0, 16.0]
    assert y.grad_fn.name() == "ScaledCubeBackward0"
    assert tl.autograd.gradcheck(lambda t: scaled_cube(t, scale=2.0), (x,))


def test_a_wrong_gradient_is_found_by_gradcheck():
    @tl.op
    def wrong_square(x):
        return x * x, lambda g: (3 * x * g,)

    x = tl.tensor([1.0, 2.0], dtype=tl.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="differs by up to"):
        tl.autograd.gradcheck(wrong_square, (x,))
    assert not tl.autograd.gradcheck(wrong_square, (x,), raise_exception=False)


def test_operands_are_broadcast_and_their_gradients_reduced():
    @tl.op(dtypes="promote")
    def weighted(x: Array, w: Array | Scalar):
        return x * w, lambda g: (lambda: g * w, lambda: g * x)

    x = tl.ones(2, 3, requires_grad=True)
    w = tl.tensor([[2.0], [3.0]], dtype=tl.float64, requires_grad=True)
    y = weighted(x, w)
    assert y.dtype is tl.float64
    y.sum().backward()
    assert x.grad.dtype is tl.float32
    assert x.grad.tolist() == [[2.0] * 3, [3.0] * 3]
    assert w.grad.tolist() == [[3.0], [3.0]]


def test_unneeded_gradients_are_not_computed():
    calls = []

    @tl.op
    def product(x, y):
        def backward(g):
            def dx():
                calls.append("x")
                return g * y

            def dy():
                calls.append("y")
                return g * x

            return dx, dy

        return x * y, backward

    product(tl.ones(2, requires_grad=True), tl.ones(2)).sum().backward()
    assert calls == ["x"]


@pytest.mark.parametrize("half", [tl.float16, tl.bfloat16], ids=str)
def test_sixteen_bit_operands_arrive_in_float32(half):
    seen = []

    @tl.op
    def doubled(x):
        seen.append(x.dtype)
        return x + x, lambda g: (seen.append(g.dtype) or g + g,)

    x = tl.tensor([1.5, 2.0], dtype=half, requires_grad=True)
    y = doubled(x)
    y.backward(tl.ones(2, dtype=half))
    assert seen == [np.float32, np.float32]
    assert y.dtype is half
    assert x.grad.dtype is half
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_op_can_be_a_method():
    @tl.op("Tensor Tensor_")
    def plus_one_for_test(x: Array):
        return x + 1, lambda g: (g,)

    x = tl.zeros(2)
    assert x.plus_one_for_test().tolist() == [1.0, 1.0]
    assert x.plus_one_for_test_() is x
    assert x.tolist() == [1.0, 1.0]
    del tl.Tensor.plus_one_for_test, tl.Tensor.plus_one_for_test_


def test_an_op_without_backward_has_outputs_that_need_no_gradient():
    @tl.op
    def rounded_for_test(x):
        return np.round(x), None

    assert not rounded_for_test(tl.ones(2, requires_grad=True)).requires_grad


def test_gradients_flow_through_differentiable_outputs_only():
    @tl.op(differentiable=1)
    def doubled_for_test(x):
        return (2 * x, x + 1), lambda g: (2 * g,)

    x = tl.ones(2, requires_grad=True)
    doubled, other = doubled_for_test(x)
    assert other.tolist() == [2, 2]
    assert not other.requires_grad
    doubled.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_errors_name_the_op_and_its_operands():
    @tl.op
    def stacked(x, y):
        return np.concatenate([x, y], axis=1), None

    with pytest.raises(ShapeError, match=r"stacked: .*operands: \(2, 3\) float32, \(4, 4\) float32"):
        stacked(tl.ones(2, 3), tl.ones(4, 4))
    reason = "the size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"
    message = f"add: {reason}; operands: (2, 3) float32, (2, 4) float32"
    with pytest.raises(ShapeError, match=f"^{re.escape(message)}$"):
        tl.ones(2, 3) + tl.ones(2, 4)
    with pytest.raises(DtypeError, match="stacked: expected operands to have the same dtype"):
        stacked(tl.ones(2, 3), tl.ones(2, 3, dtype=tl.float64))
    with pytest.raises(ArgumentTypeError, match="stacked: y must be a Tensor or a number, not list"):
        stacked(tl.ones(2, 3), [1.0])
    with pytest.raises(ArgumentTypeError, match="stacked: missing argument 'y'"):
        stacked(tl.ones(2, 3))


def test_a_name_can_be_registered_once():
    with pytest.raises(ArgumentError, match="op 'softmax' exists already"):
        op("", name="softmax")(lambda x: (x, None))


def test_unknown_places_and_rules_are_refused():
    with pytest.raises(ArgumentError, match="places="):
        op("nowhere", name="made_for_test")(lambda x: (x, None))
    with pytest.raises(ArgumentError, match="dtypes="):
        op("", name="made_for_test", dtypes="loose")(lambda x: (x, None))
    assert "made_for_test" not in OPS


Grid = NDArray[np.float64]
Bounded = typing.TypeVar("Bounded", bound=np.ndarray)
ONE = "np.ndarray", "NDArray[np.float32]", "NDArray", "Grid", "Array", "Tensor", "Bounded", "tl.nn.Parameter"
ABSENT = "np.ndarray | None", "Optional[np.ndarray]", "Union[None, Tensor]", "NDArray[np.float32] | None"
NUMBER = "np.ndarray | float", "Union[int, np.ndarray]", "Array | Scalar", "Grid | float | int"
SEVERAL = "Sequence[np.ndarray]", "list[Tensor]", "tuple[Grid, ...]", "typing.List[Array]", "Sequence[Array]"
ATTRIBUTE = "float", "int | None", "str", "list[int]", "dict[str, Any]", "typing.Literal['a']", "tl.dtype", "Ints"
T = typing.TypeVar("T")


class Convertible(typing.Protocol[T]):
    """A class that ArrayLike accepts by protocol, like NumPy's own."""

    def __array__(self) -> T: ...


UNCLEAR = "Any", "ArrayLike", "list", "dict[str, np.ndarray]", "np.ndarray | str", "Sequence[Array] | None", "Missing"
UNCLEAR += "Sequence[np.ndarray | None]", "typing.Iterable[np.ndarray]", "Convertible[int]", "1 / 0"


def parameter_of(annotation: object) -> Any:
    """Return the parameter `k` of an op with an array and `k`, with this annotation."""

    def made_for_test(x, k):
        return x, None

    made_for_test.__annotations__ = {"x": np.ndarray, "k": annotation}
    try:
        return op("")(made_for_test).parameters[1]
    finally:
        OPS.pop("made_for_test", None)


@pytest.mark.parametrize("resolve", [str, eval], ids=["string", "object"])
def test_annotations_define_operands(resolve: Any):
    """Test annotations as strings, as after `from __future__ import annotations`, and as objects."""

    def role_of(annotation: str) -> tuple[str, bool, bool]:
        parameter = parameter_of(eval(annotation) if resolve is eval else annotation)
        return parameter.role.name, parameter.is_optional, parameter.takes_numbers

    assert {role_of(a) for a in ONE} == {("OPERAND", False, False)}
    assert {role_of(a) for a in ABSENT} == {("OPERAND", True, False)}
    assert {role_of(a) for a in NUMBER} == {("OPERAND", False, True)}
    assert {role_of(a) for a in SEVERAL} == {("OPERANDS", False, False)}
    assert {role_of(a)[0] for a in ATTRIBUTE} == {"ATTRIBUTE", "INTS"}
    assert role_of("Index") == ("INDEX", False, False)


@pytest.mark.parametrize("annotation", UNCLEAR)
def test_unsupported_annotations_are_refused(annotation: str):
    with pytest.raises(ArgumentError, match=r"made_for_test: parameter 'k'.*\n.*write np.ndarray"):
        parameter_of(annotation)


def test_gradients_flow_through_operands_that_are_annotated_as_numpys():
    @tl.op
    def cube_for_test(x: np.ndarray):
        return x**3, lambda g: (3 * x * x * g,)

    @tl.op
    def scale_for_test(x, k: float):
        return k * x, lambda g: (k * g,)

    x = tl.tensor([1.0, 2.0], dtype=tl.float64, requires_grad=True)
    assert tl.autograd.gradcheck(cube_for_test, (x,))
    assert tl.autograd.gradcheck(lambda t: scale_for_test(t, 3.0), (x,))
    assert type(scale_for_test(x, k=2.0).array) is type(x.array)


def test_an_operand_whose_default_is_none_may_be_absent():
    @tl.op
    def shifted_for_test(x: np.ndarray, by: np.ndarray = None):  # type: ignore[assignment]
        return (x if by is None else x + by), lambda g: (g, None if by is None else g)

    x = tl.ones(2, requires_grad=True)
    assert shifted_for_test(x).tolist() == shifted_for_test(x, None).tolist() == [1.0, 1.0]
    assert shifted_for_test(x, by=x).tolist() == [2.0, 2.0]


def test_a_tensor_at_an_attribute_is_a_number_or_refused():
    @tl.op
    def scale_for_test(x, k: float = 2.0, *, other=None):
        return k * x, lambda g: (k * g,)

    x = tl.ones(2)
    assert type(scale_for_test(x, tl.tensor(3.0)).array) is type(x.array)
    with pytest.raises(ArgumentTypeError, match="k is an attribute, so it cannot be a Tensor that requires grad"):
        scale_for_test(x, tl.tensor(3.0, requires_grad=True))
    with pytest.raises(ArgumentTypeError, match=r"k is an attribute, so it cannot be a Tensor of shape \(2,\)"):
        scale_for_test(x, k=x)
    with pytest.raises(ArgumentTypeError, match="other is an attribute"):
        scale_for_test(x, other=x)


def test_an_array_function_that_cannot_be_described_is_refused():
    with pytest.raises(ArgumentError, match="no parameter is an operand"):
        op("", name="made_for_test")(lambda *, k=1: (k, None))
    with pytest.raises(ArgumentError, match=r"cannot take \*args"):
        op("", name="made_for_test")(lambda *xs: (xs[0], None))

    def keyword_only(x: Array, *, y: Array):
        return x + y, None

    with pytest.raises(ArgumentError, match="parameter 'y' is an operand and keyword-only"):
        op("", name="made_for_test")(keyword_only)
    assert "made_for_test" not in OPS


def test_annotations_mean_the_same_in_every_module():
    """Annotation strings are evaluated once for all modules, so a name must mean the same in each."""
    for registered_op in OPS.values():
        names = registered_op.function.__globals__
        for p in registered_op.parameters:
            if p.annotation is REQUIRED:  # a user's op may have no annotation
                continue
            is_text = isinstance(p.annotation, str)  # a user's op may have the type itself
            form = form_of(eval(p.annotation, dict(names)) if is_text else p.annotation)
            assert form is not None
            assert form.role is p.role, f"{registered_op.name}: {p.name}"
