"""tl.export compared with torch.export: the same programs, exported by both, compute the same, also at other sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.model_pairs import reference_model

import tallow as tl
from tallow.models import AutoModel

TOLERANCE = 1e-5  # float32: the kernels add in another order
LIBRARIES = (tl, torch)
# torch's, of its own LSTM and of its own containers.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{text}") for text in ("The tensor attributes", ".*treespec, LeafSpec")
]
Shapes = list[tuple[int, ...]]
Sizes = tuple[dict[int, str], ...]

# ------------------------------------------------------------------------------------------------------ the programs
# Each gets a library, torch or tallow, and returns a module.


def lenet(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 84), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(84, 10),
    )  # fmt: skip


def resnet(lib: Any) -> Any:
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, width: int, out: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
            self.bn1, self.bn2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.downsample = nn.Conv2d(width, out, 1, stride, bias=False)

        def forward(self, x: Any) -> Any:
            out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            out += self.downsample(x)
            return self.relu(out)

    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1), nn.MaxPool2d(2), Block(8, 8, 1), Block(8, 12, 2), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(12, 5),
    )  # fmt: skip


def vit(lib: Any) -> Any:
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(c // self.heads), dim=-1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
            return x + self.mlp(self.norm2(x))

    class ViT(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 16, 4, 4)
            self.token = nn.Parameter(lib.zeros(1, 1, 16))
            self.positions = nn.Parameter(lib.ones(1, 5, 16))
            self.blocks = nn.ModuleList([Block(16, 2), Block(16, 4)])
            self.head = nn.Linear(16, 3)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = lib.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
            for block in self.blocks:
                x = block(x)
            return self.head(x[:, 0])

    return ViT()


def decoder(lib: Any) -> Any:
    """A model of texts with a causal mask, positions and rotary angles that depend on the length."""
    nn, F = lib.nn, lib.nn.functional

    class Decoder(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(11, 8)
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
            self.norm = nn.LayerNorm(8)
            self.register_buffer("frequencies", 10.0 ** -lib.arange(2.0))

        def rotate(self, x: Any) -> Any:
            angles = lib.arange(x.shape[-2], device=x.device)[:, None] * self.frequencies
            a, b = x[..., :2], x[..., 2:]
            return lib.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)

        def forward(self, ids: Any) -> Any:
            x = self.embed(ids)
            b, t, _ = x.shape
            q, k, v = (y.view(b, t, 2, 4).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, dim=-1))
            mask = lib.full((t, t), float("-inf")).triu(1)
            scores = self.rotate(q) @ self.rotate(k).transpose(-2, -1) / 2 + mask
            x = x + self.out((F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, 8))
            return x @ self.embed.weight.T

    return Decoder()


def lstm(lib: Any) -> Any:
    return lib.nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True)


def writes(lib: Any) -> Any:
    class Writes(lib.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", lib.zeros(4))

        def forward(self, x: Any) -> Any:
            self.total.add_(x.sum(0))
            y = x.clone()
            y[:, 1] = self.total[1]
            view = y.view(-1)
            view[:2].mul_(3)
            y.t()[2].add_(1)
            y[y < 0] = 0
            x.sub_(1)
            return y, view.sum(), y[:, 1:]

    return Writes()


def losses(lib: Any) -> Any:
    nn = lib.nn

    class Loss(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.GroupNorm(2, 8), nn.Linear(8, 4))

        def forward(self, x: Any) -> Any:
            y = self.body(x)
            labels = lib.arange(x.shape[0]) % 4
            return nn.functional.cross_entropy(y, labels, label_smoothing=0.1), {"mean": y.mean(0), "n": x.shape[0] + 1}

    return Loss()


PROGRAMS: dict[str, tuple[Callable[[Any], Any], Shapes, Sizes]] = {
    "lenet": (lenet, [(3, 1, 28, 28)], ({0: "batch"},)),
    "resnet": (resnet, [(3, 3, 16, 16)], ({0: "batch"},)),
    "vit": (vit, [(3, 3, 8, 8)], ({0: "batch"},)),
    "decoder": (decoder, [(3, 5)], ({0: "batch", 1: "tokens"},)),
    "lstm": (lstm, [(3, 5, 4)], ({0: "batch"},)),
    "writes": (writes, [(6, 4)], ({0: "rows"},)),
    "losses": (losses, [(6, 4)], ({0: "rows"},)),
}
OTHER = {"batch": 4, "tokens": 8, "rows": 9}


def made(name: str) -> tuple[Any, Any]:
    """Return the program in both libraries, with equal parameters."""
    ours, theirs = (PROGRAMS[name][0](lib) for lib in LIBRARIES)
    generator = np.random.default_rng(0)
    for (key, mine), (other, their) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert key == other
        values = (generator.standard_normal(mine.shape) / 3).astype(np.float32)
        with torch.no_grad():
            their.copy_(torch.from_numpy(values))
        with tl.no_grad():
            mine.copy_(tl.from_numpy(values))
    return ours, theirs


def examples(name: str, sizes: dict[str, int] | None = None) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(1)
    _, shapes, dims = PROGRAMS[name]
    arrays = []
    for shape, names in zip(shapes, dims, strict=True):
        full = tuple((sizes or {}).get(names.get(i, ""), n) for i, n in enumerate(shape))
        array = generator.standard_normal(full).astype(np.float32)
        arrays.append(generator.integers(0, 11, full) if name == "decoder" else array)
    return arrays


def flat(result: Any) -> list[Any]:
    if isinstance(result, dict):
        return flat(list(result.values()))
    if isinstance(result, list | tuple):
        return [leaf for part in result for leaf in flat(part)]
    return [result if isinstance(result, int) else result.detach().numpy()]


def exported(lib: Any, module: Any, arrays: list[Any], dims: Sizes | None) -> Any:
    shapes = None
    if dims is not None:
        known = {name: lib.export.Dim(name, min=2, max=50) for names in dims for name in names.values()}
        shapes = tuple({dim: known[name] for dim, name in names.items()} for names in dims)
        if isinstance(module, lib.nn.Sequential):
            shapes = {"input": shapes[0]}
    return lib.export.export(module, tuple(map(lib.tensor, arrays)), dynamic_shapes=shapes)


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_exports_compute_the_same_at_both_sizes(name: str, training: bool) -> None:
    if name == "lenet" and training:
        pytest.skip("both draw dropout, from other generators")
    pair = [module.train(training) for module in made(name)]
    dims = PROGRAMS[name][2]
    programs = [exported(lib, m, examples(name), dims) for lib, m in zip(LIBRARIES, pair, strict=True)]
    for sizes in (None, OTHER):
        arrays = examples(name, sizes)
        inputs = [[lib.tensor(array) for array in arrays] for lib in LIBRARIES]
        results = [flat(program.module()(*given)) for program, given in zip(programs, inputs, strict=True)]
        eager = flat(pair[0].train(training)(*[tl.tensor(array) for array in arrays])) if name != "writes" else []
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=TOLERANCE, rtol=1e-4)
        for ours, mine in zip(results[0], eager, strict=False):
            np.testing.assert_allclose(ours, mine, atol=TOLERANCE, rtol=1e-4)
        for ours, theirs in zip(*inputs, strict=True):  # what `writes` does to its argument
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=TOLERANCE)


@pytest.mark.parametrize("name", ["resnet", "writes", "decoder"])
def test_both_signatures_agree(name: str) -> None:
    programs = [exported(lib, m, examples(name), None) for lib, m in zip(LIBRARIES, made(name), strict=True)]
    ours, theirs = programs[0].graph_signature, programs[1].run_decompositions().graph_signature  # made functional
    assert list(ours.inputs_to_parameters.values()) == list(theirs.inputs_to_parameters.values())
    assert list(ours.inputs_to_buffers.values()) == list(theirs.inputs_to_buffers.values())
    assert list(ours.inputs_to_parameters) == list(theirs.inputs_to_parameters)
    without_numbers = [s.kind.name for s in theirs.input_specs if s.kind.name != "CONSTANT_TENSOR"]
    assert [s.kind.name for s in ours.input_specs] == without_numbers
    assert sorted(s.kind.name for s in ours.output_specs) == sorted(s.kind.name for s in theirs.output_specs)
    assert {*ours.buffers_to_mutate.values()} == {*theirs.buffers_to_mutate.values()}
    assert len(ours.user_inputs_to_mutate) == len(theirs.user_inputs_to_mutate)
    assert programs[0].state_dict.keys() == programs[1].state_dict.keys()


def test_gradients_agree() -> None:
    modules = [
        exported(lib, m, examples("losses"), None).module() for lib, m in zip(LIBRARIES, made("losses"), strict=True)
    ]
    for lib, module in zip(LIBRARIES, modules, strict=True):
        module(*map(lib.tensor, examples("losses")))[0].backward()
    for (name, ours), (other, theirs) in zip(*(m.named_parameters() for m in modules), strict=True):
        assert name == other
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=TOLERANCE)


@pytest.mark.parametrize(
    "program",
    [
        lambda lib, x: x * 2 if x.sum() > 0 else x,
        lambda lib, x: x * x.sum().item() if x.sum().item() > 0 else x,
        lambda lib, x: x.reshape(3, 2, 2),
        lambda lib, x: x if x.shape[0] == 3 else -x,
    ],
    ids=["bool", "item", "reshape", "equal"],
)
def test_both_refuse_what_a_graph_cannot_hold(program: Callable[[Any, Any], Any]) -> None:
    for lib in LIBRARIES:

        class Model(lib.nn.Module):  # type: ignore[name-defined, misc]
            def forward(self, x: Any) -> Any:
                return program(lib, x)  # noqa: B023 - called within the turn of the loop

        with pytest.raises(Exception):  # noqa: B017 - torch has a dozen classes for it
            exported(lib, Model(), [np.ones((3, 4), np.float32)], ({0: "rows"},))


@pytest.mark.parametrize("variant", ["bert", "llama"])
def test_models_of_tallow_compute_what_those_of_transformers_do(variant: str, tmp_path: Path) -> None:
    reference = reference_model("bert ForSequenceClassification" if variant == "bert" else variant).eval()
    reference.save_pretrained(tmp_path)
    model = AutoModel.from_pretrained(tmp_path).eval()
    sizes = {0: tl.export.Dim("batch"), 1: tl.export.Dim("tokens", max=20)}
    ids = np.random.default_rng(0).integers(3, 90, (2, 6))
    module = tl.export.export(model, (tl.tensor(ids),), dynamic_shapes=(sizes,)).module()
    for shape in ((2, 6), (3, 11)):
        ids = np.random.default_rng(1).integers(3, 90, shape)
        with torch.no_grad():
            expected = reference(torch.from_numpy(ids))[0].numpy()
        result = module(tl.tensor(ids))
        got = result if isinstance(result, tl.Tensor) else result[0]
        np.testing.assert_allclose(got.detach().numpy(), expected, atol=1e-4)
