"""Choosing tokens, the loop that feeds them back, and text that comes in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallow.errors import ArgumentError, NumericError
from tallow.generation import Sampler, decode_stream, generate, greedy

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.25, 0.05], dtype=np.float32))
DRAWS = 20_000
# Four standard deviations of a frequency over that many draws, at worst: a right sampler fails once in 16,000.
TOLERANCE = 4 * 0.5 / DRAWS**0.5


def frequencies(sample: Sampler, logits: Any = LOGITS, tokens: Sequence[int] = ()) -> np.ndarray[Any, Any]:
    drawn = [sample(logits, tokens) for _ in range(DRAWS)]
    return np.bincount(drawn, minlength=len(logits)) / DRAWS


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
    """Every probability equals the cut-off that spares the sorting, up to rounding; half of them have to stay."""
    drawn = {Sampler(top_p=0.5, seed=seed)(np.zeros(1000, dtype=np.float32)) for seed in range(300)}
    assert max(drawn) <= 501  # of equals the first are kept
    assert max(drawn) > 450


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
    """The tokens follow from PCG64's documented stream: the k-th number u picks the first running sum above u."""
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


@pytest.mark.parametrize("logits", [[0, np.nan], [np.nan, np.nan]])
@pytest.mark.parametrize("temperature", [0, 1])
def test_nan_is_refused(logits: list[float], temperature: float) -> None:
    with pytest.raises(NumericError, match="NaN"):
        Sampler(temperature=temperature)(np.float32(logits))


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
    ],
)
def test_parameters_out_of_range_are_refused(parameter: dict[str, Any]) -> None:
    (name,) = parameter
    with pytest.raises(ArgumentError, match=name):
        Sampler(**parameter)


class Counting:
    """A model whose next token is always one more than the last; its cache is the list of what it was fed."""

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
    """run.c's count: the last token is made at the last position, and not fed."""
    assert list(generate(Counting(), [0], max_tokens=100)) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert list(generate(Counting(), list(range(8)), max_tokens=100)) == [8]


def test_generate_nothing() -> None:
    assert list(generate(Counting(), [1], max_tokens=0)) == []


def test_generate_computes_only_what_is_asked_for() -> None:
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
    ("tokens", "max_tokens", "says"),
    [
        ([], 1, "no token"),
        ([1, -1], 1, "outside 0..99"),
        ([100], 1, "outside 0..99"),
        (list(range(9)), 1, "9 tokens, the model's context holds 8"),
        ([1], -1, "max_tokens=-1"),
    ],
)
def test_generate_refuses_at_the_call(tokens: list[int], max_tokens: int, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        generate(Counting(), tokens, max_tokens=max_tokens)


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
def test_stream_replaces_what_is_no_utf_8(data: bytes) -> None:
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


def test_stream_tells_the_tokenizer_what_came_before() -> None:
    class Pairs:
        def decode(self, previous: int | None, token: int) -> bytes:
            return f"{previous}-{token} ".encode()

    assert "".join(decode_stream(Pairs(), [1, 2])) == "None-1 1-2 "
    assert "".join(decode_stream(Pairs(), [1, 2], previous=9)) == "9-1 1-2 "
