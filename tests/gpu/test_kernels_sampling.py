"""Tokens chosen by CUDA kernels equal those that NumPy chooses with the same random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.card import Card, round_to

import tallow as tl
from tallow.dtypes import bfloat16, dtype, float32
from tallow.errors import NumericError
from tallow.generation import LogitBias, Sampler, generate, generate_batch, greedy, rules
from tallow.generation.processors import Text
from tallow.models.decoders.gpt2 import GPT2, GPT2Config

WIDTHS = [1, 37, 4100]
LIMITS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.7, "top_k": 5},
    {"top_k": 40, "top_p": 0.8},
    {"top_p": 0.9, "temperature": 2.0},
    {"top_p": 0.6, "min_p": 0.2},
    {"min_p": 0.05},
    {"top_p": 0.9, "min_p": 1.0},  # only the likeliest, and its ties
    {"top_k": 3000, "top_p": 0.99, "min_p": 0.01, "temperature": 3.0},
]


def weights_of(logits_V: Any, sampler: Sampler) -> tuple[Any, Any]:
    """Return the kept tokens in drawing order, and their weights, by a full sort."""
    weights = np.exp((logits_V - logits_V.max()) / sampler.temperature)
    order = np.lexsort((np.arange(len(weights)), -logits_V))
    if sampler.top_k is not None and sampler.top_k < len(order):
        order = order[logits_V[order] >= logits_V[order[sampler.top_k - 1]]]
    if sampler.top_p < 1:
        running = weights[order].cumsum()
        order = order[: int((running <= sampler.top_p * running[-1]).sum()) + 1]
    else:
        order = np.sort(order)
    order = order[weights[order] >= sampler.min_p]
    return order, weights[order]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_tokens_are_those_of_sorted_weights(card: Card, limits: dict[str, Any]) -> None:
    """Test ties, and uniform numbers from 0 to 1."""
    sampler = Sampler(**limits, seed=0)
    uniforms = [0.0, 0.2, 0.5, 0.9, 1 - 2**-53]
    for width in WIDTHS:
        rng = np.random.default_rng(width)
        x = round_to(rng.standard_normal((5, width)) * 3, float32)
        x[1] = np.round(x[1])  # many are equal
        x[2, : width // 2] = -np.inf
        x[3] = 0.5  # all are the likeliest
        tokens = card.get(card.run("sampled_tokens", card.put(x), uniforms, *sampler.limits)).tolist()
        for row, uniform in enumerate(uniforms):
            order, weights = weights_of(x[row], sampler)
            running = weights.cumsum()
            place = min(int((running <= uniform * running[-1]).sum()), len(order) - 1)
            assert tokens[row] == order[place], (width, row)
            assert tokens[row] == tl.kernels.KERNELS["sampled_tokens", "array"].fn(
                x[row : row + 1].astype(np.float32), [uniform], *sampler.limits
            )


def test_exactly_the_kept_tokens_are_drawn(card: Card) -> None:
    """Equal rows, more of them than a launch takes."""
    x = np.repeat(round_to(np.random.default_rng(0).standard_normal((1, 40)), float32), 100, axis=0)
    sampler = Sampler(top_k=9, min_p=0.3, seed=0)
    order, weights = weights_of(x[0], sampler)
    uniforms = [(i + 0.5) / len(x) for i in range(len(x))]
    tokens = card.get(card.run_once("sampled_tokens", card.put(x), uniforms, *sampler.limits))
    shares = np.bincount(tokens, minlength=40)[order] / len(x)
    assert set(tokens.tolist()) == set(order.tolist())
    np.testing.assert_allclose(shares, weights / weights.sum(), atol=1 / len(x))


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_greedy_takes_the_first_of_the_likeliest(card: Card, dtype: dtype) -> None:
    for width in (1, 37, 2049):
        x = round_to(np.random.default_rng(width).standard_normal((5, width)), dtype)
        x[1] = -0.0
        x[1, width // 2] = 0
        x[2] = -np.inf
        x[3, width // 3] = np.nan
        x[4, width // 2] = np.inf
        expected = [int(x[0].argmax()), 0, -1, -1, -1]
        assert card.get(card.run("greedy_tokens", card.put(x, dtype))).tolist() == expected


def test_logits_that_leave_no_choice(card: Card) -> None:
    x = np.zeros((4, 300))
    x[0, 299], x[1, 7], x[2] = np.nan, np.inf, -np.inf
    assert card.get(card.run("sampled_tokens", card.put(x), [0.5] * 4, 1.0, 2, 0.9, 0.1)).tolist()[:3] == [-1] * 3
    with pytest.raises(NumericError, match="no token can be chosen"):
        generate_texts(lambda: card.put(x[0]), Sampler(seed=0))
    with pytest.raises(NumericError, match="no token can be chosen"):
        generate_texts(lambda: card.put(x[0]), greedy)


def generate_texts(logits: Any, sample: Any) -> list[int]:
    class Model:
        context_length = vocab_size = 300

        def new_cache(self, **_: Any) -> Any:
            return None

        def next_logits(self, tokens: Any, cache: Any) -> Any:
            return logits()

    return list(generate(Model(), [1], max_tokens=2, sample=sample))


SAMPLES: dict[str, Any] = {
    "penalties": lambda: Sampler(0.8, 7, 0.9, 1.3, seed=5, presence_penalty=0.5, frequency_penalty=0.2),
    "filters that run on the host": lambda: Sampler(1.2, seed=5, typical_p=0.8, epsilon_cutoff=0.01, eta_cutoff=0.02),
    "one of the user's": lambda: lambda logits_V, tokens: int(np.argsort(logits_V)[-2]),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_texts_equal_the_cpus(cuda: str, kind: str) -> None:
    """Rows of a batch with their own limits; a sampler of another type gets NumPy logits."""
    config = GPT2Config(vocab_size=61, n_positions=40, n_embd=24, n_layer=1, n_head=4, initializer_range=0.4)
    tl.manual_seed(1)
    model = GPT2(config).eval()

    def texts() -> Any:
        samples = [SAMPLES[kind](), greedy, Sampler(seed=2, top_p=0.9), greedy]
        prompts = [[3, 1, 4], [1, 5], [9], [2, 6, 5, 3]]
        return sorted(generate_batch(model, prompts, max_tokens=6, sample=samples)), list(
            generate(model, prompts[0], max_tokens=8, sample=SAMPLES[kind]())
        )

    expected = texts()
    model.to(cuda)
    assert texts() == expected


PROCESSORS = [
    LogitBias({3: 1.5, 7: -2.0}),
    rules.NoRepeatedNgram(2),
    rules.NoNgramOfSource(2),
    rules.SourceRepetitionPenalty(1.5),
    rules.SequenceBias({(4, 1): -2.5, (9,): 1.0, (1, 4, 1): float("-inf")}),
    rules.MinLength(9, [3]),
    rules.MinNewTokens(3, [3]),
    rules.ForcedToken(5, [2, 6]),
    rules.FiniteLogits(),
    rules.GrowingEnd(0, 1.3, [3, 5]),
    rules.SuppressTokens([1, 2]),
    rules.SuppressAtBeginning([1], place=2),
    rules.Renormalized(),
]


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda each: type(each).__name__)
def test_processors_run_on_the_device(card: Card, processor: Any) -> None:
    x = np.random.default_rng(1).standard_normal(13).astype(np.float32)
    text = Text([4, 1, 4]).then(1, 4)
    expected = processor(x, text)
    assert not np.array_equal(expected, x) or isinstance(processor, rules.FiniteLogits)
    np.testing.assert_allclose(card.get(processor(card.put(x), text)), expected, rtol=1e-6)
