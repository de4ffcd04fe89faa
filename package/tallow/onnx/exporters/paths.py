"""The path of the module that calls a function, for the errors of an export."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tallow.fx.node import Node
from tallow.nn.module import Module
from tallow.tape.modes import mode

PATH = "module_path"  # in `Node.meta`


def _last() -> Node | None:
    tracer: Any = mode.tracer
    return None if tracer is None else next(iter(reversed(tracer.graph.nodes)), None)


@contextmanager
def noted_paths(model: Module) -> Iterator[None]:
    """Have the nodes that are recorded in the block note the innermost submodule that records them."""
    before: list[Node | None] = []

    def enter(_module: Module, _args: Any) -> None:
        before.append(_last())

    def leaving(path: str) -> Any:
        def leave(_module: Module, _args: Any, _result: Any) -> None:
            start, node = before.pop(), _last()
            while node is not None and node is not start and node.op != "root":
                node.meta.setdefault(PATH, path)
                node = node.prev

        return leave

    with ExitStack() as hooks:
        for path, module in model.named_modules():
            if path:
                hooks.callback(module.register_forward_pre_hook(enter).remove)
                hooks.callback(module.register_forward_hook(leaving(path)).remove)
        yield
