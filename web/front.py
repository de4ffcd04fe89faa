"""The Python behind front-story.js: the built-in model tells a story, and the kernels are timed.

web/bridge.py documents the methods of `Demo`.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator

import tallow as tl
from tallow import Tensor, kernels
from tallow.generation import Sampler, decode_stream, generate
from tallow.models import stories

STEPS = 256  # tokens of the prompt and the story, as on the page of stories
SIZE, TURNS, REPEATS = 256, 5, 10


class Demo:
    def __init__(self) -> None:
        self._model, self._tokenizer = stories.load()

    def generate(self, *, prompt: str, seed: int) -> Generator[tuple[str, dict[str, float]]]:
        """Yield the story after the prompt in pieces, each with the number and the seconds of the tokens so far."""
        ids = self._tokenizer.encode(prompt, bos=True)
        sample = Sampler(temperature=1.0, top_p=0.9, seed=seed)
        stop_ids = self._model.config.eos_token_id
        tokens = generate(self._model, ids, max_tokens=max(0, STEPS - len(ids) + 1), sample=sample, stop_ids=stop_ids)
        stats = {"tokens": 0, "seconds": 0.0}
        for piece in decode_stream(self._tokenizer, _timed(tokens, stats), previous=ids[-1]):
            yield piece, stats

    def measure(self) -> dict[str, float]:
        """Return the median seconds of a matrix product with the kernels and with NumPy, measured in turns."""
        a, b = tl.randn(SIZE, SIZE), tl.randn(SIZE, SIZE)
        _seconds(a, b, 1)  # the first call selects the kernel
        fast, slow = [], []
        for _ in range(TURNS):
            fast.append(_seconds(a, b, REPEATS))
            with kernels.off():
                slow.append(_seconds(a, b, 1))
        middle = TURNS // 2
        return {"size": SIZE, "kernels_s": sorted(fast)[middle], "numpy_s": sorted(slow)[middle]}


def _seconds(a: Tensor, b: Tensor, repeats: int) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        a @ b
    return (time.perf_counter() - started) / repeats


def _timed(tokens: Iterator[int], stats: dict[str, float]) -> Iterator[int]:
    """Yield the tokens, and update `stats`. Their seconds begin at the first, whose time is that of the prompt."""
    started = None
    for token in tokens:
        started = started or time.perf_counter()
        stats["tokens"] += 1
        stats["seconds"] = time.perf_counter() - started
        yield token
