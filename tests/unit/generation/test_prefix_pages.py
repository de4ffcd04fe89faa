"""PrefixPages: the longest known beginning of a text, within a bound on memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tallow.generation.prefix_pages import PAGE, PrefixPages

PAGE_BYTES = PAGE * 8


def copies_of(tokens: Sequence[int]) -> Callable[[int, int], list[np.ndarray]]:
    """Return a `copy` whose memory holds the tokens themselves."""
    return lambda start, stop: [np.array(tokens[start:stop], np.int64)]


def text_of(*pages: int) -> list[int]:
    return [page for page in pages for _ in range(PAGE)]


def found(pages: PrefixPages, tokens: Sequence[int]) -> list[int]:
    return [int(token) for page in pages.find(tokens) for memory in page.memory for token in memory]


def test_the_longest_known_beginning_is_found() -> None:
    pages = PrefixPages(1 << 20)
    text = [*range(3 * PAGE), 7]
    pages.add(text, copies_of(text))
    assert len(pages) == 3
    assert pages.nbytes == 3 * PAGE_BYTES
    assert found(pages, text) == text[: 3 * PAGE]
    assert found(pages, [*text[: 2 * PAGE + 5], -1]) == text[: 2 * PAGE]
    assert found(pages, text[: PAGE - 1]) == found(pages, [-1, *text[1:]]) == []


def test_equal_pages_after_different_beginnings_are_different() -> None:
    pages = PrefixPages(1 << 20)
    for text in (text_of(1, 3), text_of(2, 3)):
        pages.add(text, copies_of(text))
    assert len(pages) == 4
    assert pages.find(text_of(1, 3))[1] is not pages.find(text_of(2, 3))[1]


def test_texts_with_another_salt_have_no_pages_in_common() -> None:
    pages = PrefixPages(1 << 20)
    pages.add(text_of(1, 2), copies_of(text_of(1, 2)), "a")
    assert len(pages.find(text_of(1, 2), "a")) == 2
    assert pages.find(text_of(1, 2), "b") == pages.find(text_of(1, 2)) == []
    pages.add(text_of(1), copies_of(text_of(1)), "b")
    assert len(pages) == 3


def test_a_known_page_is_not_copied_again() -> None:
    pages = PrefixPages(1 << 20)
    copied: list[int] = []

    def copy(start: int, stop: int) -> list[np.ndarray]:
        copied.append(start)
        return [np.zeros(stop - start)]

    pages.add(text_of(1, 2), copy)
    pages.add(text_of(1, 2, 3), copy)
    assert copied == [0, PAGE, 2 * PAGE]


def test_what_was_not_used_for_the_longest_time_leaves() -> None:
    pages = PrefixPages(4 * PAGE_BYTES)
    for text in (text_of(1, 2), text_of(3, 4)):
        pages.add(text, copies_of(text))
    pages.find(text_of(1, 2))
    pages.add(text_of(5), copies_of(text_of(5)))
    assert found(pages, text_of(1, 2)) == text_of(1, 2)
    assert found(pages, text_of(3, 4)) == text_of(3)  # the end of a text leaves before its beginning
    assert pages.nbytes == 4 * PAGE_BYTES


def test_nothing_is_stored_without_memory() -> None:
    pages = PrefixPages(PAGE_BYTES - 1)
    pages.add(text_of(1), copies_of(text_of(1)))
    assert (len(pages), pages.nbytes) == (0, 0)


@given(
    most=st.integers(0, 6),
    steps=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 2), max_size=4)), max_size=30),
)
def test_pages_are_those_of_the_text_whatever_came_before(most: int, steps: list[tuple[bool, list[int]]]) -> None:
    pages = PrefixPages(most * PAGE_BYTES)
    for is_new, numbers in steps:
        text = text_of(*numbers)
        if is_new:
            pages.add(text, copies_of(text))
        known = found(pages, text)
        assert known == text[: len(known)]
        assert not is_new or len(known) == PAGE * min(len(numbers), most)
        assert pages.nbytes == len(pages) * PAGE_BYTES <= most * PAGE_BYTES
