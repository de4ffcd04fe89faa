"""Who and what the stories are about. Words that belong together (a place and its corners) are kept together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Character:
    """Someone with a name, a kind and pronouns: `{hero.he}` in a template, `{hero.He}` where a sentence starts."""

    name: str
    kind: str
    he: str
    him: str
    his: str

    def __str__(self) -> str:
        return self.name

    @property
    def He(self) -> str:
        return self.he.capitalize()

    @property
    def His(self) -> str:
        return self.his.capitalize()

    @property
    def self(self) -> str:
        return f"{self.him}self"

    @property
    def full(self) -> str:
        """The name as it is first told: "Pip the otter", but "Ada"."""
        return self.name if self.kind in ("girl", "boy") else f"{self.name} the {self.kind}"


def she(name: str, kind: str) -> Character:
    return Character(name, kind, "she", "her", "her")


def he(name: str, kind: str) -> Character:
    return Character(name, kind, "he", "him", "his")


@dataclass(frozen=True)
class Thing:
    """Something with a colour: `{thing}` is "kite", `{thing.a}` "an orange kite", `{thing.full}` "orange kite"."""

    noun: str
    colour: str

    def __str__(self) -> str:
        return self.noun

    @property
    def full(self) -> str:
        return f"{self.colour} {self.noun}"

    @property
    def a(self) -> str:
        return f"{'an' if self.colour[0] in 'aeiou' else 'a'} {self.full}"


@dataclass(frozen=True)
class Place:
    """Somewhere to play, with its preposition and the corners where things can lie."""

    name: str
    preposition: str
    spots: tuple[str, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def at(self) -> str:
        return f"{self.preposition} {self.name}"


GIRLS = tuple(
    she(name, "girl") for name in ("Ada", "Nora", "Ivy", "Ruby", "Maya", "Lena", "Rosa", "Hana", "Edith", "June")
)
BOYS = tuple(
    he(name, "boy") for name in ("Finn", "Otto", "Milo", "Hugo", "Arlo", "Kofi", "Emil", "Theo", "Ravi", "Oscar")
)
CHILDREN = GIRLS + BOYS

SPECIES = ("rabbit", "fox", "mouse", "otter", "hedgehog", "squirrel", "duck", "bear", "badger", "frog")
SHE_ANIMALS = ("Clover", "Poppy", "Dot", "Hazel", "Bramble")
HE_ANIMALS = ("Pip", "Tuft", "Acorn", "Button", "Rusty")
ANIMALS = tuple(
    make(name, species)
    for make, names in ((she, SHE_ANIMALS), (he, HE_ANIMALS))
    for name in names
    for species in SPECIES
)

ELDERS = (she("Mum", "mother"), he("Dad", "father"), she("Grandma", "grandmother"), he("Grandpa", "grandfather"))

TRAITS = ("kind", "shy", "merry", "brave", "quiet", "curious", "clever", "busy", "gentle", "cheerful")

CHILD_HOMES = (
    "in a tall house on a hill",
    "in a small house by the sea",
    "at the edge of a village",
    "on a farm with many hens",
    "above the baker's shop",
)
ANIMAL_HOMES = (
    "under an old oak tree",
    "in a warm nest of leaves",
    "in a hole by the river",
    "at the edge of the forest",
    "beside a green pond",
)

COLOURS = ("red", "blue", "green", "yellow", "white", "brown", "orange", "purple")
TOYS = ("ball", "drum", "boat", "train", "bucket", "whistle", "bell", "puppet")
CLOTHES = ("hat", "scarf", "mitten", "sock")

PLACES = (
    Place("the garden", "in", ("under the apple tree", "behind the shed", "among the roses", "beside the gate")),
    Place("the park", "in", ("under the bench", "behind the fountain", "beside the swings", "in the long grass")),
    Place("the beach", "on", ("behind a rock", "under a heap of seaweed", "beside a pool", "between two boats")),
    Place("the forest", "in", ("under a fern", "behind a fallen log", "beside the stream", "in a heap of leaves")),
    Place("the meadow", "in", ("among the flowers", "behind the fence", "beside the brook", "under a thorn bush")),
    Place("the farm", "on", ("behind the barn", "in the straw", "beside the well", "under the old cart")),
)

TIMES = (
    "One sunny morning",
    "One windy morning",
    "One warm afternoon",
    "One bright day in spring",
    "One cool day in autumn",
    "One fine summer day",
)
