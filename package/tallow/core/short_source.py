"""Write the source of an op's function; `tallow.core.short_way` says what that is.

For silu it is:

    def silu(input=ABSENT, inplace=False, *rest, **others):
        if (
            isinstance(input, Tensor) and type(_input := input.array) is ndarray
            and ((_dtype := _input.dtype) is F32 or _dtype is F64 or _dtype in WHOLE)
            and (_mode := modes.usual) is not None and not rest and not others and inplace is False
        ):
            try:
                _computed = of_arrays(_input)
                if (
                    type(_result := _computed[0]) is not ndarray or _result is _input
                    or _mode is RECORDING and (input._requires_grad or input._base is not None)
                ):
                    return finish_few(op, _computed, _mode, input)
                return plain(_result, _mode)
            except Exception:  # the general way fails again, with an error that names the operands
                pass
        return optionally_inplace(op, (input, *rest), others, inplace)

Python itself binds the arguments; what a call does not need, it does not pay for. The names of the op's parameters are
its own; all local names begin with an underscore, and `short_way.RUNTIME` has the others. A source has at most
`MOST_LINES` lines, so that it can be read: the longer parts are functions of `tallow.core.short_runtime`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from keyword import iskeyword
from math import inf
from types import NoneType

from tallow.core.short_runtime import LITERALS, RUNTIME
from tallow.ops.parameters import REQUIRED, Parameter, Role
from tallow.ops.table import Op


class Form(Enum):
    """The ways to call an op."""

    function = "function"
    listed = "listed"  # its last argument, integers, cannot be spread: tl.permute(x, (0, 2, 1))
    inplace = "inplace"  # writes the value into the first operand
    optional_inplace = "optional_inplace"  # has PyTorch's last argument `inplace`
    operator = "operator"  # returns NotImplemented for operands of unknown types
    reflected = "reflected"  # an operator with its operands exchanged


FUNCTION = Form.function
OPERATORS = (Form.operator, Form.reflected)
MOST_LINES = 20
WIDTH = 140  # of the lines of the condition
FLOATS = "(_dtype is F32 or _dtype is F64)"
# Dtypes that need no conversion: no halves, and for an op with Python numbers no integers, whose dtype they may change.
DTYPES = {"float": "((_dtype := {0}.dtype) is F32 or _dtype is F64)", "keep": "(_dtype := {0}.dtype) is not None"}
ANY = "((_dtype := {0}.dtype) is F32 or _dtype is F64 or _dtype in WHOLE)"
INLINE_CHECKS = 4  # operands whose need of a gradient is checked without a call
FEW = 2  # operands that `finish_few` takes
NUMBERS_AND_TEXT = (int, float, str)
NOT_LITERAL = (inf, -inf)  # numbers whose text is a name; NaN would have to be compared by identity
# Names of the source's own variables, without their underscore: an operand cannot have them.
LOCALS = frozenset(("backward", "computed", "dtype", "mode", "output", "result"))
# Names that an op's parameter cannot have: those of the namespace, of builtins, and of other parameters.
_OWN = ("LIMIT", "defaults", "inplace", "of_arrays", "op", "others", "rest", "ufunc", "value_of")
_BUILTINS = ("Exception", "float", "int", "isinstance", "len", "list", "str", "tuple", "type")
RESERVED = frozenset((*RUNTIME, *_OWN, *_BUILTINS))


def source_of(op: Op, form: Form = FUNCTION, only_general: bool = False) -> str:
    """Return the source of an op's function in a form.

    Args:
        only_general: the function goes the general way with every call.
    """
    return "\n".join(_Writer(op, form).lines(only_general)) + "\n"


def _wrapped(conditions: Iterable[str]) -> list[str]:
    """Return conditions joined by `and`, in lines of at most `WIDTH` letters if each is shorter."""
    lines: list[str] = []
    for condition in conditions:
        joined = f"{lines[-1]} and {condition}" if lines else condition
        if lines and len(joined) <= WIDTH:
            lines[-1] = joined
        else:
            lines.append(f"and {condition}" if lines else condition)
    return lines


class _Writer:
    """Writes one function."""

    def __init__(self, op: Op, form: Form) -> None:
        self.op, self.form = op, form
        self.positional = [p for p in op.parameters if not p.is_keyword_only]
        self.keywords = [p for p in op.parameters if p.is_keyword_only]
        operands = [p for p in self.positional if p.is_operand]
        self.lead = operands[1 if form is Form.reflected else 0]  # its dtype is that of all operands
        self.ints = self.positional[op.spread] if op.spread is not None else None
        self.spread = self.ints if form is not Form.listed else None
        if form in OPERATORS:
            self.keywords, self.positional = [], operands[:2]
        self.operands = [p for p in self.positional if p.is_operand]  # that this form takes
        self.takes_list = self.lead.role is Role.OPERANDS

    def lines(self, only_general: bool) -> Iterator[str]:
        """Yield the lines of the function."""
        name = self.op.name
        yield f"def {name if name.isidentifier() and not iskeyword(name) else 'op'}({self.signature()}):"
        if not only_general and self.has_short_way():
            conditions = _wrapped(self.conditions())
            yield "    if ("
            yield from (f"        {line}" for line in conditions)
            yield "    ):"
            yield "        try:"
            yield from (f"            {line}" for line in self.body(MOST_LINES - len(conditions) - 7))
            yield "        except Exception:  # the general way fails again, with an error that names the operands"
            yield "            pass"
        yield f"    return {self.general_way()}"

    def has_short_way(self) -> bool:
        """Return whether there is one: not with names that the source uses itself, and sequences beside operands."""
        if any(p.name.startswith("_") or p.name in RESERVED for p in self.op.parameters):
            return False
        if any(p.name in LOCALS for p in self.op.parameters if not p.is_attribute or p is self.spread):
            return False
        if self.takes_list:
            return len(self.operands) == 1 and self.form in (FUNCTION, Form.listed)
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
            names = [p.name for p in self.positional]
            return f"operator_generally(op, {names[self.form is Form.reflected]}, {', '.join(names)})"
        given = "".join(f"*{p.name}, " if p is self.spread else f"{p.name}, " for p in self.positional)
        given += "" if self.spread is not None else "*rest"
        keywords = "".join(f"{p.name!r}: {p.name}, " for p in self.keywords)
        arguments = f"op, ({given.strip()}), " + (f"{{{keywords}**others}}" if keywords else "others")
        if self.form is Form.inplace:
            return f"inplace_generally({arguments})"
        if self.form is Form.optional_inplace:
            return f"optionally_inplace({arguments}, inplace)"
        return f"{'listed_generally' if self.form is Form.listed else 'generally'}({arguments})"

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
            elif p is self.ints:
                yield f"isinstance({p.name}, (tuple, list))"
            elif p.is_attribute:
                yield self.of_attribute(p)
        yield "(_mode := modes.usual) is not None"
        for p in self.keywords:
            yield f"{p.name} is None" if p.role is Role.INDEX else self.of_attribute(p)
        if self.form is Form.inplace:
            yield f"(_mode is INFERENCE or not {self.lead.name}._inference)"
        if self.form not in OPERATORS:
            yield "not others" if self.spread is not None else "not rest and not others"
        if self.form is Form.optional_inplace:
            yield "inplace is False"
        if self.form is Form.inplace:
            yield f"not ({self.is_recorded()})"

    def of_lead(self, p: Parameter) -> Iterator[str]:
        """The first operand: a tensor in NumPy whose dtype the op's rule leaves as it is; or a list of tensors."""
        if self.takes_list:
            yield f"(_{p.name} := arrays_of({p.name})) is not None"
            return
        array, rule = f"_{p.name}", self.op.dtypes
        yield f"isinstance({p.name}, Tensor) and type({array} := {p.name}.array) is ndarray"
        if rule != "keep" or len(self.operands) > 1 or self.form is Form.inplace:
            yield DTYPES.get(rule, ANY).format(array)

    def of_operand(self, p: Parameter) -> str:
        """An operand after the first: a tensor of the same dtype, or None, or a number beside floats."""
        name, array = p.name, f"_{p.name}"
        ways = [f"isinstance({name}, Tensor) and type({array} := {name}.array) is ndarray and {array}.dtype is _dtype"]
        if p.is_optional:
            ways.insert(0, f"({array} := {name}) is None")
        if p.takes_numbers:
            number = f"(type({array} := {name}) is float or type({array}) is int)"
            if self.op.dtypes == "promote":  # integers stay what they are beside an integer
                number += f" and ({FLOATS} or type({array}) is int and _dtype is I64)"
            elif self.op.dtypes != "float":
                number += f" and {FLOATS}"
            ways.append(number)
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
        types = self.op.checked.get(p.name)
        # The usual values are quicker to recognise: the default, or its type.
        kind = type(p.default) if type(p.default) in (types or NUMBERS_AND_TEXT) else types[0] if types else int
        is_singleton = p.default is None or p.default is False
        is_usual = f"{p.name} is {p.default}" if is_singleton else f"type({p.name}) is {kind.__name__}"
        if types is not None:  # the general way converts or refuses the others
            is_number = types[0] is float or types[0] is int
            ways = [
                f"type({p.name}) is {t.__name__}" for t in types if t is not NoneType and not (t is bool and is_number)
            ]
            return f"({' or '.join(dict.fromkeys([is_usual, *ways[:2]]))})"
        is_given = f"{p.name} is not ABSENT and " if p.default is REQUIRED else ""
        return f"({is_usual} or {is_given}not isinstance({p.name}, CONVERTED))"

    def is_recorded(self) -> str:
        """Return the condition that a gradient may flow to an operand."""
        if self.takes_list or len(self.operands) > INLINE_CHECKS:
            return f"_mode is RECORDING and needs_gradient({self.tensors()})"
        conditions = []
        for p in self.operands:
            needs = f"{p.name}._requires_grad or {p.name}._base is not None"
            is_certain = p is self.lead or not (p.takes_numbers or p.is_optional)
            conditions.append(needs if is_certain else f"_{p.name} is not {p.name} and ({needs})")
        return f"_mode is RECORDING and ({' or '.join(conditions)})"

    def has_value(self) -> list[str]:
        """Return the conditions that `Op.value` computes the value."""
        conditions = []
        if self.op.limit is not None:
            conditions.append(f"_{self.lead.name}.size < LIMIT.size")
        if self.op.dtypes not in DTYPES and not self.takes_list:  # else they are floats
            conditions.append(FLOATS)
        for p in self.keywords:
            if p.name == "dtype":  # which is None
                continue
            if p.default is None or isinstance(p.default, bool):
                conditions.append(f"{p.name} is {p.default}")
            else:
                conditions += [f"type({p.name}) is {type(p.default).__name__}", f"{p.name} == {self.default(p)}"]
        return conditions

    # ------------------------------------------------------------------------------------------------------ the call

    def arguments(self) -> list[str]:
        """Return the positional arguments of the array function."""
        own = [p for p in self.positional if not p.is_operand and p.role is not Role.INDEX and p is not self.spread]
        return [p.name if p in own else f"_{p.name}" for p in self.positional]

    def call(self) -> str:
        """Return the call of the array function."""
        return f"of_arrays({', '.join([*self.arguments(), *(f'{p.name}={p.name}' for p in self.keywords)])})"

    def value(self) -> str:
        """Return the call of `Op.value`."""
        return f"value_of({', '.join(self.arguments())})"

    def tensors(self) -> str:
        """Return the sequence of the operands: tensors, numbers and None."""
        return self.lead.name if self.takes_list else f"({', '.join(p.name for p in self.operands)},)"

    def finish(self, computed: str) -> str:
        """Return the call that makes the result from what the array function returned."""
        if self.takes_list or len(self.operands) > FEW:
            return f"finish(op, {computed}, {self.tensors()}, _mode)"
        return f"finish_few(op, {computed}, _mode, {', '.join(p.name for p in self.operands)})"

    def body(self, room: int) -> Iterator[str]:
        """Yield the lines that call the array function, below the condition; at most `room` of them."""
        if self.form is Form.inplace:
            return self.writing()
        if self.op.view:
            return self.view()
        if self.op.value is None:
            return self.result()
        return self.result_of_value(room)

    def writing(self) -> Iterator[str]:
        """Yield the lines that write the value into the first operand."""
        lead = self.lead.name
        if self.op.ufunc is not None:
            can_write = f"(_{lead}.flags.carray or is_writable(_{lead}))"  # the flags say so of most arrays
            limits, arguments = int(self.op.limit is not None), ", ".join(self.arguments())
            write, at_any_size = f"ufunc({arguments}, _{lead})", self.has_value()[limits:]
            if limits:
                write += f" if _{lead}.size < LIMIT.size else run_into({self.op.name!r}, _{lead}, {arguments})"
            yield f"if {' and '.join([can_write, *at_any_size])}:"
            yield f"    {write}"
            yield f"    note_write({lead})"
            yield f"    return {lead}"
        value = f"{self.call()}[0]"
        if self.op.value is not None and self.op.ufunc is None and not self.op.view:
            conditions = " and ".join(self.has_value())
            value = f"{self.value()} if {conditions} else {value}" if conditions else self.value()
        yield f"if written({lead}, {value}):"
        yield f"    return {lead}"

    def view(self) -> Iterator[str]:
        """Yield the lines that return a view."""
        rest = "".join(f"{argument}, " for argument in self.arguments()[1:]).rstrip()
        lead = f"op, {self.lead.name}, _{self.lead.name}"
        if self.op.value is not None:
            yield f"if not ({self.is_recorded()}):"
            yield f"    return view_of({lead}, {self.value()}, None, ({rest}) if _mode is RECORDING else None)"
        yield f"_result, _backward = {self.call()}"
        yield f"return view_of({lead}, _result, _backward, ({rest}) if _mode is RECORDING else None)"

    def result_of_value(self, room: int) -> Iterator[str]:
        """Yield the lines that return the result of an op that has `Op.value`."""
        finish = f"return {self.finish(self.call())}"
        yield f"if {' and '.join([*self.has_value(), f'not ({self.is_recorded()})'])}:"
        if self.op.result is None:
            yield from (f"    {line}" for line in self.tensor(self.value(), room - 2))
        else:
            yield f"    return finish(op, ({self.value()}, None), (), _mode)"
        yield finish

    def result(self) -> Iterator[str]:
        """Yield the lines that return the result of an op that has not."""
        own = [] if self.takes_list else [f"_result is _{p.name}" for p in self.operands]
        yield f"_computed = {self.call()}"
        yield f"if type(_result := _computed[0]) is not ndarray or {' or '.join([*own, self.is_recorded()])}:"
        yield f"    return {self.finish('_computed')}"
        yield "return plain(_result, _mode)"

    def tensor(self, array: str, room: int) -> list[str]:
        """Return the lines that make a tensor that has no history: without a call, if there is room for them."""
        lines = [
            f"_result = {array}",
            "_output = new(Tensor)",
            "_output.array = _result if type(_result) is ndarray else asarray(_result)",
            "if _mode is INFERENCE:",
            "    _output._inference = True",
            "return _output",
        ]
        return lines if len(lines) <= room else [f"return plain({array}, _mode)"]
