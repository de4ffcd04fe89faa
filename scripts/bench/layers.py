"""Forward and backward passes of layers, tallow and PyTorch alternating on one thread.

Claims: 0.8 times the speed of PyTorch's CPU build, forward and backward, except for softmax along a dimension other
than the last and `batch_norm` of (N, C).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tallow as tl
from bench.report import Row
from bench.timing import in_turn

NAME = "layers"
Case = tuple[Callable[[Any, Any], Callable[..., Any]], tuple[tuple[int, ...], ...]]


def _masked_attention(m: Any, array: Any) -> Callable[..., Any]:
    padding = array(np.arange(256) < np.array([256, 200, 150, 90])[:, None])[:, None, None]
    return lambda q, k, v: m.nn.functional.scaled_dot_product_attention(q, k, v, padding)


def _biased_attention(m: Any, array: Any) -> Callable[..., Any]:
    bias = array(np.random.default_rng(1).standard_normal((4, 256, 256)).astype(np.float32))
    return lambda q, k, v: m.nn.functional.scaled_dot_product_attention(q, k, v, bias)


def _lstm(m: Any, _: Any) -> Callable[..., Any]:
    layer = m.nn.LSTM(64, 128)
    return lambda x: layer(x)[0]


def _of(fn: Callable[..., Any]) -> Callable[[Any, Any], Callable[..., Any]]:
    """A function of the library's functional module and its inputs."""
    return lambda m, _: lambda *inputs: fn(m.nn.functional, *inputs)


HEADS = ((4, 4, 256, 64),) * 3
CASES: dict[str, Case] = {
    "log_softmax (256, 1000)": (_of(lambda f, x: f.log_softmax(x, -1)), ((256, 1000),)),
    "log_softmax of dim 1, (4, 21, 64, 64)": (_of(lambda f, x: f.log_softmax(x, 1)), ((4, 21, 64, 64),)),
    "softmax (256, 1000)": (_of(lambda f, x: f.softmax(x, -1)), ((256, 1000),)),
    "layer_norm (2048, 256)": (_of(lambda f, x, w, b: f.layer_norm(x, (256,), w, b)), ((2048, 256), (256,), (256,))),
    "rms_norm (2048, 256)": (_of(lambda f, x, w: f.rms_norm(x, (256,), w)), ((2048, 256), (256,))),
    "batch_norm (32, 64, 28, 28)": (
        _of(lambda f, x, w, b: f.batch_norm(x, None, None, w, b, True)),
        ((32, 64, 28, 28), (64,), (64,)),
    ),
    "batch_norm (128, 512)": (
        _of(lambda f, x, w, b: f.batch_norm(x, None, None, w, b, True)),
        ((128, 512), (512,), (512,)),
    ),
    "group_norm, 8 groups, (16, 64, 28, 28)": (
        _of(lambda f, x, w, b: f.group_norm(x, 8, w, b)),
        ((16, 64, 28, 28), (64,), (64,)),
    ),
    "instance_norm (16, 64, 28, 28)": (_of(lambda f, x: f.instance_norm(x)), ((16, 64, 28, 28),)),
    "conv2d depthwise 3x3, (8, 64, 28, 28)": (
        _of(lambda f, x, w, b: f.conv2d(x, w, b, padding=1, groups=64)),
        ((8, 64, 28, 28), (64, 1, 3, 3), (64,)),
    ),
    "conv2d depthwise 3x3, stride 2, (8, 64, 56, 56)": (
        _of(lambda f, x, w, b: f.conv2d(x, w, b, 2, padding=1, groups=64)),
        ((8, 64, 56, 56), (64, 1, 3, 3), (64,)),
    ),
    "conv2d depthwise 7x7, (8, 96, 28, 28)": (
        _of(lambda f, x, w, b: f.conv2d(x, w, b, padding=3, groups=96)),
        ((8, 96, 28, 28), (96, 1, 7, 7), (96,)),
    ),
    "conv1d depthwise 31, (8, 144, 200)": (
        _of(lambda f, x, w, b: f.conv1d(x, w, b, padding=15, groups=144)),
        ((8, 144, 200), (144, 1, 31), (144,)),
    ),
    "conv2d 32 groups 3x3, (8, 128, 28, 28)": (
        _of(lambda f, x, w, b: f.conv2d(x, w, b, padding=1, groups=32)),
        ((8, 128, 28, 28), (128, 4, 3, 3), (128,)),
    ),
    "conv2d depthwise 5x5, stride 2, (8, 576, 14, 14)": (
        _of(lambda f, x, w, b: f.conv2d(x, w, b, 2, padding=2, groups=576)),
        ((8, 576, 14, 14), (576, 1, 5, 5), (576,)),
    ),
    "conv2d 5x5, (64, 6, 14, 14) to 16": (
        _of(lambda f, x, w, b: f.conv2d(x, w, b)),
        ((64, 6, 14, 14), (16, 6, 5, 5), (16,)),
    ),
    "conv2d 3x3, (64, 32, 14, 14) to 64": (
        _of(lambda f, x, w: f.conv2d(x, w, padding=1)),
        ((64, 32, 14, 14), (64, 32, 3, 3)),
    ),
    "conv2d 3x3, (32, 64, 32, 32) to 64": (
        _of(lambda f, x, w: f.conv2d(x, w, padding=1)),
        ((32, 64, 32, 32), (64, 64, 3, 3)),
    ),
    "conv2d 3x3, (32, 512, 4, 4) to 512": (
        _of(lambda f, x, w: f.conv2d(x, w, padding=1)),
        ((32, 512, 4, 4), (512, 512, 3, 3)),
    ),
    "conv2d 1x1, (8, 256, 56, 56) to 64": (
        _of(lambda f, x, w: f.conv2d(x, w)),
        ((8, 256, 56, 56), (64, 256, 1, 1)),
    ),
    "conv2d 1x1, (8, 64, 56, 56) to 256": (
        _of(lambda f, x, w: f.conv2d(x, w)),
        ((8, 64, 56, 56), (256, 64, 1, 1)),
    ),
    **{
        f"linear ({rows}, 768) to 3072": (
            _of(lambda f, x, w, b: f.linear(x, w, b)),
            ((rows, 768), (3072, 768), (3072,)),
        )
        for rows in (16, 128, 512)
    },
    "gelu (256, 1024)": (_of(lambda f, x: f.gelu(x)), ((256, 1024),)),
    "exp (256, 1024)": (lambda m, _: m.exp, ((256, 1024),)),
    "attention, no mask, (4, 4, 256, 64)": (_of(lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v)), HEADS),
    "attention, padding mask, (4, 4, 256, 64)": (_masked_attention, HEADS),
    "attention, bias, (4, 4, 256, 64)": (_biased_attention, HEADS),
    "LSTM 64-128, (50, 32)": (_lstm, ((50, 32, 64),)),
}


