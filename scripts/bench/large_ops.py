"""Single operations on a million elements, tallow and PyTorch alternating on one thread.

NumPy computes most of them, where it is as fast; the others have a kernel, or another formula. The table shows where
one takes far longer than it must: there is no claim for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tallow as tl
from bench.layers import keep_freed_memory
from bench.report import Row
from bench.timing import in_turn

NAME = "large"
SIDE = 1000

# Functions of the library and its operands: x, y (1000, 1000), mask and places of the same shape, index (1000,);
# volumes, images, and kernels and classes for them
OPS: dict[str, Callable[[Any, Any], Any]] = {
    "x + y": lambda m, t: t.x + t.y,
    "x + row": lambda m, t: t.x + t.y[0],
    "x * column": lambda m, t: t.x * t.y[:, :1],
    "exp": lambda m, t: m.exp(t.x),
    "where": lambda m, t: m.where(t.mask, t.x, t.y),
    "masked_fill": lambda m, t: t.x.masked_fill(t.mask, 0.0),
    "x[mask]": lambda m, t: t.x[t.mask],
    "leaky_relu": lambda m, t: m.nn.functional.leaky_relu(t.x),
    "silu": lambda m, t: m.nn.functional.silu(t.x),
    "sigmoid": lambda m, t: t.x.sigmoid(),
    "hardswish": lambda m, t: m.nn.functional.hardswish(t.x),
    "elu": lambda m, t: m.nn.functional.elu(t.x),
    "erf": lambda m, t: m.erf(t.x),
    "lerp": lambda m, t: m.lerp(t.x, t.y, 0.3),
    "mse_loss": lambda m, t: m.nn.functional.mse_loss(t.x, t.y),
    "smooth_l1_loss": lambda m, t: m.nn.functional.smooth_l1_loss(t.x, t.y),
    "sum": lambda m, t: t.x.sum(),
    "sum(0)": lambda m, t: t.x.sum(0),
    "sum(1)": lambda m, t: t.x.sum(1),
    "max(1)": lambda m, t: t.x.max(1)[0],
    "std": lambda m, t: t.x.std(),
    "norm": lambda m, t: t.x.norm(),
    "median": lambda m, t: t.x.median(),
    "cumsum(0)": lambda m, t: t.x.cumsum(0),
    "cumsum(1)": lambda m, t: t.x.cumsum(1),
    "sort(0)": lambda m, t: t.x.sort(0)[0],
    "sort(1)": lambda m, t: t.x.sort(1)[0],
    "unique": lambda m, t: m.unique(t.places),
    "tril": lambda m, t: t.x.tril(),
    "topk(5, 1)": lambda m, t: t.x.topk(5, 1)[0],
    "gather(0)": lambda m, t: t.x.gather(0, t.places),
    "gather(1)": lambda m, t: t.x.gather(1, t.places),
    "scatter_add(1)": lambda m, t: t.x.scatter_add(1, t.places, t.y),
    "index_add(0)": lambda m, t: t.x.index_add(0, t.index, t.y),
    "x[index]": lambda m, t: t.x[t.index],
    "x[:, index]": lambda m, t: t.x[:, t.index],
    "embedding_bag": lambda m, t: m.nn.functional.embedding_bag(t.places[:64, :16], t.x),
    "cat": lambda m, t: m.cat([t.x, t.y]),
    "x.T.contiguous()": lambda m, t: t.x.T.contiguous(),
    "x.half()": lambda m, t: t.x.half(),
    "x.half().float()": lambda m, t: t.x.half().float(),
    "outer": lambda m, t: m.outer(t.x[0], t.y[0]),
    "integers @ integers": lambda m, t: t.places[:128, :128] @ t.places[:128, 128:256],
    "conv3d": lambda m, t: m.nn.functional.conv3d(t.volumes, t.kernels, None, padding=1),
    "cross_entropy of images": lambda m, t: m.nn.functional.cross_entropy(t.images, t.classes),
    "randn": lambda m, t: m.randn(SIDE, SIDE),
}


class Operands:
    """The operands as a library's tensors."""

    def __init__(self, m: Any) -> None:
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((2, SIDE, SIDE)).astype(np.float32)
        self.floats = self.x, self.y = m.tensor(x).requires_grad_(), m.tensor(y).requires_grad_()
        self.mask = m.tensor(rng.random((SIDE, SIDE)) < 0.5)
        self.places = m.tensor(rng.integers(0, SIDE, (SIDE, SIDE)))
        self.index = self.places[0]
        shapes = (2, 8, 16, 32, 32), (16, 8, 3, 3, 3), (4, 21, 64, 64)
        arrays = (m.tensor(rng.standard_normal(shape).astype(np.float32)) for shape in shapes)
        self.volumes, self.kernels, self.images = images = [x.requires_grad_() for x in arrays]
        self.floats += tuple(images)
        self.classes = m.tensor(rng.integers(0, 21, (4, 64, 64)))


def measure(options: dict[str, Any]) -> dict[str, Any]:
    import torch  # optional: the comparison

    torch.set_num_threads(1)
    keep_freed_memory()
    operands = [(m, Operands(m)) for m in (tl, torch)]
    rows: list[Row] = []
    for name, compute in OPS.items():
        mine, theirs = (_passes(m, t, compute) for m, t in operands)
        ours, of_peer, *both = in_turn(0.1, options["repeats"], mine[0], theirs[0], *mine[1:], *theirs[1:])
        row: Row = {"operation": name, "ms": ours.best_s * 1e3, "forward, of PyTorch": of_peer.best_s / ours.best_s}
        rows.append(row | ({"and backward": both[1].best_s / both[0].best_s} if both else {}))
    return {"rows": rows, "notes": ["speed relative to PyTorch; one thread, the best of many turns"]}


def _passes(m: Any, t: Operands, compute: Callable[[Any, Any], Any]) -> list[Callable[[], None]]:
    """Return the forward pass, and for a result with a gradient also forward and backward."""

    def forward() -> None:
        with m.no_grad():
            compute(m, t)

    def both() -> None:
        for x in t.floats:
            x.grad = None
        compute(m, t).sum().backward()

    return [forward, both] if compute(m, t).requires_grad else [forward]
