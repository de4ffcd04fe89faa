"""Exporters of functions of single elements: arithmetic, comparisons, logic, rounding and transcendental functions."""

from __future__ import annotations

import math
from typing import Any

from tallow import dtypes
from tallow.errors import UnsupportedError
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.registry import exports

# Name of an op -> the operator of ONNX that computes it without more.
UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "bitwise_not": "BitwiseNot", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp",
    "floor": "Floor", "log": "Log", "neg": "Neg",
    "reciprocal": "Reciprocal", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt",
    "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
BINARY = {
    "mul": "Mul", "true_divide": "Div", "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor", "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater",
    "ge": "GreaterOrEqual", "maximum": "Max", "minimum": "Min",
}  # fmt: skip
LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "bitwise_and": "And", "bitwise_or": "Or"}
LOGICAL |= {"bitwise_xor": "Xor", "mul": "And", "eq": "Equal", "maximum": "Or", "minimum": "And"}


def _unary(operator: str) -> Any:
    def exporter(g: Builder, input: Value) -> Value:
        if input.dtype is dtypes.bool and operator == "BitwiseNot":
            return g.op("Not", input)
        return g.op(operator, input)

    return exporter


def _binary(name: str, operator: str) -> Any:
    def exporter(g: Builder, input: Value, other: Value) -> Value:
        if input.dtype is dtypes.bool and name in LOGICAL:
            return g.op(LOGICAL[name], input, other)
        if input.dtype is dtypes.bool and operator not in ("Equal", "Div"):  # an order of booleans
            input, other = g.cast(input, dtypes.int32), g.cast(other, dtypes.int32)
        return g.op(operator, input, other)

    return exporter


for _name, _operator in UNARY.items():
    exports(_name)(_unary(_operator))
for _name, _operator in BINARY.items():
    exports(_name)(_binary(_name, _operator))


def scaled(g: Builder, value: Value, factor: Any) -> Value:
    """Return a value times a number, which may be 1."""
    return value if factor == 1 else g.op("Mul", value, g.scalar(factor, value))


@exports("add")
def _(g: Builder, input: Value, other: Value, alpha: Any = 1) -> Value:
    if input.dtype is dtypes.bool:
        return g.op("Or", input, other)
    return g.op("Add", input, scaled(g, other, alpha))


@exports("sub")
def _(g: Builder, input: Value, other: Value, alpha: Any = 1) -> Value:
    return g.op("Sub", input, scaled(g, other, alpha))


@exports("rsub")
def _(g: Builder, input: Value, other: Value, alpha: Any = 1) -> Value:
    return g.op("Sub", other, scaled(g, input, alpha))


@exports("div")
def _(g: Builder, input: Value, other: Value, rounding_mode: str | None = None) -> Value:
    if rounding_mode == "floor":
        return floor_divide(g, input, other)
    if rounding_mode == "trunc":
        quotient = g.op("Div", input, other)
        return trunc(g, quotient) if input.dtype.is_floating_point else quotient
    dtype = g.result.dtype
    return g.op("Div", g.cast(input, dtype), g.cast(other, dtype))


@exports("floor_divide")
def floor_divide(g: Builder, input: Value, other: Value) -> Value:
    """Return the quotient rounded down; Div of integers rounds towards zero."""
    if input.dtype.is_floating_point:
        return g.op("Floor", g.op("Div", input, other))
    return g.op("Div", g.op("Sub", input, g.op("Mod", input, other)), other)  # Div rounds towards zero


@exports("remainder")
def _(g: Builder, input: Value, other: Value) -> Value:
    """Return the remainder with the sign of the divisor; `Mod` of floats has that of the dividend."""
    if not input.dtype.is_floating_point:
        return g.op("Mod", input, other)
    rest = g.op("Mod", input, other, fmod=1)
    is_opposite = g.op("Less", g.op("Mul", g.op("Sign", rest), g.op("Sign", other)), 0.0)
    return g.op("Where", is_opposite, g.op("Add", rest, other), rest, dtype=input.dtype)


