"""Pipelines of folders that hold ONNX files only: the results of the same weights in safetensors."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.folders import Folders

import tallow as tl
import tallow.models
from tallow import transformers as tf
from tallow.cli.onnx_target import write_onnx
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, HubError, UnsupportedError
from tallow.optimum import onnxruntime as onnx_models
from tallow.optimum.folders import any_config

TEXTS = ["The cat sat on the mat.", "A dog!"]
PICTURE = (np.random.default_rng(0).random((40, 60, 3)) * 255).astype(np.uint8)


def onnx_folder(source: str, target: Path, file: str = "onnx/model.onnx") -> str:
    """Copy a folder with its weights in an ONNX file."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.safetensors"))
    architecture = tf.AutoConfig.from_pretrained(source).architectures[0]
    path = target / file
    path.parent.mkdir(exist_ok=True)
    write_onnx(getattr(tallow.models, architecture).from_pretrained(source), path)
    return str(target)


def same(found: Any, wanted: Any) -> None:
    """Compare results, whose numbers may differ by rounding."""
    if isinstance(wanted, dict | list):
        assert len(found) == len(wanted)
        keys = wanted if isinstance(wanted, dict) else range(len(wanted))
        for key in keys:
            same(found[key], wanted[key])
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-3, abs=1e-4)
    else:
        assert found == wanted


CASES = {
    "text-classification": ("BertForSequenceClassification", TEXTS, {"top_k": None}),
    "token-classification": ("BertForTokenClassification", TEXTS, {}),
    "feature-extraction": ("BertModel", TEXTS, {}),
}


@pytest.mark.parametrize("task", CASES)
@pytest.mark.parametrize("batch_size", [1, 2])
def test_results_are_those_of_the_weights(folders: Folders, task: str, batch_size: int, tmp_path: Path) -> None:
    architecture, inputs, options = CASES[task]
    source = str(folders(architecture))
    target = onnx_folder(source, tmp_path / "onnx")
    made = [tf.pipeline(task, model=folder, device=-1, batch_size=batch_size) for folder in (source, target)]
    wanted, found = (pipe(inputs, **options) for pipe in made)
    assert isinstance(made[1].model, onnx_models.ORTModel)
    same(found, wanted)


def test_pictures_and_quantised_names(folders: Folders, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image").fromarray(PICTURE)
    source = str(folders("ViTForImageClassification"))
    target = onnx_folder(source, tmp_path / "onnx", "onnx/model_quantized.onnx")
    side = tf.AutoConfig.from_pretrained(source).image_size
    processor = tf.ViTImageProcessor(size={"height": side, "width": side})
    wanted, found = (
        tf.pipeline("image-classification", model=folder, image_processor=processor, device=-1)(image)
        for folder in (source, target)
    )
    same(found, wanted)


def test_a_repository_of_the_hub_may_have_onnx_files_only(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = str(folders("BertForSequenceClassification"))
    target = onnx_folder(source, tmp_path / "onnx", "onnx/model_quantized.onnx")
    monkeypatch.setattr("tallow.hub._fetch", lambda *given: Path(target))  # what a download returns
    monkeypatch.setattr("tallow.hub._gguf_files", lambda *given: [])
    pipe = tf.pipeline("text-classification", model="owner/name", device=-1)
    assert isinstance(pipe.model, onnx_models.ORTModelForSequenceClassification)
    same(pipe(TEXTS), tf.pipeline("text-classification", model=source, device=-1)(TEXTS))
    with pytest.raises(HubError, match="neither safetensors nor"):
        tf.pipeline("text-generation", model="owner/name", device=-1)


def test_a_model_is_called_as_those_of_transformers(folders: Folders, tmp_path: Path) -> None:
    target = onnx_folder(str(folders("BertForSequenceClassification")), tmp_path / "onnx", "model.onnx")
    model = onnx_models.ORTModelForSequenceClassification.from_pretrained(target, provider="CPUExecutionProvider")
    tokens = tl.tensor([[5, 6, 7]])
    result = model(input_ids=tokens)  # the mask and the segments are those of a text without padding
    masked = model(input_ids=tokens, attention_mask=tl.ones_like(tokens))
    np.testing.assert_allclose(result.logits.detach(), masked[0].detach())
    with pytest.raises(ArgumentError, match="the model needs input_ids"):
        model()
    with pytest.raises(ArgumentTypeError, match="colour"):
        onnx_models.ORTModelForSequenceClassification.from_pretrained(target, colour="red")
    with pytest.raises(UnsupportedError, match="ONNX only"):
        tf.pipeline("text-generation", model=target)


@pytest.mark.native
@pytest.mark.parametrize("task", ["text-classification", "token-classification", "fill-mask", "question-answering"])
def test_a_file_of_another_task_is_refused(folders: Folders, task: str, tmp_path: Path) -> None:
    target = onnx_folder(str(folders("BertModel")), tmp_path / "onnx")
    with pytest.raises(CheckpointError, match="file are last_hidden_state, pooler_output"):
        tf.pipeline(task, model=target, device=-1)


def test_programs_import_optimum_by_its_name(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from optimum.onnxruntime import ORTModelForMaskedLM as M\nprint(M.__module__)\n")
    command = [sys.executable, "-m", "tallow.compat", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "tallow.optimum.onnxruntime", done.stderr


@pytest.mark.parametrize(
    "entries",
    [
        '{"num_labels": 1000000000}',
        '{"num_labels": 2.5}',
        '{"id2label": {"first": "a"}}',
        '{"self": 1}',
        '{"__class__": "x"}',
    ],
)
def test_entries_that_are_no_settings_are_refused_at_once(entries: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(entries)
    with pytest.raises(CheckpointError, match="config of "):
        any_config(tmp_path)


def test_a_model_type_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": ["bert"]}')
    assert any_config(tmp_path).model_type == "['bert']"
    with pytest.raises(CheckpointError, match="model_type"):
        tf.AutoConfig.from_pretrained(tmp_path)


def test_a_config_has_no_billion_labels() -> None:
    with pytest.raises(ArgumentError, match="num_labels=1000000000"):
        tf.BertConfig(num_labels=1_000_000_000)
