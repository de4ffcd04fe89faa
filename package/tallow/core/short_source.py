"""Write the source of an op's short way; `tallow.core.short_way` says what that is.

For softmax it is, somewhat shortened:

    def softmax(input=ABSENT, dim=None, dtype=None, *rest, **others):
        if (
            isinstance(input, Tensor)
            and type(_input := input.array) is ndarray
            and ((_dtype := _input.dtype) is F32 or _dtype is F64)
            and not isinstance(dim, Tensor)
            and dtype is None
            and not rest and not others and (_mode := modes.usual) is not None
        ):
            try:
                _result, _backward = of_arrays(_input, dim, dtype)
            except Exception:
                pass
            else:
                ...
                return _output
        return generally(op, (input, dim, dtype, *rest), others)

Python itself binds the arguments. The names of the op's parameters are its own; all local names begin with an
underscore, and `short_way.RUNTIME` lists the others.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from enum import Enum
from keyword import iskeyword
from math import inf
from typing import Any

import numpy as np

from tallow.ops.parameters import REQUIRED, Parameter, Role
from tallow.ops.table import INTEGERS, Op


class _Absent:
    """The default of a required parameter: the general way raises the error for it."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


class Form(Enum):
    """The ways to call an op."""

    function = "function"
    inplace = "inplace"  # writes the value into the first operand
    optional_inplace = "optional_inplace"  # has PyTorch's last argument `inplace`
    operator = "operator"  # returns NotImplemented for operands of unknown types
    reflected = "reflected"  # an operator with its operands exchanged


FUNCTION = Form.function
OPERATORS = (Form.operator, Form.reflected)
FLOATS = "(_dtype := {}.dtype) is F32 or _dtype is F64"
# Dtypes that need no conversion: no halves, and for an op with Python numbers no integers, whose dtype they may change.
ANY = FLOATS + " or _dtype is I64 or _dtype is BOOL or _dtype is I32 or _dtype is U8"
MOST_EDGES = 2  # operands that are recorded without a call
UFUNCS: dict[Any, np.ufunc] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.divide,
}
LITERALS = (int, float, str, bool, type(None))
NUMBERS_AND_TEXT = (int, float, str)
NOT_LITERAL = (inf, -inf)  # numbers whose text is a name; NaN would have to be compared by identity


def ufunc_of(op: Op) -> np.ufunc | None:
    """Return the function of NumPy that computes `Op.small` and takes the array to write to; None if there is none."""
    return op.small if isinstance(op.small, np.ufunc) else UFUNCS.get(op.small)


def source_of(op: Op, form: Form = FUNCTION, only_general: bool = False) -> str:
    """Return the source of an op's function in a form.

    Args:
        only_general: the function goes the general way with every call.
    """
    return "\n".join(_Writer(op, form).lines(only_general)) + "\n"


