"""The formats of a GGUF file type are those that llama-quantize of llama.cpp chooses."""

from __future__ import annotations

import pytest

from tallow.errors import ArgumentError
from tallow.models.gguf.recipes import RECIPES, Layers, formats_of, recipe_of

LAYERS = 16
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


def shapes(width: int = 256, *, tied: bool = False) -> dict[str, tuple[int, ...]]:
    result: dict[str, tuple[int, ...]] = {"token_embd.weight": (100, width), "output_norm.weight": (width,)}
    for i in range(LAYERS):
        result |= {f"blk.{i}.{name}.weight": (64, width) for name in MATRICES}
        result |= {f"blk.{i}.attn_norm.weight": (width,), f"blk.{i}.attn_q.bias": (64,)}
    return result if tied else result | {"output.weight": (100, width)}


def layers_with(name: str, matrix: str, format: str, **options: bool) -> list[int]:
    formats = formats_of(RECIPES[name], shapes(), Layers(LAYERS, 2), **options)
    return [i for i in range(LAYERS) if formats[f"blk.{i}.{matrix}.weight"] == format]


# Observed in files of llama-quantize, llama.cpp 0c1e570, for a model of 16 layers.
MORE_BITS = [0, 1, 4, 7, 10, 13, 14, 15]


@pytest.mark.parametrize(
    ("name", "matrix", "format", "expected"),
    [
        ("Q4_K_M", "attn_v", "Q6_K", MORE_BITS),
        ("Q4_K_M", "ffn_down", "Q6_K", MORE_BITS),
        ("Q5_K_M", "attn_v", "Q6_K", MORE_BITS),
        ("Q4_K_S", "attn_v", "Q5_K", [0, 1, 2, 3]),
        ("Q4_K_S", "ffn_down", "Q5_K", [0, 1]),
        ("Q3_K_M", "attn_v", "Q5_K", [0, 1]),
        ("Q3_K_M", "ffn_down", "Q5_K", [0]),
        ("Q3_K_M", "attn_output", "Q4_K", [*range(LAYERS)]),
        ("Q2_K", "attn_v", "Q3_K", [*range(LAYERS)]),
        ("Q5_K_S", "attn_v", "Q5_K", [*range(LAYERS)]),
        ("Q4_K_M", "attn_q", "Q4_K", [*range(LAYERS)]),
    ],
)
def test_layers_with_more_bits(name: str, matrix: str, format: str, expected: list[int]) -> None:
    assert layers_with(name, matrix, format) == expected


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_has_more_bits(tied: bool) -> None:
    formats = formats_of(RECIPES["Q4_0"], shapes(tied=tied), Layers(LAYERS, 1))
    assert formats["token_embd.weight" if tied else "output.weight"] == "Q6_K"
    if not tied:
        assert formats["token_embd.weight"] == "Q4_0"


@pytest.mark.parametrize("name", list(RECIPES))
def test_vectors_stay_float(name: str) -> None:
    formats = formats_of(RECIPES[name], shapes(), Layers(LAYERS, 1))
    assert {formats[key] for key, shape in shapes().items() if len(shape) == 1} == {"F32"}


@pytest.mark.parametrize(
    ("name", "width", "expected"),
    [
        ("Q4_K_S", 96, "Q5_0"),
        ("Q5_K_S", 96, "Q5_1"),
        ("Q6_K", 96, "Q8_0"),
        ("Q2_K", 96, "Q4_0"),
        ("Q3_K_S", 96, "Q4_0"),
        ("Q4_K_S", 100, "F16"),
        ("Q8_0", 100, "F16"),
        ("BF16", 100, "BF16"),
    ],
)
def test_rows_of_other_lengths(name: str, width: int, expected: str) -> None:
    formats = formats_of(RECIPES[name], shapes(width), Layers(LAYERS, 1))
    assert formats["blk.9.attn_q.weight"] == expected
    assert formats["output.weight"] == {"BF16": "BF16"}.get(name, "Q8_0" if width % 32 == 0 else "F16")


def test_with_importance_the_first_layers_get_minima() -> None:
    assert layers_with("Q4_0", "ffn_down", "Q4_1", importance=True) == [0, 1]
    assert layers_with("Q4_0", "ffn_down", "Q4_1") == []


def test_many_queries_per_key() -> None:
    formats = formats_of(RECIPES["Q2_K"], shapes(), Layers(LAYERS, 4))
    assert formats["blk.3.attn_v.weight"] == "Q4_K"


def test_names_of_types() -> None:
    assert recipe_of("q4_k_m") is recipe_of("Q4_K_M") is RECIPES["Q4_K_M"]
    with pytest.raises(ArgumentError, match="unknown type 'q7'"):
        recipe_of("q7")
