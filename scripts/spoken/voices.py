"""Who says it: accents of English, and what makes a voice of eSpeak NG another one."""

from __future__ import annotations

import random

from .espeak import Voice

ACCENTS = (
    *("en-us", "en", "en-gb-scotland", "en-gb-x-rp"),
    *("en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-029", "en-us-nyc"),
)
# The first is the accent's own voice. Left out are those that whisper, croak, or are no human's.
VARIANTS = (
    *("", "m1", "m2", "m3", "m5", "m6", "m7", "m8", "f1", "f2", "f4", "f5", "klatt", "klatt2", "klatt4"),
    *("Alex", "Alicia", "Andrea", "Andy", "Annie", "adam", "antonio", "aunty", "belinda", "benjamin", "boris"),
    *("caleb", "david", "Denis", "Diogo", "ed", "edward", "Gene", "grandma", "grandpa", "Henrique", "Hugo"),
    *("iven", "Jacky", "john", "Lee", "Marco", "Mario", "max", "Mike", "miguel", "Mr serious", "norbert"),
    *("pablo", "paul", "pedro", "quincy", "rob", "robert", "sandro", "shelby", "steph", "travis", "victor", "zac"),
)
HELD_OUT = ("f3", "m4", "klatt3", "linda", "Michael", "Nguyen", "anika", "steph2")

OWN_VOICE_SHARE = 0.15  # of what is said without a variant


def voice(rng: random.Random, *, held_out: bool) -> Voice:
    """A voice with some speed and pitch, of those that are, or are not, held out."""
    accent = rng.choice(ACCENTS[:2] if rng.random() < 0.4 else ACCENTS)
    variant = rng.choice(HELD_OUT) if held_out else "" if rng.random() < OWN_VOICE_SHARE else rng.choice(VARIANTS)
    return Voice(
        f"{accent}+{variant}" if variant else accent,
        rate=round(rng.triangular(115, 230, 165)),
        pitch=round(rng.triangular(15, 85, 50)),
        pitch_range=rng.randint(25, 75),
    )
