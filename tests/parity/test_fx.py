"""tl.fx records the graphs that torch.fx records, of the same program, and replaces patterns as it does."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl
from tallow import fx

TOLERANCE = 1e-5  # float32: the kernels add in another order

# ------------------------------------------------------------------------------------------------------ the programs
# Each gets a library, torch or tallow, and returns a module and the shapes of its inputs.


def mlp(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    nn = lib.nn
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3), nn.LogSoftmax(dim=1)), [(4, 6)]


def with_parameters(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    class Scale(lib.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(6))
            self.register_buffer("shift", lib.ones(6))
            self.constant = lib.ones(6)

        def forward(self, x: Any) -> Any:
            y = x * self.weight + self.shift
            return lib.cat([y, x - self.constant], dim=1) * self.weight.sum()

    return Scale(), [(4, 6)]


def residual(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, width: int, out: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            self.downsample = None
            if stride != 1:
                self.downsample = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x: Any) -> Any:
            identity = x
            out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            if self.downsample is not None:
                identity = self.downsample(x)
            out += identity
            return self.relu(out)

    class ResNet(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.MaxPool2d(2))
            self.layer1 = nn.Sequential(Block(8, 8, 1), Block(8, 8, 1))
            self.layer2 = nn.Sequential(Block(8, 12, 2), Block(12, 12, 1))
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(12, 5)

        def forward(self, x: Any) -> Any:
            x = self.avgpool(self.layer2(self.layer1(self.stem(x))))
            return self.fc(lib.flatten(x, 1))

    return ResNet(), [(2, 3, 16, 16)]


def inception(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    nn, F = lib.nn, lib.nn.functional

    class Branches(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Conv2d(3, 4, 1)
            self.three = nn.Conv2d(3, 4, 3, padding=1)

        def forward(self, x: Any) -> Any:
            pooled = F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)
            parts = [F.relu(self.one(x)), F.relu(self.three(x), inplace=True), F.max_pool2d(pooled, 3, 1, 1)]
            return lib.cat(parts, 1)

    return Branches(), [(2, 3, 8, 8)]


def attention(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, width: int = 16, heads: int = 2) -> None:
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(8), dim=-1)
            mixed = (weights @ v).transpose(1, 2).reshape(b, t, c)
            x = x + self.out(mixed)
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    return nn.Sequential(Block(), Block()), [(2, 5, 16)]


def fused_attention(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    F = lib.nn.functional

    class Attention(lib.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return Attention(), [(2, 2, 5, 4)] * 3


def encoder_layer(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    class Encoder(lib.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = lib.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.layer(x).mean(dim=1)

    return Encoder(), [(2, 5, 8)]


def recurrent(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    class Tagger(lib.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = lib.nn.LSTM(6, 8, batch_first=True, bidirectional=True)
            self.head = lib.nn.Linear(16, 3)

        def forward(self, x: Any) -> Any:
            out, (h, _) = self.lstm(x)
            return self.head(out), h[-1]

    return Tagger(), [(2, 5, 6)]


def unet(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    nn, F = lib.nn, lib.nn.functional

    class UNet(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.Conv2d(1, 4, 3, 2, 1)
            self.up = nn.ConvTranspose2d(4, 4, 2, 2)
            self.last = nn.Conv2d(5, 1, 1)

        def forward(self, x: Any) -> Any:
            small = F.leaky_relu(self.down(x), 0.2)
            large = F.interpolate(small, scale_factor=2, mode="nearest")
            return lib.sigmoid(self.last(lib.cat((x, self.up(small) + large), 1)))

    return UNet(), [(2, 1, 8, 8)]


def squeeze(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    nn, F = lib.nn, lib.nn.functional

    class SqueezeExcite(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc2 = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)

        def forward(self, x: Any) -> Any:
            scale = F.adaptive_avg_pool2d(x, 1)
            scale = F.hardsigmoid(self.fc2(F.silu(self.fc1(scale))))
            return x * scale

    return SqueezeExcite(), [(2, 8, 4, 4)]


def vae(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    class Encoder(lib.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.mean, self.log = lib.nn.Linear(6, 2), lib.nn.Linear(6, 2)

        def forward(self, x: Any, noise: Any) -> Any:
            mean, log = self.mean(x), self.log(x)
            std = lib.exp(0.5 * log)
            kl = -0.5 * lib.sum(1 + log - mean.pow(2) - log.exp())
            return {"sample": mean + noise * std, "kl": kl}

    return Encoder(), [(4, 6), (4, 2)]


def gated(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    F = lib.nn.functional

    class Gated(lib.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = lib.nn.Parameter(lib.ones(8, 4) * 0.5)
            self.b = lib.nn.Parameter(lib.zeros(8))

        def forward(self, x: Any, scale: float = 2.0) -> Any:
            a, g = F.linear(x, self.w, self.b).chunk(2, dim=-1)
            y = a * lib.tanh(g) / scale
            return y.clamp(min=-1.0, max=1.0).masked_fill(y < 0, 0.0), F.normalize(y, dim=-1), y[..., :2]

    return Gated(), [(3, 4)]


def losses(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    F = lib.nn.functional

    class Losses(lib.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any, y: Any) -> Any:
            return F.mse_loss(x, y), F.l1_loss(x, y, reduction="sum"), F.cosine_similarity(x, y, dim=1)

    return Losses(), [(3, 4), (3, 4)]


def shapes(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    class Shapes(lib.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            y = x.view(x.size(0), -1).unsqueeze(1).expand(-1, 3, -1)
            z = lib.stack([x, x], dim=0).squeeze().transpose(0, 1).contiguous()
            return (
                y,
                z,
                lib.where(x > 0, x, -x),
                lib.einsum("bij,bkj->bik", x, x),
                x.split(1, dim=1)[0],
                abs(x),
                ~(x > 0),
            )

    return Shapes(), [(2, 3, 4)]


def operators(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    class Operators(lib.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any, y: Any) -> Any:
            a = 1 + x - y * 2 + 3 / (x * x + 1) - (2 - y) ** 2
            b = 2.0**x + x // 2 + x % 2 + (-x) + (+y)
            return a, b, x @ y.t(), x == y, x != y, x >= y, (x > 0) & (y > 0) | (x < 0) ^ (y <= 0), x[0, :2]

    return Operators(), [(3, 4), (3, 4)]


def repeated(lib: Any) -> tuple[Any, list[tuple[int, ...]]]:
    class Repeated(lib.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = lib.nn.ModuleList([lib.nn.Linear(4, 4) for _ in range(3)])
            self.acts = lib.nn.ModuleDict({"relu": lib.nn.ReLU(), "gelu": lib.nn.GELU()})

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = self.acts["relu"](layer(x)) + self.acts["gelu"](layer(x))
            return x

    return Repeated(), [(2, 4)]


PROGRAMS = [
    *(mlp, with_parameters, residual, inception, attention, fused_attention, encoder_layer, recurrent, unet, squeeze),
    *(vae, gated, losses, shapes, operators, repeated),
]


# ------------------------------------------------------------------------------------------------------ comparing


def counterpart(name: str) -> Callable[..., Any]:
    """Return the function of tallow with the name of PyTorch's."""
    for place in (tl.nn.functional, tl, tl.linalg, tl.special):
        if callable(function := getattr(place, name, None)):
            return function
    raise AssertionError(name)


