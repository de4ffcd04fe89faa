"""The table of ops, and the decorator that files a function of arrays in it.

An op takes arrays and attributes and returns `(value, backward)`:

- Operands take part in the dtype rules and may have a gradient. The annotations say which parameters are operands, and
  which of them may be absent, Python numbers, or sequences; see `tallow.ops.parameters`. Without an annotation, a
  positional parameter that has no default is an operand.
- A parameter annotated `Index` is an array that is passed as it is and has no gradient: indices, masks, conditions.
- An attribute called `dtype` is what the operands are converted to before the op, as in PyTorch's sum and softmax.
- Every other parameter is an attribute. The last one annotated `Ints` may be spread: `x.permute(0, 2, 1)`.
- `value` is an array, or a tuple of arrays.
- `backward(g)` (one `g` for each output) returns one entry for each operand, sequences flattened: an array that
  broadcasting may still have widened, `None`, or a function without arguments that is called only if that operand
  needs its gradient, or a `Roundable` of tallow.ops.half_gradients. `None` in place of `backward` says that the op has
  no derivative.

What backward needs is what the closure names: nothing else is kept alive.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tallow.dtypes import Array, Scalar
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.ops.parameters import REQUIRED, Index, Ints, Role, parameters_of

Backward = Callable[..., tuple[Any, ...]] | None
Result = tuple[Any, Backward]

__all__ = ["OPS", "Array", "Backward", "Index", "Ints", "Op", "Result", "Scalar", "op"]

RULES = {
    "same": "one dtype for all operands; float16 and bfloat16 are computed in float32 and rounded back",
    "promote": "operands of several dtypes are converted to their common one; halves as in 'same'",
    "float": "as 'promote', and integers become the default float dtype",
    "divide": "as 'promote', and numbers beside integers stay as they are; elsewhere they wrap around",
    "keep": "any dtype, elements are only moved: nothing is converted",
}
PLACES = {
    "tl": "a function of the package: tl.softmax",
    "tl_": "a function of the package that works in place: tl.relu_",
    "Tensor": "a method: x.softmax",
    "Tensor_": "an in-place method: x.softmax_",
    "F": "a function of tallow.nn.functional",
    "F_": "the same with a last argument `inplace`, and the function that works in place: F.relu_",
    "linalg": "a function of tallow.linalg, whose name there is without linalg_",
    "special": "a function of tallow.special",
}
ALIASES = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "x1": "input",
    "x2": "other",
}  # PyTorch takes NumPy's words

OPS: dict[str, Op] = {}


class Op:
    """An operation: its array function, the places where it is offered, and how it treats dtypes."""

    __slots__ = (
        "aliases",
        "attributes",
        "casts",
        "defaults",
        "dtypes",
        "function",
        "halves",
        "indices",
        "keyword_indices",
        "name",
        "names",
        "numbers",
        "operands",
        "optional",
        "parameters",
        "places",
        "plain",
        "required",
        "result",
        "settings",
        "spread",
        "view",
    )

    def __init__(
        self,
        function: Callable[..., Result],
        name: str,
        places: str,
        dtypes: str,
        view: bool,
        result: Callable[..., Any] | None,
        aliases: Sequence[str] = (),
        halves: bool = False,
    ) -> None:
        if dtypes not in RULES or not set(places.split()) <= PLACES.keys():
            raise ArgumentError(
                f"op {name}: dtypes={dtypes!r} not in {list(RULES)}, or places={places!r} not in {list(PLACES)}"
            )
        self.function = function
        self.name = name
        self.aliases = tuple(aliases)
        self.places = tuple(places.split())
        self.dtypes = dtypes
        self.view = view
        self.result = result
        self.halves = halves
        self.parameters = parameters_of(function, name)
        parameters = [p for p in self.parameters if not p.is_keyword_only]
        keywords = self.parameters[len(parameters) :]
        positions = range(len(parameters))
        self.names = tuple([p.name for p in parameters])
        self.defaults = tuple([p.default for p in parameters])
        self.required = self.defaults.count(REQUIRED)
        self.operands = tuple([(i, p.role is Role.OPERANDS) for i, p in enumerate(parameters) if p.is_operand])
        self.numbers = frozenset([i for i, _ in self.operands if parameters[i].takes_numbers])
        self.optional = frozenset([i for i, _ in self.operands if parameters[i].is_optional])
        self.indices = tuple([i for i in positions if parameters[i].role is Role.INDEX])
        self.keyword_indices = frozenset([p.name for p in keywords if p.role is Role.INDEX])
        self.spread = positions[-1] if parameters[-1].role is Role.INTS else None
        # What the short way of `apply` asks of every call.
        self.settings = tuple([i for i in positions if parameters[i].is_attribute])
        self.attributes = frozenset([p.name for p in self.parameters if p.is_attribute and p.name != "dtype"])
        self.casts = "dtype" in [p.name for p in self.parameters]
        longest = self.names.index("dtype") if "dtype" in self.names else len(parameters)
        self.plain = 0 if any(is_sequence for _, is_sequence in self.operands) else longest

    def __repr__(self) -> str:
        return f"<op {self.name}{inspect.signature(self.function)}>"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments in the order of the signature, as far as given; what is keyword-only stays by name."""
        values = list(args)
        if self.spread is not None and len(values) > self.spread and not isinstance(values[self.spread], tuple | list):
            values[self.spread :] = [tuple(values[self.spread :])]
        if kwargs:
            kwargs = {k if k in self.names else ALIASES.get(k, k): v for k, v in kwargs.items()}
            last = max((self.names.index(k) for k in kwargs if k in self.names), default=-1)
            for i in range(len(values), last + 1):
                default = self.defaults[i]
                value = kwargs.pop(self.names[i], default)
                if value is REQUIRED:
                    raise ArgumentTypeError(
                        f"{self.name}: missing argument {self.names[i]!r}; the signature is {self!r}"
                    )
                values.append(value)
        if len(values) < self.required:
            raise ArgumentTypeError(
                f"{self.name}: missing argument {self.names[len(values)]!r}; the signature is {self!r}"
            )
        return values, kwargs


def op(
    places: str = "tl Tensor",
    *,
    name: str | None = None,
    dtypes: str = "same",
    view: bool = False,
    result: Callable[..., Any] | None = None,
    aliases: Sequence[str] = (),
    halves: bool = False,
) -> Callable[[Callable[..., Result]], Op]:
    """File a function of arrays in `OPS`, and offer it at `places`.

    Args:
        places: words of `PLACES`; "" for an op that only other code applies.
        name: the public name, where it is a Python keyword or another op's array function needs the plain one.
        dtypes: a word of `RULES`.
        view: the value shares the memory of the first operand.
        result: makes the public result of an op with several outputs, such as a named tuple's class.
        aliases: further public names, offered at the same places.
        halves: float16 and bfloat16 operands are passed as they are, because kernels take them; see
            tallow.kernels.halves. Results in float32 are still rounded. Gradients are float32 all the same.

    Raises: ArgumentError for a name that is taken.
    """

    def file(function: Callable[..., Result]) -> Op:
        made = Op(function, name or function.__name__, places, dtypes, view, result, aliases, halves)
        if made.name in OPS:
            raise ArgumentError(
                f"op {made.name!r} exists already, in {OPS[made.name].function.__module__}", mend="choose another name"
            )
        OPS[made.name] = made
        return made

    return file
