"""The phrases: digits, numbers to 999, colours, directions, days, months, and short commands made of them.

Words are in lower case, except the names of days and months; numbers are spelled out.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence

Phrase = tuple[str, ...]

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white", "grey")
TURNS = ("left", "right")
WAYS = (*TURNS, "up", "down", "forward", "back", "north", "south", "east", "west")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
THINGS = ("box", "ball", "button", "door", "window", "light", "lamp", "line")
SWITCHED = ("light", "lamp", "music", "alarm", "timer")
SPANS = ("seconds", "minutes", "hours", "days")
LENGTHS = ("steps", "meters", "degrees")
LONE_COMMANDS = ("yes", "no", "stop", "start", "go", "help", "play", "pause", "next", "wait", "cancel", "again")

HELD_OUT_SHARE = 10  # one phrase in this many is in the test set


def number(n: int, *, british: bool = False) -> Phrase:
    """Return the words of a number from 0 to 999; British English has "and" after the hundreds."""
    hundreds, rest = divmod(n, 100)
    words: list[str] = [DIGITS[hundreds], "hundred"] if hundreds else []
    if hundreds and rest and british:
        words.append("and")
    if rest >= 20:
        words.append(TENS[rest // 10 - 2])
        if rest % 10:
            words.append(DIGITS[rest % 10])
    elif rest >= 10:
        words.append(TEENS[rest - 10])
    elif rest or not hundreds:
        words.append(DIGITS[rest])
    return tuple(words)


def _some_number(rng: random.Random) -> Phrase:
    """Return a number with one, two or three digits, each equally likely."""
    return number(rng.randrange(10 ** rng.randint(1, 3)), british=rng.random() < 0.5)


def _small_number(rng: random.Random) -> Phrase:
    return number(rng.randrange(2, 100 if rng.random() < 0.7 else 20))


def _digits(rng: random.Random) -> Phrase:
    return tuple(rng.choice(DIGITS) for _ in range(rng.randint(1, 6)))


def _word(rng: random.Random) -> Phrase:
    return (rng.choice(WORDS),)


def _words(rng: random.Random) -> Phrase:
    """Return unrelated words, so that context does not help."""
    return tuple(rng.choice(WORDS) for _ in range(rng.randint(2, 5)))


def _date(rng: random.Random) -> Phrase:
    date = (rng.choice(MONTHS), *number(rng.randint(1, 31)))
    return (rng.choice(DAYS), *date) if rng.random() < 0.5 else date


def _time(rng: random.Random) -> Phrase:
    hour = number(rng.randint(1, 12))
    minutes = rng.choice(((), (), ("thirty",), ("fifteen",), ("forty", "five"), ("ten",), ("twenty",)))
    return ("at", *hour, *minutes)


def _move(rng: random.Random) -> Phrase:
    verb, way = rng.choice(("go", "move", "turn")), rng.choice(WAYS)
    return (verb, way, *rng.choice(((), (*_small_number(rng), rng.choice(LENGTHS)))))


def _put(rng: random.Random) -> Phrase:
    thing = ("the", rng.choice(COLOURS), rng.choice(THINGS))
    return rng.choice(
        (
            ("move", *thing, rng.choice(WAYS)),
            ("move", *thing, "to", "the", rng.choice(TURNS)),
            ("put", *thing, "on", "the", rng.choice(COLOURS), rng.choice(THINGS)),
            ("press", *thing),
            ("show", *thing),
            ("open", *thing),
            ("close", *thing),
        )
    )


def _switch(rng: random.Random) -> Phrase:
    state, thing = rng.choice(("on", "off")), rng.choice(SWITCHED)
    colour = rng.choice(((), (rng.choice(COLOURS),)))
    return rng.choice((("turn", state, "the", *colour, thing), ("turn", "the", *colour, thing, state)))


def _set(rng: random.Random) -> Phrase:
    return rng.choice(
        (
            ("set", "the", "timer", "to", *_small_number(rng), rng.choice(SPANS)),
            ("set", "a", "timer", "for", *_small_number(rng), rng.choice(SPANS)),
            ("set", "the", "volume", "to", *_small_number(rng), *rng.choice(((), ("percent",)))),
            ("set", "the", "alarm", "for", rng.choice(DAYS), *_time(rng)),
            ("set", "the", rng.choice(("light", "lamp")), "to", rng.choice(COLOURS)),
            ("wait", "for", *_small_number(rng), rng.choice(SPANS)),
            ("play", "number", *_some_number(rng)),
        )
    )


def _remind(rng: random.Random) -> Phrase:
    when = rng.choice(((rng.choice(DAYS),), _date(rng)))
    return (rng.choice(("call", "remind", "wake")), "me", "on", *when, *rng.choice(((), _time(rng))))


# Each with its frequency.
_KINDS: tuple[tuple[Callable[[random.Random], Phrase], int], ...] = (
    (_word, 8),
    (_words, 12),
    (_digits, 14),
    (_some_number, 14),
    (_date, 7),
    (_move, 10),
    (_put, 12),
    (_switch, 7),
    (_set, 10),
    (_remind, 6),
)

WORDS: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            *(*DIGITS, *TEENS, *TENS, "hundred", "and", *COLOURS, *WAYS, *DAYS, *MONTHS, *THINGS, *SWITCHED),
            *(*SPANS, *LENGTHS, "percent", "volume", "number", *LONE_COMMANDS),
            *("turn", "move", "put", "press", "show", "open", "close", "set", "call", "remind", "wake"),
            *("me", "the", "a", "to", "for", "on", "off", "at"),
        )
    )
)


def phrase(rng: random.Random, *, held_out: bool, longest: int) -> Phrase:
    """Return a phrase of the training set or the test set with at most `longest` words."""
    makers, weights = zip(*_KINDS, strict=True)
    while True:
        (make,) = rng.choices(makers, weights)
        candidate = make(rng)
        if len(candidate) <= longest and is_held_out(candidate) == held_out:
            return candidate


def is_held_out(words: Sequence[str]) -> bool:
    """Return whether a phrase is in the test set: pseudo-random but fixed; single words never are."""
    return len(words) > 1 and zlib.crc32(" ".join(words).encode()) % HELD_OUT_SHARE == 0
