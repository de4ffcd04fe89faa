"""Layers where PyTorch's gradient is not the derivative, or one of several choices; half precision; errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import functional, integers, normal

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

Call = Callable[..., Any]
TIED = integers(2, 3, 6, 6, high=3).astype(np.float64)
WORDS = integers(3, 7, high=4)
TABLE = normal(4, 3)

CONVENTIONS: list[tuple[str, Call, tuple[Any, ...]]] = [
    ("max_pool2d-ties", functional("max_pool2d", kernel_size=3, stride=2, padding=1), (TIED,)),
    ("max_pool2d-ties-dilated", functional("max_pool2d", kernel_size=2, stride=1, dilation=2), (TIED,)),
    ("max_pool3d-ties", functional("max_pool3d", kernel_size=2, stride=1), (TIED,)),
    ("adaptive_max_pool2d-ties", functional("adaptive_max_pool2d", output_size=4), (TIED,)),
    ("embedding-padding", lambda m, w, i: m.nn.functional.embedding(i, w, padding_idx=1), (TABLE, WORDS)),
    ("embedding-negative-padding", lambda m, w, i: m.nn.functional.embedding(i, w, padding_idx=-4), (TABLE, WORDS)),
    ("embedding_bag-padding", lambda m, w, i: m.nn.functional.embedding_bag(i, w, padding_idx=2), (TABLE, WORDS)),
    ("embedding_bag-max-ties", lambda m, w, i: m.nn.functional.embedding_bag(i, w.round(), mode="max"), (TABLE, WORDS)),
    ("embedding-freq", lambda m, w, i: m.nn.functional.embedding(i, w, scale_grad_by_freq=True), (TABLE, WORDS)),
]


def value_and_gradients(module: Any, call: Call, arrays: tuple[Any, ...]) -> list[Any]:
    inputs = [module.from_numpy(a.copy()) for a in arrays]
    leaves = [t.requires_grad_() for t in inputs if t.is_floating_point()]
    y = call(module, *inputs)
    g = np.random.default_rng(0).standard_normal(tuple(y.shape))
    y.backward(module.from_numpy(g))
    return [y.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)]


@pytest.mark.parametrize(("call", "arrays"), [c[1:] for c in CONVENTIONS], ids=[c[0] for c in CONVENTIONS])
def test_gradient_is_pytorchs(call: Call, arrays: tuple[Any, ...]) -> None:
    for mine, theirs in zip(
        value_and_gradients(tl, call, arrays), value_and_gradients(torch, call, arrays), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-10)


HALVES: list[tuple[str, Call, tuple[Any, ...]]] = [
    ("linear", functional("linear"), (normal(5, 16), normal(4, 16), normal(4))),
    ("linear-vector", functional("linear"), (normal(16), normal(4, 16))),
    ("bilinear", functional("bilinear"), (normal(5, 3), normal(5, 4), normal(2, 3, 4), normal(2))),
    ("conv2d", functional("conv2d", padding=1), (normal(2, 3, 6, 5), normal(4, 3, 3, 3), normal(4))),
    ("conv1d-depthwise", functional("conv1d", groups=4), (normal(2, 4, 9), normal(4, 1, 3), normal(4))),
    ("conv_transpose1d", functional("conv_transpose1d", stride=2), (normal(2, 4, 5), normal(4, 3, 3), normal(3))),
    ("max_pool2d", functional("max_pool2d", kernel_size=2), (normal(2, 3, 6, 5),)),
    ("avg_pool2d", functional("avg_pool2d", kernel_size=2), (normal(2, 3, 6, 5),)),
    ("adaptive_avg_pool2d", functional("adaptive_avg_pool2d", output_size=3), (normal(2, 3, 7, 5),)),
    ("layer_norm", lambda m, x, w, b: m.nn.functional.layer_norm(x, (8,), w, b), (normal(3, 8), normal(8), normal(8))),
    ("rms_norm", lambda m, x, w: m.nn.functional.rms_norm(x, (8,), w), (normal(3, 8), normal(8))),
    ("group_norm", functional("group_norm", num_groups=2), (normal(3, 4, 5),)),
    (
        "batch_norm",
        lambda m, x, w: m.nn.functional.batch_norm(x, None, None, w, training=True),
        (normal(3, 4, 5), normal(4)),
    ),
    ("embedding", lambda m, w, i: m.nn.functional.embedding(i, w), (TABLE, WORDS)),
    ("pad", functional("pad", pad=(1, 2), value=0.3), (normal(3, 4),)),
    ("pad-reflect", functional("pad", pad=(1, 2), mode="reflect"), (normal(3, 4),)),
    ("interpolate", functional("interpolate", size=(3, 8), mode="bilinear"), (normal(1, 2, 4, 5),)),
    ("unfold", functional("unfold", kernel_size=2), (normal(2, 3, 4, 5),)),
    (
        "attention",
        functional("scaled_dot_product_attention"),
        (normal(2, 4, 5, 8), normal(2, 4, 6, 8), normal(2, 4, 6, 8)),
    ),
    ("cross_entropy", functional("cross_entropy", reduction="none"), (normal(6, 5), integers(6, high=5))),
    ("nll_loss", functional("nll_loss", reduction="none"), (normal(6, 5), integers(6, high=5))),
    ("mse_loss", functional("mse_loss", reduction="none"), (normal(4, 3), normal(4, 3))),
    ("l1_loss", functional("l1_loss", reduction="none"), (normal(4, 3), normal(4, 3))),
    ("smooth_l1_loss", functional("smooth_l1_loss", reduction="none"), (normal(4, 3), normal(4, 3))),
]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("call", "arrays"), [c[1:] for c in HALVES], ids=[c[0] for c in HALVES])
def test_halves_are_rounded_once(dtype: str, call: Call, arrays: tuple[Any, ...]) -> None:
    """Within half a unit in the last place of PyTorch's float64; in half precision PyTorch rounds in between."""
    halves = [[m.from_numpy(a) for a in arrays] for m in (tl, torch)]
    for module, tensors in zip((tl, torch), halves, strict=True):
        tensors[:] = [t.to(getattr(module, dtype)) if t.is_floating_point() else t for t in tensors]
    y = call(tl, *halves[0])
    assert str(y.dtype).endswith(dtype)
    exact = call(torch, *(t.double() if t.is_floating_point() else t for t in halves[1])).numpy()
    eps = float(torch.finfo(getattr(torch, dtype)).eps)
    float32_error = 1e-6 * float(np.abs(exact).max())
    np.testing.assert_allclose(y.float().numpy(), exact, rtol=0.51 * eps, atol=float32_error)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_gradients_travel_in_float32(dtype: str) -> None:
    """Return input and weight gradients of a linear layer between two others, rounded where they arrive."""
    gradients = []
    for module in (tl, torch):
        x, w = (module.from_numpy(a).to(getattr(module, dtype)).requires_grad_() for a in (TABLE, TABLE[:2]))
        module.nn.functional.linear(x, w).float().square().sum().backward()
        gradients.append([t.grad.float().numpy() for t in (x, w)])
        assert str(x.grad.dtype).endswith(dtype)
    eps = float(torch.finfo(getattr(torch, dtype)).eps)
    for mine, theirs in zip(*gradients, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=4 * eps, atol=eps)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [True, False])
