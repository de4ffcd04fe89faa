"""How a config's `rope_scaling` changes the angles of rotary positions, for texts longer than those of the training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError

Scaling: TypeAlias = Mapping[str, Any]
ORIGINAL = "original_max_position_embeddings"
MAX_WIDTH = 2**16  # of a head; models have up to 512


class Call(NamedTuple):
    """What a type of scaling is asked for.

    Attributes:
        plain: base^(-2i/K), (K/2,).
        scaling: its entries, without those that are None.
        original: positions of the texts of the first training; None for types that do without.
        length: of the text at hand; 0 for one that is no longer than those.
    """

    plain: npt.NDArray[np.float64]
    base: float
    scaling: Scaling
    original: Any
    length: int


def frequencies(
    head_dim: int, base: float, scaling: Scaling | None = None, context: int | None = None, length: int = 0
) -> npt.NDArray[np.float32]:
    """Radians per position of each pair, (K/2,).

    "linear" divides all by `factor`, "divisors" each by its own, as GGUF files have them. "dynamic" takes a larger base
    for a `length` beyond the `context`. "llama3" divides those whose wave is longer than the original context over
    `low_freq_factor`, keeps those shorter than over `high_freq_factor`, and goes from one to the other in between;
    "yarn" does so from `beta_slow` to `beta_fast` turns within the original context, evenly in the number of the pair.
    "proportional" divides by `factor` the first `partial_rotary_factor` of the pairs, and the rest does not turn.
    "longrope" divides each by its own of `short_factor`, or of `long_factor` for a `length` beyond the original
    context.

    Raises:  ArgumentError for another type of scaling, or one with an entry that is missing or not known
    Source:  "llama3": https://github.com/meta-llama/llama-models, `models/llama3/model.py`, apply_scaling; "yarn": Peng
             et al. 2023, arXiv:2309.00071, section 3; "longrope": Ding et al. 2024, arXiv:2402.13753; "dynamic" and the
             names of the entries: `modeling_rope_utils.py` of transformers
    """
    if head_dim > MAX_WIDTH:
        raise ArgumentError(f"rotary positions for heads of width {head_dim}; {MAX_WIDTH} is the most")
    kind, given = _checked(scaling or {}, head_dim)
    plain = base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    call = Call(plain, base, given, _original(kind, given, context), length)
    try:
        return SCALINGS[kind].scale(call).astype(np.float32)
    except ArithmeticError as error:
        raise ArgumentError(f"rope_scaling={dict(scaling or {})!r} with {base=} and {head_dim=}: {error}") from error


def amplitude(scaling: Scaling | None, context: int | None = None) -> float:
    """What cosines and sines are multiplied by: 1, or for "yarn" and "longrope" the attention factor, given or derived.

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
    whole, part = scaling.get("mscale"), scaling.get("mscale_all_dim")
    if whole and part:
        return (0.1 * whole * math.log(factor) + 1) / (0.1 * part * math.log(factor) + 1)
    return 0.1 * math.log(factor) + 1


def unscaled_length(scaling: Scaling | None, context: int | None) -> int | None:
    """The longest text whose angles are those of every shorter one; None where all texts have the same."""
    kind = _kind(scaling or {})
    return _original(kind, scaling or {}, context) if kind in ("dynamic", "longrope") else None


def scaled_length(scaling: Scaling | None, context: int | None, length: int) -> int:
    """Of all lengths that have the angles of `length`, one: 0 for those up to `unscaled_length`."""
    limit = unscaled_length(scaling, context)
    if limit is None or length <= limit:
        return 0
    return length if _kind(scaling or {}) == "dynamic" else limit + 1


def longest_text(scaling: Scaling | None, context: int) -> int:
    """How many positions there are with the scaling, where a config says `context` of its `max_position_embeddings`.

    "dynamic" reaches `factor` times as far. So does "yarn" from the original context, which is what configs say of
    models that were trained without it.
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
    """Positions of the texts of the first training: `context`, unless the scaling says otherwise."""
    counts = ORIGINAL in SCALINGS[kind].optional
    original = scaling.get(ORIGINAL) or context if counts else context
    if counts and original is None:
        raise ArgumentError(f"rope_scaling of type {kind!r} lacks {ORIGINAL!r}")
    return original


def _checked(scaling: Scaling, head_dim: int) -> tuple[str, dict[str, Any]]:
    """The type, and the entries that are not None.  Raises: ArgumentError"""
    kind = _kind(scaling)
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise ArgumentError(f"rope_scaling of type {kind!r}", mend=f"tallow has {', '.join(map(repr, SCALINGS))}")
    known = (*SCALINGS[kind].entries, *SCALINGS[kind].optional)
    given = {name: value for name, value in scaling.items() if value is not None and name not in UNSCALED}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ArgumentError(f"rope_scaling of type {kind!r} has {', '.join(unknown)}", mend=f"it knows {known}")
    for name in SCALINGS[kind].entries:
        if name not in given:
            raise ArgumentError(f"rope_scaling of type {kind!r} lacks {name!r}")
    for name, value in given.items():
        expected, holds = _expected(kind, name, head_dim // 2)
        if not holds(value):
            raise ArgumentError(f"rope_scaling of type {kind!r}: {name}={value!r}", mend=f"it is {expected}")
    return kind, given


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
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return (1 - kept) * call.plain / call.scaling["factor"] + kept * call.plain


def _yarn(call: Call) -> npt.NDArray[np.float64]:
    def pair(turns: float) -> float:
        """Which of the pairs turns so often within the original context."""
        return len(call.plain) * math.log(call.original / (turns * 2 * math.pi)) / math.log(call.base)

    first, last = pair(call.scaling.get("beta_fast", 32)), pair(call.scaling.get("beta_slow", 1))
    if call.scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * len(call.plain) - 1)
    width = last - first or 0.001  # a step, where the two are one
    divided = np.clip((np.arange(len(call.plain)) - first) / width, 0, 1)
    return (1 - divided) * call.plain + divided * call.plain / call.scaling["factor"]


def _longrope(call: Call) -> npt.NDArray[np.float64]:
    return call.plain / np.asarray(call.scaling["long_factor" if call.length else "short_factor"], np.float64)


def _proportional(call: Call) -> npt.NDArray[np.float64]:
    turned = int(call.scaling.get("partial_rotary_factor", 1.0) * 2 * len(call.plain) // 2)
    return np.where(np.arange(len(call.plain)) < turned, call.plain / call.scaling.get("factor", 1.0), 0.0)


class Type(NamedTuple):
    """What makes the frequencies, and the entries it reads: those it needs, and those it can do without."""

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
# Entries of any scaling that are its type, or are read as the config's own.
UNSCALED = ("rope_type", "type", "rope_theta")
