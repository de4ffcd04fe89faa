"""Compute with packages written for PyTorch: `packages.py {torch,tallow} FOLDER CASE...` writes a file for each case.

Each case computes a model, its gradients and a training step from weights of NumPy, so that both libraries start from
the same. Its arrays go to `FOLDER/CASE.npz`, or what it raised to `FOLDER/CASE.txt`. The cases here run in every run of
the tests; those of the folder `ecosystem` with pytest's `--ecosystem`.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from comparison import CASES, arrays, case, filled, normal, tokens, trained


@case
def einops(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Rearranged, reduced and multiplied."""
    from einops import einsum, rearrange, reduce
    from einops.layers.torch import Rearrange

    x = normal(torch, rng, 2, 3, 8, 8).requires_grad_()
    y = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
    z = reduce(y, "b t d -> b d", "mean") + Rearrange("b t d -> (t b) d")(y)[:2]
    loss = einsum(z, z, "b d, c d -> b c")
    loss.sum().backward()
    return [loss, x.grad]


@case
def torchvision(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A residual network, and transforms of an image."""
    from torchvision import models, transforms

    model = filled(torch, models.resnet18(), rng)
    picture = transforms.Compose([transforms.Resize(40), transforms.CenterCrop(32), transforms.Normalize(0.5, 0.2)])
    x = normal(torch, rng, 2, 3, 64, 64)
    return [*trained(torch, model, lambda: model(x)), picture(x[0])]


@case
def timm(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A small network of timm."""
    import timm

    model = filled(torch, timm.create_model("mobilenetv3_small_100"), rng)
    x = normal(torch, rng, 2, 3, 64, 64)
    return trained(torch, model, lambda: model(x), 1e-4)


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
        found.append(pairwise_cosine_similarity(scores))
    return [*metrics.compute().values(), error.compute(), *found]


@case
def x_transformers(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A decoder with rotary positions and a gated feed-forward layer."""
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, rotary_pos_emb=True, ff_glu=True)
    model = filled(torch, TransformerWrapper(num_tokens=50, max_seq_len=16, attn_layers=layers), rng)
    x = tokens(torch, rng, 50, 2, 16)
    return trained(torch, model, lambda: model(x))


def without_extension(torch: Any) -> None:
    """Stand in for the libraries of torchvision and torchaudio, which are linked to PyTorch for CUDA.

    torchvision describes its ops at import; torchaudio computes in Python without its library.
    """
    extension = ModuleType("torchaudio._extension")
    vars(extension).update(_IS_TORCHAUDIO_EXT_AVAILABLE=False, fail_if_no_align=lambda function: function)
    sys.modules["torchaudio._extension"] = extension
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    torch.library.keep = library


def load_ecosystem() -> None:
    """File the cases of the folder `ecosystem`."""
    for path in sorted(Path(__file__).with_name("ecosystem").glob("[a-z]*.py")):
        importlib.import_module(f"ecosystem.{path.stem}")


def outcome(torch: Any, name: str, to: Path) -> None:
    """Compute a case and write its arrays, or what it raised."""
    torch.manual_seed(0)
    try:
        values = arrays(CASES[name](torch, np.random.RandomState(0)))
        np.savez(to / f"{name}.npz", *values)
    except Exception as error:  # the test shows it
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({where.filename}, line {where.lineno})"
        (to / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    library, folder, *names = sys.argv[1:]
    if library == "tallow":
        importlib.import_module("tallow.compat").install_torch()
    torch = importlib.import_module("torch")
    if library == "torch":
        without_extension(torch)
    if not CASES.keys() >= set(names):
        load_ecosystem()
    for name in names:
        outcome(torch, name, Path(folder))
