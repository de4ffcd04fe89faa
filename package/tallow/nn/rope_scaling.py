"""The `rope_scaling` of configs: rotary angles for texts longer than those of the training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError

Scaling: TypeAlias = Mapping[str, Any]
ORIGINAL = "original_max_position_embeddings"
MAX_WIDTH = 2**16  # of a head, to bound memory; models have up to 512


class Call(NamedTuple):
    """The arguments of a type of scaling.

    Attributes:
        plain: base^(-2i/K), (K/2,).
        scaling: the entries of the scaling that are not None.
        original: the context of the original training; None for types that do not use it.
        length: the length of the text; 0 if it is within the original context.
    """

    plain: npt.NDArray[np.float64]
    base: float
    scaling: Scaling
    original: Any
    length: int


def frequencies(
    head_dim: int, base: float, scaling: Scaling | None = None, context: int | None = None, length: int = 0
) -> npt.NDArray[np.float32]:
    """Return the radians per position of each pair, (K/2,).

    linear        divides all frequencies by `factor`
    divisors      divides each by its own divisor, as in GGUF files
    dynamic       uses a larger base for a `length` beyond the `context`
    llama3        divides by `factor` frequencies with a wavelength above original context / `low_freq_factor`, keeps
                  those below original context / `high_freq_factor`, and interpolates between
    yarn          likewise, from `beta_slow` to `beta_fast` turns within the original context, linearly in the pair's
                  number
    proportional  divides the first `partial_rotary_factor` of the pairs by `factor`; the others do not rotate
    longrope      divides each by its own `short_factor`, or by its `long_factor` for a `length` beyond the original
                  context

    Raises:  ArgumentError for an unknown type of scaling, or for a missing or unknown entry
    Source:  "llama3": https://github.com/meta-llama/llama-models, `models/llama3/model.py`, apply_scaling; "yarn": Peng
             et al. 2023, arXiv:2309.00071, section 3; "longrope": Ding et al. 2024, arXiv:2402.13753; "dynamic" and the
             names of the entries: `modeling_rope_utils.py` of transformers
    """
    if head_dim > MAX_WIDTH:
        raise ArgumentError(f"rotary positions for heads of width {head_dim}; the limit is {MAX_WIDTH}")
    kind, entries = _checked(scaling or {}, head_dim)
    plain = base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    call = Call(plain, base, entries, _original(kind, entries, context), length)
    try:
        return SCALINGS[kind].scale(call).astype(np.float32)
    except ArithmeticError as error:
        raise ArgumentError(f"rope_scaling={dict(scaling or {})!r} with {base=} and {head_dim=}: {error}") from error


def amplitude(scaling: Scaling | None, context: int | None = None) -> float:
    """Return the factor of cosines and sines: the attention factor of "yarn" and "longrope", set or derived; else 1.

    Source:  "yarn": arXiv:2309.00071, section 3.4; "longrope" and `mscale`: `modeling_rope_utils.py` of transformers
    """
    scaling = {name: value for name, value in (scaling or {}).items() if value is not None}
    kind = _kind(scaling)
    if kind not in ("yarn", "longrope"):
        return 1.0
    if "attention_factor" in scaling:
        return float(scaling["attention_factor"])
    original = _original(kind, scaling, context)
    factor = scaling.get("factor") or (context or original) / original
    if min(factor, original) <= 1:
        return 1.0
    if kind == "longrope":
        return math.sqrt(1 + math.log(factor) / math.log(original))
    mscale, mscale_all_dim = scaling.get("mscale"), scaling.get("mscale_all_dim")
    if mscale and mscale_all_dim:
        return (0.1 * mscale * math.log(factor) + 1) / (0.1 * mscale_all_dim * math.log(factor) + 1)
    return 0.1 * math.log(factor) + 1


def unread_entries(scaling: Scaling) -> list[str]:
    """Return the entries that no type of scaling reads."""
    known = {*UNSCALED, *(name for kind in SCALINGS.values() for name in (*kind.entries, *kind.optional))}
    return [name for name in scaling if name not in known]


def unscaled_length(scaling: Scaling | None, context: int | None) -> int | None:
    """Return the length up to which all texts have the same angles; None if that holds for every length."""
    kind = _kind(scaling or {})
    return _original(kind, scaling or {}, context) if kind in ("dynamic", "longrope") else None


def scaled_length(scaling: Scaling | None, context: int | None, length: int) -> int:
    """Return one length for all texts with the angles of `length`; 0 for texts up to `unscaled_length`."""
    limit = unscaled_length(scaling, context)
    if limit is None or length <= limit:
        return 0
    return length if _kind(scaling or {}) == "dynamic" else limit + 1


def longest_text(scaling: Scaling | None, context: int) -> int:
    """Return the number of positions with the scaling, for a config with `max_position_embeddings` of `context`.

    "dynamic" extends the context `factor` times. "yarn" extends the original context `factor` times; configs of models
    trained without it give the original context as `context`.
    """
    scaling = scaling or {}
    kind = _kind(scaling)
    if kind == "dynamic":
        return int(context * scaling["factor"])
    if kind == "yarn":
        return max(context, int(_original(kind, scaling, context) * (scaling.get("factor") or 1)))
    return context


def _kind(scaling: Scaling) -> Any:
    return scaling.get("rope_type", scaling.get("type", "default"))


def _original(kind: str, scaling: Scaling, context: int | None) -> Any:
    """Return the context of the original training: `context`, unless the scaling sets it."""
    is_used = ORIGINAL in SCALINGS[kind].optional
    original = scaling.get(ORIGINAL) or context if is_used else context
    if is_used and original is None:
        raise ArgumentError(f"rope_scaling of type {kind!r} lacks {ORIGINAL!r}")
    return original


def _checked(scaling: Scaling, head_dim: int) -> tuple[str, dict[str, Any]]:
    """Return the type and the entries that are not None.  Raises: ArgumentError for an invalid scaling"""
    kind = _kind(scaling)
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise ArgumentError(f"rope_scaling of type {kind!r}", hint=f"use one of {', '.join(map(repr, SCALINGS))}")
    known = (*SCALINGS[kind].entries, *SCALINGS[kind].optional)
    entries = {name: value for name, value in scaling.items() if value is not None and name not in UNSCALED}
    unknown = [name for name in entries if name not in known]
    if unknown:
        raise ArgumentError(
            f"rope_scaling of type {kind!r} has {', '.join(unknown)}", hint=f"supported entries: {', '.join(known)}"
        )
    for name in SCALINGS[kind].entries:
        if name not in entries:
            raise ArgumentError(f"rope_scaling of type {kind!r} lacks {name!r}")
    for name, value in entries.items():
        expected, holds = _expected(kind, name, head_dim // 2)
        if not holds(value):
            raise ArgumentError(f"rope_scaling of type {kind!r}: {name}={value!r}", hint=f"pass {expected}")
    return kind, entries


def _expected(kind: str, name: str, pairs: int) -> tuple[str, Callable[[Any], bool]]:
    if name in ("short_factor", "long_factor", "divisors"):
        return (
            f"a list of {pairs} positive numbers",
            lambda value: isinstance(value, list) and len(value) == pairs and all(map(_is_positive, value)),
        )
    if name == "truncate":
        return "True or False", lambda value: type(value) is bool
    if name == ORIGINAL:
        return "an integer, 2 or more", lambda value: type(value) is int and value > 1
    if name == "partial_rotary_factor":
        return "a number from 0 to 1", lambda value: value == 0 or (_is_positive(value) and value <= 1)
    if kind == "dynamic":
        return "a number, 1 or more", lambda value: _is_positive(value) and value >= 1
    return "a positive number", _is_positive


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < 2**63


# ----------------------------------------------------------------------------------------------------- types of scaling


def _dynamic(call: Call) -> npt.NDArray[np.float64]:
    if not call.length or not call.original:
        return call.plain
    growth = call.scaling["factor"] * call.length / call.original - (call.scaling["factor"] - 1)
    head_dim = 2 * len(call.plain)
    base = call.base * growth ** (head_dim / (head_dim - 2))
    return base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)


def _llama3(call: Call) -> npt.NDArray[np.float64]:
    low, high = call.scaling["low_freq_factor"], call.scaling["high_freq_factor"]
    if low == high:
        raise ArgumentError(f"rope_scaling of type 'llama3': low_freq_factor and high_freq_factor are both {low}")
    turns = call.original * call.plain / (2 * math.pi)  # within the original context
    share = np.clip((turns - low) / (high - low), 0, 1)  # of the unscaled frequency
    return (1 - share) * call.plain / call.scaling["factor"] + share * call.plain


def _yarn(call: Call) -> npt.NDArray[np.float64]:
    def pair(turns: float) -> float:
        """Return the number, not rounded, of the pair with so many turns within the original context."""
        return len(call.plain) * math.log(call.original / (turns * 2 * math.pi)) / math.log(call.base)

    first, last = pair(call.scaling.get("beta_fast", 32)), pair(call.scaling.get("beta_slow", 1))
    if call.scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * len(call.plain) - 1)
    width = last - first or 0.001  # a step if the two are equal
    share = np.clip((np.arange(len(call.plain)) - first) / width, 0, 1)  # of the divided frequency
    return (1 - share) * call.plain + share * call.plain / call.scaling["factor"]


def _longrope(call: Call) -> npt.NDArray[np.float64]:
    return call.plain / np.asarray(call.scaling["long_factor" if call.length else "short_factor"], np.float64)


def _proportional(call: Call) -> npt.NDArray[np.float64]:
    count = int(call.scaling.get("partial_rotary_factor", 1.0) * 2 * len(call.plain) // 2)
    return np.where(np.arange(len(call.plain)) < count, call.plain / call.scaling.get("factor", 1.0), 0.0)


class Type(NamedTuple):
    """The function of a type of scaling, and the entries it reads: required ones, and optional ones."""

    scale: Callable[[Call], npt.NDArray[np.float64]]
    entries: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


SCALINGS: dict[str, Type] = {
    "default": Type(lambda call: call.plain),
    "linear": Type(lambda call: call.plain / call.scaling["factor"], ("factor",)),
    "dynamic": Type(_dynamic, ("factor",)),
    "divisors": Type(lambda call: call.plain / np.asarray(call.scaling["divisors"], np.float64), ("divisors",)),
    "proportional": Type(_proportional, (), ("factor", "partial_rotary_factor")),
    "llama3": Type(_llama3, ("factor", "low_freq_factor", "high_freq_factor"), (ORIGINAL,)),
    "yarn": Type(
        _yarn,
        ("factor",),
        (ORIGINAL, "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"),
    ),
    "longrope": Type(_longrope, ("short_factor", "long_factor"), (ORIGINAL, "attention_factor", "factor")),
}
# Entries that name the type, or that configs read themselves.
UNSCALED = ("rope_type", "type", "rope_theta")
