"""The voices: accents of English, and variants of eSpeak NG's voices."""

from __future__ import annotations

import random

from .espeak import Voice

ACCENTS = (
    *("en-us", "en", "en-gb-scotland", "en-gb-x-rp"),
    *("en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-029", "en-us-nyc"),
)
# The first is the accent's default voice. Whispering, croaking and non-human variants are omitted.
VARIANTS = (
    *("", "m1", "m2", "m3", "m5", "m6", "m7", "m8", "f1", "f2", "f4", "f5", "klatt", "klatt2", "klatt4"),
    *("Alex", "Alicia", "Andrea", "Andy", "Annie", "adam", "antonio", "aunty", "belinda", "benjamin", "boris"),
    *("caleb", "david", "Denis", "Diogo", "ed", "edward", "Gene", "grandma", "grandpa", "Henrique", "Hugo"),
    *("iven", "Jacky", "john", "Lee", "Marco", "Mario", "max", "Mike", "miguel", "Mr serious", "norbert"),
    *("pablo", "paul", "pedro", "quincy", "rob", "robert", "sandro", "shelby", "steph", "travis", "victor", "zac"),
)
HELD_OUT = ("f3", "m4", "klatt3", "linda", "Michael", "Nguyen", "anika", "steph2")

OWN_VOICE_SHARE = 0.15  # probability of no variant


def voice(rng: random.Random, *, held_out: bool) -> Voice:
    """Return a random voice of the training set or the test set, with a random speed and pitch."""
    accent = rng.choice(ACCENTS[:2] if rng.random() < 0.4 else ACCENTS)
    variant = rng.choice(HELD_OUT) if held_out else "" if rng.random() < OWN_VOICE_SHARE else rng.choice(VARIANTS)
    return Voice(
        f"{accent}+{variant}" if variant else accent,
        rate=round(rng.triangular(115, 230, 165)),
        pitch=round(rng.triangular(15, 85, 50)),
        pitch_range=rng.randint(25, 75),
    )