@exports("fmod")
def _(g: Builder, input: Value, other: Value) -> Value:
    return g.op("Mod", input, other, fmod=1)


@exports("pow")
def _(g: Builder, input: Value, exponent: Value) -> Value:
    if exponent.number == 2:
        return g.op("Mul", input, input)
    return g.op("Pow", input, exponent)


@exports("square")
def square(g: Builder, input: Value) -> Value:
    """Return x²."""
    return g.op("Mul", input, input)


@exports("rsqrt")
def _(g: Builder, input: Value) -> Value:
    return g.op("Reciprocal", g.op("Sqrt", input))


@exports("addcmul")
def _(g: Builder, input: Value, tensor1: Value, tensor2: Value, value: Any = 1) -> Value:
    return g.op("Add", input, scaled(g, g.op("Mul", tensor1, tensor2), value))


@exports("addcdiv")
def _(g: Builder, input: Value, tensor1: Value, tensor2: Value, value: Any = 1) -> Value:
    return g.op("Add", input, scaled(g, g.op("Div", tensor1, tensor2), value))


@exports("lerp")
def _(g: Builder, input: Value, end: Value, weight: Value) -> Value:
    weight = g.scalar(weight, input)
    return g.op("Add", input, g.op("Mul", weight, g.op("Sub", end, input)))


@exports("ne")
def _(g: Builder, input: Value, other: Value) -> Value:
    return g.op("Not", g.op("Equal", input, other))


def _as_bool(g: Builder, value: Value) -> Value:
    return g.cast(value, dtypes.bool)


@exports("logical_not")
def _(g: Builder, input: Value) -> Value:
    return g.op("Not", _as_bool(g, input))


@exports("logical_and")
def _(g: Builder, input: Value, other: Value) -> Value:
    return g.op("And", _as_bool(g, input), _as_bool(g, other))


@exports("logical_or")
def _(g: Builder, input: Value, other: Value) -> Value:
    return g.op("Or", _as_bool(g, input), _as_bool(g, other))


@exports("logical_xor")
def _(g: Builder, input: Value, other: Value) -> Value:
    return g.op("Xor", _as_bool(g, input), _as_bool(g, other))


@exports("fmax")
def _(g: Builder, input: Value, other: Value) -> Value:
    return _without_nan(g, "Max", input, other)


@exports("fmin")
def _(g: Builder, input: Value, other: Value) -> Value:
    return _without_nan(g, "Min", input, other)


def _without_nan(g: Builder, operator: str, input: Value, other: Value) -> Value:
    if not input.dtype.is_floating_point:
        return g.op(operator, input, other)
    chosen = g.op("Where", g.op("IsNaN", other), input, g.op(operator, input, other), dtype=input.dtype)
    return g.op("Where", g.op("IsNaN", input), other, chosen, dtype=input.dtype)


@exports("isfinite")
def _(g: Builder, input: Value) -> Value:
    if not input.dtype.is_floating_point:
        return g.op("Equal", input, input)
    return g.op("Not", g.op("Or", g.op("IsNaN", input), g.op("IsInf", input)))


def _test(operator: str, **attributes: Any) -> Any:
    def exporter(g: Builder, input: Value) -> Value:
        if not input.dtype.is_floating_point:
            return g.op("Not", g.op("Equal", input, input))
        return g.op(operator, input, **attributes)

    return exporter


exports("isnan")(_test("IsNaN"))
exports("isinf")(_test("IsInf"))
exports("isposinf")(_test("IsInf", detect_negative=0))
exports("isneginf")(_test("IsInf", detect_positive=0))