class _Writer:
    """Writes one function."""

    def __init__(self, op: Op, form: Form) -> None:
        self.op, self.form = op, form
        self.makes_view = op.view and form is not Form.inplace
        self.positional = [p for p in op.parameters if not p.is_keyword_only]
        self.keywords = [p for p in op.parameters if p.is_keyword_only]
        operands = [p for p in self.positional if p.is_operand]
        self.operands = operands
        self.lead = operands[1 if form is Form.reflected else 0]  # its dtype is that of all operands
        self.spread = self.positional[op.spread] if op.spread is not None else None
        if form in OPERATORS:
            self.keywords, self.positional = [], operands[:2]

    def lines(self, only_general: bool) -> Iterator[str]:
        """Yield the lines of the function."""
        name = self.op.name
        yield f"def {name if name.isidentifier() and not iskeyword(name) else 'op'}({self.signature()}):"
        if not only_general and self.has_short_way():
            yield "    if ("
            yield from (f"        {'and ' if i else ''}{c}" for i, c in enumerate(self.conditions()))
            yield "    ):"
            yield from self.short_way()
        yield f"    return {self.general_way()}"

    def has_short_way(self) -> bool:
        """Return whether there is one: not with names that the source uses itself, and sequences beside operands."""
        if any(p.name.startswith("_") or p.name in RESERVED for p in self.op.parameters):
            return False
        if any(p.name in LOCALS for p in self.op.parameters if not p.is_attribute or p is self.spread):
            return False
        if self.lead.role is Role.OPERANDS:
            return len(self.operands) == 1 and self.form is FUNCTION
        return all(p.role is not Role.OPERANDS for p in self.operands)

    # ---------------------------------------------------------------------------------------------------- arguments

    def signature(self) -> str:
        """Return the parameters: the op's own, and what takes all other arguments."""
        if self.form in OPERATORS:
            names = [p.name for p in self.positional]
            return ", ".join(names[::-1] if self.form is Form.reflected else names) + ", /"
        parts = [f"*{p.name}" if p is self.spread else f"{p.name}={self.default(p)}" for p in self.positional]
        if self.form is Form.optional_inplace:
            parts.append("inplace=False")
        if self.spread is None:
            parts.append("*rest")
        parts += [f"{p.name}={self.default(p)}" for p in self.keywords]
        return ", ".join([*parts, "**others"])

    def default(self, p: Parameter) -> str:
        """Return the default of a parameter."""
        if p.default is REQUIRED:
            return "ABSENT"
        is_literal = type(p.default) in LITERALS and p.default not in NOT_LITERAL
        return repr(p.default) if is_literal else f"defaults[{p.name!r}]"

    def general_way(self) -> str:
        """Return the call that hands all arguments to the general way."""
        if self.form in OPERATORS:
            return f"operator_generally(op, {', '.join(p.name for p in self.positional)})"
        given = "".join(f"*{p.name}, " if p is self.spread else f"{p.name}, " for p in self.positional)
        given += "" if self.spread is not None else "*rest"
        keywords = "".join(f"{p.name!r}: {p.name}, " for p in self.keywords)
        arguments = f"op, ({given.strip()}), " + (f"{{{keywords}**others}}" if keywords else "others")
        if self.form is Form.inplace:
            return f"inplace_generally({arguments})"
        if self.form is Form.optional_inplace:
            return f"optionally_inplace({arguments}, inplace)"
        return f"generally({arguments})"

    # --------------------------------------------------------------------------------------------------- conditions

    def conditions(self) -> Iterator[str]:
        """Yield what must hold for a call to go the short way. They also name the arrays: `_input` is input's."""
        yield from self.of_lead(self.lead)
        for p in self.positional:
            if p.is_operand and p is not self.lead:
                yield self.of_operand(p)
            elif p.role is Role.INDEX:
                yield self.of_index(p)
            elif p is self.spread:
                n = p.name
                yield n
                is_one = f"len({n}) == 1 and isinstance({n}[0], (tuple, list))"
                yield f"(_{n} := {n}[0] if {is_one} else {n}) is not None"
            elif p.is_attribute:
                yield self.of_attribute(p)
        for p in self.keywords:
            yield f"{p.name} is None" if p.role is Role.INDEX else self.of_attribute(p)
        if self.form is Form.inplace:
            yield f"not {self.lead.name}._inference"
        if self.form not in OPERATORS:
            if self.spread is None:
                yield "not rest"
            yield "not others"
        if self.form is Form.optional_inplace:
            yield "inplace is False"
        yield "(_mode := modes.usual) is not None"
        if self.form is Form.inplace:
            yield f"not (_mode is RECORDING and ({self.any_needs_gradient()}))"

    def of_lead(self, p: Parameter) -> Iterator[str]:
        """The first operand: a tensor in NumPy whose dtype the op's rule leaves as it is; or a list of tensors."""
        if p.role is Role.OPERANDS:
            yield f"(_{p.name} := arrays_of({p.name})) is not None"
            return
        array = f"_{p.name}"
        yield f"isinstance({p.name}, Tensor)"
        yield f"type({array} := {p.name}.array) is ndarray"
        rule = self.op.dtypes
        if rule == "keep":
            if len(self.operands) > 1 or self.form is Form.inplace:
                yield f"(_dtype := {array}.dtype) is not None"
        else:
            yield f"({(FLOATS if rule == 'float' else ANY).format(array)})"

    def of_operand(self, p: Parameter) -> str:
        """An operand after the first: a tensor of the same dtype, or None, or a number beside floats."""
        name, array = p.name, f"_{p.name}"
        ways = [f"isinstance({name}, Tensor) and type({array} := {name}.array) is ndarray and {array}.dtype is _dtype"]
        if p.is_optional:
            ways.insert(0, f"({array} := {name}) is None")
        if p.takes_numbers:
            floats = "" if self.op.dtypes == "float" else " and (_dtype is F32 or _dtype is F64)"
            ways.append(f"(type({array} := {name}) is float or type({array}) is int){floats}")
        return f"({' or '.join(ways)})"

    def of_index(self, p: Parameter) -> str:
        """An index: a tensor or an array in NumPy, None if that is the default, or else a tuple of arrays."""
        name = p.name
        is_array = f"type(_{name} := {name}.array if isinstance({name}, Tensor) else {name}) is ndarray"
        is_tuple = f"type(_{name}) is tuple and are_arrays(_{name})"
        return f"({is_array} or {f'_{name} is None' if p.default is None else is_tuple})"

    def of_attribute(self, p: Parameter) -> str:
        """An attribute: anything but a tensor or a number of NumPy, of which the general way makes one of Python."""
        if p.name == "dtype" and p.default is not REQUIRED:
            return "dtype is None"  # of the computation: the general way converts the operands to it
        # The usual values are quicker to recognise: the default, or its type.
        usual = type(p.default).__name__ if type(p.default) in NUMBERS_AND_TEXT else "int"
        is_singleton = p.default is None or p.default is False
        is_usual = f"{p.name} is {p.default}" if is_singleton else f"type({p.name}) is {usual}"
        if p.annotation in INTEGERS:  # the general way converts or refuses the others
            return f"({is_usual} or type({p.name}) is int)" if p.default is None else is_usual
        is_given = f"{p.name} is not ABSENT and " if p.default is REQUIRED else ""
        return f"({is_usual} or {is_given}not isinstance({p.name}, CONVERTED))"

    def any_needs_gradient(self) -> str:
        """Return the condition that the op has to be recorded."""
        if self.lead.role is Role.OPERANDS:
            return f"needs_gradient({self.lead.name})"
        conditions = []
        for p in self.operands_here():
            base = "_source" if self.makes_view and p is self.lead else f"{p.name}._base"
            needs = f"{p.name}._requires_grad or {base} is not None"
            is_certain = p is self.lead or not (p.takes_numbers or p.is_optional)
            conditions.append(needs if is_certain else f"_{p.name} is not {p.name} and ({needs})")
        return " or ".join(conditions)

    def operands_here(self) -> list[Parameter]:
        """Return the operands that this form takes."""
        return [p for p in self.positional if p.is_operand]

    # ------------------------------------------------------------------------------------------------------ the call

    def call(self) -> str:
        """Return the call of the array function."""
        return f"of_arrays({', '.join(self.arguments())})"

    def is_small(self) -> str | None:
        """Return the condition that `Op.small` computes the value; None for an op without it."""
        if self.op.small is None:
            return None
        writes = self.form is Form.inplace and ufunc_of(self.op) is not None
        conditions = [] if self.form is Form.inplace else ["not _recorded"]
        if writes:
            conditions.append(self.may_write())
        if self.op.limit is not None:  # no kernel is as fast as NumPy in place
            conditions.append("LIMIT.size" if writes else f"_{self.lead.name}.size < LIMIT.size")
        if self.op.dtypes not in ("keep", "float") and self.lead.role is not Role.OPERANDS:  # else they are floats
            conditions.append("(_dtype is F32 or _dtype is F64)")
        for p in self.keywords:
            is_singleton = p.default is None or isinstance(p.default, bool)
            equal = f"{p.name} is {p.default}" if is_singleton else f"{p.name} == {self.default(p)}"
            conditions.append(equal if is_singleton else f"type({p.name}) is {type(p.default).__name__} and {equal}")
        return " and ".join(conditions) or None

    def may_write(self) -> str:
        """Return the condition that the first operand can be written: the flags say so of most arrays."""
        return f"(_{self.lead.name}.flags.carray or is_writable(_{self.lead.name}))"

    def arguments(self) -> list[str]:
        """Return the arguments of the array function."""
        parts = []
        for p in self.positional:
            is_unpacked = p.is_operand or p.role is Role.INDEX or p is self.spread
            parts.append(f"_{p.name}" if is_unpacked else p.name)
        parts += [f"{p.name}={p.name}" for p in self.keywords]
        return parts

    def tensors(self) -> str:
        """Return the tuple of the operands' tensors, with None for a number."""
        if self.lead.role is Role.OPERANDS:
            return self.lead.name
        parts = []
        for p in self.operands_here():
            is_certain = p is self.lead or not p.takes_numbers
            parts.append(p.name if is_certain else f"None if _{p.name} is {p.name} else {p.name}")
        return f"({', '.join(parts)},)"

    def short_way(self) -> Iterator[str]:
        """Yield the lines that call the array function, below the condition."""
        is_foreign = not self.op.function.__module__.startswith("tallow.")
        if is_foreign:  # a warnings filter serves tallow's own modules, see tallow.ops.float_warnings
            yield "        _token = suppress_warnings()"
        yield "        try:"
        if self.makes_view:
            yield f"            _source = {self.lead.name}._base"
        if self.form is not Form.inplace:
            yield f"            _recorded = _mode is RECORDING and ({self.any_needs_gradient()})"
        target = "_result, _" if self.form is Form.inplace else "_result, _backward"
        condition = self.is_small()
        if condition is None:
            yield f"            {target} = {self.call()}"
        else:
            yield f"            if {condition}:"
            yield from (f"                {line}" for line in self.small_value())
            yield "            else:"
            yield f"                {target} = {self.call()}"
        yield "        except Exception:  # the general way fails again, with an error that names the operands"
        yield "            pass"
        yield "        else:"
        yield from (f"            {line}" for line in self.result())
        if is_foreign:
            yield "        finally:"
            yield "            restore_warnings(_token)"

    def small_value(self) -> Iterator[str]:
        """Yield the lines that call `Op.small`, or the function of NumPy that does the same in place."""
        arguments = ", ".join(self.arguments()[: len(self.positional)])
        if self.form is Form.inplace and ufunc_of(self.op) is not None:
            yield f"ufunc({arguments}, _{self.lead.name})"
            yield f"note_write({self.lead.name})"
            yield f"return {self.lead.name}"
        elif self.form is not Form.inplace and (self.op.view or self.op.result is not None):
            yield f"_result, _backward = small({arguments}), None"
        else:
            yield f"_result = small({arguments})"

    def result(self) -> Iterator[str]:
        """Yield the lines that return the result of the array function."""
        lead = self.lead.name
        if self.form is Form.inplace:
            yield "if type(_result) is not ndarray and isinstance(_result, generic):"
            yield "    _result = asarray(_result)"
            yield "if type(_result) is ndarray and _result.dtype is _dtype:"
            yield f"    if _result.shape == _{lead}.shape and {self.may_write()}:"
            yield f"        _{lead}[...] = _result"
            yield f"        note_write({lead})"
            yield f"        return {lead}"
            return
        if self.makes_view:
            yield from self.view_result()
            return
        several = f"return outputs_of(op, _result, _backward, {self.tensors()})"
        yield "if type(_result) is not ndarray:"
        yield "    if not isinstance(_result, generic):"
        yield f"        {several}"
        yield "    _result = asarray(_result)"
        is_elementwise = self.op.small is not None and len(self.positional) == len(self.operands)
        if self.lead.role is not Role.OPERANDS and not is_elementwise:
            arrays = " or ".join(f"_result is _{p.name}" for p in self.operands_here())
            yield f"elif {arrays}:  # two tensors with different histories must not share one array"
            yield "    _result = _result[...]"
        yield "_output = new(Tensor)"
        yield "_output.array = _result"
        yield "if _recorded:"
        yield from (f"    {line}" for line in self.recording())
        yield "elif _mode is INFERENCE:"
        yield "    _output._inference = True"
        yield "return _output"

    def view_result(self) -> Iterator[str]:
        """Yield the lines that return a view; one that needs more than `views_of` does otherwise."""
        lead = self.lead.name
        rest = "".join(f"{argument}, " for argument in self.arguments()[1:]).rstrip()
        same = f"(_from := _result.base) is _{lead} or _from is not None and _from is _{lead}.base"
        yield f"if type(_result) is not ndarray or _result is _{lead} or not ({same}):"
        yield f"    return views_of(op, {lead}, ({rest}), NO_KEYWORDS, _result, _backward)"
        yield "_output = new(Tensor)"
        yield "_output.array = _result"
        yield "if _source is None:"
        yield f"    _source = {lead}"
        yield "_output._base = _source"
        yield "if _source._node is not None:"
        yield "    _output._base_node = _source._node"
        yield f"if {lead}._inference:"
        yield "    _output._inference = True"
        yield "if _mode is RECORDING:"
        yield f"    _output._view = of_arrays, ({rest}), NO_KEYWORDS, None, {lead}._view"
        yield "    if _recorded:"
        yield from (f"        {line}" for line in self.recording())
        yield "return _output"

    def recording(self) -> Iterator[str]:
        """Yield the lines that record the op. For one or two tensors they do what `record` does, without the call."""
        operands = self.operands_here()
        if self.lead.role is Role.OPERANDS or len(operands) > MOST_EDGES:
            yield "if _backward is not None:"
            yield f"    record(op, _backward, {self.tensors()}, _output)"
            return
        conditions, edges = [], []
        for p in operands:
            n = p.name
            is_certain = p is self.lead or not (p.takes_numbers or p.is_optional)
            plain = f"{n}._base is None and not {n}._inference"
            conditions.append(plain if is_certain else f"(_{n} is {n} or {plain})")
            edge = f"({n}._node or {n}) if {n}._requires_grad else None"
            edges.append(edge if is_certain else f"None if _{n} is {n} else {edge}")
        yield "if _backward is None:"
        yield "    pass"
        yield f"elif {' and '.join(conditions)} and (_result.dtype is F32 or _result.dtype is F64):"
        reads = "" if self.op.reads_per_operand else ", False"
        yield f"    _edges = ({', '.join(edges)},)"
        yield f"    _output._node = Node({self.op.name!r}, _backward, _edges, _result.shape, _result.dtype{reads})"
        yield "    _output._requires_grad = True"
        yield "else:"
        yield f"    record(op, _backward, {self.tensors()}, _output)"


# Names of the source's own variables, without their underscore: an operand cannot have them.
_LOCALS = "backward dtype edges from mode output parent recorded result source token"
LOCALS = frozenset(_LOCALS.split())
# Names that an op's parameter cannot have: those in `short_way.RUNTIME`, and of builtins.
_NAMES = (
    "ABSENT BOOL CONVERTED Exception F32 F64 I32 I64 INFERENCE LIMIT NO_KEYWORDS Node RECORDING Tensor U8 "
    "are_arrays arrays_of asarray defaults float generally generic inplace inplace_generally int is_writable "
    "isinstance len list modes ndarray needs_gradient new note_write of_arrays op operator_generally "
    "optionally_inplace others out outputs_of record rest restore_warnings small str suppress_warnings tuple type "
    "ufunc views_of"
)
RESERVED = frozenset(_NAMES.split())
