"""Models in several GGUF files, as llama.cpp's `gguf-split` writes them: NAME-00001-of-00003.gguf and so on.

The first has the metadata, each has some of the tensors. `split.no`, from 0, and `split.count` tell which one a file
is, `split.tensors.count` how many tensors all of them have.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from tallow.errors import CheckpointError

NUMBER, COUNT, TENSORS = "split.no", "split.count", "split.tensors.count"
NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)


def pattern_of(name: str) -> str:
    """What matches a file and the other shards, `?` standing for a digit; the name itself if it is that of no shard."""
    named = NAME.fullmatch(name)
    return f"{named[1]}-?????-of-{named[3]}.gguf" if named else name


def shards_of(name: str, metadata: Mapping[str, Any]) -> list[str]:
    """The paths of all shards of the model that a file belongs to, itself among them; one, if it is whole.

    Raises:  CheckpointError where one is missing, or the file's name says something else than its metadata
    """
    count, number = metadata.get(COUNT, 1), metadata.get(NUMBER, 0)
    if count in (0, 1):
        return [name]
    if type(count) is not int or type(number) is not int or not 0 <= number < count:
        raise CheckpointError(f"{name}: {NUMBER} is {number!r:.80}, {COUNT} is {count!r:.80}", mend="fetch it again")
    named = NAME.fullmatch(name)
    if not named or int(named[2]) != number + 1 or int(named[3]) != count:
        raise CheckpointError(
            f"{name} is shard {number + 1} of {count}; its name does not tell where the others are",
            mend=f"pass a path that ends in -{number + 1:05}-of-{count:05}.gguf, as it was called",
        )
    names = [f"{named[1]}-{i:05}-of-{named[3]}.gguf" for i in range(1, count + 1)]
    for each in names:
        if not os.path.exists(each):
            raise CheckpointError(f"{name} is one of {count} shards; {each} is missing", mend="fetch all of them")
    return names


def check(name: str, metadata: Mapping[str, Any], number: int, count: int) -> None:
    """Raise CheckpointError unless the file is this shard, counted from 0, of so many."""
    found = metadata.get(NUMBER), metadata.get(COUNT)
    if found != (number, count):
        raise CheckpointError(
            f"{name}: {NUMBER} is {found[0]!r:.80}, {COUNT} is {found[1]!r:.80}; its name says {number} and {count}",
            mend="fetch it again",
        )
