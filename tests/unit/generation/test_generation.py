"""Sampling, the generation loop, and streamed text."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallow as tl
from tallow.errors import ArgumentError, NumericError
from tallow.generation import (
    FrequencyPenalty,
    PresencePenalty,
    Sample,
    Sampler,
    Text,
    beam_search,
    decode_stream,
    generate,
    generate_batch,
    generate_with_logprobs,
    greedy,
    speculate,
    until,
)
from tallow.generation.rules import SuppressTokens
from tallow.generation.sequence import scored_each

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.25, 0.05], dtype=np.float32))
SAMPLER = list(inspect.signature(Sampler).parameters)
DRAWS = 20_000
# Four standard deviations of a frequency over DRAWS draws at most: a correct sampler fails once in 16,000 runs.
TOLERANCE = 4 * 0.5 / DRAWS**0.5


def frequencies(sample: Sampler, logits: Any = LOGITS, tokens: Sequence[int] = ()) -> np.ndarray[Any, Any]:
    samples = [sample(logits, tokens) for _ in range(DRAWS)]
    return np.bincount(samples, minlength=len(logits)) / DRAWS


def test_greedy_takes_the_first_of_the_likeliest() -> None:
    assert greedy(np.array([0, 2, 1, 2], dtype=np.float32)) == 1
    assert Sampler(temperature=0)(LOGITS) == 1


def test_temperature_one_draws_from_the_model() -> None:
    np.testing.assert_allclose(frequencies(Sampler(seed=0)), np.exp(LOGITS), atol=TOLERANCE)


def test_temperature_two_flattens() -> None:
    expected = np.sqrt(np.exp(LOGITS))
    expected /= expected.sum()
    np.testing.assert_allclose(frequencies(Sampler(temperature=2, seed=0)), expected, atol=TOLERANCE)


def test_top_k_keeps_the_likeliest() -> None:
    expected = np.array([0, 0.4, 0, 0.25, 0]) / 0.65
    np.testing.assert_allclose(frequencies(Sampler(top_k=2, seed=0)), expected, atol=TOLERANCE)


def test_top_k_keeps_ties() -> None:
    assert set(np.flatnonzero(frequencies(Sampler(top_k=1, seed=0), np.float32([1, 2, 2])))) == {1, 2}


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.3, [1]), (0.41, [1, 3]), (0.66, [1, 3, 2]), (0.94, [1, 3, 2, 0]), (0.99, [0, 1, 2, 3, 4])]
)
def test_top_p_keeps_up_to_the_first_that_exceeds_it(top_p: float, kept: list[int]) -> None:
    expected = np.zeros(5)
    expected[kept] = np.exp(LOGITS)[kept]
    np.testing.assert_allclose(frequencies(Sampler(top_p=top_p, seed=0)), expected / expected.sum(), atol=TOLERANCE)


def test_top_p_of_a_flat_distribution_over_a_large_vocabulary() -> None:
    """Every probability equals, up to rounding, the cut-off that avoids sorting; half of them must stay."""
    samples = {Sampler(top_p=0.5, seed=seed)(np.zeros(1000, dtype=np.float32)) for seed in range(300)}
    assert max(samples) <= 501  # among equals the first are kept
    assert max(samples) > 450


def test_repetition_penalty_divides_positive_and_multiplies_negative_logits() -> None:
    logits = np.array([2.0, -1.0, 1.5, -1.1], dtype=np.float32)
    before = logits.copy()
    assert Sampler(temperature=0, repetition_penalty=2)(logits, [0, 0]) == 2  # 2.0 became 1.0
    lowered = Sampler(temperature=0, repetition_penalty=2)(logits[1::2], [0])  # -1.0 became -2.0
    assert lowered == 1
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiny_temperature_is_greedy(dtype: Any) -> None:
    assert Sampler(temperature=1e-300, seed=0)(np.array([3e38, 3.1e38, -3e38], dtype=dtype)) == 1


def test_impossible_tokens_are_never_drawn() -> None:
    logits = np.float32([-np.inf, 0, -np.inf, 0, -np.inf])
    assert set(np.flatnonzero(frequencies(Sampler(seed=0), logits))) == {1, 3}
    assert set(np.flatnonzero(frequencies(Sampler(top_p=0.9, seed=0), logits))) == {1, 3}


@pytest.mark.parametrize(("min_p", "kept"), [(0.0, [0, 1, 2, 3, 4]), (0.2, [0, 1, 2, 3]), (0.51, [1, 3]), (1.0, [1])])
def test_min_p_is_relative_to_the_likeliest(min_p: float, kept: list[int]) -> None:
    expected = np.zeros(5)
    expected[kept] = np.exp(LOGITS)[kept]
    np.testing.assert_allclose(frequencies(Sampler(min_p=min_p, seed=0)), expected / expected.sum(), atol=TOLERANCE)


def test_draws_follow_the_distribution() -> None:
    options: dict[str, Any] = {"temperature": 0.8, "top_p": 0.9, "min_p": 0.2, "frequency_penalty": 0.5}
    expected = Sampler(**options).distribution(LOGITS, [1, 1])
    assert expected.sum() == pytest.approx(1)
    np.testing.assert_allclose(frequencies(Sampler(**options, seed=0), tokens=[1, 1]), expected, atol=TOLERANCE)
    assert Sampler(temperature=0).distribution(LOGITS).tolist() == [0, 1, 0, 0, 0]


def test_presence_and_frequency_penalties_count_generated_tokens() -> None:
    logits = np.zeros(5, dtype=np.float32)
    text = Text([0, 0, 1])
    text += [1, 2, 2, 2]
    assert PresencePenalty(0.5)(logits, text).tolist() == [0, -0.5, -0.5, 0, 0]
    assert FrequencyPenalty(0.5)(logits, text).tolist() == [0, -0.5, -1.5, 0, 0]
    # with a list, the processor applies to all of it
    assert FrequencyPenalty(-1)(logits, [0, 0, 3]).tolist() == [2, 0, 0, 1, 0]
    assert PresencePenalty(1)(logits, Text([0, 1])).tolist() == FrequencyPenalty(1)(logits, []).tolist() == [0] * 5
    both = Sampler(temperature=0, presence_penalty=1, frequency_penalty=0.5)
    assert both(np.float32([0, 1.9, 0.6, 0, 0]), text) == 1  # 1.9 - 1 - 0.5 and 0.6 - 1 - 1.5
    assert not logits.any()


def test_seed_decides() -> None:
    def draw(seed: int | None) -> list[int]:
        sample = Sampler(top_p=0.9, seed=seed)
        return [sample(np.zeros(1000, dtype=np.float32)) for _ in range(20)]

    assert draw(7) == draw(7)
    assert draw(7) != draw(8)
    assert draw(None) != draw(None)
    unseeded = Sampler()
    again = Sampler(seed=unseeded.seed)
    assert [unseeded(LOGITS) for _ in range(20)] == [again(LOGITS) for _ in range(20)]


def test_seed_gives_these_tokens_on_every_platform() -> None:
    """The tokens follow from PCG64's documented stream: the k-th number u selects the first cumulative sum above u."""
    numbers = np.random.Generator(np.random.PCG64(3)).random(50)
    running = np.cumsum(np.exp(LOGITS.astype(np.float64)))
    expected = [int(np.argmax(running > u * running[-1])) for u in numbers]
    sample = Sampler(seed=3)
    assert [sample(LOGITS) for _ in range(50)] == expected


