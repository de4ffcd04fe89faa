"""Render chat templates, programs from untrusted files, within bounds that Jinja's own sandbox lacks: time and memory.

Jinja's `SandboxedEnvironment` refuses unsafe attributes, but one line of a template can loop for hours or fill the
memory. Here a template may use a closed list of names, and has a budget for all operations. Jinja parses it and
compiles it to Python; in between, `template_tree` rewrites the tree so that every operation with a cost goes through
this module:

    every list of statements    first pays for the nodes in it, so that no loop, branch, macro or call is free
    operators, comparisons      `call_binop`, `compare`: pay for their operands before they compute
    a.b, a[b], a[b:c]           a closed list of methods by the type of `a`; slices pay for what they copy
    calls                       only methods of that list, macros, recursive loops and the globals
    filters, tests              a closed list, in `template_filters`
    {{ a }}, a ~ b, {% set %}   pay for the text that they produce

Statements that include other templates, or change the escaping, are refused. Nothing is computed while the template is
compiled: the optimizer is off, and the rewritten nodes are not constant. Sources are short, and their trees are not
deep.

The globals and filters are those of transformers, except `lipsum`, which writes random text.

Source:  transformers 5.23, `transformers/utils/chat_template_utils.py`
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import ext, nodes, pass_context, sandbox
from jinja2.exceptions import SecurityError
from jinja2.runtime import LoopContext, Macro, Undefined
from jinja2.utils import Cycler, Joiner, Namespace, object_type_repr
from markupsafe import Markup

from tallow.errors import TokenizerError
from tallow.text.template_budget import HINT, ITEM, Budget, Refusal
from tallow.text.template_filters import Filters, Group
from tallow.text.template_methods import (
    METHODS,
    EscapedField,
    Field,
    Join,
    Method,
    check_percent,
    growth,
    is_key,
    is_plain,
)
from tallow.text.template_tree import Rewriter, hidden

MAX_TOKENS = 3000  # of one expression or statement; the longest known have about 300
MAX_BITS = 2048  # of a number
MAX_NAME = 100  # characters of a name in an error
MAX_FORMAT = 1000  # characters of a format of dates

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gteq": operator.ge,
    "lt": operator.lt,
    "lteq": operator.le,
    "in": lambda value, container: value in container,
    "notin": lambda value, container: value not in container,
}
_OPERANDS = (int, float, str, list, tuple, dict, type(None), Undefined)
_LOOP = frozenset(
    (
        *("index", "index0", "revindex", "revindex0", "first", "last", "length"),
        *("depth", "depth0", "previtem", "nextitem", "cycle", "changed"),
    )
)
_MACRO = frozenset(("arguments", "caller", "catch_kwargs", "catch_varargs", "name"))


class ChatNamespace(Namespace):
    """The result of `namespace()`: attributes that a template can set; none begins with an underscore."""

    def __init__(self, budget: Budget, attributes: dict[str, Any]) -> None:
        super().__init__()
        object.__setattr__(self, "_budget", budget)
        for name, value in attributes.items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str) or name.startswith("_"):
            raise SecurityError("an attribute of a namespace that is not a name, or begins with an underscore")
        object.__getattribute__(self, "_budget").check_depth(value, only_data=True)
        super().__setitem__(name, value)

    @staticmethod
    def attributes_of(namespace: ChatNamespace) -> dict[str, Any]:
        """Return the attributes of a namespace."""
        return object.__getattribute__(namespace, "_Namespace__attrs")


class Global:
    """A function that every template may call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, /, *arguments: Any, **options: Any) -> Any:
        return self._function(*arguments, **options)


class Generation(ext.Extension):
    """The tag {% generation %}, which marks answers for training: the sandbox records where they are in the text."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's interface

    def parse(self, parser: Any) -> nodes.Node:
        """Parse the tag and its body."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        begin, end = (nodes.ExprStmt(hidden(name, nodes.Const(None), line), lineno=line) for name in ("begin", "end"))
        return nodes.Scope([begin, *body, end], lineno=line)


class Formatter(Field, sandbox.SandboxedFormatter):
    """Formatter of `str.format` with the sandbox's attribute access."""


