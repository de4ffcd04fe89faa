"""Modules of sentence-transformers folders: vectors equal those of sentence-transformers on the same files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.hugging_face import SIZES, encoder_folder

import tallow as tl
from tallow.errors import CheckpointError
from tallow.models import SentenceEncoder
from tallow.models.encoders.sentence_parts import POOLINGS, Pooling

sentence_transformers = pytest.importorskip("sentence_transformers")
parts = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
TEXTS = ["A cat sleeps.", "A kitten naps on the sofa.", "The bank is closed on Sundays, and so are " * 3]
PROMPTS = {"query": "Represent the query: ", "none": ""}
WIDTH = SIZES["hidden_size"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encoder_folder(tmp_path_factory.mktemp("model"), "Bert", "MaskedLM", **SIZES)


def saved(model: Path, folder: Path, *modules: Any, **options: Any) -> Any:
    """Save a folder with modules after a model; return it as sentence-transformers loads it."""
    transformer = sentence_transformers.base.modules.Transformer(str(model))
    made = sentence_transformers.SentenceTransformer(modules=[transformer, *modules], device="cpu", **options)
    made.save(str(folder))
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu")


def dense(wide: int, out: int, activation: Any = None, **options: Any) -> Any:
    torch.manual_seed(2)
    return sentence_transformers.base.modules.Dense(wide, out, activation_function=activation, **options)


def layer_norm(width: int) -> Any:
    made = parts.LayerNorm(width)
    torch.nn.init.normal_(made.norm.weight)
    return made


CHAINS = {
    **{mode: lambda mode=mode: [parts.Pooling(WIDTH, mode)] for mode in POOLINGS},
    "several": lambda: [parts.Pooling(WIDTH, ("lasttoken", "cls", "weightedmean"))],
    "gelu": lambda: [parts.Pooling(WIDTH), dense(WIDTH, 24, torch.nn.GELU()), parts.Normalize()],
    "softmax": lambda: [parts.Pooling(WIDTH), dense(WIDTH, 24, torch.nn.Softmax(1))],
    "prelu": lambda: [parts.Pooling(WIDTH), dense(WIDTH, 24, torch.nn.PReLU(init=0.6))],
    "residuals": lambda: [
        parts.Pooling(WIDTH),
        dense(WIDTH, WIDTH, torch.nn.Tanh(), use_residual=True),
        dense(WIDTH, 24, torch.nn.ReLU(), use_residual=True, bias=False),
    ],
    "norms": lambda: [parts.Pooling(WIDTH), parts.Normalize(), parts.Dropout(0.5), layer_norm(WIDTH)],
    "pooled twice": lambda: [parts.Pooling(WIDTH, "cls"), parts.Normalize(), parts.Pooling(WIDTH, "max")],
}


@pytest.mark.filterwarnings("ignore:Implicit dimension choice")  # PyTorch's, of Softmax
@pytest.mark.parametrize("name", CHAINS)
def test_chains_of_modules(name: str, model: Path, tmp_path: Path) -> None:
    theirs = saved(model, tmp_path, *CHAINS[name]())
    ours = SentenceEncoder.from_pretrained(tmp_path)
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=2e-5)


@pytest.mark.parametrize("mode", POOLINGS)
def test_prompts_that_are_not_pooled(mode: str, model: Path, tmp_path: Path) -> None:
    pooling = parts.Pooling(WIDTH, mode, include_prompt=False)
    theirs = saved(model, tmp_path, pooling, prompts=PROMPTS, default_prompt_name="query")
    ours = SentenceEncoder.from_pretrained(tmp_path)
    for prompt in (None, "none"):
        expected = theirs.encode(TEXTS, prompt_name=prompt)
        np.testing.assert_allclose(ours.encode(TEXTS, prompt_name=prompt), expected, atol=2e-5)


@pytest.mark.parametrize("mode", POOLINGS)
def test_long_texts_in_halves(mode: str) -> None:
    x_BTD, mask_BT = torch.randn(2, 600, 4).bfloat16(), torch.ones(2, 600, dtype=torch.int64)
    mask_BT[1, 301:] = 0
    features = {"token_embeddings": x_BTD, "attention_mask": mask_BT}
    expected = parts.Pooling(4, mode)(features)["sentence_embedding"].float().numpy()
    ours = Pooling(mode)(tl.tensor(x_BTD.float().numpy(), dtype=tl.bfloat16), tl.tensor(mask_BT.numpy()))
    assert ours.dtype is tl.bfloat16
    np.testing.assert_allclose(ours.float().numpy(), expected, atol=1e-3, rtol=1e-2)


@pytest.fixture(scope="module")
def other(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(model, tmp_path_factory.mktemp("other") / "bert"))


def edited(model: Path, kinds: dict[str, str], package: str = "sentence_transformers.models") -> Path:
    modules = [{"path": path, "type": f"{package}.{kind}"} for kind, path in kinds.items()]
    (model / "modules.json").write_text(json.dumps(modules))
    (model / "1_Pooling").mkdir(exist_ok=True)
    (model / "1_Pooling" / "config.json").write_text("{}")
    return model


OTHERS = ("CNN", "LSTM", "BoW", "WordEmbeddings", "WordWeights", "WeightedLayerPooling", "Router", "Asym", "CLIPModel")


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        *(({"Transformer": "", kind: "1"}, f"of kind '{kind}'") for kind in OTHERS),
        *(({kind: "", "Pooling": "1_Pooling"}, f"of kind '{kind}'") for kind in OTHERS),
        ({"Transformer": ""}, "has no Pooling"),
        ({"Transformer": "", "Normalize": "2"}, "has no Pooling"),
        ({"Transformer": "", "Dense": "2", "Pooling": "1_Pooling"}, "Dense before Pooling"),
        ({"Pooling": "1_Pooling", "Transformer": ""}, "as the first module alone"),
    ],
)
def test_chains_that_are_refused(kinds: dict[str, str], message: str, other: Path) -> None:
    with pytest.raises(CheckpointError, match=message):
        SentenceEncoder.from_pretrained(edited(other, kinds))


@pytest.mark.parametrize(
    ("file", "entries"),
    [
        ("sentence_bert_config.json", {"transformer_task": "text-generation"}),
        ("sentence_bert_config.json", {"module_output_name": "sentence_embedding"}),
        ("sentence_bert_config.json", {"modality_config": {"text": {"method_output_name": "pooler_output"}}}),
        ("sentence_bert_config.json", {"processing_kwargs": {"text": {"padding_side": "left"}}}),
        ("1_Pooling/config.json", {"pooling_mode_attention": True}),
    ],
)
def test_settings_that_are_refused(file: str, entries: dict[str, Any], other: Path) -> None:
    path = edited(other, {"Transformer": "", "Pooling": "1_Pooling"}) / file
    path.write_text(json.dumps(entries))
    with pytest.raises(CheckpointError, match=next(iter(entries))):
        SentenceEncoder.from_pretrained(other)
    path.unlink()


def test_modules_of_a_repository_are_refused_by_their_whole_name(other: Path) -> None:
    edited(other, {"Transformer": "", "Pooling": "1_Pooling"}, package="custom_st")
    with pytest.raises(CheckpointError, match=r"of kind 'custom_st\.Transformer'"):
        SentenceEncoder.from_pretrained(other)
