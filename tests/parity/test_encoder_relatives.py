"""Relatives of BERT compared with transformers: equal weights give equal outputs and gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.model_pairs import ENCODER_SIZES, LABELS

import tallow as tl
from tallow.models import AutoModel

VOCAB, LENGTH = 99, 30
# For each case the class of transformers, and what differs from the small sizes.
CASES: dict[str, dict[str, Any]] = {
    "MPNetModel": {"hidden_act": "gelu_new"},
    "MPNetForMaskedLM": {"max_position_embeddings": 50},
    "MPNetForMultipleChoice": {"layer_norm_eps": 1e-3},
    "ElectraModel": {"embedding_size": 32},
    "ElectraForMaskedLM": {"embedding_size": 20, "tie_word_embeddings": False},
    "ElectraForPreTraining": {"embedding_size": 20},
    "ElectraForSequenceClassification": {"embedding_size": 20, **LABELS},
    "AlbertModel": {"num_hidden_groups": 2, "inner_group_num": 2},
    "AlbertForMaskedLM": {"embedding_size": 20},
    "AlbertForSequenceClassification": {"num_hidden_groups": 3, **LABELS},
    "ErnieForQuestionAnswering": {"use_task_id": True},
}


def reference(name: str, changes: dict[str, Any], folder: Path) -> Any:
    """Save a random model of transformers, all of whose weights affect its output."""
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**ENCODER_SIZES | changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:  # norms are initialized to ones, biases to zeros
                parameter.add_(torch.randn_like(parameter) / 4)
    model.save_pretrained(folder)
    return model


def batch(side: str) -> dict[str, Any]:
    """Return three texts of different lengths, with padding on a side."""
    ids = np.random.default_rng(0).integers(5, VOCAB, (3, LENGTH))
    mask = np.ones((3, LENGTH), np.int64)
    for row, count in ((1, 9), (2, 21)):
        padding = slice(LENGTH - count, None) if side == "right" else slice(0, count)
        ids[row, padding], mask[row, padding] = 1, 0
    return {"input_ids": ids, "attention_mask": mask}


def outputs(result: Any, mask: Any) -> list[Any]:
    """Return the tensors of a result, without padding."""
    tensors = result.to_tuple() if hasattr(result, "to_tuple") else result if isinstance(result, tuple) else [result]
    tensors = [each for each in tensors if isinstance(each, tl.Tensor | torch.Tensor)]
    return [each[mask] if tuple(each.shape[:2]) == (3, LENGTH) else each for each in tensors]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients(name: str, side: str, tmp_path: Path) -> None:
    theirs, inputs = reference(name, CASES[name], tmp_path), batch(side)
    model = AutoModel.from_pretrained(tmp_path)
    extra = {key: torch.tensor(value) for key, value in inputs.items()}
    if name.endswith("MultipleChoice"):
        extra = {key: value[None] for key, value in extra.items()}
    expected = outputs(theirs(**extra), extra["attention_mask"].bool())
    given = {key: tl.tensor(value) for key, value in inputs.items()}
    seen = given["attention_mask"].bool()
    with tl.no_grad():
        fused = outputs(model(**given), seen)
    got = outputs(model(**given), seen)
    for ours, quick, other in zip(got, fused, expected, strict=True):
        values = other.detach().numpy().reshape(ours.shape)
        np.testing.assert_allclose(ours.detach().numpy(), values, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(quick.numpy(), values, rtol=1e-4, atol=1e-4)
    sum(each.square().sum() for each in expected).backward()
    sum(each.square().sum() for each in got).backward()
    gradients = {key: each.grad for key, each in theirs.named_parameters() if each.grad is not None}
    for key, parameter in model.named_parameters():
        if key in gradients and parameter.grad is not None:
            limit = 1e-4 * max(1.0, float(gradients[key].abs().max()))
            np.testing.assert_allclose(parameter.grad.numpy(), gradients[key].numpy(), atol=limit, err_msg=key)