@given(
    st.lists(st.floats(width=32), min_size=1, max_size=20),
    st.sampled_from([0.0, 1e-30, 0.7, 1.0, 50.0]),
    st.none() | st.integers(1, 30),
    st.floats(0.01, 1),
    st.sampled_from([0.5, 1.0, 1.3]),
)
def test_any_logits_give_a_possible_token_or_an_error(
    logits: list[float], temperature: float, top_k: int | None, top_p: float, penalty: float
) -> None:
    array = np.array(logits, dtype=np.float32)
    sample = Sampler(temperature, top_k, top_p, penalty, seed=0)
    try:
        token = sample(array, [0])
    except NumericError:
        assert np.isnan(array).any() or not np.isfinite(array.max()) or penalty < 1
        return
    assert 0 <= token < len(array)
    assert np.isinf(array).all() or array[token] > -np.inf


@pytest.mark.parametrize("logits", [[0, np.nan], [np.nan, np.nan], [0, np.inf], [-np.inf, -np.inf]])
@pytest.mark.parametrize("sample", [greedy, Sampler(temperature=0), Sampler(temperature=1)], ids=["greedy", "0", "1"])
def test_logits_that_leave_no_choice_are_refused(logits: list[float], sample: Sample) -> None:
    """If all logits are -inf, the result must not be token 0."""
    with pytest.raises(NumericError, match="no token can be chosen"):
        sample(np.float32(logits), [])
    array = tl.kernels.KERNELS["greedy_tokens", "array"].fn
    assert array(np.float32([logits, [0, 1]])).tolist() == [-1, 1]


