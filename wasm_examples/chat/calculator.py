"""Arithmetic from a text that a model wrote: it is parsed, never executed, and every number stays small."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from tallow.errors import ArgumentError

MOST_CHARACTERS = 200
MOST_DIGITS = 300  # of an integer; a float has as many before its point
DIGITS = 15  # of a float, which is what double precision guarantees

Number: TypeAlias = int | float

CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e}
FUNCTIONS: dict[str, Callable[..., Number]] = {
    "abs": abs,
    "ceil": math.ceil,
    "cos": math.cos,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": round,
    "sin": math.sin,
    "sqrt": math.sqrt,
    "tan": math.tan,
}


def calculate(expression: str) -> str:
    """Return the value of an expression of Python's arithmetic, with the constants and functions above.

    Raises:  ArgumentError for anything else, a value that is no real number, and numbers of more than 300 digits
    """
    if len(expression) > MOST_CHARACTERS:
        raise ArgumentError(f"the expression has {len(expression)} characters; the maximum is {MOST_CHARACTERS}")
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except SyntaxError as error:
        raise ArgumentError(f"{expression!r} is not arithmetic: {error.msg}") from error
    except (ArithmeticError, ValueError, TypeError, RecursionError, MemoryError) as error:
        message = error.args[-1] if error.args else type(error).__name__
        raise ArgumentError(f"{expression!r}: {message}") from error
    return str(value) if isinstance(value, int) else format(value, f".{DIGITS}g")


def _power(base: Number, exponent: Number) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        digits = exponent * math.log10(max(abs(base), 1))
        if digits > MOST_DIGITS:  # before it is computed: it could take hours
            raise OverflowError(f"{base}**{exponent} has more than {MOST_DIGITS} digits")
    return base**exponent


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Mult: operator.mul,
    ast.Pow: _power,
    ast.Sub: operator.sub,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def _value(node: ast.AST) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value):
            return _checked(value)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            return _checked(OPERATORS[type(sign)](_value(left), _value(right)))
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in OPERATORS:
            return _checked(OPERATORS[type(sign)](_value(operand)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return _checked(FUNCTIONS[name](*map(_value, arguments)))
    known = ", ".join([*CONSTANTS, *FUNCTIONS])
    raise ArgumentError(f"{ast.unparse(node)} is not arithmetic", hint=f"use numbers, + - * / // % ** and {known}")


def _checked(value: Any) -> Number:
    """Return a value that is a real number and not too large.  Raises: ArithmeticError"""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArithmeticError(f"{value} is no real number")
    if abs(value) >= 10**MOST_DIGITS or value != value:
        raise OverflowError(f"a number has more than {MOST_DIGITS} digits")
    return value
