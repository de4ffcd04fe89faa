"""Where chat templates run: Jinja with a closed list of what they may name, and a budget for all that they do.

A template is a program from a file that nobody has read. Jinja parses it, and compiles it to Python; between the two,
the tree is rewritten so that everything with a cost goes through this module:

    every list of statements    pays first for the nodes in it, so that no loop, branch, macro or call is free
    operators, comparisons      `call_binop`, `compare`: pay for their operands before they compute
    a.b, a[b], a[b:c]           a closed list of methods by the type of `a`; slices pay for what they copy
    calls                       methods of that list, macros, recursive loops and the globals; nothing else
    filters, tests              a closed list, in `template_filters`
    {{ a }}, a ~ b, {% set %}   pay for the text that they make

Statements that reach for other templates, or change how this one escapes, are refused. Nothing is computed while the
template is compiled: the optimizer is off, and what it would fold is not constant any more. Sources are short, and
their trees not deep.

The globals and filters are those of transformers, without `lipsum`, which writes random text.

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
from tallow.text.template_budget import ITEM, MEND, Budget, Refusal
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

MAX_NODES = 6000  # of a template's tree; the longest in use have some 1,300
MAX_NAMES = 500  # Jinja copies the table of names for every branch
MAX_TREE_DEPTH = 150
BLOCK_DEPTH = 5  # for how many levels a block in a block counts: to compile it takes more of the stack
MAX_TOKENS = 3000  # of one expression or statement; the longest in use have some 300
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
    "in": lambda value, holder: value in holder,
    "notin": lambda value, holder: value not in holder,
}
_OPERANDS = (int, float, str, list, tuple, dict, type(None), Undefined)
_LOOP = frozenset(
    (
        *("index", "index0", "revindex", "revindex0", "first", "last", "length"),
        *("depth", "depth0", "previtem", "nextitem", "cycle", "changed"),
    )
)
_MACRO = frozenset(("arguments", "caller", "catch_kwargs", "catch_varargs", "name"))
_REFUSED = (
    nodes.Block,
    nodes.EvalContextModifier,
    nodes.Extends,
    nodes.FromImport,
    nodes.Import,
    nodes.Include,
)


class ChatNamespace(Namespace):
    """What `namespace()` makes: attributes that a template can set, none of which begins with an underscore."""

    def __init__(self, budget: Budget, attributes: dict[str, Any]) -> None:
        super().__init__()
        object.__setattr__(self, "_budget", budget)
        for name, value in attributes.items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str) or name.startswith("_"):
            raise SecurityError("an attribute of a namespace that is no name, or begins with an underscore")
        object.__getattribute__(self, "_budget").check_depth(value, only_data=True)
        super().__setitem__(name, value)

    @staticmethod
    def attributes_of(namespace: ChatNamespace) -> dict[str, Any]:
        return object.__getattribute__(namespace, "_Namespace__attrs")


class Global:
    """A function that every template may call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, /, *arguments: Any, **options: Any) -> Any:
        return self._function(*arguments, **options)


