"""Tensors on a GPU that is not the current one: results are on the same GPU."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import cupy_like

import tallow as tl
from tallow import devices, nn
from tallow.nn import functional as F


@pytest.fixture
def two_gpus(cuda: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = devices.get_backend("cuda")
    if backend.module is cupy_like.MODULE:
        monkeypatch.setattr(cupy_like.Gpu, "count", 2)
        monkeypatch.setitem(devices.MULTI_DEVICE, cupy_like.Array, backend)
    elif tl.cuda.device_count() < 2:
        pytest.skip("there is one GPU")


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 8)
        self.attention = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        self.head = nn.Linear(8, 7)

    def forward(self, tokens: tl.Tensor) -> tl.Tensor:
        return self.head(self.attention(self.embedding(tokens)).to(self.head.weight.device))


TOKENS = np.array([[1, 2, 3, 4], [6, 5, 0, 2]])


def train(place: Callable[[Small], Small], tokens: tl.Tensor) -> tuple[list[float], Small]:
    """Return the losses of three steps, and the model."""
    tl.manual_seed(0)
    model = place(Small())
    optimizer = tl.optim.AdamW(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].to(logits.device).flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.head.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, model


@pytest.mark.usefixtures("two_gpus")
def test_training_on_the_other_one() -> None:
    expected, _ = train(lambda model: model, tl.tensor(TOKENS))
    losses, model = train(lambda model: model.to("cuda:1"), tl.tensor(TOKENS, device="cuda:1"))
    assert losses == pytest.approx(expected, rel=1e-4)
    assert {str(t.device) for p in model.parameters() for t in (p, p.grad)} == {"cuda:1"}
    assert tl.cuda.current_device() == 0


@pytest.mark.usefixtures("two_gpus")
def test_a_model_on_both() -> None:
    def place(model: Small) -> Small:
        model.to("cuda:0").head.to("cuda:1")
        return model

    expected, _ = train(lambda model: model, tl.tensor(TOKENS))
    losses, model = train(place, tl.tensor(TOKENS, device="cuda:0"))
    assert losses == pytest.approx(expected, rel=1e-4)
    for name, p in model.named_parameters():
        assert str(p.grad.device) == str(p.device) == ("cuda:1" if name.startswith("head") else "cuda:0")
    assert tl.cuda.current_device() == 0


@pytest.mark.usefixtures("two_gpus")
def test_writes_views_and_new_tensors() -> None:
    x = tl.zeros(2, 3, device="cuda:1")
    x[0, 1] = 5
    x[1] += tl.ones(3, device="cuda:1")
    x[x > 4] = 7
    x.add_(1).mul_(2)
    assert (x.T @ x)[0].tolist() == [20.0, 48.0, 20.0]
    assert (x.sum().item(), float(x.max()), x.cpu()[0].tolist()) == (32.0, 16.0, [2.0, 16.0, 2.0])
    tensors = [
        tl.zeros_like(x),
        tl.full((2,), 3, device="cuda:1"),
        tl.arange(3, device="cuda:1"),
        x.clone(),
        x.double(),
    ]
    assert {str(t.device) for t in tensors} == {"cuda:1"}
    assert str(x.to("cuda:0").device) == "cuda:0"
    with tl.cuda.device(1):
        assert str(tl.ones(2, device="cuda").device) == "cuda:1"
    assert tl.cuda.current_device() == 0
    with pytest.raises(tl.errors.DeviceError, match="found cuda:0 and cuda:1"):
        tl.ones(2, device="cuda:0") + tl.ones(2, device="cuda:1")


@pytest.mark.usefixtures("two_gpus")
def test_views_go_to_the_other_one() -> None:
    x = tl.arange(12.0, device="cuda:0").reshape(3, 4)
    for view in (x.T, x[:, 1:3], x[::2], x.expand(2, 3, 4), x[1]):
        moved = view.to("cuda:1")
        assert str(moved.device) == "cuda:1"
        assert moved.tolist() == view.tolist()
    assert tl.cuda.current_device() == 0


@pytest.mark.usefixtures("two_gpus")
def test_a_stream_of_the_other_one() -> None:
    """As in PyTorch: within the block, the stream's device is the current one."""
    side = tl.cuda.Stream("cuda:1")
    assert str(side.device) == "cuda:1"
    with tl.cuda.stream(side):
        assert tl.cuda.current_device() == 1
        assert tl.cuda.current_stream() == side
        x = tl.ones(3, device="cuda")
    assert str(x.device) == "cuda:1"
    assert tl.cuda.current_device() == 0
    assert tl.cuda.current_stream() != side
    assert tl.cuda.default_stream(1) != tl.cuda.default_stream(0) == tl.cuda.current_stream(0)


@pytest.mark.usefixtures("two_gpus")
def test_a_graph_on_the_other_one() -> None:
    x = tl.ones(3, device="cuda:1")
    g = tl.cuda.CUDAGraph()
    with tl.cuda.graph(g, stream=tl.cuda.Stream("cuda:1")):
        y = x + 1
    assert tl.cuda.current_device() == 0
    with tl.cuda.device(1):
        g.replay()
    assert y.tolist() == [2, 2, 2]


class Late:
    """A stub with two GPUs whose streams record calls, and which copies as CuPy does."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        copied, contiguous = cupy_like.MODULE.array, cupy_like.MODULE.ascontiguousarray
        cuda = SimpleNamespace(
            runtime=SimpleNamespace(getDeviceCount=lambda: 2, getDevice=lambda: cupy_like.Gpu.current),
            Device=cupy_like.Gpu, Event=lambda disable_timing: f"on {cupy_like.Gpu.current}", get_allocator=str,
            get_current_stream=lambda: SimpleNamespace(
                record=lambda event: self.note("record", event), wait_event=lambda event: self.note("wait", event)
            ),
        )  # fmt: skip
        self.module = SimpleNamespace(
            cuda=cuda, ndarray=cupy_like.Array, get_default_memory_pool=lambda: SimpleNamespace(malloc=len),
            ascontiguousarray=lambda x: (self.note("contiguous"), contiguous(x))[1],
            array=lambda x: (self.note("copy"), copied(x))[1],
        )  # fmt: skip

    def note(self, what: str, event: Any = None) -> Any:
        self.log.append((cupy_like.Gpu.current, what, *([event] if event else [])))
        return event


def test_copies_are_ordered_between_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Late()
    monkeypatch.setattr(cupy_like.Gpu, "count", 2)
    for name, module in (("cupy", late.module), ("cupyx", SimpleNamespace())):
        monkeypatch.setitem(sys.modules, name, module)
    names = [f"tallow_cuda.{name}" for name in ("backend", "cublas", "memory", "uploads")]
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    try:
        backend = importlib.import_module("tallow_cuda.backend").CupyBackend()
        x = cupy_like.Array(np.arange(6.0).reshape(2, 3))
        moved = backend.transfer(x[:, 1:], devices.device("cuda:1"))
    finally:
        for name in names:
            sys.modules.pop(name, None)  # its module holds the stub
    assert (moved.gpu, moved.host.tolist()) == (1, [[1, 2], [4, 5]])
    assert late.log == [
        (0, "contiguous"), (0, "record", "on 0"), (1, "wait", "on 0"), (1, "copy"), (1, "record", "on 1"),
        (0, "wait", "on 1"),
    ]  # fmt: skip
