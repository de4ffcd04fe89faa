"""Streams of texts: TinyStories, and packing texts into blocks of tokens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.data.dataset import IterableDataset
from tallow.data.download import fetch
from tallow.data.images import find_file
from tallow.data.worker_info import get_worker_info
from tallow.errors import ArgumentError, DatasetError
from tallow.io.regular import regular
from tallow.io.source import Path

SEPARATOR = "<|endoftext|>"
CHUNK_CHARACTERS = 2**16
MAX_STORY_CHARACTERS = 2**24


class TinyStories(IterableDataset[str]):
    """A stream of short stories in simple words, read from the file on demand.

    The file `TinyStories-train.txt` or `TinyStories-valid.txt` is searched in `root/TinyStories` and `root`. Each
    worker of a `DataLoader` takes its share of the stories.

    Args:
        split: "train" (2.1 million stories, 1.9 GB) or "valid" (22 thousand, 19 MB).
        download: download the file if it is missing. Needs the extra `data`. No checksum is published; the size is
            checked.

    Raises:  DatasetError if the file is missing or, while reading, is not UTF-8 or has no separators
    Source:  Eldan & Li 2023, arXiv:2305.07759
    """

    base_url = "https://huggingface.co/datasets/roneneldan/TinyStories/resolve/main/"

    def __init__(self, root: Path, split: str = "train", download: bool = False) -> None:
        if split not in ("train", "valid"):
            raise ArgumentError(f"TinyStories: split must be 'train' or 'valid', got {split!r}")
        name = f"TinyStories-{split}.txt"
        folder = os.path.join(os.fspath(root), "TinyStories")
        if download and not os.path.isfile(os.path.join(os.fspath(root), name)):
            fetch([self.base_url + name], os.path.join(folder, name), None)
        self.path = find_file("TinyStories", [folder, os.fspath(root)], [name])
        self.split = split

    def __iter__(self) -> Iterator[str]:
        worker = get_worker_info()
        stories = read_stories(self.path)
        return stories if worker is None else islice(stories, worker.id, None, worker.num_workers)


def read_stories(path: Path) -> Iterator[str]:
    """Yield the texts of a file between its separators, stripped, without empty ones."""
    rest = ""
    with open(path, encoding="utf-8", opener=regular) as file:
        while chunk := _read(file.read, path):
            *complete, rest = (rest + chunk).split(SEPARATOR)
            yield from filter(None, map(str.strip, complete))
            if len(rest) > MAX_STORY_CHARACTERS:
                raise DatasetError(
                    f"{os.fspath(path)}: no {SEPARATOR} in {len(rest)} characters",
                    hint="check that it is the right file",
                )
    if rest.strip():
        yield rest.strip()


def _read(read: Callable[[int], str], path: Path) -> str:
    try:
        return read(CHUNK_CHARACTERS)
    except UnicodeDecodeError as error:
        raise DatasetError(f"{os.fspath(path)} is not UTF-8: {error.reason}", hint="download it again") from error


class TokenBlocks(IterableDataset[Tensor]):
    """Tokens of texts, concatenated and cut into blocks of equal length; an incomplete last block is dropped.

    Args:
        texts: a re-iterable of texts, such as `TinyStories`.
        encode: function from a text to its tokens, including any separator between texts.
        length: number of tokens per block. For next-token prediction, use `block[:-1]` and `block[1:]`.

    Shapes:  blocks (length,), int64
    Example:
        >>> blocks = TokenBlocks(["ab", "cde"], lambda text: [*text.encode(), 0], length=3)
        >>> [block.tolist() for block in blocks]
        [[97, 98, 0], [99, 100, 101]]
    """

    def __init__(self, texts: Iterable[str], encode: Callable[[str], Iterable[int]], length: int) -> None:
        if length < 1:
            raise ArgumentError(f"TokenBlocks: length must be positive, got {length}")
        self.texts = texts
        self.encode = encode
        self.length = length

    def __iter__(self) -> Iterator[Tensor]:
        pending: list[int] = []
        for text in self.texts:
            pending.extend(self.encode(text))
            end = len(pending) // self.length * self.length
            for start in range(0, end, self.length):
                yield wrap(np.array(pending[start : start + self.length], np.int64))
            del pending[:end]