@exports("isclose")
def _(g: Builder, input: Value, other: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Value:
    if not input.dtype.is_floating_point:
        input, other = g.cast(input, dtypes.float64), g.cast(other, dtypes.float64)
    limit = g.op("Add", g.op("Mul", g.op("Abs", other), rtol), atol)
    near = g.op("LessOrEqual", g.op("Abs", g.op("Sub", input, other)), limit)
    near = g.op("Or", near, g.op("Equal", input, other))
    return g.op("Or", near, g.op("And", g.op("IsNaN", input), g.op("IsNaN", other))) if equal_nan else near


@exports("sign", "sgn")
def _(g: Builder, input: Value) -> Value:
    """Return the sign, which is 0 for NaN."""
    if not input.dtype.is_floating_point:
        return g.op("Sign", input)
    above, below = g.op("Greater", input, 0.0), g.op("Less", input, 0.0)
    return g.op("Sub", g.cast(above, input.dtype), g.cast(below, input.dtype))


@exports("nan_to_num")
def _(g: Builder, input: Value, nan: float, posinf: float, neginf: float) -> Value:
    for test, number in (("", nan), ("detect_negative", posinf), ("detect_positive", neginf)):
        attributes: dict[str, Any] = {test: 0} if test else {}
        found = g.op("IsInf" if test else "IsNaN", input, **attributes)
        input = g.op("Where", found, g.scalar(number, input), input, dtype=input.dtype)
    return input


@exports("trunc")
def trunc(g: Builder, input: Value) -> Value:
    """Round towards zero."""
    return g.op("Mul", g.op("Sign", input), g.op("Floor", g.op("Abs", input)))


@exports("frac")
def _(g: Builder, input: Value) -> Value:
    return g.op("Sub", input, trunc(g, input))


@exports("round")
def _(g: Builder, input: Value, decimals: int = 0) -> Value:
    if not input.dtype.is_floating_point:
        return input
    factor = 10.0**decimals
    rounded = g.op("Round", scaled(g, input, factor))
    return rounded if decimals == 0 else g.op("Div", rounded, factor)


@exports("signbit")
def signbit(g: Builder, input: Value) -> Value:
    """Return whether the sign is negative, also that of zero."""
    if not input.dtype.is_floating_point:
        return g.op("Less", input, 0)
    return g.op(
        "Less", g.op("Where", g.op("Equal", input, 0.0), g.op("Reciprocal", input), input, dtype=input.dtype), 0.0
    )


@exports("copysign")
def _(g: Builder, input: Value, other: Value) -> Value:
    size = g.op("Abs", input)
    return g.op("Where", signbit(g, other), g.op("Neg", size), size, dtype=input.dtype)


@exports("heaviside")
def _(g: Builder, input: Value, values: Value) -> Value:
    step = g.cast(g.op("Greater", input, 0), input.dtype)
    return g.op("Where", g.op("Equal", input, 0), values, step, dtype=input.dtype)


@exports("exp2")
def _(g: Builder, input: Value) -> Value:
    return g.op("Pow", g.scalar(2.0, input), input)


@exports("expm1")
def _(g: Builder, input: Value) -> Value:
    """Return exp(x) - 1 as 2 sinh(x / 2) exp(x / 2), which is exact near zero."""
    lowest = math.log(dtypes.finfo(input.dtype).eps) - 2  # the result is -1 from here on; sinh would overflow
    half = g.op(
        "Mul", g.op("Where", g.op("Less", input, lowest), g.scalar(lowest, input), input, dtype=input.dtype), 0.5
    )
    return g.op("Mul", g.op("Mul", g.op("Sinh", half), 2.0), g.op("Exp", half))


@exports("log1p")
def _(g: Builder, input: Value) -> Value:
    u = g.op("Add", input, 1.0)
    near = g.op("Equal", u, 1.0)  # Kahan's form: exact where 1 + x rounds
    safe = g.op("Where", near, g.scalar(2.0, input), u, dtype=input.dtype)
    ratio = g.op("Div", g.op("Mul", g.op("Log", safe), input), g.op("Sub", safe, 1.0))
    infinite = g.op("Where", g.op("IsInf", input, detect_negative=0), input, ratio, dtype=input.dtype)
    return g.op("Where", near, input, infinite, dtype=input.dtype)


@exports("log2")
def _(g: Builder, input: Value) -> Value:
    return g.op("Div", g.op("Log", input), math.log(2))


@exports("log10")
def _(g: Builder, input: Value) -> Value:
    return g.op("Div", g.op("Log", input), math.log(10))


@exports("erfc")
def _(g: Builder, input: Value) -> Value:
    return g.op("Sub", g.scalar(1.0, input), g.op("Erf", input))


@exports("sinc")
def _(g: Builder, input: Value) -> Value:
    zero = g.op("Equal", input, 0.0)
    x = g.op("Mul", g.op("Where", zero, g.scalar(1.0, input), input, dtype=input.dtype), math.pi)
    return g.op("Where", zero, g.scalar(1.0, input), g.op("Div", g.op("Sin", x), x), dtype=input.dtype)


@exports("logit")
def _(g: Builder, input: Value, eps: float | None = None) -> Value:
    if eps is not None:
        input = g.op("Clip", input, eps, 1.0 - eps)
    return g.op("Log", g.op("Div", input, g.op("Sub", g.scalar(1.0, input), input)))


@exports("xlogy")
def xlogy(g: Builder, input: Value, other: Value) -> Value:
    """Return x log y, which is 0 where x is."""
    zero = g.op("Equal", input, 0.0)
    product = g.op("Mul", input, g.op("Log", other))
    made = g.op("Where", zero, g.scalar(0.0, input), product, dtype=input.dtype)
    return g.op("Where", g.op("IsNaN", other), other, made, dtype=input.dtype)


@exports("logaddexp")
def logaddexp(g: Builder, input: Value, other: Value) -> Value:
    """Return log(exp(input) + exp(other))."""
    difference = _distance(g, input, other)
    return g.op("Add", g.op("Max", input, other), g.op("Log", g.op("Add", g.op("Exp", g.op("Neg", difference)), 1.0)))


def _distance(g: Builder, input: Value, other: Value) -> Value:
    """Return |input - other|, which is 0 for equal infinities."""
    size = g.op("Abs", g.op("Sub", input, other))
    made: Value = g.op("Where", g.op("Equal", input, other), g.scalar(0.0, input), size, dtype=input.dtype)
    return made


@exports("logaddexp2")
def _(g: Builder, input: Value, other: Value) -> Value:
    powers = g.op("Pow", g.scalar(2.0, input), g.op("Neg", _distance(g, input, other)))
    return g.op("Add", g.op("Max", input, other), g.op("Div", g.op("Log", g.op("Add", powers, 1.0)), math.log(2)))


@exports("ldexp")
def _(g: Builder, input: Value, exponent: Value) -> Value:
    return g.op("Mul", input, g.op("Pow", g.scalar(2.0, input), g.cast(exponent, input.dtype)))


@exports("entr")
def _(g: Builder, input: Value) -> Value:
    values = g.op("Neg", xlogy(g, input, input))
    lowest = g.scalar(-math.inf, input)
    return g.op("Where", g.op("Less", input, 0.0), lowest, values, dtype=input.dtype)


@exports("atan2")
def _(g: Builder, input: Value, other: Value) -> Value:
    angle = g.op("Atan", g.op("Div", input, other))
    turned = g.op(
        "Where", g.op("Less", input, 0.0), g.op("Sub", angle, math.pi), g.op("Add", angle, math.pi), dtype=input.dtype
    )
    angle = g.op("Where", g.op("Less", other, 0.0), turned, angle, dtype=input.dtype)
    both = g.op("And", g.op("Equal", input, 0.0), g.op("Equal", other, 0.0))
    return g.op("Where", both, g.scalar(0.0, input), angle, dtype=input.dtype)


@exports("hypot")
def _(g: Builder, input: Value, other: Value) -> Value:
    return g.op("Sqrt", g.op("Add", g.op("Mul", input, input), g.op("Mul", other, other)))


@exports("deg2rad")
def _(g: Builder, input: Value) -> Value:
    return g.op("Mul", input, math.pi / 180)


@exports("rad2deg")
def _(g: Builder, input: Value) -> Value:
    return g.op("Mul", input, 180 / math.pi)


@exports("bitwise_left_shift")
def _(g: Builder, input: Value, other: Value) -> Value:
    return _shifted(g, "Mul", input, other)


@exports("bitwise_right_shift")
def _(g: Builder, input: Value, other: Value) -> Value:
    return _shifted(g, "Div", input, other)


def _shifted(g: Builder, operator: str, input: Value, other: Value) -> Value:
    """Shift unsigned integers by BitShift, and others by a product or a quotient, in int64, with a power of 2."""
    if input.dtype.name.startswith("uint"):
        return g.op("BitShift", input, other, direction="LEFT" if operator == "Mul" else "RIGHT")
    wide, exponent = g.cast(input, dtypes.int64), g.cast(other, dtypes.int64)
    power = g.op("Pow", g.constant(2), exponent)
    return g.op("Mul", wide, power) if operator == "Mul" else floor_divide(g, wide, power)


@exports("clamp")
def clamp(g: Builder, input: Value, min: Value | None = None, max: Value | None = None) -> Value:
    """Limit the elements; Clip takes limits without dims only."""
    if (min is None or min.shape == ()) and (max is None or max.shape == ()) and input.dtype is not dtypes.bool:
        return g.op("Clip", input, min, max)
    for operator, limit in (("Max", min), ("Min", max)):
        input = input if limit is None else g.op(operator, input, limit)
    return input


@exports("clamp_min")
def _(g: Builder, input: Value, min: Value) -> Value:
    return clamp(g, input, min)


@exports("clamp_max")
def _(g: Builder, input: Value, max: Value) -> Value:
    return clamp(g, input, None, max)


@exports("where")
def _(g: Builder, condition: Value, input: Value, other: Value) -> Value:
    return g.op("Where", g.cast(condition, dtypes.bool), input, other, dtype=g.result.dtype)


@exports("masked_fill")
def _(g: Builder, input: Value, mask: Value, value: Value) -> Value:
    return g.op("Where", g.cast(mask, dtypes.bool), value, input, dtype=input.dtype)


@exports("fake_quantize")
def _(g: Builder, input: Value, scale: Value, zero_point: Value, quant_min: int, quant_max: int) -> Value:
    zero = g.cast(zero_point, input.dtype)
    scale = g.cast(scale, input.dtype)
    steps = g.op("Add", g.op("Round", g.op("Div", input, scale)), zero)
    return g.op("Mul", g.op("Sub", g.op("Clip", steps, float(quant_min), float(quant_max)), zero), scale)


@exports("detach", "clone", "to_device")
def _(g: Builder, input: Value) -> Value:
    return input


@exports("to_dtype")
def _(g: Builder, input: Value, dtype: dtypes.dtype) -> Value:
    return g.cast(input, dtypes.as_dtype(dtype))


@exports("copy")
def _(g: Builder, input: Value, src: Value) -> Value:
    return g.op("Expand", g.cast(src, input.dtype), g.ints(g.sizes(input)), dtype=input.dtype)


@exports("fill")
def _(g: Builder, input: Value, value: Value) -> Value:
    return g.op("Expand", g.scalar(value, input), g.ints(g.sizes(input)), dtype=input.dtype)


@exports("real_of", "conjugate")
def _(g: Builder, input: Value) -> Value:
    if input.dtype.is_complex:
        raise UnsupportedError("ONNX has no operators for complex numbers")
    return input


@exports("scaled_mask")
def _(g: Builder, input: Value, keep: Value, scale: float) -> Value:
    return g.op("Mul", g.op("Mul", input, g.cast(keep, input.dtype)), scale)
