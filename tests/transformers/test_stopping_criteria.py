"""Criteria that end texts, and streamers, behave as those of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.own_loop import run_coroutine
from tests.transformers.both import both, both_raise

from tallow.errors import ArgumentError

IDS = [[0, 1, 2, 3], [4, 5, 6, 2]]


def ids(torch: Any) -> Any:
    return torch.tensor(IDS)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("MaxLengthCriteria", (4,)),
        ("MaxLengthCriteria", (5,)),
        ("MaxTimeCriteria", (0.0, 1.0)),
        ("MaxTimeCriteria", (1e6,)),
        ("EosTokenCriteria", (2,)),
        ("EosTokenCriteria", ([3, 9],)),
    ],
)
def test_a_criterion(name: str, args: tuple[Any, ...]) -> None:
    both(lambda tf, torch: getattr(tf.generation, name)(*args)(ids(torch), None))


def test_a_list_of_criteria() -> None:
    def program(tf: Any, torch: Any) -> Any:
        class Even(tf.StoppingCriteria):  # type: ignore[name-defined,misc]
            def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
                return input_ids[:, 0] % 2 == 0

        criteria = tf.StoppingCriteriaList([Even(), tf.EosTokenCriteria(3)])
        return criteria(ids(torch)[:, 1:], None), criteria.max_length

    both(program)


class Letters:
    """A tokenizer of pieces of text."""

    pieces = ("st", "op", "a", "xst", "opper", " the ", "e", "n", "d\n", "中", "sto")

    def decode(self, tokens: Any, **kwargs: Any) -> str:
        return "".join(self.pieces[int(token)] for token in np.asarray(tokens).ravel())


@pytest.mark.parametrize(
    ("tokens", "ends"),
    [([2, 0, 1], True), ([3, 4], True), ([0, 1, 2], False), ([0, 2, 1], False), ([10], False), ([5, 6, 7, 8], True)],
)
def test_stop_strings_end_in_the_last_token(tokens: list[int], ends: bool) -> None:
    import tallow
    from tallow.transformers import StopStringCriteria

    criterion = StopStringCriteria(Letters(), ["stop", "end"])
    assert criterion(tallow.tensor([tokens]), None).tolist() == [ends]
    with pytest.raises(ArgumentError, match="empty"):
        StopStringCriteria(Letters(), "")


TOKENS = [2, 5, 6, 7, 8, 9, 9, 2, 3, 5]


def streamed(streamer: Any, torch: Any) -> None:
    streamer.put(torch.tensor([TOKENS[:2]]))
    for token in TOKENS[2:]:
        streamer.put(torch.tensor([token]))
    streamer.end()


@pytest.mark.parametrize("skips", [False, True])
def test_a_streamer_prints_words(skips: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def program(tf: Any, torch: Any) -> str:
        streamed(tf.TextStreamer(Letters(), skip_prompt=skips), torch)
        return capsys.readouterr().out

    both(program)
    both_raise(lambda tf, torch: tf.TextStreamer(Letters()).put(torch.tensor(IDS)), errors=ArgumentError)


def test_an_iterator_of_pieces() -> None:
    def program(tf: Any, torch: Any) -> list[str]:
        streamer = tf.TextIteratorStreamer(Letters(), skip_prompt=True, timeout=5.0)
        streamed(streamer, torch)
        return list(streamer)

    both(program)


def test_an_asynchronous_iterator_of_pieces() -> None:
    async def pieces(tf: Any, torch: Any) -> list[str]:
        streamer = tf.AsyncTextIteratorStreamer(Letters(), skip_prompt=True, timeout=5.0)
        streamed(streamer, torch)
        return [piece async for piece in streamer]

    both(lambda tf, torch: run_coroutine(pieces(tf, torch)))
