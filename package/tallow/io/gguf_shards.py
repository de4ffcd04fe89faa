"""GGUF models split into several files, as by llama.cpp's `gguf-split`: NAME-00001-of-00003.gguf and so on.

The first shard has the metadata; each has some of the tensors. `split.no`, from 0, and `split.count` identify a shard;
`split.tensors.count` is the number of tensors in all shards.
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
    """Return a pattern for all shards of a model, with `?` for a digit; the name itself if it is not a shard's."""
    match = NAME.fullmatch(name)
    return f"{match[1]}-?????-of-{match[3]}.gguf" if match else name


def shards_of(name: str, metadata: Mapping[str, Any]) -> list[str]:
    """Return the paths of all shards of the model that a file belongs to; only its own if the model is not split.

    Raises:  CheckpointError if a shard is missing, or the file's name contradicts its metadata
    """
    count, number = metadata.get(COUNT, 1), metadata.get(NUMBER, 0)
    if count in (0, 1):
        return [name]
    if type(count) is not int or type(number) is not int or not 0 <= number < count:
        raise CheckpointError(f"{name}: {NUMBER} is {number!r:.80}, {COUNT} is {count!r:.80}", hint="download it again")
    match = NAME.fullmatch(name)
    if not match or int(match[2]) != number + 1 or int(match[3]) != count:
        raise CheckpointError(
            f"{name} is shard {number + 1} of {count}; its name does not match",
            hint=f"restore its name, which ends in -{number + 1:05}-of-{count:05}.gguf",
        )
    names = [f"{match[1]}-{i:05}-of-{match[3]}.gguf" for i in range(1, count + 1)]
    for each in names:
        if not os.path.exists(each):
            raise CheckpointError(f"{name} is one of {count} shards; {each} is missing", hint="download all shards")
    return names


def check(name: str, metadata: Mapping[str, Any], number: int, count: int) -> None:
    """Raise CheckpointError unless the file is shard `number`, from 0, of `count`."""
    shard = metadata.get(NUMBER), metadata.get(COUNT)
    if shard != (number, count):
        raise CheckpointError(
            f"{name}: {NUMBER} is {shard[0]!r:.80}, {COUNT} is {shard[1]!r:.80}; its name says {number} and {count}",
            hint="download it again",
        )
