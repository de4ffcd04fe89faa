"""A whole model on `cuda`: the same logits and the same story as on the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tallow as tl
from tallow.generation import decode_stream, generate
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.text.llama2c import Llama2cTokenizer

SMALL = LlamaConfig(
    vocab_size=50,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=32,
)
# sums of a few dozen products of values near 1, in a different order
RTOL = ATOL = 1e-4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_logits_equal_the_cpus(dtype: str, cuda: str) -> None:
    tl.manual_seed(0)
    model = Llama(SMALL).to(getattr(tl, dtype))
    tokens_BT = tl.tensor([[1, 5, 9, 49, 0], [7, 7, 2, 3, 4]])
    with tl.no_grad():
        expected = model(tokens_BT).to(tl.float32)
        actual = model.to(cuda)(tokens_BT.to(cuda))
    assert actual.device.type == "cuda"
    tolerance = RTOL if dtype == "float32" else 2**-7  # bfloat16 keeps eight bits
    np.testing.assert_allclose(actual.to(tl.float32).cpu().numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


def test_gradients_equal_the_cpus(cuda: str) -> None:
    tl.manual_seed(0)
    model = Llama(SMALL)
    tokens_BT = tl.tensor([[1, 5, 9, 49, 0]])
    grads = []
    for device in ("cpu", cuda):
        model = model.to(device)
        model.zero_grad()
        logits_BTV = model(tokens_BT.to(device))
        tl.nn.functional.cross_entropy(logits_BTV[0, :-1], tokens_BT[0, 1:].to(device)).backward()
        grads.append({name: p.grad.cpu().numpy() for name, p in model.named_parameters()})
    cpu_grad, cuda_grad = grads
    for name, expected in cpu_grad.items():
        np.testing.assert_allclose(cuda_grad[name], expected, rtol=RTOL, atol=ATOL, err_msg=name)


def test_tells_the_reference_story(cuda: str, data_dir: Path) -> None:
    """Greedy decoding of a real checkpoint with the cache; the text is run.c's."""
    (case,) = [c for c in json.loads((data_dir / "llama2c_reference.json").read_text())["cases"] if c["prompt"] == ""]
    model = Llama.from_llama2c(data_dir / "stories260K.bin", device=cuda)
    tokenizer = Llama2cTokenizer.load(data_dir / "tok512.bin", vocab_size=model.vocab_size)
    story = "".join(decode_stream(tokenizer, generate(model, [1], max_tokens=30), previous=1))
    assert len(story) > 50
    assert case["text"].startswith(story)
