"""Rare configs, base models and their heads, compared with transformers with equal weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from support.outputs import outputs_of, without_padding
from support.unusual_configs import (
    BASE_MODELS,
    CLASSIFIERS,
    DECODERS,
    ENCODER_HEADS,
    WHISPERS,
    Case,
    load_reference,
    reference,
)

import tallow as tl
from tallow.generation import generate_batch
from tallow.models import AutoModel

# Both compute in float32; sums of up to 128 terms are taken in a different order.
ATOL = 1e-4
RNG = np.random.default_rng(0)
TOKENS = RNG.integers(8, 97, (2, 24))
LEFT, RIGHT = np.ones((2, 2, 24), np.int64)
LEFT[1, :7] = RIGHT[1, 15:] = 0


def each(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def assert_near(ours: Any, theirs: Any) -> None:
    theirs = np.asarray(theirs)
    np.testing.assert_allclose(np.asarray(ours), theirs, atol=ATOL * max(1, np.abs(theirs).max()))


def outputs(model: Any, inputs: dict[str, npt.NDArray[Any]]) -> list[npt.NDArray[np.float32]]:
    """Return the outputs of a transformers model, without caches."""
    with torch.no_grad():
        outputs_tuple = model(**{name: torch.tensor(array) for name, array in inputs.items()}).to_tuple()
    return [tensor.numpy() for tensor in outputs_tuple if isinstance(tensor, torch.Tensor)]


@each(DECODERS)
def test_logits_and_batches(case: Case, tmp_path: Path) -> None:
    theirs = reference(case, tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    assert_near(outputs_of(model, {"input_ids": TOKENS})[0], outputs(theirs, {"input_ids": TOKENS})[0])
    texts = [TOKENS[0, :11].tolist(), TOKENS[1, :4].tolist(), TOKENS[1, 4:13].tolist()]
    padded, mask = (torch.zeros(3, 11, dtype=torch.int64) for _ in range(2))
    for row, text in enumerate(texts):
        padded[row, 11 - len(text) :], mask[row, 11 - len(text) :] = torch.tensor(text), 1
    theirs = load_reference(case, tmp_path)  # with "dynamic" a model remembers that it has read long texts
    options = {"max_new_tokens": 20, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    expected = theirs.generate(padded, attention_mask=mask, **options)[:, 11:].tolist()
    generated: list[list[int]] = [[] for _ in texts]
    for row, token in generate_batch(model, texts, max_tokens=20):
        generated[row].append(token)
    assert generated == expected


@each(BASE_MODELS)
def test_decoders_without_heads(case: Case, tmp_path: Path) -> None:
    theirs = reference(case, tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    assert type(model).__name__ == case.family + case.head
    assert_near(outputs_of(model, {"input_ids": TOKENS})[0], outputs(theirs, {"input_ids": TOKENS})[0])
    for mask in (LEFT, RIGHT):
        inputs = {"input_ids": TOKENS, "attention_mask": mask}
        # If positions are learned embeddings, the text starts at the first, as in transformers' generate.
        begin = {"position_ids": np.maximum(mask.cumsum(1) - 1, 0)} if case.family == "GPT2" else {}
        expected = without_padding(outputs(theirs, inputs | begin), inputs)
        assert_near(without_padding(outputs_of(model, inputs), inputs)[0], expected[0])


@each(CLASSIFIERS)
def test_heads_of_decoders(case: Case, tmp_path: Path) -> None:
    theirs = reference(case, tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    assert type(model).__name__ == case.family + case.head
    padded = np.where(RIGHT, TOKENS, 0)  # a text classifier recognizes padding by its id
    for inputs in ({"input_ids": TOKENS}, {"input_ids": padded, "attention_mask": RIGHT}):
        expected = without_padding(outputs(theirs, inputs), inputs)
        for ours, each_of_theirs in zip(without_padding(outputs_of(model, inputs), inputs), expected, strict=True):
            assert_near(ours, each_of_theirs)


@each(ENCODER_HEADS)
def test_encoders(case: Case, tmp_path: Path) -> None:
    theirs = reference(case, tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    for inputs in ({"input_ids": TOKENS}, {"input_ids": np.where(RIGHT, TOKENS, 1), "attention_mask": RIGHT}):
        expected = without_padding(outputs(theirs, inputs), inputs)
        got = without_padding(outputs_of(model, inputs), inputs)
        for ours, each_of_theirs in zip(got, expected, strict=True):
            assert_near(ours, each_of_theirs)


@each(WHISPERS)
def test_whisper(case: Case, tmp_path: Path) -> None:
    theirs = reference(case, tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    mel, tokens = RNG.standard_normal((2, 8, 40)).astype(np.float32), TOKENS[:, :9]
    expected = outputs(theirs, {"input_features": mel, "decoder_input_ids": tokens})[0]
    with tl.no_grad():
        assert_near(model(tl.tensor(mel), tl.tensor(tokens)).numpy(), expected)
