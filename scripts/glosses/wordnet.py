"""WordNet's database files, as Debian's package `wordnet-base` installs them.

Source:  the manual page wndb(5WN) of WordNet 3.0
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tallow.errors import CheckpointError
from tallow.io.atomic import atomic_write

FOLDER = Path("/usr/share/wordnet")
FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
KINDS = {"n": "n", "v": "v", "a": "a", "s": "a", "r": "r"}  # satellites of adjectives are in data.adj
EXAMPLE = re.compile(r'"([^"]+)"')
MARKER = re.compile(r"\((?:a|p|ip)\)$")  # where an adjective may stand
BROADER = ("@", "@i")
NUMBER = re.compile(r"^ +\d+ ")  # begins each line of the licence


@dataclass(frozen=True)
class Synset:
    """A set of words with one meaning.

    Attributes:
        key: part of speech and offset in the file, unique.
        names: the words, or phrases of several words.
        gloss: the definition.
        examples: sentences or phrases that use one of the words.
        related: pointer symbol and key of each related synset, such as ("@", "n00001740") for a broader one.
    """

    key: str
    names: tuple[str, ...]
    gloss: str
    examples: tuple[str, ...]
    related: tuple[tuple[str, str], ...]

    @property
    def broader(self) -> list[str]:
        """The keys of the synsets of which this one is a kind."""
        return [key for symbol, key in self.related if symbol in BROADER]


def read(folder: Path = FOLDER) -> list[Synset]:
    """Read all synsets, in the order of the files.  Raises: CheckpointError if a file is missing or is another one"""
    synsets = []
    for name in FILES:
        path = folder / name
        if not path.is_file():
            raise CheckpointError(f"{path} does not exist", hint="apt-get install wordnet-base, or pass --wordnet")
        synsets += _parse(path)
    return synsets


def _parse(path: Path) -> Iterator[Synset]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if NUMBER.match(line):  # the licence
                continue
            try:
                yield parse_line(line)
            except (ValueError, IndexError, KeyError) as error:
                raise CheckpointError(f"{path}, line {number}: not a synset of WordNet: {error}") from error


def parse_line(line: str) -> Synset:
    """Parse one line of a data file.  Raises: ValueError, IndexError, KeyError"""
    data, _, text = line.partition(" | ")
    fields = data.split()
    count = int(fields[3], 16)
    words, rest = fields[4 : 4 + 2 * count : 2], fields[4 + 2 * count :]
    pointers = [rest[1 + 4 * i : 5 + 4 * i] for i in range(int(rest[0]))]
    return Synset(
        key=KINDS[fields[2]] + fields[0],
        names=tuple(dict.fromkeys(MARKER.sub("", word).replace("_", " ") for word in words)),
        gloss=text.partition('"')[0].strip(" ;:\n"),
        examples=tuple(example.strip(" ;,") for example in EXAMPLE.findall(text)),
        related=tuple((symbol, kind + offset) for symbol, offset, kind, _ in pointers),
    )


def save_licence(folder: Path, path: Path) -> None:
    """Write the licence, which each data file begins with, to a file of its own.  Raises: CheckpointError, OSError"""
    lines = (folder / FILES[0]).read_text(encoding="utf-8").splitlines()
    numbered = itertools.takewhile(NUMBER.match, lines)
    licence = [NUMBER.sub("", line).strip() for line in numbered]
    if not any("Princeton University" in line for line in licence):
        raise CheckpointError(f"{folder / FILES[0]} does not begin with WordNet's licence")
    with atomic_write(path) as file:
        file.write(("\n".join(licence) + "\n").encode())
