"""The formats that a GGUF file type such as Q4_K_M gives to each tensor.

Most matrices have one format. Tensors whose errors change the output most have more bits: the head, and in some layers
the value projection and the last matrix of the feed-forward part.

Source:  https://github.com/ggml-org/llama.cpp, `src/llama-quant.cpp` (`llama_tensor_get_type`) and `include/llama.h`
         (`llama_ftype`)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tallow.errors import ArgumentError
from tallow.io.gguf_layout import PLAIN
from tallow.kernels.quantized.gguf_blocks import FORMATS

HEAD, EMBEDDING = "output.weight", "token_embd.weight"
UNQUANTISED = ("position_embd.weight", "token_types.weight")
FLOATS = ("_norm.weight", ".ffn_gate_inp.weight")  # ends of names of norms, and of the matrix that chooses experts
# With MIXTRAL experts the attention is small, so that more bits cost little.
MIXTRAL, MIXTRAL_OUTPUT = 8, ("Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M")
FINE = 4  # query heads per key head from which the value projection is small, so that more bits cost little
LARGE = 80  # layers of models of 65 billion parameters and more
# Formats for rows that are not multiples of 256 weights; F16 for those that are not multiples of 32.
FALLBACKS = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}


class Layers(NamedTuple):
    """The number of layers, the query heads per key head, whether it is a Falcon, and the number of experts; formats
    depend on these."""

    number: int
    group: int
    is_falcon: bool = False
    experts: int | None = None


class Place(NamedTuple):
    """The place of a tensor: its layer, the number of layers, and the query heads per key head."""

    layer: int
    layers: int
    group: int


Rule = Callable[[Place], str | None]


@dataclass(frozen=True)
class Recipe:
    """A file type.

    Attributes:
        number: `general.file_type`.
        format: format of most matrices.
        rules: by the name of a matrix in its layer: returns another format, or None.
        falcon: rules for a Falcon, in place of those of `rules` for the same matrices.
    """

    number: int
    format: str
    rules: Mapping[str, Rule] = field(default_factory=dict)
    falcon: Mapping[str, Rule] = field(default_factory=dict)


def _always(format: str) -> Rule:
    return lambda place: format


def _more_bits(format: str) -> Rule:
    """The first eighth of the layers, the last eighth, and every third between."""

    def rule(place: Place) -> str | None:
        eighth = place.layers // 8
        middle = eighth <= place.layer < 7 * place.layers // 8
        return format if not middle or (place.layer - eighth) % 3 == 2 else None

    return rule


def _first(format: str, rest: str | None = None, *, count: int = 0, share: int = 0) -> Rule:
    """The first `count` layers, or one of `share` layers; `rest` for the others."""
    return lambda place: format if place.layer < (place.layers // share if share else count) else rest


def _either(first: Rule, second: Rule) -> Rule:
    """The second rule where the first has no format."""
    return lambda place: first(place) or second(place)


def _never(place: Place) -> None:
    return None


RECIPES = {
    "F32": Recipe(0, "F32"),
    "F16": Recipe(1, "F16"),
    "BF16": Recipe(32, "BF16"),
    "Q8_0": Recipe(7, "Q8_0"),
    "Q4_0": Recipe(2, "Q4_0"),
    "Q4_1": Recipe(3, "Q4_1"),
    "Q5_0": Recipe(8, "Q5_0"),
    "Q5_1": Recipe(9, "Q5_1"),
    "Q2_K": Recipe(
        10,
        "Q2_K",
        {
            "attn_v": lambda place: "Q4_K" if place.group >= FINE else "Q3_K",
            "ffn_down": _always("Q3_K"),
            "attn_output": _always("Q3_K"),
        },
        {"attn_output": _never},
    ),
    "Q3_K_S": Recipe(11, "Q3_K"),
    "Q3_K_M": Recipe(
        12,
        "Q3_K",
        {
            "attn_v": _first("Q5_K", "Q4_K", count=2),
            "ffn_down": _first("Q5_K", "Q4_K", share=16),
            "attn_output": _always("Q4_K"),
            "attn_qkv": _always("Q4_K"),
        },
        {"attn_output": _never, "ffn_down": _either(_first("Q5_K", share=16), _more_bits("Q4_K"))},
    ),
    "Q3_K_L": Recipe(
        13,
        "Q3_K",
        {
            "attn_v": _always("Q5_K"),
            "ffn_down": _always("Q5_K"),
            "attn_output": _always("Q5_K"),
            "attn_qkv": _always("Q4_K"),
        },
        {"attn_output": _always("Q4_K"), "ffn_down": _always("Q4_K")},
    ),
    "Q4_K_S": Recipe(
        14, "Q4_K", {"attn_v": _first("Q5_K", count=4), "ffn_down": _first("Q5_K", share=8)}, {"ffn_down": _never}
    ),
    "Q4_K_M": Recipe(
        15,
        "Q4_K",
        {"attn_v": _more_bits("Q6_K"), "ffn_down": _more_bits("Q6_K"), "attn_qkv": _always("Q5_K")},
        {"ffn_down": _either(_first("Q6_K", share=16), _more_bits("Q5_K"))},
    ),
    "Q5_K_S": Recipe(16, "Q5_K"),
    "Q5_K_M": Recipe(
        17, "Q5_K", {"attn_v": _more_bits("Q6_K"), "ffn_down": _more_bits("Q6_K"), "attn_qkv": _always("Q6_K")}
    ),
    "Q6_K": Recipe(18, "Q6_K"),
}
# With an importance matrix, the first layers' ffn_down has minima too.
CAREFUL = {"Q4_0": "Q4_1", "Q5_0": "Q5_1"}


def recipe_of(name: str) -> Recipe:
    """Return a file type by its name, in any case.  Raises: ArgumentError for an unknown one"""
    recipe = RECIPES.get(name.upper())
    if recipe is None:
        raise ArgumentError(f"unknown type {name!r:.80}", hint=f"use one of {', '.join(RECIPES).lower()}")
    return recipe


def formats_of(
    recipe: Recipe, shapes: Mapping[str, tuple[int, ...]], layers: Layers, *, importance: bool = False
) -> dict[str, str]:
    """Return the format of each tensor of a model.

    Args:
        shapes: by the name in the file.
        importance: whether the importance of columns is known.
    """
    tied = HEAD not in shapes
    formats = {}
    for name, shape in shapes.items():
        if len(shape) < 2 or not name.endswith(".weight") or name.endswith(FLOATS) or name in UNQUANTISED:
            formats[name] = "F32"
            continue
        is_head = name == HEAD or (tied and name == EMBEDDING)
        format = _head(recipe.format, shape[-1], layers) if is_head else _inner(recipe, name, layers, importance)
        formats[name] = _fitting(format, shape[-1])
    return formats


def _head(format: str, width: int, layers: Layers) -> str:
    if format in PLAIN or format == "Q8_0":
        return format
    return "Q8_0" if layers.is_falcon or width % FORMATS[format].weights else "Q6_K"


def _inner(recipe: Recipe, name: str, layers: Layers, importance: bool) -> str:
    parts = name.split(".")
    if len(parts) != 4 or parts[0] != "blk" or not parts[1].isdecimal():
        return recipe.format
    layer, role = int(parts[1]), parts[2].removesuffix("_exps").removesuffix("_shexp")
    if layers.experts == MIXTRAL and recipe.format not in PLAIN:
        if role in ("attn_v", "attn_k"):
            return "Q8_0"
        if role == "attn_output":
            return "Q5_K" if recipe in map(RECIPES.get, MIXTRAL_OUTPUT) else recipe.format
    rules = {**recipe.rules, **recipe.falcon} if layers.is_falcon else recipe.rules
    rule = rules.get(role)
    format = (rule and rule(Place(layer, layers.number, layers.group))) or recipe.format
    if role == "attn_v" and layers.number == LARGE and layers.group > 1 and format in ("Q3_K", "Q4_K"):
        return "Q5_K"
    if role == "ffn_down" and importance and layer < layers.number // 8:
        return CAREFUL.get(format, format)
    return format


def _fitting(format: str, width: int) -> str:
    """Return the format, or one that stores rows of this width."""
    for candidate in (format, FALLBACKS.get(format, format)):
        if candidate in PLAIN or width % FORMATS[candidate].weights == 0:
            return candidate
    return "F16"
