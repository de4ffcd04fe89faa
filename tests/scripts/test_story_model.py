"""The packaged story model follows the grammar it was trained on: characters stay, and lost things are found."""

from __future__ import annotations

import re

import pytest
from stories import vocabulary as words

from tallow.generation import Sampler, decode_stream, generate
from tallow.models.built_in import stories

SEEDS = range(40)
USUAL = 0.85  # 0.92, 1, 0.95 and 1 on the original machine; rounding elsewhere may lead to other stories
NAMES = {character.name: character for character in (*words.CHILDREN, *words.ANIMALS)}


@pytest.fixture(scope="module")
def generated() -> list[str]:
    """Generate stories without a prompt."""
    model, tokenizer = stories.load()
    texts = []
    for seed in SEEDS:
        sampler = Sampler(temperature=0.8, top_p=0.9, seed=seed)
        tokens = generate(model, [1], max_tokens=model.context_length, sample=sampler, stop_ids={1, 2})
        texts.append("".join(decode_stream(tokenizer, tokens, previous=1)))
    return texts


def share(results: list[bool]) -> float:
    return sum(results) / len(results)


def names_in(story: str) -> list[str]:
    """Return names in order of first appearance."""
    return list(dict.fromkeys(name for name in re.findall(r"[A-Z][a-z]+", story) if name in NAMES))


def test_hero_and_friend_are_the_only_names(generated: list[str]) -> None:
    assert share([1 <= len(names_in(story)) <= 2 for story in generated]) >= USUAL


def test_hero_is_named_to_the_end(generated: list[str]) -> None:
    assert share([names_in(story)[0] in story[len(story) // 2 :] for story in generated]) >= USUAL


def test_elder_stays_the_same(generated: list[str]) -> None:
    elders = [elder.name for elder in words.ELDERS]
    assert (
        share([sum(bool(re.search(rf"\b{elder}\b", story)) for elder in elders) <= 1 for story in generated]) >= USUAL
    )


def test_what_is_lost_is_found() -> None:
    """Tell the model that the hero lost something: the hero must ask for that and nothing else."""
    model, tokenizer = stories.load()
    results = []
    for hero, noun, colour in (("Ivy", "drum", "red"), ("Milo", "scarf", "blue"), ("Hana", "boat", "green")):
        who = NAMES[hero]
        opening = f"{hero} was a kind {who.kind}. {hero} lived {who.home}."
        prompt = f"{opening} {who.He} had a {colour} {noun}, and {who.he} took the {noun} everywhere."
        start = tokenizer.encode(prompt)
        for seed in range(5):
            sampler = Sampler(temperature=0.8, top_p=0.9, seed=seed)
            tokens = list(generate(model, start, max_tokens=model.context_length, sample=sampler, stop_ids={1, 2}))
            story = "".join(decode_stream(tokenizer, tokens, previous=start[-1]))
            others = set(words.TOYS + words.CLOTHES) - {noun}
            results.append(noun in story and not others & set(re.findall(r"\b[a-z]+\b", story)))
    assert share(results) >= USUAL