class Generation(ext.Extension):
    """{% generation %} marks answers for training; here it changes nothing."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class Formatter(Field, sandbox.SandboxedFormatter):
    """`str.format`, which takes attributes as the sandbox does."""


class EscapedFormatter(EscapedField, sandbox.SandboxedEscapeFormatter):
    """The same of strings that are marked as HTML."""


class Sandbox(sandbox.ImmutableSandboxedEnvironment):
    """Jinja's environment for one template, whose operations pay out of `budget`."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self, budget: Budget) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[Generation, ext.loopcontrols],
            autoescape=False,
            optimized=False,
            finalize=self._shown,
            cache_size=0,
        )
        self._budget = budget
        self.concat: Any = lambda parts: budget.join("", list(parts))
        own = Filters(self, budget)
        # Spaces: no template can write these names, and `map` and `select` look into the tables of `own`.
        hidden = {" step": budget.step, " text": self._concatenated, " slice": self._slice, " spread": self._spread}
        hidden |= {" key": self._key, " weighed": self._weighed}
        hidden |= {f" {name}": self._comparison(name) for name in _COMPARE}
        self.filters = {**own.table, **hidden}
        self.tests = own.tests  # type: ignore[assignment]
        functions: dict[str, Callable[..., Any]] = {
            "range": sandbox.safe_range,
            "dict": self._dict,
            "namespace": self._namespace,
            "cycler": Cycler,
        }
        functions |= {"joiner": Joiner, "raise_exception": self._refuse, "strftime_now": self._now}
        self.globals = {name: Global(function) for name, function in functions.items()}

    def compiled(self, source: str) -> jinja2.Template:
        """The template.

        Raises:  jinja2.TemplateSyntaxError; whatever Jinja and Python raise for a program that is none
        """
        self._check_tokens(source)
        tree = self.parse(source)
        Rewriting().template(tree)
        return self.from_string(tree.set_environment(self))  # type: ignore[arg-type]

    def _check_tokens(self, source: str) -> None:
        """Refuse expressions so long that their tree is too deep to be freed."""
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
        made = super().call_binop(context, operator, left, right)
        if isinstance(made, str | list | tuple):
            budget.make(_slots(made))
        return made

    def percent(self, text: str, values: Any) -> str:
        """text % values."""
        check_percent(self._budget, text, values)
        made = text % values
        self._budget.make(len(made))
        return made

    def _comparison(self, name: str) -> Callable[[Any, Any], bool]:
        return lambda left, right: self.compare(name, left, right)

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """Compare two values, or look for one in the other."""
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
                found = any(left is item or self.compare("eq", left, item) for item in right)
                return found is (name == "in")
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
            return obj[argument]  # which raises
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
        """An attribute that templates may use, or an undefined value, which raises when it is used."""
        if not isinstance(name, str):
            raise TypeError(f"a {type(name).__name__} as the name of an attribute")
        if isinstance(obj, Undefined):
            return super().getattr(obj, name)
        if isinstance(obj, ChatNamespace):
            attributes = ChatNamespace.attributes_of(obj)
            return attributes[name] if name in attributes else self._missing(obj, name)
        if isinstance(obj, LoopContext) and name in _LOOP:
            self._budget.step(len(obj) >> 3 if name in ("length", "revindex", "revindex0") else 0)
            found = self._changed(obj) if name == "changed" else getattr(obj, name)
            return Global(found) if name in ("changed", "cycle") else found
        if isinstance(obj, Macro) and name in _MACRO:
            return getattr(obj, name)
        if isinstance(obj, Group) and name in ("grouper", "list"):
            return getattr(obj, name)
        if isinstance(obj, Cycler) and name in ("current", "next", "reset"):
            return obj.current if name == "current" else Global(getattr(obj, name))
        if name in ("format", "format_map", "join") and isinstance(obj, str):
            return Join(self._budget, obj) if name == "join" else Global(self._format(obj, name))
        if name in METHODS.get(type(obj), ()):
            return self.method(obj, name)
        if hasattr(type(obj), name):
            return self.unsafe_undefined(obj, name)
        return self._missing(obj, name)

    def _missing(self, obj: Any, name: Any) -> Undefined:
        """An undefined value that does not hold on to `obj`."""
        kind = "attribute" if isinstance(name, str) else "element"
        hint = f"{object_type_repr(obj)} has no {kind} {name[:MAX_NAME] if isinstance(name, str) else name!r}"
        return self.undefined(hint)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        hint = f"access to attribute {attribute[:MAX_NAME]!r} of {object_type_repr(obj)} is unsafe."
        return self.undefined(hint, exc=SecurityError)

    def method(self, value: Any, name: str) -> Method:
        """A method of the closed list."""
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

        def formatted(*arguments: Any, **options: Any) -> str:
            self._budget.step((20 if isinstance(text, Markup) else 6) + (len(text) >> 1))
            if name == "format_map":
                (options,), arguments = arguments, ()
            made = formatter.vformat(text, arguments, options)
            self._budget.make(len(made))
            return type(text)(made)

        return formatted

    def _slice(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        """value[start:stop:step]"""
        if isinstance(value, str | list | tuple):
            chosen = range(len(value))[start:stop:step]
            self._budget.make(len(chosen) if isinstance(value, str) else ITEM * len(chosen))
        elif not isinstance(value, range | Undefined):
            raise TypeError(f"a slice of a {type(value).__name__}")
        return value[start:stop:step]

    # ----------------------------------------------------------------------------------------------------------- calls

    def call(self, context: Any, function: Any, /, *arguments: Any, **options: Any) -> Any:
        options.pop("_loop_vars", None)
        options.pop("_block_vars", None)
        if isinstance(function, Method | Join):
            return function(*arguments, **options)
        self._budget.step(4)
        if isinstance(function, Undefined):
            return function()  # which raises what is undefined
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
        """The values of f(*values) or f(**values)."""
        if isinstance(values, dict):
            self._budget.make(ITEM * len(values))
            return values
        return self._budget.items(values)

    def _key(self, value: Any) -> Any:
        """A key of {key: ...}; such a dict is no larger than the source."""
        if not is_key(value) and not (isinstance(value, int) and value.bit_length() < 32):
            raise TokenizerError("the chat template uses something other than strings and small numbers as keys", MEND)
        return value

    def _dict(self, /, *pairs: Any, **options: Any) -> dict[Any, Any]:
        listed = [self._budget.items(values.items() if isinstance(values, dict) else values) for values in pairs]
        for values in listed:
            for key, _ in values:
                if not is_key(key):
                    raise TypeError(f"dict() with a {type(key).__name__} as a key")
        return dict(*listed, **options)

    def _namespace(self, /, *pairs: Any, **options: Any) -> ChatNamespace:
        return ChatNamespace(self._budget, self._dict(*pairs, **options))

    def _refuse(self, message: Any) -> None:
        raise Refusal(self._budget.text(message))

    def _now(self, format: str) -> str:
        if len(format) > MAX_FORMAT:
            raise TokenizerError(f"the chat template formats a date with {len(format)} characters", MEND)
        format.encode()  # raises for half a character, as strftime does until Python 3.14
        self._budget.step(len(format))
        return self._budget.text(datetime.now().strftime(format))

    # ----------------------------------------------------------------------------------------------------------- texts

    @pass_context  # without it Jinja calls this for constants, while it compiles
    def _shown(self, context: Any, value: Any) -> str:
        """What {{ value }} writes."""
        return self._budget.text(value)

    def _concatenated(self, parts: list[Any]) -> str:
        """a ~ b ~ c"""
        return self._budget.join("", [str(self._budget.text(part)) for part in parts])


def _check_numbers(operator: str, left: int, right: int) -> None:
    """Refuse what makes a huge number before it takes the time."""
    bits = left.bit_length() + right.bit_length()
    if operator == "**":
        bits = left.bit_length() * max(0, right)
    if bits > MAX_BITS and operator in ("*", "**", "+", "-"):
        what = "a power" if operator == "**" else "a number"
        raise TokenizerError(f"the chat template computes {what} of more than {MAX_BITS} bits", MEND)


def _slots(value: str | list[Any] | tuple[Any, ...]) -> int:
    return len(value) if isinstance(value, str) else ITEM * len(value)


def _may_index(value: Any) -> bool:
    return isinstance(value, str | list | tuple | dict | range)


class Rewriting:
    """Rewrites the tree of a template, so that all it does goes through a sandbox."""

    def __init__(self) -> None:
        self._nodes = 0
        self._names: set[str] = set()

    def template(self, tree: nodes.Template) -> None:
        tree.body = self._paid(tree.body, 0, 1)

    def _paid(self, body: list[nodes.Node], depth: int, line: int) -> list[nodes.Node]:
        """The statements, after one that pays for them."""
        inside = 1
        for i, node in enumerate(body):
            body[i], count = self._visit(node, depth)
            inside += count
        return [nodes.ExprStmt(_hidden("step", nodes.Const(inside), line), lineno=line), *body]

    def _visit(self, node: nodes.Node, depth: int) -> tuple[nodes.Node, int]:
        """The node that takes a node's place, and how many nodes run with it: those in other lists pay themselves."""
        self._nodes += 1
        line = node.lineno
        if isinstance(node, nodes.Name | nodes.Macro):
            self._names.add(node.name)
        if depth > MAX_TREE_DEPTH or self._nodes > MAX_NODES or len(self._names) > MAX_NAMES:
            raise jinja2.TemplateSyntaxError("the chat template is too large, or nests too deeply", line)
        if isinstance(node, _REFUSED):
            raise jinja2.TemplateSyntaxError(f"{type(node).__name__.lower()} has no place in a chat template", line)
        count = 1
        for name, value in node.iter_fields():
            if isinstance(value, nodes.Node):
                made, inside = self._visit(value, depth + 1)
                setattr(node, name, made)
                count += inside
            elif name == "body" or (name == "else_" and value):
                setattr(node, name, self._paid(value, depth + BLOCK_DEPTH, line))
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, nodes.Node):
                        value[i], inside = self._visit(item, depth + 1)
                        count += inside
        return self._rewritten(node, count), count

    def _rewritten(self, node: nodes.Node, count: int) -> nodes.Node:
        line = node.lineno
        if isinstance(node, nodes.For) and node.test is not None:
            # The test runs for items that the body never sees.
            node.test = nodes.And(_hidden("step", nodes.Const(count), line), node.test, lineno=line)
        elif isinstance(node, nodes.Call | nodes.Filter | nodes.Test):
            if node.dyn_args is not None:
                node.dyn_args = _hidden("spread", node.dyn_args, line)
            if node.dyn_kwargs is not None:
                node.dyn_kwargs = _hidden("spread", node.dyn_kwargs, line)
        elif isinstance(node, nodes.Pair):
            if not (isinstance(node.key, nodes.Const) and isinstance(node.key.value, str)):
                node.key = _hidden("key", node.key, line)
        elif isinstance(node, nodes.Concat):
            return _hidden("text", nodes.List(node.nodes, lineno=line), line)
        elif isinstance(node, nodes.Compare):
            return self._compared(node)
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
            parts = (node.arg.start, node.arg.stop, node.arg.step)
            return _hidden("slice", node.node, line, *(part or nodes.Const(None) for part in parts))
        return node

    def _compared(self, node: nodes.Compare) -> nodes.Expr:
        if len(node.ops) == 1:
            return _hidden(node.ops[0].op, node.expr, node.lineno, node.ops[0].expr)
        if any(part.op in ("in", "notin") for part in node.ops):
            raise jinja2.TemplateSyntaxError("a chain of comparisons with `in`", node.lineno)
        node.expr = _hidden("weighed", node.expr, node.lineno)
        for part in node.ops:
            part.expr = _hidden("weighed", part.expr, node.lineno)
        return node


def _hidden(name: str, value: nodes.Expr, line: int, *arguments: nodes.Expr) -> nodes.Filter:
    """A call of one of the functions that no template can name."""
    return nodes.Filter(value, f" {name}", list(arguments), [], None, None, lineno=line)
