"""The characters, things and places of the stories. Words that belong together form one object."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Character:
    """A character with a name, a kind and pronouns: `{hero.he}` in a template, `{hero.He}` to start a sentence."""

    name: str
    kind: str
    he: str
    him: str
    his: str
    home: str = ""

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
        """The name at first mention: "Pip the otter", but "Ada"."""
        return self.name if self.kind in ("girl", "boy") else f"{self.name} the {self.kind}"


def she(name: str, kind: str, home: str = "") -> Character:
    return Character(name, kind, "she", "her", "her", home)


def he(name: str, kind: str, home: str = "") -> Character:
    return Character(name, kind, "he", "him", "his", home)


@dataclass(frozen=True)
class Thing:
    """A thing with a colour: `{thing}` is "kite", `{thing.a}` "an orange kite", `{thing.full}` "orange kite"."""

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
    """A place to play, with its preposition and the spots where things can lie."""

    name: str
    preposition: str
    spots: tuple[str, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def at(self) -> str:
        return f"{self.preposition} {self.name}"


# Heroes keep their home and, for animals, their kind in all stories.
HOUSES = (
    "in a tall house on a hill",
    "in a small house by the sea",
    "at the edge of a village",
    "on a farm with many hens",
    "above the baker's shop",
)
GIRL_NAMES = ("Ada", "Nora", "Ivy", "Ruby", "Maya", "Lena", "Rosa", "Hana", "Edith", "June")
BOY_NAMES = ("Finn", "Otto", "Milo", "Hugo", "Arlo", "Kofi", "Emil", "Theo", "Ravi", "Oscar")
GIRLS = tuple(she(name, "girl", home) for name, home in zip(GIRL_NAMES, HOUSES * 2, strict=True))
BOYS = tuple(he(name, "boy", home) for name, home in zip(BOY_NAMES, HOUSES * 2, strict=True))
CHILDREN = GIRLS + BOYS

ANIMALS = (
    she("Clover", "rabbit", "in a field of clover"),
    she("Poppy", "mouse", "under a red poppy"),
    she("Dot", "frog", "beside a green pond"),
    she("Hazel", "squirrel", "in the top of a tall tree"),
    she("Bramble", "hedgehog", "under an old hedge"),
    he("Pip", "otter", "in a hole by the river"),
    he("Tuft", "owl", "in a hollow oak"),
    he("Acorn", "bear", "in a deep cave"),
    he("Button", "duck", "on a little island"),
    he("Rusty", "fox", "at the edge of the forest"),
)

ELDERS = (she("Mum", "mother"), he("Dad", "father"), she("Grandma", "grandmother"), he("Grandpa", "grandfather"))

TRAITS = ("kind", "shy", "merry", "brave", "quiet", "curious", "clever", "busy", "gentle", "cheerful")

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