def test_tokens_that_are_ruled_out_are_not_chosen() -> None:
    assert greedy(np.float32([-np.inf, -3, -np.inf])) == 1


def test_numpy_integers_are_accepted() -> None:
    sampler = Sampler(np.float32(0.5), np.int64(2), np.float64(0.9), seed=np.uint8(3))
    plain = Sampler(0.5, 2, 0.9, seed=3)
    assert [sampler(LOGITS) for _ in range(9)] == [plain(LOGITS) for _ in range(9)]


@pytest.mark.parametrize(
    "parameter",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_k": 0},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"repetition_penalty": 0.0},
        {"min_p": -0.1},
        {"min_p": 1.1},
        {"presence_penalty": float("nan")},
        {"frequency_penalty": float("inf")},
        {"typical_p": 0.0},
        {"typical_p": 1.1},
        {"epsilon_cutoff": 1.0},
        {"eta_cutoff": -0.1},
        {"top_h": 0.0},
        *({name: value} for name in SAMPLER for value in ("1", True, [1], 1j)),
        *({name: None} for name in SAMPLER if name not in ("top_k", "top_h", "top_n_sigma", "seed")),
        {"top_k": 1.5},
        {"top_k": np.float32(2)},
        {"seed": 1.5},
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(parameter: dict[str, Any]) -> None:
    (name,) = parameter
    with pytest.raises(ArgumentError, match=name):
        Sampler(**parameter)


class Counting:
    """A model whose next token is always the last one plus 1; its cache is the list of its inputs."""

    vocab_size = 100
    context_length = 8

    def __init__(self) -> None:
        self.cache: list[int] = []

    def new_cache(self, *, length: int) -> list[int]:
        assert length <= self.context_length
        self.cache_length = length
        return self.cache

    def next_logits(self, tokens: Sequence[int], cache: list[int]) -> np.ndarray[Any, Any]:
        cache += tokens
        assert len(cache) <= self.cache_length
        return np.float32(np.arange(self.vocab_size) == cache[-1] + 1)


def test_generate_feeds_back_what_it_yields() -> None:
    assert list(generate(Counting(), [5, 7], max_tokens=3)) == [8, 9, 10]


def test_generate_stops_before_a_stop_id() -> None:
    assert list(generate(Counting(), [5], max_tokens=7, stop_ids={8, 9})) == [6, 7]


def test_generate_stops_when_the_context_is_full() -> None:
    """As in run.c: the last token is generated at the last position, and is not an input."""
    assert list(generate(Counting(), [0], max_tokens=100)) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert list(generate(Counting(), list(range(8)), max_tokens=100)) == [8]


def test_generate_nothing() -> None:
    assert list(generate(Counting(), [1], max_tokens=0)) == []


def test_generate_is_lazy() -> None:
    model = Counting()
    tokens = generate(model, [1], max_tokens=5)
    assert not model.cache
    assert next(tokens) == 2
    assert model.cache == [1]


def test_generate_shows_the_sampler_all_tokens_so_far() -> None:
    seen = []

    def sample(logits: Any, tokens: Sequence[int]) -> int:
        seen.append(list(tokens))
        return greedy(logits)

    prompt = [3, 4]
    list(generate(Counting(), prompt, max_tokens=3, sample=sample))
    assert seen == [[3, 4], [3, 4, 5], [3, 4, 5, 6]]
    assert prompt == [3, 4]


@pytest.mark.parametrize(
    ("tokens", "max_tokens", "message"),
    [
        ([], 1, "no token"),
        ([1, -1], 1, "outside 0..99"),
        ([100], 1, "outside 0..99"),
        (list(range(9)), 1, "9 tokens, the model's context holds 8"),
        ([1], -1, "max_tokens=-1"),
    ],
)
def test_generate_refuses_at_the_call(tokens: list[int], max_tokens: int, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        generate(Counting(), tokens, max_tokens=max_tokens)


def test_generate_hands_processors_the_text() -> None:
    seen = []

    def two_further(logits: Any, tokens: Sequence[int]) -> Any:
        seen.append((list(tokens), tokens.prompt if isinstance(tokens, Text) else None))
        return np.roll(logits, 1)

    assert list(generate(Counting(), [5], max_tokens=2, processors=[two_further])) == [7, 9]
    assert seen == [([5], 1), ([5, 7], 1)]


def test_penalties_apply_to_generated_tokens() -> None:
    sample = Sampler(temperature=0, presence_penalty=5)
    assert list(generate(Fixed(np.exp(LOGITS)), [1], max_tokens=5, sample=sample)) == [1, 3, 2, 0, 4]


class Fixed:
    """A model whose logits do not depend on the input; its cache counts its inputs."""

    def __init__(self, probabilities: Any, context_length: int = 64) -> None:
        with np.errstate(divide="ignore"):
            self.logits = np.log(np.asarray(probabilities, dtype=np.float32))
        self.vocab_size = len(self.logits)
        self.context_length = context_length
        self.calls = 0

    def new_cache(self, *, length: int, batch: int = 1, padding: Any = None, sliding: bool = True) -> Counter:
        return Counter()

    def next_logits(self, tokens: Sequence[int], cache: Counter) -> Any:
        return self.last_logits([tokens], cache)[0, 0]

    def last_logits(self, tokens: Sequence[Sequence[int]], cache: Counter, last: int = 1) -> Any:
        self.calls += 1
        cache.length += len(tokens[0])
        return np.broadcast_to(self.logits, (len(tokens), last, self.vocab_size)).copy()


class Counter:
    length = 0
    has_states = False

    def mark(self) -> None: ...

    def rewind(self, length: int) -> None:
        assert 0 <= length <= self.length
        self.length = length

    def select(self, rows: Sequence[int]) -> None: ...


def test_the_likeliest_tokens_of_equals_are_the_first() -> None:
    logits_TV = np.array([[0, 3, 1, 3, 3, -1], [5, 0, 0, 0, 0, 0]], np.float32)
    for top in range(8):
        tops = [[token for token, _ in choice.top_logprobs] for choice, _ in scored_each([4, 2], logits_TV, top)]
        assert tops == [[1, 3, 4, 2, 0, 5][:top], [0, 1, 2, 3, 4, 5][:top]]
    assert [rank for _, rank in scored_each([2, 2], logits_TV, 0)] == [4, 2]
    assert [rank for _, rank in scored_each([4, 0], logits_TV, 0)] == [1, 1]


def test_logprobs_are_the_models_whatever_the_sampler_does() -> None:
    model = Fixed(np.exp(LOGITS) * 7)  # not normalized
    sample = Sampler(temperature=0, repetition_penalty=100)
    first, second = generate_with_logprobs(model, [3], max_tokens=2, top_logprobs=2, sample=sample)
    assert (first.token, second.token) == (1, 2) or (first.token, second.token) == (1, 0)
    assert first.logprob == pytest.approx(np.log(0.4), abs=1e-6)
    assert [token for token, _ in second.top_logprobs] == [1, 3]
    assert [value for _, value in second.top_logprobs] == pytest.approx([np.log(0.4), np.log(0.25)], abs=1e-6)
    assert next(generate_with_logprobs(model, [3], max_tokens=1)).top_logprobs == []
    with pytest.raises(ArgumentError, match="top_logprobs=-1"):
        generate_with_logprobs(model, [3], max_tokens=1, top_logprobs=-1)


def test_a_batch_stops_row_by_row() -> None:
    def sample(logits: Any, tokens: Sequence[int]) -> int:
        return tokens[-1] + 1

    model = Fixed([0.1] * 10)
    pairs = list(generate_batch(model, [[1], [7, 2], [4]], max_tokens=3, sample=sample, stop_ids={6}))
    assert pairs == [(0, 2), (1, 3), (2, 5), (0, 3), (1, 4), (0, 4), (1, 5)]
    assert model.calls == 3


def test_rows_with_a_seed_of_their_own_do_not_depend_on_their_neighbours() -> None:
    model = Fixed(np.exp(LOGITS))

    def row(neighbours: int) -> list[int]:
        samples = [*(Sampler(seed=i) for i in range(neighbours)), Sampler(seed=9)]
        pairs = generate_batch(model, [[1]] * len(samples), max_tokens=20, sample=samples)
        return [token for i, token in pairs if i == neighbours]

    assert row(0) == row(3) == list(generate(model, [1], max_tokens=20, sample=Sampler(seed=9)))


def test_invalid_batches_are_refused() -> None:
    model = Fixed(np.exp(LOGITS), context_length=4)
    with pytest.raises(ArgumentError, match="no prompts"):
        generate_batch(model, [], max_tokens=1)
    with pytest.raises(ArgumentError, match="2 samples for 1 prompts"):
        generate_batch(model, [[1]], max_tokens=1, sample=[greedy, greedy])
    with pytest.raises(ArgumentError, match="no token"):
        generate_batch(model, [[1], []], max_tokens=1)
    with pytest.raises(ArgumentError, match="takes 5 tokens"):
        generate_batch(model, [[1], [1] * 5], max_tokens=1)
    assert list(generate_batch(model, [[1], [1, 2, 3]], max_tokens=9)) == [(0, 1), (1, 1)] * 2  # then the cache is full
    assert list(generate_batch(model, [[1]], max_tokens=0)) == []


def test_beams_of_a_stateless_model() -> None:
    """If tokens are independent, the best texts have the largest products of probabilities."""
    model = Fixed([0.5, 0.3, 0.2])
    beams = beam_search(model, [0], num_beams=4, max_tokens=2, num_return_sequences=3, length_penalty=0)
    assert beams[0].tokens == [0, 0]
    assert sorted(beam.tokens for beam in beams[1:]) == [[0, 1], [1, 0]]
    assert [beam.score for beam in beams] == pytest.approx(np.log([0.25, 0.15, 0.15]), abs=1e-6)
    texts = beam_search(model, [0], num_beams=2, max_tokens=9, stop_ids={1}, length_penalty=0)
    assert texts[0].tokens == []
    assert texts[0].score == pytest.approx(np.log(0.3), abs=1e-6)


def test_beams_do_not_take_tokens_that_are_ruled_out() -> None:
    model = Fixed([0.5, 0.3, 0.2])
    for ended in ({0}, {2}):  # a stop id that is ruled out, and one that is not
        beams = beam_search(
            model,
            [0],
            num_beams=3,
            max_tokens=2,
            num_return_sequences=3,
            stop_ids=ended,
            processors=[SuppressTokens([0])],
        )
        assert all(0 not in beam.tokens and beam.score > -np.inf for beam in beams)
        assert [1, 1] in [beam.tokens for beam in beams]
    with pytest.raises(NumericError, match="rules out every token"):
        beam_search(model, [0], num_beams=2, max_tokens=2, processors=[SuppressTokens([0, 1, 2])])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_beams": 0}, "num_beams=0"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"num_return_sequences": 3}, "num_return_sequences=3"),
        ({"early_stopping": "always"}, "early_stopping='always'"),
        ({"early_stopping": 1}, "early_stopping=1"),
        ({"num_beams": 2.0}, "num_beams=2.0"),
        ({"max_tokens": "9"}, "max_tokens='9'"),
        ({"num_return_sequences": 1.5}, "num_return_sequences=1.5"),
        ({"length_penalty": float("nan")}, "length_penalty=nan"),
        ({"length_penalty": None}, "length_penalty=None"),
        ({"length_penalty": 1e300}, "length_penalty=1e\\+300"),
        ({"length_penalty": -(10**9)}, "length_penalty=-1000000000"),
        ({"stop_ids": 1}, "stop_ids: expected ids of tokens, got int"),
        ({"stop_ids": ["</s>"]}, "stop_ids: expected ids of tokens, got str"),
    ],
)
def test_invalid_beam_searches_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        beam_search(Fixed([0.5, 0.5]), [0], **{"num_beams": 2, "max_tokens": 2} | options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 1.5}, "max_tokens=1.5"),
        ({"max_tokens": True}, "max_tokens=True"),
        ({"stop_ids": {0.5}}, "stop_ids: expected ids of tokens, got float"),
        ({"tokens": [0, 1.5]}, "the prompt: expected ids of tokens, got float, int"),
        ({"tokens": "01"}, "the prompt: expected ids of tokens, got str"),
    ],
)
def test_arguments_that_are_no_integers_are_refused(options: dict[str, Any], message: str) -> None:
    model, arguments = Fixed([0.5, 0.5]), {"tokens": [0], "max_tokens": 2} | options
    tokens = arguments.pop("tokens")
    calls: list[Any] = [generate, generate_with_logprobs, partial(speculate, model)]
    for call in calls:
        with pytest.raises(ArgumentError, match=message):
            call(model, tokens, **arguments)
    with pytest.raises(ArgumentError, match=message):
        generate_batch(model, [tokens], **arguments)


