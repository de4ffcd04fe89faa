"""Sums, products, quotients and powers: Python's operators and their PyTorch variants."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tallow.devices import array_module, device_type_of
from tallow.dtypes import Array, Scalar, get_default_dtype
from tallow.errors import ArgumentError, DtypeError, NumericError
from tallow.kernels import kernel, pick, run
from tallow.kernels.table import Limit
from tallow.ops.checks import expect_float, kind, no_floats, refuse_bool, refuse_bools
from tallow.ops.filling import factor
from tallow.ops.formulas import formula
from tallow.ops.maps import known_difference
from tallow.ops.quotients import floor_quotient, modulus, truncated_rest
from tallow.ops.second_order import Derived, Gradients, Unread
from tallow.ops.table import Result, op


def log(x: Any) -> Any:
    """Return ln(x) of an array or a Python number; a number stays a number, and does not widen arrays."""
    if hasattr(x, "dtype"):
        return array_module(x).log(x)
    return complex(np.log(x)) if isinstance(x, complex) else float(np.log(x))


@kernel("add", "array", into=np.add)
def add_array(a: Array | Scalar, b: Array | Scalar) -> Any:
    """Return a + b, broadcast."""
    return a + b


@kernel("sub", "array", into=np.subtract)
def sub_array(a: Array | Scalar, b: Array | Scalar) -> Any:
    """Return a - b, broadcast."""
    return a - b


@kernel("mul", "array", into=np.multiply)
def mul_array(a: Array | Scalar, b: Array | Scalar) -> Any:
    """Return a · b, broadcast."""
    return a * b


@kernel("div", "array", into=np.divide)
def div_array(a: Array | Scalar, b: Array | Scalar) -> Any:
    """Return a / b, broadcast."""
    return a / b


ADD, SUB, MUL, DIV = Limit("add"), Limit("sub"), Limit("mul"), Limit("div")


def _run(name: str, a: Any, b: Any) -> Any:
    """Call the best kernel of two operands, of which the first may be a number."""
    return run(name, a, b) if hasattr(a, "dtype") else pick(name, device_type_of(b), a, b).fn(a, b)


def _plus(a: Any, b: Any) -> Any:
    return a + b if type(a) is np.ndarray and a.size < ADD.size else _run("add", a, b)


def _minus(a: Any, b: Any) -> Any:
    return a - b if type(a) is np.ndarray and a.size < SUB.size else _run("sub", a, b)


def _times(a: Any, b: Any) -> Any:
    return a * b if type(a) is np.ndarray and a.size < MUL.size else _run("mul", a, b)


def _by(a: Any, b: Any) -> Any:
    return a / b if type(a) is np.ndarray and a.size < DIV.size else _run("div", a, b)


def _refuse_zero(name: str, divisor: Any) -> None:
    """Raise NumericError for a zero divisor of integers. Checked only on the host, where it needs no transfer."""
    if array_module(divisor) is np and not np.all(divisor):
        raise NumericError(f"{name}: integer division by zero", hint="mask the zeros first, or divide as floats")


def _check_factor(name: str, factor: Scalar, *operands: Any) -> None:
    if isinstance(factor, float) and no_floats(*operands):
        raise DtypeError(f"{name}: for integral input tensors, the factor must not be a floating point number")
    if isinstance(factor, bool) and any(kind(x) != "b" for x in operands):
        raise DtypeError(f"{name}: a boolean factor requires boolean operands", hint="use 1 or 0")


@op("tl Tensor Tensor_", dtypes="promote", value=operator.add, limit=ADD, numbers_alone=True, batched="elementwise")
def add(input: Array | Scalar, other: Array | Scalar, *, alpha: Scalar = 1) -> Result:
    """Return input + alpha · other, broadcast."""
    if alpha == 1 and alpha is not True:
        return _plus(input, other), lambda g: (g, g)
    _check_factor("add", alpha, input, other)
    return _plus_product(input, other, factor(alpha, other, "add")), lambda g: (g, lambda: g * alpha)


@add.second
def _(g: Derived, *, alpha: Scalar = 1) -> Gradients:
    return [g, g if alpha == 1 else g * alpha]


@op(
    "tl Tensor Tensor_", dtypes="promote", aliases=("subtract",), value=operator.sub, limit=SUB, numbers_alone=True,
    refuses="bool",
    batched="elementwise",
)  # fmt: skip
def sub(input: Array | Scalar, other: Array | Scalar, *, alpha: Scalar = 1) -> Result:
    """Return input - alpha · other, broadcast."""
    if alpha == 1 and alpha is not True:
        try:
            return _minus(input, other), lambda g: (g, lambda: -g)
        except TypeError:  # NumPy's, for booleans
            refuse_bools("sub", input, other)
            raise
    refuse_bools("sub", input, other)
    _check_factor("sub", alpha, input, other)
    return _minus_product(input, other, factor(alpha, other, "sub")), lambda g: (g, lambda: g * -alpha)


@sub.second
def _(g: Derived, *, alpha: Scalar = 1) -> Gradients:
    return [g, g * -alpha]


@formula
def _minus_product(x: Any, a: Any, b: Any) -> Any:
    return x - a * b


@op("tl Tensor", dtypes="promote", value=lambda a, b: b - a, limit=SUB, refuses="bool", batched="elementwise")
def rsub(input: Array, other: Array | Scalar, *, alpha: Scalar = 1) -> Result:
    """Return other - alpha · input, broadcast."""
    value, _ = sub.function(other, input, alpha=alpha)
    return value, lambda g: (lambda: g * -alpha, g)


rsub.second(lambda g, *, alpha: [g * -alpha, g])


@op(
    "tl Tensor Tensor_",
    dtypes="promote",
    aliases=("multiply",),
    value=operator.mul,
    limit=MUL,
    numbers_alone=True,
    batched="elementwise",
)
def mul(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return input · other, broadcast."""
    return _times(input, other), lambda g: (lambda: _times(g, other), lambda: _times(g, input))


