"""Fourier transforms, tallow, NumPy and PyTorch alternating on one thread.

Claims: `stft` of 30 s of sound takes at most PyTorch's time, and a single transform of 2^10 to 2^20 numbers in float32
at most 1.1 times NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from bench.report import Row
from bench.timing import per_call

NAME = "fourier"
SECONDS = 30
SOUNDS = ((16_000, 400, 160), (16_000, 512, 128), (22_050, 1024, 256), (44_100, 2048, 512))  # rate, n_fft, hop_length
POWERS = (10, 12, 14, 16, 18, 20)
CALLS = 1 << 15  # numbers of the transforms that are timed together


def measure(options: dict[str, Any]) -> dict[str, Any]:
    import torch  # optional: the comparison

    torch.set_num_threads(1)
    rng, rounds, rows = np.random.default_rng(0), options["repeats"] * 3, []
    for rate, n_fft, hop in SOUNDS:
        sound, window = rng.standard_normal(SECONDS * rate).astype(np.float32), np.hanning(n_fft).astype(np.float32)
        rows.append(
            _row(f"stft, {rate} Hz, {n_fft} by {hop}", rounds, 1, *(_stft(m, sound, window, hop) for m in (tl, torch)))
        )
    for power in POWERS:
        x = rng.standard_normal((1 << power, 2)).astype(np.float32)
        calls = max(1, CALLS >> power)
        for name, numbers in (("fft", x.view(np.complex64)[:, 0]), ("rfft", np.ascontiguousarray(x[:, 0]))):
            rows.append(_row(f"{name}, 2^{power}", rounds, calls, *(_fft(m, name, numbers) for m in (tl, torch, np))))
    return {"rows": rows, "notes": ["float32, one thread, the best of many turns; times over those of the others"]}


def _stft(m: Any, sound: Any, window: Any, hop: int) -> Any:
    x, w = m.from_numpy(sound), m.from_numpy(window)
    return lambda: m.stft(x, len(window), hop, window=w, return_complex=True)


def _fft(m: Any, name: str, numbers: Any) -> Any:
    x, transform = numbers if m is np else m.from_numpy(numbers), getattr(m.fft, name)
    return lambda: transform(x)


def _row(name: str, rounds: int, calls: int, *functions: Any) -> Row:
    ours, *others = (timing.best_s for timing in per_call(rounds, calls, *functions))
    names = ("of PyTorch's", "of NumPy's")
    return {"transform": name, "µs": ours * 1e6} | {n: ours / other for n, other in zip(names, others, strict=False)}
