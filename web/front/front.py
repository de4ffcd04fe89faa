"""The Python behind front-story.js: the built-in model tells a story, and the kernels are timed.

web/worker/bridge.py documents the methods of `Demo`.
"""

from __future__ import annotations

import time
from collections.abc import Generator

import tallow as tl
from tallow import Tensor, kernels
from tallow.generation import Sampler, generate, timed
from tallow.models.built_in import stories

STEPS = 256  # tokens of the prompt and the story, as on the page of stories
SIZE, TURNS, REPEATS = 256, 5, 10


class Demo:
    def __init__(self) -> None:
        self._model, _ = stories.load()

    def generate(self, *, prompt: str, seed: int) -> Generator[tuple[str, dict[str, float]]]:
        """Yield the story after the prompt in pieces, each with the number and the speed of the tokens so far."""
        model, tokenizer = self._model, self._model.tokenizer
        ids = tokenizer.encode_prompt(prompt)
        sample = Sampler(temperature=1.0, top_p=0.9, seed=seed)
        count = max(0, STEPS - len(ids) + 1)
        tokens = timed(generate(model, ids, max_tokens=count, sample=sample, stop_ids=model.stop_ids))
        for piece in tokenizer.decode_stream(tokens, previous=ids):
            yield piece, tokens.stats

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
