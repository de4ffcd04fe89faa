"""BERT, RoBERTa, XLM-RoBERTa and DistilBERT against transformers: the same weights give the same numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl
from tallow.errors import CheckpointError
from tallow.io.model_folder import load_folder
from tallow.models import bert, distilbert, roberta

transformers = pytest.importorskip("transformers")

# Both compute in float32; sums of up to 64 terms are taken in another order.
ATOL = 1e-4
LABELS = {"id2label": {0: "bad", 1: "good", 2: "so so"}, "label2id": {"bad": 0, "good": 1, "so so": 2}}
SIZES = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "initializer_range": 0.2,
}
DISTILBERT_SIZES = {
    "vocab_size": SIZES["vocab_size"],
    "max_position_embeddings": 40,
    "n_layers": 3,
    "n_heads": 4,
    "dim": 32,
    "hidden_dim": 64,
    "initializer_range": 0.2,
}
HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
VARIANTS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "bert": ("Bert", bert, {"type_vocab_size": 3}),
    "bert, tanh gelu": ("Bert", bert, {"hidden_act": "gelu_new", "layer_norm_eps": 1e-3}),
    "roberta": ("Roberta", roberta, {"type_vocab_size": 1, "pad_token_id": 1}),
    "distilbert": ("DistilBert", distilbert, {"activation": "relu"}),
    "xlm-roberta": ("XLMRoberta", roberta, {"type_vocab_size": 1, "hidden_act": "relu"}),
}


def saved(name: str, changes: dict[str, Any], head: str, folder: Path) -> Any:
    """A model of transformers whose weights all count, saved in `folder`."""
    torch.manual_seed(0)
    labels = {} if head == "ForQuestionAnswering" else LABELS  # it has two, the start and the end
    sizes = DISTILBERT_SIZES if name == "DistilBert" else SIZES
    config = getattr(transformers, f"{name}Config")(**sizes | labels | changes)
    model = getattr(transformers, name + head)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:  # norms are made of ones, biases of zeros
                parameter.add_(torch.randn_like(parameter) / 4)
    model.save_pretrained(folder, max_shard_size="20KB")
    return model


def texts(segments: int) -> dict[str, Any]:
    """Two texts of different lengths with their padding, which is the id 1 for all models."""
    rng = np.random.default_rng(0)
    ids = rng.integers(5, SIZES["vocab_size"], (2, 30))
    ids[1, 20:] = 1
    mask = np.ones((2, 30), np.int64)
    mask[1, 20:] = 0
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": rng.integers(0, segments, (2, 30))}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))
def test_numbers(variant: tuple[str, Any, dict[str, Any]], head: str, tmp_path: Path) -> None:
    name, module, changes = variant
    reference = saved(name, changes, head, tmp_path)
    model = getattr(module, name.removeprefix("XLM") + head).from_pretrained(tmp_path)
    inputs = texts(changes.get("type_vocab_size", 2))
    if name == "DistilBert":
        del inputs["token_type_ids"]
    with torch.no_grad():
        expected = reference(**{k: torch.tensor(v) for k, v in inputs.items()})
    with tl.no_grad():
        got = model(**{k: tl.tensor(v) for k, v in inputs.items()})
    got = (got,) if isinstance(got, tl.Tensor) else got
    for ours, theirs in zip(got, expected.to_tuple(), strict=True):
        text = inputs["attention_mask"].astype(bool)
        if ours.shape[:2] != text.shape:  # one result for each text
            text = slice(None)
        np.testing.assert_allclose(ours.numpy()[text], theirs.numpy()[text], atol=ATOL)


@pytest.mark.parametrize("head", HEADS[1:])
@pytest.mark.parametrize("variant", ["bert", "roberta", "distilbert"])
def test_a_checkpoint_with_a_head_loads_without_it(variant: str, head: str, tmp_path: Path) -> None:
    name, module, changes = VARIANTS[variant]
    reference = saved(name, changes, head, tmp_path)
    config = getattr(module, f"{name}Config").from_json(tmp_path / "config.json")
    assert config.labels == (("LABEL_0", "LABEL_1") if head == "ForQuestionAnswering" else ("bad", "good", "so so"))
    has_pooler = (name, head) == ("Bert", "ForSequenceClassification") or name == "DistilBert"
    state = load_folder(tmp_path)
    if not has_pooler:
        with pytest.raises(CheckpointError, match=r"missing      pooler\.dense\.weight"):
            getattr(module, f"{name}Model").from_pretrained(tmp_path)
        state |= {"pooler.dense.weight": tl.zeros(32, 32), "pooler.dense.bias": tl.zeros(32)}
    model = getattr(module, f"{name}Model").assemble(config, state)
    ids = texts(1)["input_ids"]
    with torch.no_grad():
        expected = reference.base_model(torch.tensor(ids)).last_hidden_state
    with tl.no_grad():
        got = model(tl.tensor(ids))
    got = got if isinstance(got, tl.Tensor) else got.last_hidden_state
    np.testing.assert_allclose(got.numpy(), expected.numpy(), atol=ATOL)


def test_gradients(tmp_path: Path) -> None:
    reference = saved("Bert", {}, "ForSequenceClassification", tmp_path)
    model = bert.BertForSequenceClassification.from_pretrained(tmp_path)
    inputs, labels = texts(2), np.array([2, 0])
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
    sizes = {k: v for k, v in SIZES.items() if k != "initializer_range"}
    model = bert.BertForMaskedLM(bert.BertConfig(**sizes, initializer_range=0.05))
    weight = model.bert.embeddings.word_embeddings.weight
    assert weight[1:].std().item() == pytest.approx(0.05, rel=0.1)
    assert weight[0].abs().max().item() == 0  # the padding's
    assert model.bert.encoder.layer[0].output.dense.bias.abs().max().item() == 0


@pytest.mark.parametrize("shards", [1, 3])
def test_pytorchs_own_files_give_the_same_weights(shards: int, tmp_path: Path) -> None:
    reference = saved("Bert", {}, "ForMaskedLM", tmp_path)
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
