"""CUDA graphs: a replay repeats the captured operations on the current contents of the captured memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from support import streams_like

import tallow as tl
from tallow.errors import ArgumentError, DeviceError, GraphError, ShapeError
from tallow.generation import PromptCache, generate
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.nn import functional as F
from tallow.nn.quantization import Int4WeightOnlyConfig, quantize_


def test_a_replay_reads_current_values(cuda: str) -> None:
    x, w = tl.tensor([[1.0, -2.0]], device=cuda), tl.tensor([[3.0, 4.0], [5.0, 6.0]], device=cuda)
    total = tl.zeros(2, device=cuda)
    g = tl.cuda.CUDAGraph()
    with tl.no_grad(), tl.cuda.graph(g):
        assert tl.cuda.is_current_stream_capturing()
        y = F.linear(tl.relu(x), w)
        total += y[0]
    assert not tl.cuda.is_current_stream_capturing()
    assert total.tolist() == [0, 0]  # captured, not executed
    for values, expected in (([[1.0, -2.0]], [[3, 5]]), ([[2.0, 1.0]], [[10, 16]])):
        x.copy_(tl.tensor(values))
        g.replay()
        assert y.tolist() == expected
    assert total.tolist() == [13, 21]


def test_a_capture_has_the_handles_that_it_needs(cuda: str) -> None:
    """A matrix product as the first operation: creating cuBLAS's handle waits for the device, so it comes before."""
    x = tl.arange(128.0, device=cuda).reshape(8, 16)
    g = tl.cuda.CUDAGraph()
    with tl.cuda.stream(tl.cuda.Stream()):
        g.capture_begin()
        y = x @ x.T
        g.capture_end()
    g.replay()
    host = np.arange(128.0).reshape(8, 16)
    assert y.tolist() == (host @ host.T).tolist()


def test_graphs_share_a_pool_and_are_reset(cuda: str) -> None:
    x = tl.ones(2, device=cuda)
    first, second = tl.cuda.CUDAGraph(), tl.cuda.CUDAGraph()
    with tl.cuda.graph(first):
        y = x + 1
    with tl.cuda.graph(second, pool=first.pool()):
        z = y * 2
    first.replay()
    second.replay()
    assert z.tolist() == [4, 4]
    with pytest.raises(GraphError, match="has captured something already"), tl.cuda.graph(first):
        pass
    first.reset()
    with pytest.raises(GraphError, match="nothing has been captured"):
        first.replay()
    with tl.cuda.graph(first):
        y = x + 2


@pytest.mark.parametrize(
    "optimizer_of",
    [partial(tl.optim.SGD, lr=0.1), partial(tl.optim.AdamW, lr=0.1, capturable=True)],
    ids=["SGD", "AdamW"],
)
def test_a_training_step(cuda: str, optimizer_of: Any) -> None:
    """As many steps with a graph as without: the same weights."""
    rng = np.random.default_rng(0)
    batches = [(rng.standard_normal((4, 3)), rng.integers(0, 2, 4)) for _ in range(4)]
    weights = []
    for graphed in (False, True):
        tl.manual_seed(0)
        model = tl.nn.Sequential(tl.nn.Linear(3, 5), tl.nn.Tanh(), tl.nn.Linear(5, 2)).to(cuda)
        optimizer = optimizer_of(model.parameters())
        x, target = (
            tl.tensor(part, dtype=d).to(cuda) for part, d in zip(batches[0], (tl.float32, tl.int64), strict=True)
        )

        def step(model: Any = model, optimizer: Any = optimizer, x: Any = x, target: Any = target) -> Any:
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            return loss

        step()  # the warm-up
        run, losses = step, []
        if graphed:
            g = tl.cuda.CUDAGraph()
            with tl.cuda.graph(g):
                loss = step()
            run = g.replay
        for inputs, classes in batches[1:]:
            x.copy_(tl.tensor(inputs, dtype=tl.float32))
            target.copy_(tl.tensor(classes))
            run_losses = run()
            losses.append((loss if graphed else run_losses).item())
        weights.append([p.tolist() for p in model.parameters()] + losses)
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(
    "forbidden",
    [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: bool((x > 0).all()),
        lambda x: tl.tensor([1.0]).to(x.device),
    ],
    ids=["item", "cpu", "bool", "from the host"],
)
def test_synchronizing_calls_are_refused_and_the_program_continues(cuda: str, forbidden: Any) -> None:
    x = tl.ones(3, device=cuda)
    g = tl.cuda.CUDAGraph()
    with pytest.raises(DeviceError, match=r"cannot be part of a CUDA graph: .*capturing"), tl.cuda.graph(g):
        forbidden(x)
    assert not tl.cuda.is_current_stream_capturing()
    with tl.cuda.graph(g):
        y = x + 1
    g.replay()
    assert y.tolist() == [2, 2, 2]


