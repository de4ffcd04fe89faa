"""The table of ops, and the decorator that registers a function of arrays as an op.

An op takes arrays and attributes and returns `(value, backward)`:

- Operands take part in the dtype rules and may have a gradient. The annotations say which parameters are operands, and
  which of them may be absent, Python numbers, or sequences; see `tallow.ops.parameters`. Without an annotation, a
  positional parameter that has no default is an operand.
- A parameter annotated `Index` is an array that is passed unchanged and has no gradient: indices, masks, conditions.
- An attribute called `dtype` is the dtype that operands are converted to first, as in PyTorch's sum and softmax.
- Every other parameter is an attribute. The last one annotated `Ints` may be spread: `x.permute(0, 2, 1)`.
- `value` is an array, or a tuple of arrays.
- `backward(g)` (one `g` for each output) returns one entry for each operand, sequences flattened: an array that may
  still have broadcast dims; `None`; a function without arguments that is called only if that operand needs its
  gradient; or a `Roundable` of tallow.ops.half_gradients. `None` in place of `backward` means that the op has no
  derivative.

Only the variables that the backward closure refers to are kept alive for backward. From them the op's rule of the
second order, which stands under the op, computes gradients that can be differentiated; see tallow.ops.second_order.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Collection, Sequence
from types import NoneType
from typing import Any

import numpy as np

from tallow.dtypes import Array, Scalar
from tallow.errors import ArgumentError, ArgumentTypeError, warn
from tallow.kernels.table import Limit
from tallow.ops.complex_rules import REFUSED
from tallow.ops.parameters import REQUIRED, Index, Ints, Parameter, Role, parameters_of
from tallow.ops.second_order import HasRule, Rule

Backward = Callable[..., tuple[Any, ...]] | None
Result = tuple[Any, Backward]

__all__ = ["OPS", "Array", "Backward", "Index", "Ints", "Op", "Result", "Scalar", "op"]

RULES = {
    "same": "one dtype for all operands; float16 and bfloat16 are computed in float32 and rounded back",
    "mixed": "as 'same'; but operands in float32 beside a first one in float16 or bfloat16 are computed as they are",
    "promote": "operands of several dtypes are converted to their common one; halves as in 'same'",
    "float": "as 'promote', and integers become the default float dtype",
    "divide": "as 'promote', and a Python number operand of integers is not converted; elsewhere it wraps around",
    "first": "as 'same', and the other operands are converted to the dtype of the first",
    "keep": "any dtype: elements are only moved, and nothing is converted",
}
# What computes `Op.value` -> NumPy's function that takes the array to write to.
UFUNCS: dict[Any, np.ufunc] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.divide,
}
# How an op computes a batch under `vmap`; the rules are in tallow.functions.batching. Without one, for each element.
BATCHES = {
    "elementwise": "the operands broadcast, and so do the indices",
    "dim": "the attributes called dim, dims, dim0 and so on are dims of the operands; None is all dims",
    "leading": "dims before the last ones are batch dims already",
    "samples": "the first dim, of samples, which may be absent, is a batch dim already; parameters are shared",
    "itself": "the op has a rule of its own, under its name",
}
# Annotations of attributes whose types are checked, as PyTorch does -> the types. A bool is no int.
_CHECKED = {
    "int": (int,),
    "bool": (bool,),
    "str": (str,),
    "float": (float, int, bool),
    "Scalar": (int, float, bool, complex),
}
CHECKED: dict[Any, tuple[type, ...]] = _CHECKED | {f"{word} | None": (*t, NoneType) for word, t in _CHECKED.items()}
CHECKED |= {kind: _CHECKED[kind.__name__] for kind in (int, bool, str, float)}
PLACES = {
    "tl": "a function of the package: tl.softmax",
    "tl_": "a function of the package that works in place: tl.relu_",
    "Tensor": "a method: x.softmax",
    "Tensor_": "an in-place method: x.softmax_",
    "F": "a function of tallow.nn.functional",
    "F_": "as 'F', with a last argument `inplace`, and the function that works in place: F.relu_",
    "linalg": "a function of tallow.linalg, where its name has no prefix linalg_",
    "special": "a function of tallow.special",
}
# Other names of a parameter -> its own: those of NumPy, which PyTorch accepts; those of an overload of PyTorch's; and
# `input`, which PyTorch has where the formula in the documentation, and the parameter here, has a letter.
ALIASES = {
    "axis": ("dim",),
    "axis0": ("dim0",),
    "axis1": ("dim1",),
    "b": ("B",),
    "element": ("elements",),
    "indices": ("indices_or_sections",),
    "input": ("A", "L", "tensor", "x"),
    "input2": ("L",),
    "keepdims": ("keepdim",),
    "other": ("B", "src", "tensor"),
    "rcond": ("rtol",),
    "sections": ("indices_or_sections",),
    "self": ("input",),
    "split_size": ("split_size_or_sections",),
    "tensor_indices_or_sections": ("indices_or_sections",),
    "test_element": ("test_elements",),
    "train": ("training",),
    "x": ("input",),
    "x1": ("input",),
    "x2": ("other",),
}


def aliases_of(names: Collection[str]) -> dict[str, str]:
    """Return the other names of parameters, each with the parameter's own."""
    found = ((alias, next((own for own in owns if own in names), None)) for alias, owns in ALIASES.items())
    return {alias: own for alias, own in found if own is not None and alias not in names}