mul.second(lambda g, *, input, other: [g * other, g * input])


@op(
    "tl Tensor Tensor_",
    dtypes="divide",
    aliases=("divide",),
    value=operator.truediv,
    limit=DIV,
    numbers_alone=True,
    batched="elementwise",
)
def div(input: Array | Scalar, other: Array | Scalar, *, rounding_mode: str | None = None) -> Result:
    """Return input / other, broadcast.

    Args:
        rounding_mode: "trunc" rounds towards zero, "floor" rounds down, None does not round.

    Dtypes: without rounding, integers divide as floats of the default dtype. With rounding they stay integers.

    Raises: NumericError for integers divided by zero with rounding.
    """
    if rounding_mode is not None:
        zeros = array_module(input, other).zeros_like  # rounding is piecewise constant
        return _rounded_quotient(input, other, rounding_mode), lambda g: (lambda: zeros(g), lambda: zeros(g))
    if no_floats(input, other):
        input, other = _as_float(input), _as_float(other)
    value: Any = _by(input, other)
    # From the operands, so that the quotient may be overwritten.
    return value, lambda g: (lambda: _by(g, other), lambda: -g * (input / other / other))


@div.second(unneeded="zeros")
def _of_quotient(g: Derived, *, input: Derived = None, other: Derived = None) -> Gradients:
    if other is None:  # it was rounded
        return [g * 0, g * 0]
    by_input = g / other
    return [by_input, -by_input * (input / other)]