class EscapedFormatter(EscapedField, sandbox.SandboxedEscapeFormatter):
    """`Formatter` for Markup strings."""


class Sandbox(sandbox.ImmutableSandboxedEnvironment):
    """Jinja environment of one template, whose operations pay from `budget`.

    Attributes:
        written: the characters of a rendering so far; whoever renders counts them.
        answers: where the texts that the template marks as answers begin and end.
    """

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self, budget: Budget) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[Generation, ext.loopcontrols],
            autoescape=False,
            optimized=False,
            finalize=self._print,
            cache_size=0,
        )
        self._budget = budget
        self.written = 0
        self.answers: list[tuple[int, int]] = []
        self.concat: Any = lambda parts: budget.join("", list(parts))
        own = Filters(self, budget)
        # The spaces keep templates from using these names; `map` and `select` look names up in `own`.
        inner = {" step": budget.step, " text": self._concatenate, " slice": self._slice, " spread": self._spread}
        inner |= {" key": self._key, " weighed": self._weighed, " begin": self._begin, " end": self._end}
        inner |= {f" {name}": self._comparison(name) for name in _COMPARE}
        self.filters = {**own.table, **inner}
        self.tests = own.tests  # type: ignore[assignment]
        functions: dict[str, Callable[..., Any]] = {
            "range": sandbox.safe_range,
            "dict": self._dict,
            "namespace": self._namespace,
            "cycler": Cycler,
        }
        functions |= {"joiner": Joiner, "raise_exception": self._refuse, "strftime_now": self._now}
        self.globals = {name: Global(function) for name, function in functions.items()}

    def compile_template(self, source: str) -> jinja2.Template:
        """Compile a template.

        Raises:  jinja2.TemplateSyntaxError; any exception of Jinja and Python for an invalid program
        """
        self._check_tokens(source)
        tree = self.parse(source)
        Rewriter().template(tree)
        return self.from_string(tree.set_environment(self))  # type: ignore[arg-type]

    def _check_tokens(self, source: str) -> None:
        """Refuse expressions so long that their tree is too deep to free."""
        count = 0
        for token in self._tokenize(source, None):
            count = 0 if token.type in ("block_begin", "variable_begin") else count + 1
            if count > MAX_TOKENS:
                raise jinja2.TemplateSyntaxError("the chat template is too large, or nests too deeply", token.lineno)

    # ------------------------------------------------------------------------------------------------------- operators

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        budget = self._budget
        if not isinstance(left, _OPERANDS) or not isinstance(right, _OPERANDS):
            raise TypeError(f"{type(left).__name__} {operator} {type(right).__name__}")
        if operator == "%" and isinstance(left, str):
            return self.percent(left, right)
        if isinstance(left, int) and isinstance(right, int):
            _check_numbers(operator, left, right)
        elif operator == "+" and isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
            if isinstance(left, Markup) or isinstance(right, Markup):
                budget.step(12)
            budget.reserve(growth(left, right) * (_slots(left) + _slots(right)))
        elif operator == "*":
            for value, times in ((left, right), (right, left)):
                if isinstance(value, str | list | tuple) and isinstance(times, int):
                    budget.reserve(_slots(value) * max(0, times))
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, str | list | tuple):
            budget.make(_slots(result))
        return result

    def percent(self, text: str, values: Any) -> str:
        """Return text % values."""
        check_percent(self._budget, text, values)
        result = text % values
        self._budget.make(len(result))
        return result

    def _comparison(self, name: str) -> Callable[[Any, Any], bool]:
        return lambda left, right: self.compare(name, left, right)

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """Compare two values, or test whether one contains the other."""
        budget = self._budget
        if name in ("in", "notin"):
            if isinstance(right, str):
                budget.search(len(right), len(left) if isinstance(left, str) else 0)
            elif isinstance(right, dict):
                if not is_plain(left) and not isinstance(left, Undefined):
                    raise TypeError(f"a {type(left).__name__} as a key")
            elif isinstance(right, range):
                budget.step(len(right) >> 2)
                budget.weigh(left)
            elif isinstance(right, Iterator | LoopContext):
                is_found = any(left is item or self.compare("eq", left, item) for item in right)
                return is_found is (name == "in")
            else:
                budget.weigh(left)
                budget.weigh(right)
        elif isinstance(left, str):
            budget.step(1 + (len(left) >> 8))
        elif not is_plain(left) and not is_plain(right):
            budget.weigh(left)
            budget.weigh(right)
        return _COMPARE[name](left, right)

    def _weighed(self, value: Any) -> Any:
        self._budget.weigh(value)
        return value

    # ----------------------------------------------------------------------------------------------- attributes, items

    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is dict and attribute not in METHODS[dict] and attribute in obj:
            return obj[attribute]
        return self.attribute(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Undefined):
            return obj[argument]  # raises
        if not is_plain(argument):
            if isinstance(argument, Undefined):
                return self._missing(obj, "undefined")
            raise TypeError(f"a {type(argument).__name__} in square brackets")
        if _may_index(obj):
            try:
                return obj[argument]
            except (TypeError, LookupError):
                pass
        return self.attribute(obj, argument) if isinstance(argument, str) else self._missing(obj, argument)

    def attribute(self, obj: Any, name: Any) -> Any:
        """Return an attribute that templates may use, or an undefined value, which raises on use."""
        if not isinstance(name, str):
            raise TypeError(f"a {type(name).__name__} as the name of an attribute")
        if isinstance(obj, Undefined):
            return super().getattr(obj, name)
        if isinstance(obj, ChatNamespace):
            attributes = ChatNamespace.attributes_of(obj)
            return attributes[name] if name in attributes else self._missing(obj, name)
        if isinstance(obj, LoopContext) and name in _LOOP:
            self._budget.step(len(obj) >> 3 if name in ("length", "revindex", "revindex0") else 0)
            value = self._changed(obj) if name == "changed" else getattr(obj, name)
            return Global(value) if name in ("changed", "cycle") else value
        if isinstance(obj, Macro) and name in _MACRO:
            return getattr(obj, name)
        if isinstance(obj, Group) and name in ("grouper", "list"):
            return getattr(obj, name)
        if isinstance(obj, Cycler) and name in ("current", "next", "reset"):
            return obj.current if name == "current" else Global(getattr(obj, name))
        if name == "fromkeys" and obj is self.globals["dict"]:
            return Global(self._fromkeys)
        if name in ("format", "format_map", "join") and isinstance(obj, str):
            return Join(self._budget, obj) if name == "join" else Global(self._format(obj, name))
        if name in METHODS.get(type(obj), ()):
            return self.method(obj, name)
        if hasattr(type(obj), name):
            return self.unsafe_undefined(obj, name)
        return self._missing(obj, name)

    def _missing(self, obj: Any, name: Any) -> Undefined:
        """Return an undefined value that does not keep `obj` alive."""
        kind = "attribute" if isinstance(name, str) else "element"
        hint = f"{object_type_repr(obj)} has no {kind} {name[:MAX_NAME] if isinstance(name, str) else name!r}"
        return self.undefined(hint)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Return an undefined value that raises SecurityError on use."""
        hint = f"access to attribute {attribute[:MAX_NAME]!r} of {object_type_repr(obj)} is unsafe."
        return self.undefined(hint, exc=SecurityError)

    def method(self, value: Any, name: str) -> Method:
        """Return a method of the closed list.  Raises: TypeError"""
        methods = METHODS.get(type(value), {})
        if name not in methods:
            raise TypeError(f"a {type(value).__name__} has no {name}")
        return Method(self._budget, value, name, methods[name])

    def _changed(self, loop: LoopContext) -> Callable[..., bool]:
        def changed(*values: Any) -> bool:
            self._budget.weigh(values)
            return loop.changed(*values)

        return changed

    def _format(self, text: str, name: str) -> Callable[..., str]:
        formatter = EscapedFormatter(self, escape=text.escape) if isinstance(text, Markup) else Formatter(self)
        formatter.budget = self._budget

        def format_paid(*arguments: Any, **options: Any) -> str:
            self._budget.step((20 if isinstance(text, Markup) else 6) + (len(text) >> 1))
            if name == "format_map":
                (options,), arguments = arguments, ()
            result = formatter.vformat(text, arguments, options)
            self._budget.make(len(result))
            return type(text)(result)

        return format_paid

    def _slice(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        """Return value[start:stop:step]."""
        if isinstance(value, str | list | tuple):
            positions = range(len(value))[start:stop:step]
            self._budget.make(len(positions) if isinstance(value, str) else ITEM * len(positions))
        elif not isinstance(value, range | Undefined):
            raise TypeError(f"a slice of a {type(value).__name__}")
        return value[start:stop:step]

    # ----------------------------------------------------------------------------------------------------------- calls

    def call(self, context: Any, function: Any, /, *arguments: Any, **options: Any) -> Any:
        """Call a function that templates may call, after paying for it."""
        options.pop("_loop_vars", None)
        options.pop("_block_vars", None)
        if isinstance(function, Method | Join):
            return function(*arguments, **options)
        self._budget.step(4)
        if isinstance(function, Undefined):
            return function()  # raises an error that names it
        if not isinstance(function, Global | Macro | LoopContext | Joiner):
            raise SecurityError(f"a {type(function).__name__} is called")
        for argument in (*arguments, *options.values()):
            self._budget.check_depth(argument, only_data=False)
        self._budget.enter()
        try:
            return function(*arguments, **options)
        finally:
            self._budget.leave()

    def _spread(self, values: Any) -> Any:
        """Return the values of f(*values) or f(**values), after paying for them."""
        if isinstance(values, dict):
            self._budget.make(ITEM * len(values))
            return values
        return self._budget.items(values)

    def _key(self, value: Any) -> Any:
        """Check a key of {key: ...}. The dict's size is limited by the source."""
        if not is_key(value) and not (isinstance(value, int) and value.bit_length() < 32):
            raise TokenizerError("the chat template uses something other than strings and small numbers as keys", HINT)
        return value

    def _dict(self, /, *pairs: Any, **options: Any) -> dict[Any, Any]:
        lists = [self._budget.items(values.items() if isinstance(values, dict) else values) for values in pairs]
        for values in lists:
            for key, _ in values:
                if not is_key(key):
                    raise TypeError(f"dict() with a {type(key).__name__} as a key")
        return dict(*lists, **options)

    def _fromkeys(self, keys: Any, value: Any = None) -> dict[Any, Any]:
        return self._dict([(key, value) for key in self._budget.items(keys)])

    def _namespace(self, /, *pairs: Any, **options: Any) -> ChatNamespace:
        return ChatNamespace(self._budget, self._dict(*pairs, **options))

    def _refuse(self, message: Any) -> None:
        raise Refusal(self._budget.text(message))

    def _now(self, format: str) -> str:
        if len(format) > MAX_FORMAT:
            raise TokenizerError(f"the chat template formats a date with {len(format)} characters", HINT)
        format.encode()  # raises for a lone surrogate, as strftime does before Python 3.14
        self._budget.step(len(format))
        return self._budget.text(datetime.now().strftime(format))

    # ----------------------------------------------------------------------------------------------------------- texts

    @pass_context  # without it Jinja calls this for constants, while it compiles
    def _print(self, context: Any, value: Any) -> str:
        """Return the text of {{ value }}."""
        return self._budget.text(value)

    def _begin(self, _: None) -> None:
        self.answers.append((self.written, self.written))

    def _end(self, _: None) -> None:
        self.answers[-1] = (self.answers[-1][0], self.written)

    def _concatenate(self, parts: list[Any]) -> str:
        """Return a ~ b ~ c."""
        return self._budget.join("", [str(self._budget.text(part)) for part in parts])


def _check_numbers(operator: str, left: int, right: int) -> None:
    """Refuse operations whose result is a huge number."""
    bits = left.bit_length() + right.bit_length()
    if operator == "**":
        bits = left.bit_length() * max(0, right)
    if bits > MAX_BITS and operator in ("*", "**", "+", "-"):
        what = "a power" if operator == "**" else "a number"
        raise TokenizerError(f"the chat template computes {what} of more than {MAX_BITS} bits", HINT)


def _slots(value: str | list[Any] | tuple[Any, ...]) -> int:
    return len(value) if isinstance(value, str) else ITEM * len(value)


def _may_index(value: Any) -> bool:
    return isinstance(value, str | list | tuple | dict | range)
