"""Keys and values of the beginnings of texts, which other texts with the same beginning copy instead of computing them.

pages = PrefixPages(512 << 20)
pages.add(prompt, lambda start, stop: copies_of_keys_and_values)   # of the pages that are not there yet
for page in pages.find(another_prompt): ...                        # those of the longest known beginning
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tallow.nn.cache import Memory

PAGE = 32  # positions of a page

# The number of the page before it (the salt for the first one) and the tokens of the page: two texts share a page
# exactly if their salts and all their tokens up to its end are equal. Hashes of the tokens could collide.
Key: TypeAlias = tuple[int | str, tuple[int, ...]]


@dataclass(slots=True, eq=False)
class Page:
    """The keys and values of PAGE positions.

    Shapes:  memory: of each layer keys and values, (G, PAGE, K)
    """

    number: int
    memory: Sequence[Memory]

    @property
    def nbytes(self) -> int:
        """The bytes of keys and values."""
        return sum(each.nbytes for each in self.memory)


class PrefixPages:
    """Pages of beginnings of texts. Those that were used least recently leave when the memory is full.

    Args:  most_bytes: of all keys and values; 0 stores nothing
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.nbytes = 0
        # The least recently used page first. A page is never before the pages that follow it in a text.
        self._pages: OrderedDict[Key, Page] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return len(self._pages)

    def find(self, tokens: Sequence[int], salt: str = "") -> list[Page]:
        """Return the pages of the longest beginning of a text that is known.

        Args:  salt: texts with another one do not have these pages
        """
        keys, pages = self._known(tokens, salt)
        self._touch(keys)
        return pages

    def add(self, tokens: Sequence[int], copy: Callable[[int, int], Sequence[Memory]], salt: str = "") -> None:
        """Store the whole pages of a text that are not known.

        Args:
            copy: returns keys and values of the positions from a first one up to a last one, in memory of their own.
            salt: as in `find`.
        """
        keys, pages = self._known(tokens, salt)
        for start in range(len(pages) * PAGE, len(tokens) - PAGE + 1, PAGE):
            page = Page(self._count + 1, copy(start, start + PAGE))
            if page.nbytes > self.most_bytes:
                break
            self._count += 1
            keys.append(_key(pages, tokens, start, salt))
            pages.append(page)
            self._pages[keys[-1]] = page
            self.nbytes += page.nbytes
        self._touch(keys)
        while self.nbytes > self.most_bytes:
            _, page = self._pages.popitem(last=False)
            self.nbytes -= page.nbytes

    def _known(self, tokens: Sequence[int], salt: str) -> tuple[list[Key], list[Page]]:
        keys: list[Key] = []
        pages: list[Page] = []
        for start in range(0, len(tokens) - PAGE + 1, PAGE):
            key = _key(pages, tokens, start, salt)
            if (page := self._pages.get(key)) is None:
                break
            keys.append(key)
            pages.append(page)
        return keys, pages

    def _touch(self, keys: Sequence[Key]) -> None:
        for key in reversed(keys):  # the first page last, so that it stays the longest
            self._pages.move_to_end(key)


def _key(before: Sequence[Page], tokens: Sequence[int], start: int, salt: str) -> Key:
    return before[-1].number if before else salt, tuple(tokens[start : start + PAGE])