def test_images_of_bytes_resize_to_within_one(mode: str, antialias: bool) -> None:
    """PyTorch computes with integer weights."""
    image = (integers(1, 3, 9, 8) * 37 % 256).astype(np.uint8)
    resize = functional("interpolate", size=(5, 12), mode=mode, antialias=antialias)
    ours, theirs = (resize(m, m.from_numpy(image)) for m in (tl, torch))
    assert ours.dtype is tl.uint8
    np.testing.assert_allclose(ours.int(), theirs.int(), atol=1)


NORMS: dict[str, Call] = {
    "LayerNorm": lambda m: m.nn.LayerNorm(3),
    "GroupNorm": lambda m: m.nn.GroupNorm(2, 4),
    "RMSNorm": lambda m: m.nn.RMSNorm(3),
    "BatchNorm2d": lambda m: m.nn.BatchNorm2d(4),
    "BatchNorm2d, evaluation": lambda m: m.nn.BatchNorm2d(4).eval(),
    "BatchNorm2d, plain": lambda m: m.nn.BatchNorm2d(4, affine=False),
    "InstanceNorm2d": lambda m: m.nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
}


@pytest.mark.filterwarnings("ignore:Mismatch dtype")  # raised by PyTorch
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("norm", NORMS)
def test_norms_in_float32_take_halves(norm: str, dtype: str) -> None:
    # The same values whichever tests ran before: with some, PyTorch's own rounding exceeds the tolerance.
    values, results = np.random.default_rng(0).standard_normal((6, 4, 5, 3)), []
    for module in (tl, torch):
        layer = NORMS[norm](module)
        x = module.from_numpy(values).to(getattr(module, dtype)).requires_grad_()
        y = layer(x)
        (y.float() * module.arange(15.0).reshape(5, 3)).sum().backward()
        results.append([y, x.grad, *(p.grad for p in layer.parameters()), *layer.buffers()])
    eps = float(torch.finfo(getattr(torch, dtype)).eps)
    for mine, theirs in zip(*results, strict=True):
        assert str(mine.dtype).removeprefix("tallow") == str(theirs.dtype).removeprefix("torch")
        theirs = theirs.detach().double().numpy()
        # PyTorch rounds gradients on the way.
        np.testing.assert_allclose(
            mine.detach().double().numpy(), theirs, rtol=4 * eps, atol=eps * np.abs(theirs).max()
        )