def bound(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments by name, without those that equal the default: PyTorch's functions record all of them."""
    parameters = inspect.signature(counterpart(name)).parameters
    kwargs = {key: value for key, value in kwargs.items() if key in parameters}
    given = inspect.signature(counterpart(name)).bind(*args, **kwargs).arguments
    defaults = {key: parameter.default for key, parameter in parameters.items()}
    return tuple(sorted((key, str(value)) for key, value in given.items() if str(value) != str(defaults[key])))


def rows(graph: Any) -> list[tuple[Any, ...]]:
    """Return a graph as (op, name, name of target, arguments) of each node."""
    result: list[tuple[Any, ...]] = []
    for node in graph.nodes:
        target = (
            node.target if isinstance(node.target, str) else fx.names.qualified_name(node.target).rpartition(".")[2]
        )
        if target == "fn":  # PyTorch's max_pool2d, which chooses among two functions
            target = node.name.rstrip("_0123456789")
        if node.op == "call_function" and getattr(node.target, "__module__", None) not in (
            "_operator",
            None,
            "builtins",
        ):
            arguments = bound(target, node.args, node.kwargs)
        else:
            arguments = (str(node.args), str(dict(node.kwargs)))
        result.append((node.op, node.name, target, arguments))
    return result


def twins(program: Callable[[Any], Any]) -> tuple[Any, Any, list[Any], list[Any]]:
    """Return a module of each library with the same weights, in evaluation mode, and inputs of each."""
    theirs, sizes = program(torch)
    ours, _ = program(tl)
    ours.load_state_dict({name: tl.from_numpy(x.numpy()) for name, x in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(size).astype(np.float32) for size in sizes]
    return ours.eval(), theirs.eval(), [tl.from_numpy(a) for a in arrays], [torch.from_numpy(a) for a in arrays]


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_graph_is_that_of_pytorch(program: Callable[[Any], Any]) -> None:
    ours, theirs, x, y = twins(program)
    traced, expected = fx.symbolic_trace(ours), torch.fx.symbolic_trace(theirs)
    traced.graph.lint()
    assert rows(traced.graph) == rows(expected.graph)
    for a, b, c in zip(leaves(traced(*x)), leaves(ours(*x)), leaves(expected(*y)), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
        np.testing.assert_allclose(a.detach().numpy(), c.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)


# ------------------------------------------------------------------------------------------------------- patterns


def patterns(lib: Any) -> dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]]:
    """Return name -> (program, pattern, replacement)."""

    def sums(x: Any, w1: Any, w2: Any) -> Any:
        m1, m2 = lib.cat([w1, w2]).sum(), lib.cat([w1, w2]).sum()
        return x + lib.max(m1) + lib.max(m2)

    def chain(x: Any) -> Any:
        return lib.neg(lib.relu(lib.neg(lib.relu(lib.neg(lib.relu(x))))))

    def overlapping(x: Any) -> Any:
        return lib.relu(lib.relu(lib.relu(lib.relu(lib.relu(x)))))

    def leaking(x: Any) -> Any:
        y = lib.relu(x)
        return lib.neg(y) + lib.neg(lib.relu(x)) * y

    def diamond(x: Any, y: Any) -> Any:
        a = x + y
        return a * a.sigmoid() - (y + x) * lib.tanh(x)

    def two(x: Any) -> Any:
        a = lib.sin(x)
        b = lib.cos(a)
        return (a, b) if False else lib.cat([b, a])

    return {
        "the documented example": (sums, lambda a, b: lib.cat([a, b]), lambda a, b: lib.stack([a, b])),
        "twice the documented example": (sums, lambda a, b: lib.cat([a, b]).sum(), lambda a, b: a.sum() + b.sum()),
        "consecutive": (chain, lambda x: lib.neg(lib.relu(x)), lambda x: lib.sigmoid(x)),
        "overlapping": (overlapping, lambda x: lib.relu(lib.relu(x)), lambda x: lib.tanh(x)),
        "used outside": (leaking, lambda x: lib.neg(lib.relu(x)), lambda x: lib.sigmoid(x)),
        "used twice inside": (diamond, lambda a: a * a.sigmoid(), lambda a: lib.nn.functional.silu(a)),
        "two arguments in one order": (diamond, lambda a, b: a + b, lambda a, b: lib.sub(a, b)),
        "two results": (two, lambda x: (lib.sin(x), lib.cos(lib.sin(x))), lambda x: (lib.exp(x), lib.log(x))),
        "nothing": (chain, lambda x: lib.tanh(x), lambda x: x),
        "to the argument itself": (chain, lambda x: lib.neg(lib.relu(x)), lambda x: x),
        "the whole function": (two, lambda x: lib.sin(x), lambda x: lib.sin(lib.sin(x))),
    }


@pytest.mark.parametrize("name", patterns(tl))
def test_patterns_are_replaced_as_by_pytorch(name: str) -> None:
    results = []
    for lib in (tl, torch):
        program, pattern, replacement = patterns(lib)[name]
        traced = lib.fx.symbolic_trace(program)
        matches = lib.fx.replace_pattern(traced, pattern, replacement)
        traced.graph.lint()
        places = [(str(m.anchor), {str(k): str(v) for k, v in m.nodes_map.items()}) for m in matches]
        results.append((rows(traced.graph), places))
    assert results[0] == results[1]


# ---------------------------------------------------------------------------------------------------- what is refused


def refused(lib: Any) -> dict[str, Callable[..., Any]]:
    def branch(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    def loop(x: Any) -> Any:
        return [row + 1 for row in x]

    def while_positive(x: Any) -> Any:
        while (x > 0).all():
            x = x - 1
        return x

    def assertion(x: Any) -> Any:
        assert x.shape[0] == 2
        return x

    return {
        "branch": branch,
        "loop": loop,
        "while": while_positive,
        "assert": assertion,
        "and": lambda x: x.any() and x.all(),
        "not": lambda x: not x,
        "chained": lambda x: 0 < x < 1,
        "star": lambda x: x.view(*x.shape),
        "len": lambda x: len(x),
        "membership": lambda x: 1 in x,
    }


@pytest.mark.parametrize("name", refused(tl))
def test_what_depends_on_values_is_refused_as_by_pytorch(name: str) -> None:
    for lib in (tl, torch):
        with pytest.raises((lib.fx.proxy.TraceError, RuntimeError)):
            lib.fx.symbolic_trace(refused(lib)[name])


def test_a_specialised_argument_is_checked_as_by_pytorch() -> None:
    def program(x: Any, flag: Any, n: Any = None) -> Any:
        return x * 2 if flag and n is None else x

    found = []
    for lib in (tl, torch):
        traced = lib.fx.symbolic_trace(program, concrete_args={"flag": True, "n": None})
        found.append([(n.op, n.name, getattr(n.target, "__name__", None)) for n in traced.graph.nodes])
        assert float(traced(3.0, True, None)) == 6
        with pytest.raises(AssertionError):
            traced(3.0, False, None)
    assert found[0] == found[1]


@pytest.mark.parametrize("x", [torch.ones(2), torch.nn.Parameter(torch.ones(2))], ids=["tensor", "parameter"])
def test_tensors_of_pytorch_are_refused(x: Any) -> None:
    for call in (lambda: tl.add(tl.ones(2), x), lambda: tl.relu(x), lambda: tl.nn.functional.softmax(x, 0)):
        with pytest.raises(TypeError, match="must be a Tensor"):
            call()
    with pytest.raises(IndexError, match="valid indices"):
        tl.ones(3)[x]


def test_shapes_are_those_of_pytorch() -> None:
    shapes = []
    ours, theirs, x, y = twins(residual)
    for lib, model, inputs in ((tl, ours, x), (torch, theirs, y)):
        traced = lib.fx.symbolic_trace(model)
        prop = lib.fx.passes.shape_prop.ShapeProp(traced)
        prop.propagate(*inputs)
        shapes.append(
            [(n.name, tuple(n.meta["tensor_meta"].shape), n.meta["tensor_meta"].stride) for n in traced.graph.nodes]
        )
    assert shapes[0] == shapes[1]


def test_the_code_is_that_of_pytorch() -> None:
    ours, theirs, *_ = twins(residual)
    a, b = (lib.fx.symbolic_trace(m).code.strip().splitlines() for lib, m in ((tl, ours), (torch, theirs)))
    assert [line.replace("tallow.", "torch.") for line in a[1:]] == b[1:]  # PyTorch's has annotations in the first