def measure(options: dict[str, Any]) -> dict[str, Any]:
    import torch  # optional: the comparison

    torch.set_num_threads(1)
    keep_freed_memory()
    rows: list[Row] = []
    for name, (make, shapes) in CASES.items():
        mine, theirs = (_passes(m, m.from_numpy, make, shapes) for m in (tl, torch))
        times = in_turn(0.4, options["repeats"], mine[0], theirs[0], mine[1], theirs[1])
        forward, both = ((b.best_s / a.best_s, a.best_s * 1e3) for a, b in (times[:2], times[2:]))
        rows.append({"layer": name, "forward, of PyTorch": forward[0], "and backward": both[0], "ms": both[1]})
    return {"rows": rows, "notes": ["speed relative to PyTorch; float32, one thread, the best of many turns"]}


def keep_freed_memory() -> None:
    """Make malloc keep freed memory: new pages from the system would cost more than many layers."""
    if sys.platform == "linux":
        trim_threshold, mmap_threshold = -1, -3  # malloc.h
        for parameter in (trim_threshold, mmap_threshold):
            ctypes.CDLL(None).mallopt(parameter, 2**30)


def _passes(m: Any, array: Any, make: Any, shapes: Any) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return two functions: the forward pass alone, and forward and backward."""
    rng = np.random.default_rng(0)
    inputs = [array(rng.standard_normal(shape).astype(np.float32)).requires_grad_() for shape in shapes]
    layer = make(m, array)
    with m.no_grad():
        g = array(rng.standard_normal(tuple(layer(*inputs).shape)).astype(np.float32))

    def forward() -> None:
        with m.no_grad():
            layer(*inputs)

    def both() -> None:
        for x in inputs:
            x.grad = None
        layer(*inputs).backward(g)

    return forward, both
