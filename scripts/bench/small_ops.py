"""Common ops on operands of a few elements: forward under no_grad, and recorded forward + backward.

Each case is an expression of the libraries' common names. It is called in turns with PyTorch's.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from bench.report import Row
from bench.timing import per_call

CALLS = 200
# Name -> whether it has a backward, and the expression; its operands are made by `_operands`.
CASES = {
    "a + b": (True, "a + b"),
    "a * 2": (True, "a * 2"),
    "a += b": (False, "c.add_(b)"),
    "a += b, in inference_mode": (False, "inference(lambda: made.add_(b))"),
    "counter += 1": (False, "counter.add_(1)"),
    "exp": (True, "a.exp()"),
    "relu": (True, "F.relu(a)"),
    "sigmoid": (True, "a.sigmoid()"),
    "gelu": (True, "F.gelu(a)"),
    "sqrt": (True, "p.sqrt()"),
    "clamp": (True, "a.clamp(-1.0, 1.0)"),
    "where": (True, "m.where(mask, a, b)"),
    "a < b": (False, "a < b"),
    "sum": (True, "a.sum()"),
    "sum(-1)": (True, "a.sum(-1)"),
    "mean(-1)": (True, "a.mean(-1)"),
    "max(-1)": (True, "a.max(-1)[0]"),
    "argmax(-1)": (False, "a.argmax(-1)"),
    "softmax": (True, "a.softmax(-1)"),
    "log_softmax": (True, "F.log_softmax(a, -1)"),
    "cumsum": (True, "a.cumsum(-1)"),
    "sort": (True, "a.sort(-1)[0]"),
    "zeros": (False, "m.zeros(4, 8)"),
    "zeros_like": (False, "m.zeros_like(a)"),
    "randn": (False, "m.randn(4, 8)"),
    "reshape": (True, "a.reshape(8, 4)"),
    "view": (True, "a.view(8, 4)"),
    "transpose": (True, "a.transpose(0, 1)"),
    "permute": (True, "a.permute(1, 0)"),
    "unsqueeze": (True, "a.unsqueeze(0)"),
    "chunk": (True, "a.chunk(2, -1)[0]"),
    "a[3]": (True, "a[3]"),
    "a[ids]": (True, "a[ids]"),
    "cat": (True, "m.cat([a, b])"),
    "stack": (True, "m.stack([a, b])"),
    "a @ b": (True, "a @ w"),
    "einsum": (True, "m.einsum('ij,jk->ik', a, w)"),
    "linear": (True, "F.linear(a, w, v)"),
    "embedding": (True, "F.embedding(ids, a)"),
    "layer_norm": (True, "F.layer_norm(a, (8,), v, v)"),
    "batch_norm": (True, "F.batch_norm(a, None, None, v, v, True)"),
    "nn.BatchNorm1d": (True, "norms[0](a)"),
    "nn.BatchNorm2d": (True, "norms[1](image)"),
    "cross_entropy": (True, "F.cross_entropy(a, ids)"),
    "attention": (True, "F.scaled_dot_product_attention(q, q, q)"),
    "conv2d": (True, "F.conv2d(image, filters, padding=1)"),
    "max_pool2d": (True, "F.max_pool2d(image, 2)"),
    "item": (False, "s.item()"),
    "detach": (False, "a.detach()"),
    "nn.Linear": (True, "layer(a)"),
    "nn.Sequential": (True, "layers(a)"),
}


def measure(libraries: dict[str, ModuleType], rounds: int) -> list[Row]:
    """Return a row for each case: µs in each library, and tallow's speed relative to PyTorch's."""
    rows: list[Row] = []
    forward = {library: _functions(library, module, False) for library, module in libraries.items()}
    both = {library: _functions(library, module, True) for library, module in libraries.items()}
    for name, (differentiable, _) in CASES.items():
        row: Row = {"µs per op": name}
        for suffix, functions in (("", forward), (" + backward", both)):
            if suffix and not differentiable:
                continue
            timings = per_call(rounds, CALLS, *(own[name] for own in functions.values()))
            times = [t.best_s * 1e6 for t in timings]
            row |= {library + suffix: t for library, t in zip(functions, times, strict=True)}
            if len(times) > 1:
                row["speed" + suffix] = times[1] / times[0]
        rows.append(row)
    for column in ("speed", "speed + backward"):
        if measured := [row[column] for row in rows if column in row]:
            rows.append({"µs per op": f"median of {column}", column: statistics.median(measured)})
    return rows


def _functions(library: str, m: ModuleType, recorded: bool) -> dict[str, Callable[[], Any]]:
    """Return a function of each case: without gradients, or recorded and followed by backward."""
    functional = import_module({"tallow": "tallow", "PyTorch": "torch"}[library] + ".nn.functional")
    made = {}
    for name, (differentiable, expression) in CASES.items():
        scope = {"m": m, "F": functional, **_operands(m, recorded)}
        lines = [f"y = {expression}"]
        if recorded:
            if not differentiable:
                continue
            scope["gradient"] = m.ones(tuple(eval(expression, scope).shape))
            lines.append("y.backward(gradient)")
        exec("def call():\n  " + "\n  ".join(lines), scope)
        made[name] = scope["call"]
    return made


def _operands(m: ModuleType, requires_grad: bool) -> dict[str, Any]:
    """Return the operands by name: (4, 8) matrices, a weight (8, 8), a vector, images of (1, 3, 8, 8) and others."""
    m.manual_seed(0)
    own = {
        "a": m.randn(4, 8),
        "b": m.randn(4, 8),
        "c": m.zeros(4, 8),
        "p": m.rand(4, 8) + 0.5,
        "w": m.randn(8, 8),
        "v": m.ones(8),
        "q": m.randn(1, 2, 4, 8),
        "image": m.randn(1, 3, 8, 8),
        "filters": m.randn(4, 3, 3, 3),
    }
    layer = m.nn.Linear(8, 8)
    layers = m.nn.Sequential(m.nn.Linear(8, 8), m.nn.ReLU(), m.nn.Linear(8, 8))
    for x in (*own.values(), *layer.parameters(), *layers.parameters()):
        x.requires_grad_(requires_grad)
    own["c"].requires_grad_(False)
    ids = m.tensor([0, 2, 1, 3])
    inference = m.inference_mode()
    own |= {"counter": m.tensor(0), "norms": (m.nn.BatchNorm1d(8), m.nn.BatchNorm2d(3))}
    own |= {"made": inference(lambda: m.zeros(4, 8))(), "inference": lambda write: inference(write)()}
    return own | {"mask": m.zeros(4, 8) > 0, "ids": ids, "s": m.tensor(1.0), "layer": layer, "layers": layers}
