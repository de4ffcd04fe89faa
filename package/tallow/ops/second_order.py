"""Rules of the second order: the gradient of an op as a function of tensors, so that it can be differentiated again.

An op's closure computes with arrays and is not recorded. For `create_graph=True` the engine calls the op's rule in its
place. The rule stands under the op and takes what the closure has saved, as keyword-only parameters with the names of
the closure's variables:

    @softmax.second(unneeded="last")
    def _(g: Derived, *, value: Derived, dim: int) -> Gradients:
        return [value * (g - (g * value).sum(dim, keepdim=True))]

There are several forms; each is one line or one function under the op.

| form | for an op | the function returns |
| --- | --- | --- |
| `second` | of any kind | the gradients of the operands, from those of the outputs |
| `slope` | of one operand, elementwise | the factor of the gradient, by `input` or by `value` |
| `linear` | that is linear in its one operand | the op's value for an array; the closure is its transpose |
| `definition` | that is a composition of other ops | the op's value, by those ops |
| `piecewise` | elementwise, with slopes that are constants | nothing: the closure itself is linear and symmetric |
| `moves` | whose gradients are elements of g, or zero | nothing: the closure shows which elements |

A parameter gets the variable of the closure, or of a function that the closure calls, that has its name.

- Annotated `Derived`: a tensor. One named as an operand of the op is connected with that operand's history, and `value`
  with that of the result, unless the op has a parameter of that name. Other arrays become constants. What is no array,
  such as a number or None in place of an optional operand, stays as it is.
- Annotated `Unread`: the operand of that name, of which the closure has saved nothing. Only its shape and its history
  count, its elements are zeros. None if it needs no gradient.
- Otherwise: the variable as it is.
- With a default: the variable may be absent, because closures of an op differ.

A variable of the closure that the rule neither takes nor names as `unneeded` is an error at the first use, so that none
is taken for a constant by mistake; tests/source/test_second_order.py reads the code of all ops.

The rules use methods of tensors and `Op.call` of other ops, so this package still imports nothing from above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

Derived = Any  # a Tensor; the class stands above
Unread = Any  # a Tensor without its elements
Gradients = Sequence[Any]  # of Tensor | None
F = TypeVar("F", bound=Callable[..., Any])


class Rule:
    """The rule of an op.

    Attributes:
        form: how `function` gives the gradients, see the module.
        function: None for a form that needs none.
        unneeded: variables of the closure that follow from others, or that only the closure needs.
        names: variable -> the operand, or `value`, that it holds, where it has another name.
        in_steps: the gradients depend on the operands in steps, so that they have derivatives, which are zero.
    """

    __slots__ = ("form", "function", "in_steps", "names", "unneeded")

    def __init__(
        self, form: str, function: Callable[..., Any] | None, unneeded: str, names: dict[str, str], in_steps: bool
    ) -> None:
        self.form, self.function, self.names, self.in_steps = form, function, names, in_steps
        self.unneeded = frozenset(unneeded.split())

    def parameters(self) -> list[tuple[str, str, bool]]:
        """Return name, annotation ("" if it has none) and whether it may be absent, of each parameter by name."""
        function = self.function
        if function is None:
            return []
        code, annotations = function.__code__, function.__annotations__
        first = 0 if self.form in ("slope", "moves") else code.co_argcount
        names = code.co_varnames[first : code.co_argcount + code.co_kwonlyargcount]
        optional = function.__kwdefaults__ or {}
        return [(name, str(annotations.get(name, "")), name in optional) for name in names]


class HasRule:
    """The forms in which the rule of an op is written, as methods of `Op`. See the module."""

    __slots__ = ("rule",)

    rule: Rule | None

    @overload
    def second(self, function: F, **options: Any) -> F: ...
    @overload
    def second(self, function: None = None, **options: Any) -> Callable[[F], F]: ...
    def second(self, function: Any = None, **options: Any) -> Any:
        """File the decorated function, which returns the gradients of the operands from those of the outputs.

        It is called as `function(*gs, **variables)`. An output without a gradient has zeros.

        Args:
            options: `unneeded`, names with blanks between them; `in_steps`; and the operand that a variable holds, by
                the variable's name. See `Rule`.
        """
        return self._file("second", function, options)

    @overload
    def slope(self, function: F, **options: Any) -> F: ...
    @overload
    def slope(self, function: None = None, **options: Any) -> Callable[[F], F]: ...
    def slope(self, function: Any = None, **options: Any) -> Any:
        """File a function of the variables, the derivative of the result by the one operand. Options: as `second`."""
        return self._file("slope", function, options)

    @overload
    def linear(self, function: F, **options: Any) -> F: ...
    @overload
    def linear(self, function: None = None, **options: Any) -> Callable[[F], F]: ...
    def linear(self, function: Any = None, **options: Any) -> Any:
        """File the decorated function, which returns the op's value for an array, as `function(array, **variables)`.

        The value may have another shape with the same elements. Options: as `second`.
        """
        return self._file("linear", function, options)

    @overload
    def definition(self, function: F, **options: Any) -> F: ...
    @overload
    def definition(self, function: None = None, **options: Any) -> Callable[[F], F]: ...
    def definition(self, function: Any = None, **options: Any) -> Any:
        """File the decorated function, which computes the op's value, or values, by other ops.

        A value may have another shape with the same elements. Options: as `second`.
        """
        return self._file("definition", function, options)

    def piecewise(self, *, in_steps: bool = False) -> None:
        """Declare that the closure multiplies g by constants, element by element, for each operand."""
        self._file("piecewise", _no_function, {"in_steps": in_steps})

    def moves(self, *, unless: Callable[..., str] | None = None) -> None:
        """Declare that each element of a gradient is one element of g, times a constant, or zero.

        Args:
            unless: a function of variables of the closure that returns why it is not so; "" if it is.
        """
        self._file("moves", unless or _no_function, {})

    def _file(self, form: str, function: F | None, options: dict[str, Any]) -> Any:
        if function is None:
            return lambda function: self._file(form, function, options)
        unneeded, in_steps = options.pop("unneeded", ""), options.pop("in_steps", False)
        self.rule = Rule(form, None if function is _no_function else function, unneeded, options, in_steps)
        return function


def _no_function() -> None:
    """Stand for the function of a form that needs none."""
