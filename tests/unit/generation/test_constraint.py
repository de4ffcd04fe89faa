"""Generation within a grammar, with the built-in model."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tallow.errors import ArgumentError, GrammarError
from tallow.generation import Sampler, Text, generate, generate_batch
from tallow.generation.constrain import Constraint, Grammar, Vocabulary, choices, json_object, json_schema, regex
from tallow.generation.constrain import constraint as constraint_module
from tallow.generation.constrain.work import MAX_PER_TOKEN
from tallow.models.built_in import stories
from tallow.text.llama2c import Llama2cTokenizer

STOPS = [1, 2]
ANIMALS = choices(["the big dog", "a cat", "the bird", "nobody"])


@pytest.fixture(scope="module")
def storyteller() -> tuple[Any, Llama2cTokenizer]:
    return stories.load()


@pytest.fixture(scope="module")
def vocabulary(storyteller: tuple[Any, Llama2cTokenizer]) -> Vocabulary:
    return Vocabulary(storyteller[1].token_bytes())


def text_of(tokenizer: Llama2cTokenizer, tokens: Iterator[int] | list[int]) -> str:
    return b"".join(tokenizer.token_bytes()[token] or b"?" for token in tokens).decode()


def test_texts_stay_within_the_choices(storyteller: tuple[Any, Llama2cTokenizer], vocabulary: Vocabulary) -> None:
    model, tokenizer = storyteller
    prompt = tokenizer.encode("Once upon a time there was")
    options: dict[str, Any] = {"stop_ids": STOPS, "processors": [Constraint(ANIMALS, vocabulary, STOPS)]}
    found = [text_of(tokenizer, generate(model, prompt, max_tokens=30, **options))]
    for seed in range(5):
        found.append(
            text_of(tokenizer, generate(model, prompt, max_tokens=30, sample=Sampler(2.0, seed=seed), **options))
        )
    rows: list[list[int]] = [[], []]
    for row, token in generate_batch(model, [prompt, tokenizer.encode("Tom")], max_tokens=30, **options):
        rows[row].append(token)
    found += [text_of(tokenizer, row) for row in rows]
    assert all(ANIMALS.matches(text) for text in found), found
    assert len(set(found)) > 1


def test_the_likeliest_choice_of_one_token_each(
    storyteller: tuple[Any, Llama2cTokenizer], vocabulary: Vocabulary
) -> None:
    model, tokenizer = storyteller
    prompt = tokenizer.encode("Once upon a time")
    options = [
        token for token in (tokenizer.encode(word, bos=False) for word in ("there", "in", "and")) if len(token) == 1
    ]
    logits = model.next_logits(prompt, model.new_cache(length=len(prompt)))
    expected = max((token for (token,) in options), key=lambda token: logits[token])
    constraint = Constraint(choices([text_of(tokenizer, token) for token in options]), vocabulary, STOPS)
    assert next(generate(model, prompt, max_tokens=1, processors=[constraint])) == expected


def test_a_person_as_json(storyteller: tuple[Any, Llama2cTokenizer], vocabulary: Vocabulary) -> None:
    model, tokenizer = storyteller
    properties = {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 1, "maximum": 9}}
    schema = {"type": "object", "properties": properties, "required": ["name", "age"]}
    constraint = Constraint(json_schema(schema), vocabulary, STOPS)
    for seed in range(3):
        tokens = generate(
            model, [1], max_tokens=200, stop_ids=STOPS, sample=Sampler(seed=seed), processors=[constraint]
        )
        value = json.loads(text_of(tokenizer, tokens))
        assert value.keys() == {"name", "age"}
        assert len(value["name"]) <= 12
        assert 1 <= value["age"] <= 9


def test_a_text_may_end_exactly_where_the_grammar_does(vocabulary: Vocabulary) -> None:
    constraint = Constraint(regex("a{2,3}"), vocabulary, STOPS)
    letter = vocabulary.tokens.index(b"a")
    ends = [bool(constraint.allowed([letter] * n, len(vocabulary))[STOPS].all()) for n in range(4)]
    assert ends == [False, False, True, True]
    assert constraint.allowed([letter] * 3, len(vocabulary)).sum() == len(STOPS)


def test_logits_of_allowed_tokens_do_not_change(vocabulary: Vocabulary) -> None:
    logits = np.random.default_rng(0).normal(size=len(vocabulary) + 7).astype(np.float32)  # more than the vocabulary
    logits[5] = np.nan
    given = logits.copy()
    changed = Constraint(json_object(), vocabulary, STOPS)(logits, Text([1]))
    np.testing.assert_array_equal(logits, given)
    kept = np.isfinite(changed)
    assert {vocabulary.tokens[i] for i in np.flatnonzero(kept)} <= {b"{", b'{"'}
    assert kept.any()
    np.testing.assert_array_equal(changed[kept], logits[kept])
    assert changed.dtype == np.float32
    assert np.isneginf(changed[~kept]).all()


@pytest.mark.parametrize("grammar", [regex("[ab]*"), json_object()], ids=["finite", "recursive"])
def test_many_texts_at_once_do_not_disturb_each_other(grammar: Grammar, vocabulary: Vocabulary) -> None:
    rng = np.random.default_rng(1)
    shared = Constraint(grammar, vocabulary, STOPS)
    texts: list[list[int]] = [[] for _ in range(300)]  # more than the constraint remembers
    for _ in range(3):
        for text in texts:
            allowed = shared.allowed(text, len(vocabulary))
            alone = Constraint(grammar, vocabulary, STOPS).allowed(text, len(vocabulary))
            np.testing.assert_array_equal(allowed, alone)
            if len(continuing := np.setdiff1d(np.flatnonzero(allowed), STOPS)):
                text.append(int(rng.choice(continuing)))


HOSTILE = ".*[a-m].{40}|.*[aeiou].{40}|.*[bdfhjlnprtvxz].{40}|(.?){400}"  # each letter doubles the states


def test_the_work_for_one_token_is_bounded(vocabulary: Vocabulary) -> None:
    shared = Constraint(regex(HOSTILE), vocabulary, STOPS)
    pieces: list[int] = []
    with pytest.raises(GrammarError, match="a token takes more than 500,000 configurations"):
        pieces.extend(shared.prepare(Text([])))
    assert 0.99 * MAX_PER_TOKEN < sum(pieces) < 1.01 * MAX_PER_TOKEN
    assert max(pieces) < 0.01 * MAX_PER_TOKEN  # another text waits for no more than one of them


def test_the_work_for_one_text_is_bounded(vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constraint_module, "MAX_PER_TEXT", 200_000)
    shared = Constraint(regex("(.?){300}"), vocabulary, STOPS)
    letter = vocabulary.tokens.index(b"a")
    texts = ([letter] * count for count in range(300))
    with pytest.raises(GrammarError, match=r"more than [0-9,]+ configurations"):
        deque((shared.allowed(text, len(vocabulary)) for text in texts), maxlen=0)
    assert 3 < len(next(texts)) < 290
    other = vocabulary.tokens.index(b"b")
    assert shared.allowed([other], len(vocabulary)).any()  # another text has a budget of its own


def test_what_is_kept_is_bounded_and_changes_no_mask(vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    letters = regex("[a-z ]{300}")
    unbounded, shared = Constraint(letters, vocabulary, STOPS), Constraint(letters, vocabulary, STOPS)
    text: list[int] = []
    kept, starts = [], set()
    for _ in range(40):
        with monkeypatch.context() as small:
            for name, size in (("MAX_BYTES", 30_000), ("MAX_MASK_BYTES", 300), ("MAX_TEXT_BYTES", 300)):
                small.setattr(constraint_module, name, size)
            allowed = shared.allowed(text, len(vocabulary))
        np.testing.assert_array_equal(allowed, unbounded.allowed(text, len(vocabulary)))
        starts.add(id(shared._found))
        kept.append(shared.nbytes - letters.nbytes)
        text.append(int(rng.choice(np.flatnonzero(allowed))))
    assert len(starts) > 1
    assert max(kept) < 60_000 < unbounded.nbytes - letters.nbytes


def test_errors(vocabulary: Vocabulary) -> None:
    with pytest.raises(ArgumentError, match="without stop ids"):
        Constraint(ANIMALS, vocabulary, [])
    with pytest.raises(GrammarError, match="not in the grammar"):
        Constraint(ANIMALS, vocabulary, STOPS).allowed([5, 6, 7], len(vocabulary))
    with pytest.raises(GrammarError, match="no token of the vocabulary"):
        Constraint(ANIMALS, Vocabulary([None, None, None, b"x"]), STOPS).allowed([], 4)
