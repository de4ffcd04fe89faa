"""A grammar of small stories: a plot is a list of steps, a step a choice of templates, a template text with slots.

One cast is drawn per story and fills the slots of all steps, so that names and things stay consistent. Names and
things recur soon after their first mention, and each hero has a fixed home and kind, which teaches a small model to
repeat them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import vocabulary as words

Step = tuple[str, ...]
"""Templates, one of which is chosen; an empty one skips the step."""


@dataclass(frozen=True)
class Plot:
    """A plot, from the problem to the moral. All plots share the introduction of the hero.

    Attributes:
        heroes: candidates for the hero; the friend is another of them.
        things: nouns for the slot `thing`.
        variants: additional slots, one mapping per story; their values may refer to slots of the cast.
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
    """Return a random story of this plot."""
    slots = cast(plot, rng)
    slots |= {name: value.format_map(slots) for name, value in rng.choice(plot.variants).items()}
    sentences = (rng.choice(step).format_map(slots) for step in (OPENINGS, *plot.steps))
    return " ".join(filter(None, sentences))


def stories(plots: Sequence[Plot], count: int, seed: int) -> Iterator[str]:
    """Yield `count` distinct stories, equal for equal seeds; all plots are equally likely."""
    rng = random.Random(seed)
    seen: set[str] = set()
    while len(seen) < count:
        story = tell(rng.choice(plots), rng)
        if story not in seen:
            seen.add(story)
            yield story


def cast(plot: Plot, rng: random.Random) -> dict[str, Any]:
    """Draw the values of the slots of one story."""
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
