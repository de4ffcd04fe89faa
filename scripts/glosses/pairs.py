"""Pairs of texts with related meanings, from WordNet; synsets of the test set are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from .wordnet import Synset

Ids = npt.NDArray[np.int64]
LONG = 8  # words
KINDS = ("names", "examples", "broader", "related", "halves")
SIMILAR = ("&", "+", "^", "=", "*", ">", "$", "\\")  # pointers between synsets close in meaning, see wndb(5WN)


@dataclass(frozen=True)
class Pairs:
    """Distinct texts, and pairs of their indices by kind, of shape (N, 2) each."""

    texts: list[str]
    kinds: dict[str, Ids]


def pairs_of(synsets: Iterable[Synset], held_out: Collection[str]) -> Pairs:
    """Return the pairs of all synsets but the held-out ones, of which only names occur, in other synsets.

    Kinds: `names`, a word and its gloss; `examples`, an example and another text of its synset; `broader`, a text
    and one of a broader synset; `related`, names or glosses of related synsets; `halves`, those of a long text.
    """
    known = {synset.key: synset for synset in synsets if synset.key not in held_out}
    index: dict[str, int] = {}

    def number(text: str) -> int:
        return index.setdefault(text, len(index))

    kinds: dict[str, list[tuple[int, int]]] = {name: [] for name in KINDS}

    def add(kind: str, one: str, other: str) -> None:
        if one.lower() != other.lower():
            kinds[kind].append((number(one), number(other)))

    for synset in known.values():
        words = ", ".join(synset.names)
        for text in {words, *synset.names}:
            add("names", text, synset.gloss)
        for example in synset.examples:
            add("examples", example, synset.gloss)
            add("examples", example, words)
        for one, other in combinations(synset.examples, 2):
            add("examples", one, other)
        for one, other in combinations(synset.names, 2):
            add("related", one, other)
        for key in synset.broader:
            if broader := known.get(key):
                add("broader", synset.gloss, broader.gloss)
                add("broader", synset.gloss, ", ".join(broader.names))
                add("broader", words, ", ".join(broader.names))
        for symbol, key in synset.related:
            if symbol in SIMILAR and synset.key < key and (other_synset := known.get(key)):
                add("related", synset.gloss, other_synset.gloss)
                add("related", words, ", ".join(other_synset.names))
        for text in (synset.gloss, *synset.examples):
            if both := halves(text):
                add("halves", *both)
    return Pairs(list(index), {name: np.array(pairs, np.int64) for name, pairs in kinds.items()})


def halves(text: str) -> tuple[str, str] | None:
    """Split a text of `LONG` words or more at its middle; None for a shorter one."""
    words = text.split()
    middle = len(words) // 2
    return (" ".join(words[:middle]), " ".join(words[middle:])) if len(words) >= LONG else None
