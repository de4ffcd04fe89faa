"""Names and keywords of emoji in several languages: those of Unicode's CLDR, in a package of npm.

A name is what a screen reader says; keywords are what people search for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import npm_package
import numpy as np
from npm_package import NpmFile, NpmPackage

from tallow.models.vision.picture_words import words_of

LICENCE = "LICENSE"
HASHES = {  # SHA-256 of the files
    "en": "f22083cb86dffb63a643d5bacb5d9899f82d2fa5d388ad4f3aed72184acef505",
    "de": "bfd22f5226d874843a28b6efec01db7e47dfae4ed802eceab8b416550f09e3c2",
    "fr": "33da052f74782791989e6226d60871c846799e077a5a7fb4e87ecfa7ca385733",
    "es": "339cdf9ae5fe6d3250d3c53b95ff6d8a4dae96c7c0d279756ee7a73c43c84b56",
    "it": "ec8e0b6339a10de3d5a2297fa6db84239b363cc305504552c64abe4eead67ac6",
    "pt": "ebaa8e177bdafd49afe17e126274215565a420c53823f7082733b672a02c06cb",
    "nl": "d86882905773fb28f9e808ac4818041c5a89888b36a0f95dd33ce63939943118",
    "pl": "81420256d40acb05a9a512cdde5c67bafa6a373df51c93a83f02ecc200cba6fa",
    "ru": "c483d312051dbea379bcd2ac6dec6f2712572c0c9a5d073031f4702b030e99a9",
    "tr": "203f92597ad0dbffde89083cb760c1585843e52f488c0c7866406f2ef6e881cc",
    "ja": "737ce4bea3d52d904f7744eb7653ea55100c99232255609a913f69a5a8c3d6c1",
    "zh": "8d2dfe9bf41894bd17c9c1a1906a31bf0ccc06204bf4b77c2ab2b0d8f79a5fdf",
}
LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "pl": "Polish",
    "ru": "Russian",
    "tr": "Turkish",
    "ja": "Japanese",
    "zh": "Chinese",
}
PACKAGE = NpmPackage(
    "cldr-annotations-full",
    "48.2.0",
    "DV7A+rEcgUSNTRsVGNGqBZRmAkGfwhGHO5Q1dRwzBoBnVrHWp804JP7/QJdEc66iHmx3+zLWVIMCFLm0lW7PUQ==",
    (
        NpmFile(LICENCE, "b49d0e9f8ead51ca8b7df6fec89cc3ae6809198b4b9d43c74216da0118f23f5b", LICENCE),
        *(NpmFile(f"annotations/{key}/annotations.json", digest, f"{key}.json") for key, digest in HASHES.items()),
    ),
)


@dataclass(frozen=True)
class Name:
    """The name of an emoji in a language; `emoji` is a number."""

    emoji: int
    language: str
    text: str


@dataclass(frozen=True)
class Names:
    """The texts of emoji.

    Attributes:
        emoji: the emoji.
        texts: for each emoji, the names and keywords that it is trained with, without repetition.
        held_out: names of the test. No emoji is trained with a text that consists of the same words as one of its own.
    """

    emoji: Sequence[str]
    texts: Sequence[Sequence[str]]
    held_out: Sequence[Name]


def fetch(cache: Path) -> Path:
    """Return the folder of CLDR's files.  Raises: FetchError"""
    return npm_package.fetch(cache / f"cldr-annotations-{PACKAGE.version}", [PACKAGE])


def candidates(folder: Path) -> list[str]:
    """Return the single characters that have a name in all languages."""
    tables = [_table(folder, language) for language in LANGUAGES]
    return [each for each in tables[0] if len(each) == 1 and all(each in table for table in tables)]


def read(folder: Path, emoji: Sequence[str], share: float, seed: int) -> Names:
    """Return the texts of emoji; a random share of their names is held out."""
    tables = {language: _table(folder, language) for language in LANGUAGES}
    rng = np.random.default_rng(seed)
    texts, held_out = [], []
    for number, each in enumerate(emoji):
        names = {language: table[each]["tts"][0] for language, table in tables.items()}
        kept = [Name(number, language, name) for language, name in names.items() if rng.random() < share]
        forms = {form(name.text) for name in kept}
        every = [text for language, table in tables.items() for text in (names[language], *table[each]["default"])]
        own = {form(text): text for text in every if form(text) and form(text) not in forms}
        if own:
            texts.append(list(own.values()))
            held_out += kept
        else:  # all of its names are one word
            texts.append(sorted(set(names.values())))
    return Names(emoji, texts, held_out)


def form(text: str) -> str:
    """Return the words of a text, by which texts are compared."""
    return " ".join(words_of(text))


def _table(folder: Path, language: str) -> dict[str, Any]:
    entries = json.loads((folder / f"{language}.json").read_text(encoding="utf-8"))
    table: dict[str, Any] = entries["annotations"]["annotations"]
    return {each: entry for each, entry in table.items() if "tts" in entry and "default" in entry}
