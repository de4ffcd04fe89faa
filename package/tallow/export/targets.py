"""The functions that nodes of an exported graph call."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

from tallow.core.public_api import PUBLIC
from tallow.ops.table import Op

PLACES = ("tl", "F", "linalg", "special", "Tensor")
FROM_DATA = frozenset(("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer"))
_DRAWS = (
    "rand randn randint randperm rand_like randn_like randint_like normal bernoulli poisson binomial multinomial "
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout scaled_dot_product_attention rrelu "
    "gumbel_softmax"
)
DRAWS = frozenset(_DRAWS.split())
CLONE: Callable[..., Any] = PUBLIC["tl"]["clone"]
DETACH: Callable[..., Any] = PUBLIC["tl"]["detach"]


@cache
def public_by_code() -> dict[Any, Callable[..., Any]]:
    """Return code of a function -> the public function, the place first that comes first in `PLACES`."""
    found: dict[Any, Callable[..., Any]] = {}
    for place in PLACES:
        for name, function in PUBLIC[place].items():
            inner = inspect.unwrap(function)
            if name in (inner.__name__, inner.__name__.removeprefix("linalg_"), function.__name__):
                found.setdefault(getattr(inner, "__code__", inner), function)
    return found


def op_target(op: Op) -> Callable[..., Any]:
    """Return the public function of an op; that of the table, if it is published nowhere."""
    if op.name == "getitem":
        return operator.getitem
    for place in PLACES:
        function = PUBLIC[place].get(op.name)
        if function is not None and getattr(function, "__wrapped__", None) is op.function:
            return function
    call: Callable[..., Any] = op.call
    return call


def whole_target(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the public form of a function that is recorded as a whole."""
    return public_by_code().get(inspect.unwrap(function).__code__, function)
