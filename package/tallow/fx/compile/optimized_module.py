"""A module whose calls are compiled."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

from tallow.fx.compile.compiled import Compiled
from tallow.nn.module import Module


class OptimizedModule(Module):
    """A module whose calls are compiled. It has the parameters, buffers, submodules and attributes of `_orig_mod`, the
    original, and sets attributes there.
    """

    _orig_mod: Any

    def __init__(self, module: Module, fullgraph: bool = False, warns: bool = True) -> None:
        super().__init__()
        self._orig_mod = module
        del self.__dict__["training"]  # it is the original's
        self.__dict__["_compiled"] = Compiled(module, fullgraph, warns)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def _hooks(self, kind: str) -> list[tuple[Callable[..., Any], bool]]:
        """Return the hooks of this module. Those of all modules run with the original's, once."""
        return self._own_hooks(kind)

    def explain(self) -> str:
        """As `Compiled.explain`."""
        text: str = self._compiled.explain()
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._orig_mod, self._compiled.fullgraph, self._compiled.warns)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(copy.deepcopy(self._orig_mod, memo), self._compiled.fullgraph, self._compiled.warns)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]

    def __len__(self) -> int:
        length: int = len(self._orig_mod)
        return length

    def __bool__(self) -> bool:
        return True

    def __setattr__(self, name: str, value: Any) -> None:
        if "_compiled" in self.__dict__:
            setattr(self._orig_mod, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)
