"""Kernels on two threads, compared with one: products, Whisper's encoder, decoding and a training step.

In a browser the threads are workers on Python's memory, which is shared (web/threads/shared-memory.js).

Claims on two cores: matmul 1.75 times the speed of one thread, Whisper tiny's encoder 1.65, decoding of stories110M's
shape 1.5 in float32 and 1.6 in Q8_0, a training step of an MLP 1.4, of LeNet 1.6.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import tallow as tl
from bench import workloads
from bench.generate import CONTEXT, SHAPES, VOCABULARY
from bench.report import Row
from bench.timing import Timing
from bench.whisper import TINY
from tallow.generation import Sampler, generate
from tallow.models import Llama, Whisper
from tallow.models.decoders.llama import LlamaConfig

NAME = "threads"
TOKENS = 16
WARM_UP_S, TURN_S = 0.2, 0.5
Work = Callable[[], Any]


async def start(threads: int) -> None:
    """Start the workers of a browser, which do not run before Python has returned to the event loop."""
    tl.set_num_threads(threads)
    for _ in range(3):
        tl.ones(1024, 1024) @ tl.ones(1024, 1024)
        await asyncio.sleep(1)


def measure(options: dict[str, Any]) -> dict[str, Any]:
    rows: list[Row] = []
    for name, work in _cases():
        one, two = _in_turns(work, options["repeats"])
        rows.append(
            {
                "work": name,
                "one, ms": one.median_s * 1e3,
                "two, ms": two.median_s * 1e3,
                "speed": one.median_s / two.median_s,
                "speed, best": one.best_s / two.best_s,
            }
        )
    note = f"medians, and the ratio of the best times; they alternate; kernels: {tl.kernels.info().summary}"
    return {"rows": rows, "notes": [note]}


def _in_turns(work: Work, repeats: int) -> tuple[Timing, Timing]:
    """Measure the work on one thread and on two, in turns.

    A turn has many calls: setting the number of threads costs more than a small product, and NumPy's library keeps the
    second core busy for some time after it.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for threads, own in enumerate(times, start=1):
            tl.set_num_threads(threads)
            _call_for(WARM_UP_S, work)
            own += _call_for(TURN_S, work)
    one, two = (Timing(min(own), statistics.median(own)) for own in times)
    return one, two


def _call_for(seconds: float, work: Work) -> list[float]:
    """Call the work until the time is over, at least twice, and return the duration of each call."""
    durations: list[float] = []
    while len(durations) < 2 or sum(durations) < seconds:
        start = time.perf_counter()
        work()
        durations.append(time.perf_counter() - start)
    return durations


def _cases() -> Iterator[tuple[str, Work]]:
    with tl.no_grad():
        for m, k, n in ((1024, 1024, 1024), (1500, 384, 384), (256, 256, 256), (64, 256, 256)):
            a, b = tl.randn(m, k), tl.randn(k, n)
            yield f"matmul {m} x {k} x {n}", lambda a=a, b=b: a @ b
        memory = tl.randn(30_000, 1000)  # what decoding cannot exceed: it reads each weight once for a token
        yield "sums of rows of 120 MB", lambda: memory.sum(-1)
        encoder, mel = Whisper(TINY).eval().encoder, tl.randn(1, 80, 3000)
        yield "Whisper tiny, encoder", lambda: encoder(mel)
    for shape, quant in (("stories15M", None), ("stories15M", "q8_0"), ("stories110M", None), ("stories110M", "q8_0")):
        yield f"{shape}, {TOKENS} tokens, {quant or 'float32'}", decoder(shape, quant)
    yield "training step, MLP 784-512-256-10, batch 64", workloads.mlp(tl)
    yield "training step, LeNet, batch 64", workloads.cnn(tl)


def decoder(shape: str, quant: str | None) -> Work:
    """Return a function that decodes TOKENS tokens with random weights."""
    sizes = SHAPES[shape] | {"num_key_value_heads": SHAPES[shape]["num_attention_heads"], "vocab_size": VOCABULARY}
    model = Llama(LlamaConfig(**sizes, max_position_embeddings=CONTEXT, tie_word_embeddings=True)).eval()
    if quant is not None:
        model = model.quantize(quant)
    greedy = Sampler(temperature=0.0)
    return lambda: [*generate(model, [1], max_tokens=TOKENS, sample=greedy, stop_ids=set())]