def _types_of(p: Parameter) -> tuple[type, ...] | None:
    """Return the types that an attribute must have; None if its annotation does not decide it."""
    types = CHECKED.get(p.annotation) if p.is_attribute and isinstance(p.annotation, str | type) else None
    return (*types, NoneType) if types is not None and p.default is None else types


OPS: dict[str, Op] = {}


class Op(HasRule):
    """An operation: its array function, its public places, its dtype rule, and its rule of the second order."""

    __slots__ = (
        "aliases",
        "all_defaults",
        "attributes",
        "batched",
        "call",
        "casts",
        "checked",
        "complex",
        "defaults",
        "differentiable",
        "dtypes",
        "function",
        "halves",
        "indices",
        "inplace",
        "keyword_indices",
        "limit",
        "listed",
        "name",
        "names",
        "numbers",
        "numbers_alone",
        "operands",
        "optional",
        "optional_inplace",
        "parameters",
        "places",
        "plain",
        "reads_per_operand",
        "refuses",
        "required",
        "result",
        "settings",
        "spread",
        "ufunc",
        "value",
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
        reads_per_operand: bool = True,
        value: Callable[..., Any] | None = None,
        limit: Limit | None = None,
        differentiable: int | None = None,
        numbers_alone: bool = False,
        refuses: str | None = None,
        batched: str | None = None,
    ) -> None:
        if batched is not None and batched not in BATCHES:
            raise ArgumentError(f"op {name}: batched={batched!r} not in {list(BATCHES)}")
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
        self.reads_per_operand = reads_per_operand
        self.value, self.limit = value, limit
        self.ufunc = value if isinstance(value, np.ufunc) else UFUNCS.get(value)
        self.differentiable = differentiable
        self.numbers_alone = numbers_alone
        self.refuses = refuses
        self.complex = name not in REFUSED
        self.batched = batched
        self.call: Any = None  # its functions on tensors, see tallow.core.short_way
        self.inplace: Any = None
        self.listed: Any = None
        self.optional_inplace: Any = None
        self.rule: Rule | None = None
        self.parameters = parameters_of(function, name)
        self.all_defaults = {p.name: p.default for p in self.parameters}
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
        # Precomputed for `tallow.core.arguments`.
        self.checked = {p.name: types for p in self.parameters if (types := _types_of(p)) is not None}
        self.settings = tuple([(i, self.checked.get(self.names[i])) for i in positions if parameters[i].is_attribute])
        self.attributes = frozenset([p.name for p in self.parameters if p.is_attribute and p.name != "dtype"])
        self.casts = "dtype" in [p.name for p in self.parameters]
        longest = self.names.index("dtype") if "dtype" in self.names else len(parameters)
        self.plain = 0 if any(is_sequence for _, is_sequence in self.operands) else longest

    def __repr__(self) -> str:
        return f"<op {self.name}{inspect.signature(self.function)}>"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments in the order of the signature, up to the last given one; keyword-only ones by name."""
        if len(args) > len(self.names) and self.spread is None:
            args, kwargs = self._factors_by_name(args, kwargs)
        values = self.packed(args)
        if kwargs:
            aliases = {} if self.all_defaults.keys() >= kwargs.keys() else aliases_of(self.all_defaults)
            kwargs = {aliases.get(k, k): v for k, v in kwargs.items()}  # a copy: a recorder gets the caller's own
            last = max((self.names.index(k) for k in kwargs if k in self.names), default=-1)
            for i in range(len(values), last + 1):
                default = self.defaults[i]
                value = kwargs.pop(self.names[i], default)
                if value is REQUIRED:
                    raise ArgumentTypeError(
                        f"{self.name}: missing argument {self.names[i]!r}; the parameters are {', '.join(self.names)}"
                    )
                values.append(value)
        if len(values) < self.required:
            raise ArgumentTypeError(
                f"{self.name}: missing argument {self.names[len(values)]!r}; the parameters are {', '.join(self.names)}"
            )
        return values, kwargs

    def packed(self, args: Sequence[Any]) -> list[Any]:
        """Return positional arguments with integers that are spread, x.permute(0, 2, 1), as one tuple."""
        values = list(args)
        if self.spread is not None and len(values) > self.spread and not isinstance(values[self.spread], tuple | list):
            values[self.spread :] = [tuple(values[self.spread :])]
        return values

    def _factors_by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a deprecated call with factors among the operands: add(input, alpha, other).

        As in PyTorch, a number before the first operand is `beta`, and one after it `alpha` or `value`.
        """
        operands, named = list(args), dict(kwargs)
        for place, names in ((0, ("beta",)), (1, ("alpha", "value"))):
            name = next((n for n in names if n in self.all_defaults and n not in self.names), None)
            if name is not None and isinstance(operands[place], int | float):
                named[name] = operands.pop(place)
        if len(operands) > len(self.names) or len(named) == len(kwargs):
            return args, kwargs
        warn(f"This overload of {self.name} is deprecated: pass {', '.join(named)} by name")
        return tuple(operands), named