def test_errors_of_the_program_pass_through(cuda: str) -> None:
    g = tl.cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), tl.cuda.graph(g):
        _ = 1 / 0
    with pytest.raises(GraphError, match="default stream cannot be captured"):
        g.capture_begin()
    with pytest.raises(GraphError, match="nothing is being captured"):
        g.capture_end()


def test_graphed_callables(cuda: str) -> None:
    tl.manual_seed(0)
    model = tl.nn.Linear(3, 2).to(cuda)
    x = tl.ones(1, 3, device=cuda)
    other = tl.tensor([[1.0, 2.0, 3.0]], device=cuda)
    with tl.no_grad():
        expected = model(other).tolist()
    calls = []

    def double(x: Any) -> Any:
        calls.append(1)
        return x * 2

    twice, graphed = tl.cuda.make_graphed_callables((double, model), ((x,), (x,)))
    assert graphed is model
    before = len(calls)
    with tl.no_grad():
        assert graphed(other).tolist() == expected
    assert twice(other).tolist() == [[2, 4, 6]]
    assert len(calls) == before
    for wrong in (tl.ones(2, 3, device=cuda), tl.ones(1, 3, dtype=tl.float16, device=cuda)):
        with pytest.raises(ShapeError, match="was captured for"), tl.no_grad():
            twice(wrong)
    with pytest.raises(GraphError, match="has no backward pass"):
        graphed(other)
    with pytest.raises(ArgumentError, match="must be tensors on cuda"):
        tl.cuda.make_graphed_callables(double, (tl.ones(1),))


LLAMA = LlamaConfig(
    vocab_size=31,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=200,
    initializer_range=0.4,
)


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Append to the list on each replay of a graph on the stand-in."""
    launched: list[int] = []
    launch = streams_like.Graph.launch

    def counting_launch(self: Any, stream: Any = None) -> None:
        launched.append(1)
        launch(self, stream)

    monkeypatch.setattr(streams_like.Graph, "launch", counting_launch)
    return launched


@pytest.mark.parametrize("weights", ["float32", "bfloat16", "int4"])
def test_llama_decodes_a_token_with_one_launch(
    cuda: str, weights: str, replays: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts equal the CPU's: with caches that grow, and from a cache that is cut back and goes on."""
    monkeypatch.setattr("tallow.nn.cache.INITIAL_POSITIONS", 4)
    tl.manual_seed(0)
    model = Llama(LLAMA, dtype=tl.bfloat16 if weights == "bfloat16" else tl.float32).eval()
    if weights == "int4":
        quantize_(model, Int4WeightOnlyConfig(group_size=32))

    def texts() -> list[list[int]]:
        if weights != "float32":
            return [list(generate(model, [3], max_tokens=8))]
        cache = PromptCache(model)
        generated = [list(cache.generate([5], max_tokens=4)), list(cache.generate([5, 2], max_tokens=4))]
        tokens = generate(model, [2], max_tokens=None)
        return [*generated, [next(tokens) for _ in range(14)]]

    expected = texts()
    assert not replays
    model.to(cuda)
    assert texts() == expected
    on_stand_in = tl.zeros(1, device=cuda).array.__class__.__module__ != "cupy"
    assert len(replays) >= (14 if weights == "float32" else 6) or not on_stand_in
