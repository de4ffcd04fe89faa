"""torch.nn.modules.utils: convert a size to a tuple with one number for each dim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.nn.sizes import per_dim


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return per_dim(x, n)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")
