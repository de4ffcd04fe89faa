"""Compute with packages written for PyTorch: `packages.py {torch,tallow} CASE...` prints numbers for each case.

Each case computes a model and its gradients from weights of NumPy, so that both libraries start from the same. It
prints a line `CASE<tab>[numbers]`, or `CASE<tab>"error"`.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Case = Callable[[Any, np.random.RandomState], list[Any]]
CASES: dict[str, Case] = {}
# The packages with their requirements that pip installs without PyTorch, for the cases that every run of the tests has.
PINNED = (
    *("einops==0.8.2", "torchvision==0.28.0", "timm==1.0.31", "torchmetrics==1.9.0", "lightning-utilities==0.15.3"),
    *("x-transformers==2.31.10", "einx==0.4.3", "loguru==0.7.3", "frozendict==2.5.1", "torch-einops-utils==0.2.0"),
)


def case(function: Case) -> Case:
    """File a case under the function's name."""
    CASES[function.__name__] = function
    return function


def filled(torch: Any, model: Any, rng: np.random.RandomState) -> Any:
    """Set the weights and statistics of a model in evaluation mode, whose results stay small."""
    with torch.no_grad():
        for name, tensor in sorted(model.state_dict().items()):
            if not tensor.is_floating_point():
                continue
            values = rng.standard_normal(tuple(tensor.shape)).astype("float32")
            if "var" in name:
                values = np.abs(values) + 0.5
            elif values.ndim > 1:
                values /= np.sqrt(values[0].size)
            else:
                values = 0.1 * values + ("weight" in name)
            tensor.copy_(torch.from_numpy(np.asarray(values, dtype="float32")))
    return model.eval()


def results(model: Any, output: Any) -> list[Any]:
    """Return the norms of a model's output and of its gradient, by parameter."""
    output.square().mean().backward()
    gradients = [p.grad for _, p in sorted(model.named_parameters()) if p.grad is not None]
    return [float(tensor.detach().double().norm()) for tensor in (output, *gradients)]


def image(torch: Any, rng: np.random.RandomState, size: int = 64) -> Any:
    """Return two images."""
    return torch.from_numpy(rng.standard_normal((2, 3, size, size)).astype("float32"))


@case
def einops(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Rearranged, reduced and multiplied."""
    from einops import einsum, rearrange, reduce
    from einops.layers.torch import Rearrange

    x = image(torch, rng, 8).requires_grad_()
    y = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
    z = reduce(y, "b t d -> b d", "mean") + Rearrange("b t d -> (t b) d")(y)[:2]
    loss = einsum(z, z, "b d, c d -> b c")
    loss.sum().backward()
    return [loss.detach().flatten().tolist(), x.grad.flatten().tolist()]


@case
def torchvision(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A residual network, and transforms of an image."""
    from torchvision import models, transforms

    model = filled(torch, models.resnet18(), rng)
    picture = transforms.Compose([transforms.Resize(40), transforms.CenterCrop(32), transforms.Normalize(0.5, 0.2)])
    return [*results(model, model(image(torch, rng))), float(picture(image(torch, rng)[0]).norm())]


@case
def timm(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A small network of timm."""
    import timm

    model = filled(torch, timm.create_model("mobilenetv3_small_100"), rng)
    return results(model, model(image(torch, rng)))


@case
def torchmetrics(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Metrics over two batches."""
    from torchmetrics import Accuracy, F1Score, MeanSquaredError, MetricCollection
    from torchmetrics.functional import pairwise_cosine_similarity

    metrics = MetricCollection([Accuracy(task="multiclass", num_classes=4), F1Score("multiclass", num_classes=4)])
    error, found = MeanSquaredError(), []
    for _ in range(2):
        scores = torch.from_numpy(rng.standard_normal((16, 4)).astype("float32"))
        metrics.update(scores, torch.from_numpy(rng.randint(0, 4, 16)))
        error.update(scores, scores * 0.5)
        found += pairwise_cosine_similarity(scores).flatten().tolist()
    return [*(float(value) for value in metrics.compute().values()), float(error.compute()), found]


@case
def x_transformers(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A decoder with rotary positions and a gated feed-forward layer."""
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, rotary_pos_emb=True, ff_glu=True)
    model = filled(torch, TransformerWrapper(num_tokens=50, max_seq_len=16, attn_layers=layers), rng)
    return results(model, model(torch.from_numpy(rng.randint(0, 50, (2, 16)))))


def without_extension(torch: Any) -> None:
    """Declare the ops that torchvision describes at import: its own library is linked to PyTorch for CUDA."""
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    torch.library.keep = library


def flat(values: Any) -> Iterator[float]:
    """Yield the numbers of nested lists."""
    if isinstance(values, list):
        for value in values:
            yield from flat(value)
    else:
        yield values


if __name__ == "__main__":
    library, *names = sys.argv[1:]
    if library == "tallow":
        importlib.import_module("tallow.compat").install_torch()
    torch = importlib.import_module("torch")
    if library == "torch":
        without_extension(torch)
    for name in names:
        try:
            outcome: Any = list(flat(CASES[name](torch, np.random.RandomState(0))))
        except Exception as error:  # the test shows it
            where = traceback.extract_tb(error.__traceback__)[-1]
            outcome = f"{type(error).__name__}: {error} ({where.filename}, line {where.lineno})"
        print(name, json.dumps(outcome), sep="\t", flush=True)