@pytest.mark.parametrize("name", ["lookahead", "top_logprobs"])
@pytest.mark.parametrize("value", [-1, 1.5, "1"])
def test_counts_are_integers(name: str, value: Any) -> None:
    model = Fixed([0.5, 0.5])
    call: Any = generate_with_logprobs if name == "top_logprobs" else partial(speculate, model)
    with pytest.raises(ArgumentError, match=name):
        call(model, [0], max_tokens=2, **{name: value})


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_beams_and_logprobs_refuse_nan(bad: float) -> None:
    model = Fixed([0.5, 0.5])
    model.logits[1] = bad
    with pytest.raises(NumericError, match="NaN"):
        beam_search(model, [0], num_beams=2, max_tokens=2)
    with pytest.raises(NumericError, match="NaN"):
        next(generate_with_logprobs(model, [0], max_tokens=2))


@pytest.mark.parametrize("guessed", [[0.4, 0.1, 0.1, 0.2, 0.2], [1, 0, 0, 0, 0], [0.1, 0.4, 0.2, 0.25, 0.05]], ids=str)
def test_speculation_draws_from_the_model(guessed: list[float]) -> None:
    """Whatever the draft predicts, every token and every pair of neighbours is as frequent as with the model alone."""
    draws, tolerance = DRAWS // 4, 2 * TOLERANCE
    model, draft = Fixed(np.exp(LOGITS), 2 * draws), Fixed(guessed, 2 * draws)
    tokens_drawn = np.array(list(speculate(model, draft, [1], max_tokens=draws, lookahead=3, sample=Sampler(seed=0))))
    assert len(tokens_drawn) == draws
    np.testing.assert_allclose(np.bincount(tokens_drawn, minlength=5) / draws, np.exp(LOGITS), atol=tolerance)
    pairs = np.bincount(tokens_drawn[:-1] * 5 + tokens_drawn[1:], minlength=25) / draws
    np.testing.assert_allclose(pairs, np.outer(np.exp(LOGITS), np.exp(LOGITS)).ravel(), atol=tolerance)


