"""A grammar of small stories: a plot is a row of steps, a step a choice of templates, a template text with slots.

One cast is drawn for a story and fills the slots of every step, so that who has what stays the same to the end. Names
and things come again soon after they are told first, and heroes have a home and a kind of their own: by that a small
model learns to repeat them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import vocabulary as words

Step = tuple[str, ...]
"""Templates of which one is told; an empty one leaves the step out."""


@dataclass(frozen=True)
class Plot:
    """What happens, from the problem to the moral; how heroes are introduced is common to all plots.

    Attributes:
        heroes: who it can happen to; their friend is another of them.
        things: nouns for the slot `thing`.
        variants: slots of its own, one row for each story; their values may name those of the cast.
    """

    name: str
    steps: Sequence[Step]
    heroes: Sequence[words.Character] | None = None
    things: Sequence[str] = words.TOYS
    variants: Sequence[Mapping[str, str]] = ({},)


OPENINGS: Step = (
    "Once upon a time there was a {trait} {hero.kind} named {hero}. {hero} lived {hero.home}.",
    "Once upon a time {hero} the {trait} {hero.kind} lived {hero.home}.",
    "{hero} was a {trait} {hero.kind}. {hero} lived {hero.home}.",
    "There was once a {trait} {hero.kind} called {hero}. {hero} lived {hero.home}.",
)


def tell(plot: Plot, rng: random.Random) -> str:
    """One story of this plot."""
    slots = cast(plot, rng)
    slots |= {name: value.format_map(slots) for name, value in rng.choice(plot.variants).items()}
    sentences = (rng.choice(step).format_map(slots) for step in (OPENINGS, *plot.steps))
    return " ".join(filter(None, sentences))


def stories(plots: Sequence[Plot], count: int, seed: int) -> Iterator[str]:
    """`count` different stories, the same for the same seed; plots come in equal parts."""
    rng = random.Random(seed)
    told: set[str] = set()
    while len(told) < count:
        story = tell(rng.choice(plots), rng)
        if story not in told:
            told.add(story)
            yield story


def cast(plot: Plot, rng: random.Random) -> dict[str, Any]:
    """Who and what fills the slots of one story."""
    heroes = plot.heroes or rng.choice((words.CHILDREN, words.ANIMALS))
    hero = rng.choice(heroes)
    friend = rng.choice([other for other in heroes if other is not hero])
    place = rng.choice(words.PLACES)
    first, second, third = rng.sample(place.spots, 3)
    return {
        "hero": hero,
        "friend": friend,
        "elder": rng.choice(words.ELDERS),
        "trait": rng.choice(words.TRAITS),
        "thing": words.Thing(rng.choice(plot.things), rng.choice(words.COLOURS)),
        "place": place,
        "first": first,
        "second": second,
        "third": third,
        "when": rng.choice(words.TIMES),
    }
