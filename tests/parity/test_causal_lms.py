"""Language models compared with transformers: equal weights give equal logits, gradients and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.model_pairs import LANGUAGE_MODELS, reference_model, tokens

import tallow as tl
from tallow.generation import generate
from tallow.models import AutoModel

# Both compute in float32; sums of up to 128 terms are taken in a different order.
ATOL = 1e-4


@pytest.fixture(params=LANGUAGE_MODELS)
def models(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """Return a transformers model, and tallow's model loaded from its folder."""
    reference = reference_model(request.param)
    reference.save_pretrained(tmp_path, max_shard_size="20KB")
    return AutoModel.from_pretrained(tmp_path), reference


def test_logits(models: tuple[Any, Any]) -> None:
    model, reference = models
    batch = tokens(50)
    with torch.no_grad():
        expected = reference(torch.tensor(batch)).logits.numpy()
    with tl.no_grad():
        np.testing.assert_allclose(model(tl.tensor(batch)).numpy(), expected, atol=ATOL)


def test_logits_with_a_cache(models: tuple[Any, Any]) -> None:
    model, reference = models
    (text,) = tokens(24, batch=1)
    with torch.no_grad():
        expected = reference(torch.tensor([text])).logits[0].numpy()
    cache = model.new_cache()
    np.testing.assert_allclose(model.next_logits(text[:10], cache), expected[9], atol=ATOL)
    np.testing.assert_allclose(model.next_logits(text[10:15], cache), expected[14], atol=ATOL)
    one_by_one = [model.next_logits([token], cache) for token in text[15:]]
    np.testing.assert_allclose(one_by_one, expected[15:], atol=ATOL)


def test_greedy_text(models: tuple[Any, Any]) -> None:
    model, reference = models
    (prompt,) = tokens(5, batch=1)
    expected = reference.generate(torch.tensor([prompt]), max_new_tokens=40, do_sample=False)[0, 5:].tolist()
    assert list(generate(model, prompt, max_tokens=40)) == expected


def test_gradients(models: tuple[Any, Any], tmp_path: Path) -> None:
    model, reference = models
    batch = tokens(30)
    loss = reference(torch.tensor(batch), labels=torch.tensor(batch)).loss
    loss.backward()
    logits = model(tl.tensor(batch))[:, :-1].flatten(0, 1)
    mean = tl.nn.functional.cross_entropy(logits, tl.tensor(batch)[:, 1:].flatten())
    assert mean.item() == pytest.approx(loss.item(), abs=1e-4)
    mean.backward()
    expected = gradients(reference, tmp_path / "gradients")
    for name, parameter in model.named_parameters():
        theirs = expected[name]
        ours = np.zeros_like(theirs) if parameter.grad is None else parameter.grad.numpy()  # None: of unused experts
        np.testing.assert_allclose(ours, theirs, atol=ATOL * max(1, abs(theirs).max()), err_msg=name)


def gradients(reference: Any, folder: Path) -> dict[str, Any]:
    """Return the gradients of a model of transformers, by the names in its checkpoints."""
    for parameter in reference.parameters():
        parameter.data = parameter.grad
    reference.save_pretrained(folder)
    return {name: gradient.detach().numpy() for name, gradient in AutoModel.from_pretrained(folder).named_parameters()}


def test_phi3_recomputes_its_cache_when_a_text_becomes_long_or_short(tmp_path: Path) -> None:
    reference = reference_model("phi3, a part of each head")
    reference.save_pretrained(tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    (text,) = tokens(40, batch=1)
    with torch.no_grad():
        expected = [reference(torch.tensor([text[:length]])).logits[0, -1].numpy() for length in (24, 25, 40, 20)]
    cache = model.new_cache(batch=2)
    np.testing.assert_allclose(model.last_logits([text[5:29], text[:24]], cache)[1, 0], expected[0], atol=ATOL)
    cache.select([1])
    np.testing.assert_allclose(model.next_logits(text[24:25], cache), expected[1], atol=ATOL)
    np.testing.assert_allclose(model.next_logits(text[25:], cache), expected[2], atol=ATOL)
    cache = model.new_cache(sliding=False)
    model.next_logits(text, cache)
    cache.truncate(10)
    np.testing.assert_allclose(model.next_logits(text[10:20], cache), expected[3], atol=ATOL)