def test_speculation_saves_steps() -> None:
    model = Fixed([0.1, 0.9])
    assert list(speculate(model, Fixed([0.2, 0.8]), [0], max_tokens=20, lookahead=4)) == [1] * 20
    assert model.calls == 4
    assert list(speculate(Fixed([0.1, 0.9]), Fixed([0.9, 0.1]), [0], max_tokens=20)) == [1] * 20
    assert list(speculate(model, Fixed([0.2, 0.8]), [0], max_tokens=20, stop_ids={1})) == []
    assert list(speculate(model, model, [0], max_tokens=0)) == []


def test_drafts_that_do_not_fit_are_refused() -> None:
    model = Fixed([0.5, 0.5])
    with pytest.raises(ArgumentError, match="vocabulary of 3, the model one of 2"):
        speculate(model, Fixed([0.5, 0.3, 0.2]), [0], max_tokens=2)
    with pytest.raises(ArgumentError, match="the draft model's context holds 8"):
        speculate(model, Fixed([0.5, 0.5], 8), [0], max_tokens=9)
    with pytest.raises(ArgumentError, match="lookahead=0"):
        speculate(model, model, [0], max_tokens=2, lookahead=0)


class Bytes:
    """A tokenizer whose tokens are bytes."""

    def decode(self, previous: int | None, token: int) -> bytes:
        return bytes([token])


