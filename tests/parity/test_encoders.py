"""BERT and other encoders of texts compared with transformers: equal weights give equal outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import model_pairs
from support.model_pairs import ENCODER_SIZES, ENCODERS, HEADS, inputs_of, reference_model
from support.outputs import outputs_of, without_padding

import tallow as tl
from tallow import models
from tallow.models import AutoModel
from tallow.models.encoders import bert

# Both compute in float32; sums of up to 64 terms are taken in a different order.
ATOL = 1e-4


def save_model(variant: str, folder: Path) -> Any:
    """Save a transformers model in `folder`."""
    model = reference_model(variant)
    model.save_pretrained(folder, max_shard_size="20KB")
    return model


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("variant", ENCODERS)
def test_outputs(variant: str, head: str, tmp_path: Path) -> None:
    reference, inputs = save_model(f"{variant} {head}", tmp_path), inputs_of(f"{variant} {head}")
    got = without_padding(outputs_of(AutoModel.from_pretrained(tmp_path), inputs), inputs)
    for ours, theirs in zip(got, without_padding(model_pairs.outputs_of(reference, inputs), inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=ATOL)


@pytest.mark.parametrize("head", HEADS[1:])
@pytest.mark.parametrize("variant", ["bert", "roberta", "distilbert", "modernbert"])
def test_a_checkpoint_with_a_head_loads_without_it(variant: str, head: str, tmp_path: Path) -> None:
    name, _ = ENCODERS[variant]
    reference = save_model(f"{variant} {head}", tmp_path)
    config = getattr(models, f"{name}Config").from_json(tmp_path / "config.json")
    assert config.labels == (("LABEL_0", "LABEL_1") if head == "ForQuestionAnswering" else ("bad", "good", "so so"))
    model = getattr(models, f"{name}Model").from_pretrained(tmp_path)
    if name in ("Bert", "Roberta"):  # the others have no pooler
        assert (model.pooler is not None) == ((name, head) == ("Bert", "ForSequenceClassification"))
    ids = inputs_of(f"{variant} {head}")["input_ids"]
    with torch.no_grad():
        expected = reference.base_model(torch.tensor(ids)).last_hidden_state
    with tl.no_grad():
        got = model(tl.tensor(ids))
    got = got if isinstance(got, tl.Tensor) else got.last_hidden_state
    np.testing.assert_allclose(got.numpy(), expected.numpy(), atol=ATOL)


def test_gradients(tmp_path: Path) -> None:
    reference = save_model("bert ForSequenceClassification", tmp_path)
    model = bert.BertForSequenceClassification.from_pretrained(tmp_path)
    inputs, labels = inputs_of("bert ForSequenceClassification"), np.array([2, 0])
    loss = reference(**{k: torch.tensor(v) for k, v in inputs.items()}, labels=torch.tensor(labels)).loss
    loss.backward()
    ours = tl.nn.functional.cross_entropy(model(**{k: tl.tensor(v) for k, v in inputs.items()}), tl.tensor(labels))
    assert ours.item() == pytest.approx(loss.item(), abs=1e-5)
    ours.backward()
    expected = {name: p.grad.numpy() for name, p in reference.named_parameters()}
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), expected[name], atol=1e-4, err_msg=name)


def test_fresh_weights_have_the_spread_of_transformers() -> None:
    tl.manual_seed(0)
    sizes = {k: v for k, v in ENCODER_SIZES.items() if k != "initializer_range"}
    model = bert.BertForMaskedLM(bert.BertConfig(**sizes, initializer_range=0.05))
    weight = model.bert.embeddings.word_embeddings.weight
    assert weight[1:].std().item() == pytest.approx(0.05, rel=0.1)
    assert weight[0].abs().max().item() == 0  # padding's
    assert model.bert.encoder.layer[0].output.dense.bias.abs().max().item() == 0


@pytest.mark.parametrize("shards", [1, 3])
def test_pytorchs_own_files_give_the_same_weights(shards: int, tmp_path: Path) -> None:
    reference = save_model("bert ForMaskedLM", tmp_path)
    expected = bert.BertForMaskedLM.from_pretrained(tmp_path)
    for path in tmp_path.glob("model*"):
        path.unlink()
    state = reference.state_dict()
    names = sorted(state)
    if shards == 1:
        torch.save(state, tmp_path / "pytorch_model.bin")
    else:
        files = {name: f"pytorch_model-{i % shards + 1:05}-of-{shards:05}.bin" for i, name in enumerate(names)}
        for file in {*files.values()}:
            torch.save({name: state[name] for name in names if files[name] == file}, tmp_path / file)
        index = tmp_path / "pytorch_model.bin.index.json"
        index.write_text(json.dumps({"metadata": {}, "weight_map": files}), encoding="utf-8")
    ours = bert.BertForMaskedLM.from_pretrained(tmp_path).state_dict()
    for name, value in expected.state_dict().items():
        assert tl.equal(ours[name], value), name
