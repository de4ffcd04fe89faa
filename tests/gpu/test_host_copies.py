"""Training and decoding steps on `cuda` never synchronize, and copy only the batch, the loss and the token.

The tests count on the stand-in, which sees each copy between host and device; CuPy's own array type hides them.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
from support import cupy_like, streams_like

import tallow as tl
from tallow import devices, nn
from tallow.models.decoders.gpt2 import GPT2, GPT2Config
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.nn import functional as F

Copies = Callable[[Callable[[], Any]], list[str]]


@pytest.fixture
def copies(cuda: str, monkeypatch: pytest.MonkeyPatch) -> Copies:
    """Return a function's copies between host and device and its waits, each with the line of tallow's source."""
    if devices.get_backend("cuda").module is not cupy_like.MODULE:
        pytest.skip("CuPy does not tell")
    seen: list[str] = []

    def note(what: str) -> None:
        frames = [
            f for f in traceback.extract_stack() if "/package/tallow/" in f.filename or "tallow_cuda" in f.filename
        ]
        at = " < ".join(f"{f.filename.rpartition('tallow/')[2]}:{f.lineno}" for f in reversed(frames[-5:]))
        seen.append(f"{what} at {at}")

    monkeypatch.setattr(streams_like, "refuse_if_capturing", note)

    def find_copies(function: Callable[[], Any]) -> list[str]:
        seen.clear()
        function()
        return list(seen)

    return find_copies


def train_step_of(model: nn.Module, loss_of: Callable[[], tl.Tensor], **options: Any) -> Callable[[], tl.Tensor]:
    """Return a step of AdamW as programs write it, after one step that created the state."""
    optimizer = tl.optim.AdamW(model.parameters(), lr=1e-3, **options)

    def step() -> tl.Tensor:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    step()
    return step


def test_a_training_step_of_a_perceptron(copies: Copies) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3)).to("cuda")
    x, y = tl.randn(5, 4, device="cuda"), tl.tensor([0, 2, 1, 0, 1], device="cuda")
    step = train_step_of(model, lambda: F.cross_entropy(model(x), y))
    assert copies(step) == []
    x_here = tl.randn(5, 4)
    assert [copy.partition(" at ")[0] for copy in copies(lambda: x.copy_(x_here))] == ["a copy from the host"]
    assert [copy.partition(" at ")[0] for copy in copies(lambda: step().item())] == ["get"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_training_step_of_a_gpt(dtype: str, copies: Copies) -> None:
    model = GPT2(GPT2Config(vocab_size=11, n_positions=8, n_embd=16, n_layer=2, n_head=2)).to("cuda").train()
    tokens_BT = tl.randint(0, 11, (2, 6), device="cuda")

    def loss() -> tl.Tensor:
        with tl.autocast("cuda", tl.bfloat16, enabled=dtype == "bfloat16"):
            logits_BTV = model(tokens_BT[:, :-1])
            return F.cross_entropy(logits_BTV.flatten(0, 1), tokens_BT[:, 1:].flatten())

    assert copies(train_step_of(model, loss)) == []


def test_a_decode_step_of_a_llama(copies: Copies) -> None:
    sizes = {"vocab_size": 11, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16}
    model = Llama(LlamaConfig(**sizes)).to("cuda").eval()
    cache = model.new_cache()
    token = tl.tensor([[3]], device="cuda")

    def step() -> tl.Tensor:
        with tl.inference_mode():
            return model(token, cache)[:, -1].argmax(-1)

    step()
    assert copies(step) == []
    assert [copy.partition(" at ")[0] for copy in copies(lambda: step().item())] == ["get"]