def op(
    places: str = "tl Tensor",
    *,
    name: str | None = None,
    dtypes: str = "same",
    view: bool = False,
    result: Callable[..., Any] | None = None,
    aliases: Sequence[str] = (),
    halves: bool = False,
    reads_per_operand: bool = True,
    value: Callable[..., Any] | None = None,
    limit: Limit | None = None,
    differentiable: int | None = None,
    numbers_alone: bool = False,
    refuses: str | None = None,
    batched: str | None = None,
) -> Callable[[Callable[..., Result]], Op]:
    """Register a function of arrays in `OPS`, and make it public at `places`.

    Args:
        places: keys of `PLACES`; "" for an op that only other code applies.
        name: the public name, if it is a Python keyword or another op's array function needs the plain name.
        dtypes: a key of `RULES`.
        view: the value shares the memory of the first operand.
        result: makes the public result of an op with several outputs, such as a named tuple's class.
        aliases: further public names, at the same places.
        halves: float16 and bfloat16 operands are passed unchanged, because kernels take them; see
            tallow.kernels.halves. Results in float32 are still rounded. Gradients are float32 all the same.
        reads_per_operand: `backward` itself reads no array that a function it returns reads too. An array that only
            an unneeded gradient would read may then be overwritten before backward, as in PyTorch. Otherwise
            overwriting any saved array is an error.
        value: computes the value without the closure, where nothing is recorded: a function of NumPy's arrays, called
            with the arguments by position, and with floats, except by ops that only move elements. Keyword-only
            arguments have their defaults then. Its arrays are new ones, except for a `view`. What it raises is dropped:
            the op is called then.
        limit: below it, `value` is what the table of kernels chooses, for the first operand; from it on the op chooses.
            Without a limit, `value` asks the table itself.
        differentiable: the number of outputs through which gradients flow, the first ones; `backward` gets gradients
            of these only. Without it, all outputs.
        numbers_alone: all operands may be Python numbers; they become 0-d tensors, as in PyTorch. Otherwise at least
            one operand or index is a tensor.
        refuses: "bool" if no operand may be a boolean, not even one that would be promoted; "half" if none may be in
            float16 or bfloat16, as in PyTorch, which has no code for it.
        batched: a key of `BATCHES`, by which the op computes a batch under `vmap`.

    Raises: ArgumentError for a name that is already registered.
    """

    def register(function: Callable[..., Result]) -> Op:
        op = Op(
            function, name or function.__name__, places, dtypes, view, result, aliases, halves, reads_per_operand,
            value, limit, differentiable, numbers_alone, refuses, batched,
        )  # fmt: skip
        if op.name in OPS:
            raise ArgumentError(
                f"op {op.name!r} exists already, in {OPS[op.name].function.__module__}", hint="choose another name"
            )
        OPS[op.name] = op
        return op

    return register
