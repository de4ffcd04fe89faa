"""Generation on `cuda`: the same texts as on the CPU, with caches that pad, slide, grow, truncate and select rows."""

from __future__ import annotations

from typing import Any

import pytest

import tallow as tl
from tallow.generation import PromptCache, beam_search, generate, generate_batch, speculate
from tallow.models.decoders.falcon import Falcon, FalconConfig
from tallow.models.decoders.gpt2 import GPT2, GPT2Config
from tallow.models.decoders.mistral import Mistral, MistralConfig
from tallow.models.decoders.qwen import Qwen2, Qwen2Config, Qwen3, Qwen3Config

VOCAB = 31
PROMPTS = [[3, 1, 4, 1, 5, 9, 2, 6], [5, 3], [5, 8, 9, 7]]
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 80,
    "initializer_range": 0.4,
}
ALIBI = FalconConfig(
    vocab_size=VOCAB,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=80,
    initializer_range=0.4,
    alibi=True,
    multi_query=False,
)
MISTRAL = MistralConfig(**SIZES, sliding_window=5)
LEARNED = GPT2Config(vocab_size=VOCAB, n_positions=80, n_embd=24, n_layer=2, n_head=4, initializer_range=0.4)


def texts(model: Any) -> list[Any]:
    cache = PromptCache(model)
    first = list(cache.generate(PROMPTS[1], max_tokens=3))
    stops = {first[-1]}
    return [
        list(generate(model, PROMPTS[0], max_tokens=20)),
        sorted(generate_batch(model, PROMPTS, max_tokens=12, stop_ids=stops)),
        [beam.tokens for beam in beam_search(model, PROMPTS[0], num_beams=3, max_tokens=8, num_return_sequences=3)],
        list(speculate(model, model, PROMPTS[2], max_tokens=12)),
        list(cache.generate([*PROMPTS[1], *first, 7], max_tokens=6)),
    ]


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (Mistral, MISTRAL),
        (Falcon, ALIBI),
        (GPT2, LEARNED),
        (Qwen2, Qwen2Config(**SIZES)),
        (Qwen3, Qwen3Config(**SIZES, head_dim=8)),
    ],
    ids=["mistral", "alibi", "gpt2", "qwen2", "qwen3"],
)
def test_texts_equal_the_cpus(cuda: str, kind: Any, config: Any) -> None:
    tl.manual_seed(0)
    model = kind(config).eval()
    expected = texts(model)
    assert texts(model.to(cuda)) == expected