@given(st.text())
def test_stream_never_splits_a_character(text: str) -> None:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return
    pieces = list(decode_stream(Bytes(), encoded))
    assert pieces == list(text)


@given(st.binary())
def test_stream_replaces_invalid_utf_8(data: bytes) -> None:
    assert "".join(decode_stream(Bytes(), data)) == data.decode("utf-8", "replace")


def test_stream_yields_as_soon_as_a_character_is_whole() -> None:
    fed = []

    def tokens() -> Any:
        for byte in "é!".encode():
            fed.append(byte)
            yield byte

    stream = decode_stream(Bytes(), tokens())
    assert next(stream) == "é"
    assert len(fed) == 2
    assert next(stream) == "!"


def test_stream_passes_the_previous_token() -> None:
    class Pairs:
        def decode(self, previous: int | None, token: int) -> bytes:
            return f"{previous}-{token} ".encode()

    assert "".join(decode_stream(Pairs(), [1, 2])) == "None-1 1-2 "
    assert "".join(decode_stream(Pairs(), [1, 2], previous=9)) == "9-1 1-2 "


@given(st.text("ab-", max_size=30), st.lists(st.text("ab-", min_size=1, max_size=4), max_size=3), st.data())
def test_text_ends_at_the_first_stop_string_across_pieces(text: str, stop: list[str], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    pieces = [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    ends = [(text.find(string) + len(string), text.find(string)) for string in stop if string in text]
    assert "".join(until(pieces, stop)) == (text[: min(ends)[1]] if ends else text)


def test_nothing_is_read_after_a_stop_string() -> None:
    pieces_read = []

    def pieces() -> Any:
        for piece in ("one", "\n", "\nUs", "er:", "never"):
            pieces_read.append(piece)
            yield piece

    assert list(until(pieces(), ["\nUser:", "Bot:"])) == ["one", "\n"]
    assert pieces_read[-1] == "er:"
    assert list(until(["a", "b"], "b")) == ["a"]
    assert list(until(["a", "", "b"], [])) == ["a", "", "b"]
    with pytest.raises(ArgumentError, match="one is empty"):
        until([], ["a", ""])
