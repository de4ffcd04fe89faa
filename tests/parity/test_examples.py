"""The programs of `examples/` that also run with PyTorch: replacing `tallow` by `torch` gives the same numbers."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from support import examples
from support.examples import EXAMPLES

import tallow as tl

RTOL = 1e-4  # losses after some steps in float32, summed in a different order


@pytest.fixture
def in_torch(tmp_path: Path) -> Any:
    """Load an example with every `tallow` replaced by `torch`."""
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text(encoding="utf-8").replace("from tallow.data import MNIST\n", "")
        (tmp_path / path.name).write_text(text.replace("tallow", "torch"), encoding="utf-8")

    def load(name: str) -> ModuleType:
        module = examples.load(name, tmp_path)
        assert module.tl is torch
        return module

    return load


def as_torch(tensor: tl.Tensor) -> torch.Tensor:
    return torch.from_numpy(tensor.detach().numpy().copy())


def with_weights_of(mine: tl.nn.Module, theirs: torch.nn.Module) -> torch.nn.Module:
    theirs.load_state_dict({name: as_torch(tensor) for name, tensor in mine.state_dict().items()})
    return theirs


def both(batches: list[tuple[tl.Tensor, tl.Tensor]]) -> tuple[list[Any], list[Any]]:
    return batches, [tuple(map(as_torch, batch)) for batch in batches]


def test_computation_graph(in_torch: Any) -> None:
    mine, theirs = examples.load("computation_graph").main(), in_torch("computation_graph").main()
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_multilayer_perceptron(in_torch: Any) -> None:
    mine = examples.load("multilayer_perceptron").MultilayerPerceptron(50, 3)
    program = in_torch("multilayer_perceptron")
    theirs = with_weights_of(mine, program.MultilayerPerceptron(50, 3))
    assert repr(mine) == repr(theirs)
    assert program.number_of_parameters(theirs) == 2213
    x = tl.randn(5, 50)
    np.testing.assert_allclose(mine(x).detach().numpy(), theirs(as_torch(x)).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_toy_classification(in_torch: Any) -> None:
    program, reference = examples.load("toy_classification"), in_torch("toy_classification")
    mine = program.MultilayerPerceptron(2, 2)
    theirs = with_weights_of(mine, reference.MultilayerPerceptron(2, 2))
    loaders = [p.DataLoader(p.Points(p.X_TRAIN, p.Y_TRAIN), batch_size=2, drop_last=True) for p in (program, reference)]
    losses = program.train(mine, loaders[0]), reference.train(theirs, loaders[1])
    np.testing.assert_allclose(*losses, rtol=RTOL)
    assert program.accuracy(mine, loaders[0]) == reference.accuracy(theirs, loaders[1])


def test_char_gpt(in_torch: Any) -> None:
    program, reference = examples.load("char_gpt"), in_torch("char_gpt")
    config = {"characters": 7, "context": 8, "width": 16, "heads": 2, "layers": 2}
    mine = program.GPT(program.Config(**config))
    theirs = with_weights_of(mine, reference.GPT(reference.Config(**config)))
    text = tl.randint(7, (50,))
    ours, others = both(list(program.batches(text, steps=8, size=4, length=8)))
    np.testing.assert_allclose(program.train(mine, ours), reference.train(theirs, others), rtol=RTOL)


def test_char_gpt_cuts_the_same_pieces(in_torch: Any) -> None:
    for program in (examples.load("char_gpt"), in_torch("char_gpt")):
        ((now, then),) = program.batches(program.tl.arange(20), steps=1, size=3, length=5)
        assert (now + 1 == then).all()
        assert (now[:, 0] + 4 == now[:, -1]).all()


def test_mnist_cnn(in_torch: Any) -> None:
    program, reference = examples.load("mnist_cnn"), in_torch("mnist_cnn")
    images, labels = program.draw(64, np.random.default_rng(1))
    x, y = tl.from_numpy(images).unsqueeze(1).float() / 255, tl.from_numpy(labels).long()
    mine = program.CNN()
    theirs = with_weights_of(mine, reference.CNN())
    ours, others = both([(x[i : i + 16], y[i : i + 16]) for i in range(0, 64, 16)])
    np.testing.assert_allclose(program.train(mine, ours, 2), reference.train(theirs, others, 2), rtol=RTOL)
