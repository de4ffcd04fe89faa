"""Rewrite the tree of a chat template: each statement pays for its nodes, and operations go through the sandbox.

Jinja has no other place for it: it compiles loops, slices and comparisons straight to Python.
"""

from __future__ import annotations

import jinja2
from jinja2 import nodes

MAX_NODES = 6000  # of a template's tree; the largest known have about 1,300
MAX_NAMES = 500  # Jinja copies the table of names for every branch
MAX_TREE_DEPTH = 150
BLOCK_DEPTH = 5  # levels that a nested block counts for: compiling it takes more of the stack

_REFUSED = (
    nodes.Block,
    nodes.EvalContextModifier,
    nodes.Extends,
    nodes.FromImport,
    nodes.Import,
    nodes.Include,
)


class Rewriter:
    """Rewrite the tree of a template so that all its operations go through a sandbox."""

    def __init__(self) -> None:
        self._nodes = 0
        self._names: set[str] = set()

    def template(self, tree: nodes.Template) -> None:
        """Rewrite the whole tree in place."""
        tree.body = self._add_payment(tree.body, 0, 1)

    def _add_payment(self, body: list[nodes.Node], depth: int, line: int) -> list[nodes.Node]:
        """Return the statements, preceded by one that pays for them."""
        total = 1
        for i, node in enumerate(body):
            body[i], count = self._visit(node, depth)
            total += count
        return [nodes.ExprStmt(hidden("step", nodes.Const(total), line), lineno=line), *body]

    def _visit(self, node: nodes.Node, depth: int) -> tuple[nodes.Node, int]:
        """Return a node's replacement and the number of nodes that run with it; nested lists pay for themselves."""
        self._nodes += 1
        line = node.lineno
        if isinstance(node, nodes.Name | nodes.Macro):
            self._names.add(node.name)
        if depth > MAX_TREE_DEPTH or self._nodes > MAX_NODES or len(self._names) > MAX_NAMES:
            raise jinja2.TemplateSyntaxError("the chat template is too large, or nests too deeply", line)
        if isinstance(node, _REFUSED):
            raise jinja2.TemplateSyntaxError(f"{type(node).__name__.lower()} is not allowed in a chat template", line)
        count = 1
        for name, value in node.iter_fields():
            if isinstance(value, nodes.Node):
                replacement, inside = self._visit(value, depth + 1)
                setattr(node, name, replacement)
                count += inside
            elif name == "body" or (name == "else_" and value):
                setattr(node, name, self._add_payment(value, depth + BLOCK_DEPTH, line))
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, nodes.Node):
                        value[i], inside = self._visit(item, depth + 1)
                        count += inside
        return self._replace(node, count), count

    def _replace(self, node: nodes.Node, count: int) -> nodes.Node:
        line = node.lineno
        if isinstance(node, nodes.For) and node.test is not None:
            # The test also runs for items that the body skips.
            node.test = nodes.And(hidden("step", nodes.Const(count), line), node.test, lineno=line)
        elif isinstance(node, nodes.Call | nodes.Filter | nodes.Test):
            if node.dyn_args is not None:
                node.dyn_args = hidden("spread", node.dyn_args, line)
            if node.dyn_kwargs is not None:
                node.dyn_kwargs = hidden("spread", node.dyn_kwargs, line)
        elif isinstance(node, nodes.Pair):
            if not (isinstance(node.key, nodes.Const) and isinstance(node.key.value, str)):
                node.key = hidden("key", node.key, line)
        elif isinstance(node, nodes.Concat):
            return hidden("text", nodes.List(node.nodes, lineno=line), line)
        elif isinstance(node, nodes.Compare):
            return self._replace_comparison(node)
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
            parts = (node.arg.start, node.arg.stop, node.arg.step)
            return hidden("slice", node.node, line, *(part or nodes.Const(None) for part in parts))
        return node

    def _replace_comparison(self, node: nodes.Compare) -> nodes.Expr:
        if len(node.ops) == 1:
            return hidden(node.ops[0].op, node.expr, node.lineno, node.ops[0].expr)
        if any(part.op in ("in", "notin") for part in node.ops):
            raise jinja2.TemplateSyntaxError("a chain of comparisons with `in`", node.lineno)
        node.expr = hidden("weighed", node.expr, node.lineno)
        for part in node.ops:
            part.expr = hidden("weighed", part.expr, node.lineno)
        return node


def hidden(name: str, value: nodes.Expr, line: int, *arguments: nodes.Expr) -> nodes.Filter:
    """Return a call of a function that templates cannot name."""
    return nodes.Filter(value, f" {name}", list(arguments), [], None, None, lineno=line)
