"""Where chat templates run: Jinja's sandbox, with the helpers that transformers gives them, and an end to everything.

Jinja's sandbox keeps a template from Python's insides, but not from looping or growing for ever. Here every turn of a
loop and every call counts, and no value may grow beyond bounds.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tallow.errors import TokenizerError

if TYPE_CHECKING:
    import jinja2

MAX_TEXT = 1 << 22  # characters of a chat, or of any text on the way to it; and the largest number a function may get
MAX_STEPS = 1 << 20  # turns of loops, and calls
MAX_EXPONENT = 64


class Refusal(Exception):
    """What a template raises itself, about the messages."""


class Budget:
    """Counts what a template does, and stops it with a TokenizerError when it is too much."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TokenizerError(f"the chat template does not come to an end within {MAX_STEPS} steps")

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.step()
            yield item

    def bounded(self, value: Any) -> Any:
        """The value, which may not be longer than MAX_TEXT."""
        self.check_size(len(value) if isinstance(value, str | list | tuple) else 0)
        return value

    def check_size(self, size: int) -> None:
        if size > MAX_TEXT:
            raise TokenizerError(f"the chat template makes a text of more than {MAX_TEXT} characters")

    def guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that counts, gets no huge numbers, such as a width to pad to, and returns no huge text."""

        @functools.wraps(function)  # with the marks that tell Jinja what else to pass
        def call(*arguments: Any, **options: Any) -> Any:
            self.step()
            for value in (*arguments, *options.values()):
                self.check_size(abs(value) if isinstance(value, int) else 0)
            return self.bounded(function(*arguments, **options))

        return call

    def check_operands(self, operator: str, left: Any, right: Any) -> None:
        """What multiplies is refused before it takes the memory."""
        if operator == "**" and not (isinstance(right, int | float) and abs(right) <= MAX_EXPONENT):
            raise TokenizerError(f"the chat template computes a power of {right}")
        if operator == "*":
            for value, times in ((left, right), (right, left)):
                if isinstance(value, str | list | tuple) and isinstance(times, int):
                    self.check_size(len(value) * times)


def compiled(source: str, budget: Budget) -> jinja2.Template:
    """The template, every step of which counts.  Raises: jinja2.TemplateSyntaxError; the package is optional"""
    from jinja2 import ext, nodes, sandbox, visitor

    class Generation(ext.Extension):
        """{% generation %} marks answers for training; here it is of no account."""

        tags = {"generation"}  # noqa: RUF012 - Jinja's

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    class Environment(sandbox.ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"+", "*", "**"})

        def call(self, context: Any, function: Any, /, *arguments: Any, **options: Any) -> Any:
            call = functools.partial(super().call, context, function)
            return budget.guarded(call)(*arguments, **options)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            budget.check_operands(operator, left, right)
            return budget.bounded(super().call_binop(context, operator, left, right))

    class Joining(visitor.NodeTransformer):
        """a ~ b as a filter, which can be bounded."""

        def visit_Concat(self, node: Any) -> Any:
            parts = nodes.List([self.visit(part) for part in node.nodes], lineno=node.lineno)
            return nodes.Filter(parts, "joined", [], [], None, None, lineno=node.lineno)

    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols], autoescape=False
    )
    environment.filters["tojson"] = _to_json
    for name, function in environment.filters.items():
        environment.filters[name] = budget.guarded(function)
    environment.filters |= {"counted": budget.counted, "joined": lambda parts: budget.bounded("".join(map(str, parts)))}
    environment.globals |= {"raise_exception": _refuse, "strftime_now": _now}
    tree = environment.parse(source)
    for loop in list(tree.find_all(nodes.For)):
        loop.iter = nodes.Filter(loop.iter, "counted", [], [], None, None, lineno=loop.lineno)
    return environment.from_string(Joining().visit(tree))


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """Without the escapes for HTML of Jinja's own."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> None:
    raise Refusal(message)


def _now(format: str) -> str:
    return datetime.now().strftime(format)