@op("tl Tensor Tensor_", dtypes="float", numbers_alone=True, batched="elementwise")
def true_divide(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return input / other, broadcast."""
    return div.function(input, other)


true_divide.second(_of_quotient, unneeded="zeros")


def _as_float(x: Any) -> Any:
    """Convert integer arrays to the default dtype; Python numbers need no conversion."""
    return x.astype(get_default_dtype().storage) if hasattr(x, "dtype") else float(x)


def _wrap(x: Any, like: Any) -> Any:
    """Convert a Python integer to the dtype of `like`, if that is an integer array; overflow wraps around as in C."""
    return x if hasattr(x, "dtype") else np.asarray(int(x)).astype(like.dtype)[()]


def _rounded_quotient(input: Any, other: Any, rounding_mode: str) -> Any:
    if rounding_mode not in ("trunc", "floor"):
        raise ArgumentError(f"div: rounding_mode={rounding_mode!r}", hint="use None, 'trunc' or 'floor'")
    integers = no_floats(input, other)
    if integers:
        input, other = _wrap(input, other), _wrap(other, input)
        refuse_bool("div", input, other)
        _refuse_zero("div", other)
    if rounding_mode == "floor":
        return floor_quotient(input, other)
    if not integers:
        return array_module(input, other).trunc(input / other)
    down = input // other
    inexact = down * other != input
    return down + (inexact & ((input < 0) != (other < 0))).astype(down.dtype)


@op("tl Tensor Tensor_", dtypes="promote", numbers_alone=True, batched="elementwise")
def floor_divide(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return floor(input / other), broadcast.

    Raises: NumericError for integers divided by zero.
    """
    return _rounded_quotient(input, other, "floor"), None


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def remainder(input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return input - other · floor(input / other), broadcast: Python's `%`, with the sign of `other`.

    Raises: NumericError for integers divided by zero.
    """
    if no_floats(input, other):
        refuse_bool("remainder", input, other)
        _refuse_zero("remainder", other)
    return modulus(input, other), lambda g: (g, lambda: -g * floor_quotient(input, other))


remainder.piecewise()


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def fmod(input: Array, other: Array | Scalar) -> Result:
    """Return input - other · trunc(input / other), broadcast: C's `fmod`, with the sign of `input`.

    Raises: NumericError for integers divided by zero.
    """
    if no_floats(input, other):
        refuse_bool("fmod", input, other)
        _refuse_zero("fmod", other)
    xp = array_module(input, other)
    return truncated_rest(input, other), lambda g: (g, lambda: -g * xp.trunc(input / other))


fmod.piecewise()


@op("tl Tensor Tensor_", dtypes="divide", batched="elementwise")
def pow(input: Array | Scalar, exponent: Array | Scalar) -> Result:
    """Return `input` raised to the power of `exponent`, broadcast.

    dinput    = g · exponent · input^(exponent - 1), 0 where the exponent is 0
    dexponent = g · input^exponent · ln(input), 0 where the input is 0 and the exponent is not negative

    Raises: NumericError for integers raised to a negative number.
    """
    xp = array_module(input, exponent)
    integral = no_floats(input, exponent)
    value = _integer_power(_wrap(input, exponent), exponent) if integral else _power(input, exponent)

    if not hasattr(exponent, "dtype"):

        def by_number(g: Array) -> tuple[Any, ...]:
            return xp.zeros_like(g) if exponent == 0 else g * (exponent * _power(input, exponent - 1)), None

        return value, by_number

    def backward(g: Array) -> tuple[Any, ...]:
        def by_input() -> Any:
            return xp.where(exponent == 0, 0, g * exponent * input ** (exponent - 1))

        def by_exponent() -> Any:
            return xp.where((input == 0) & (exponent >= 0), 0, g * value * log(input))

        return by_input, by_exponent

    return value, backward


@pow.second
def _(g: Derived, *, input: Derived, exponent: Derived, value: Derived = None) -> Gradients:
    if value is None:  # the exponent is a number
        return [g * 0 if exponent == 0 else g * exponent * input ** (exponent - 1), None]
    logarithm = input.log() if hasattr(input, "dtype") else exponent.new_full((), input).log()
    by_input = (g * exponent * input ** (exponent - 1)).masked_fill(exponent == 0, 0)
    return [by_input, (g * value * logarithm).masked_fill(_is_not_negative(exponent) & (input == 0), 0)]


def _is_not_negative(exponent: Any) -> Any:
    """Return exponent >= 0 for a tensor or a number; for complex numbers, of the real part."""
    return getattr(exponent, "real", exponent) >= 0


def _power(input: Any, exponent: Any) -> Any:
    """Raise floats to a power. A few exponents beyond those that NumPy handles itself avoid C's slow `pow`."""
    if type(exponent) in (int, float):
        if exponent == 3:
            return input * input * input
        if exponent == -2:
            return 1 / (input * input)
        if exponent == -0.5:
            return 1 / array_module(input).sqrt(input)
    return input**exponent


def _integer_power(input: Any, exponent: Any) -> Any:
    """Raise integers to a power; negative exponents give 0, except for the bases 1 and -1."""
    refuse_bool("pow", input, exponent)
    if not hasattr(exponent, "dtype"):
        if exponent >= 0:
            return input**exponent
        raise NumericError(
            "pow: integers to negative integer powers are not allowed", hint="convert the input to float"
        )
    xp = array_module(exponent)
    power = input ** abs(exponent)
    return xp.where((exponent < 0) & (abs(input) != 1), power.dtype.type(0), power)


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def addcmul(input: Array, tensor1: Array, tensor2: Array, *, value: Scalar = 1) -> Result:
    """Return input + value · tensor1 · tensor2, broadcast."""
    _check_factor("addcmul", value, input, tensor1, tensor2)
    scaled = tensor1 if value == 1 else tensor1 * factor(value, tensor1, "addcmul")
    total = _plus_product(input, scaled, tensor2)
    return total, lambda g: (g, lambda: g * tensor2 * value, lambda: g * tensor1 * value)


addcmul.second(lambda g, *, tensor1, tensor2, value: [g, g * tensor2 * value, g * tensor1 * value])


@formula
def _plus_product(x: Any, a: Any, b: Any) -> Any:
    return x + a * b


@op("tl Tensor Tensor_", dtypes="promote", batched="elementwise")
def addcdiv(input: Array, tensor1: Array, tensor2: Array, *, value: Scalar = 1) -> Result:
    """Return input + value · tensor1 / tensor2, broadcast.

    Raises: DtypeError for integers.
    """
    if no_floats(input, tensor1, tensor2):
        raise DtypeError("addcdiv: integer division is not supported", hint="convert to float, or use div and add")

    def backward(g: Array) -> tuple[Any, ...]:
        return g, lambda: g * value / tensor2, lambda: g * -value * (tensor1 / tensor2) / tensor2

    return _plus_quotient(input, tensor1, tensor2, value), backward


@addcdiv.second
def _(g: Derived, *, tensor1: Derived, tensor2: Derived, value: Scalar) -> Gradients:
    by_tensor1 = g * value / tensor2
    return [g, by_tensor1, -by_tensor1 * (tensor1 / tensor2)]


@formula
def _plus_quotient(x: Any, a: Any, b: Any, factor: Scalar) -> Any:
    return x + factor * (a / b)


@op("tl Tensor Tensor_", batched="elementwise")
def lerp(input: Array, end: Array, weight: Array | Scalar) -> Result:
    """Return input + weight · (end - input), broadcast.

    Computed from `end` where the weight is at least one half, so that both ends are exact.
    """
    expect_float("lerp", input)
    if not hasattr(weight, "dtype"):
        weight = factor(weight, input, "lerp")
        value = run("lerp", *((input, end, weight) if abs(weight) < 0.5 else (end, input, 1 - weight)))
        return value, lambda g: (lambda: g * (1 - weight), lambda: g * weight, None)
    span = end - input
    xp = array_module(input)
    is_first = weight < 0.5 if weight.dtype.kind != "c" else xp.abs(weight) < 0.5
    value = xp.where(is_first, input + weight * span, end - (1 - weight) * span)
    return value, lambda g: (lambda: g * (1 - weight), lambda: g * weight, lambda: g * span)


@lerp.second
def _(g: Derived, *, input: Unread, end: Unread, weight: Derived, span: Derived = None) -> Gradients:
    by_weight = None if span is None else g * known_difference(end, input, span)
    return [g * (1 - weight), g * weight, by_weight]


@kernel("lerp", "array")
def lerp_array(a: Array, b: Array, weight: Scalar) -> Array:
    """Return a + weight · (b - a), broadcast."""
    value: Array = a + weight * (b - a)
    return value
