"""DETR and ResNet compared with transformers on the same folder, and what `ObjectDetector` finds with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.image_folders import RESNET, random_weights, saved_detector

import tallow as tl
from tallow.cli import main
from tallow.errors import ArgumentError, CheckpointError, NumericError
from tallow.models import AutoModel, DetrForObjectDetection, ObjectDetector
from tallow.models.vision.resnet import ResNetConfig

PIXELS = np.random.default_rng(0).normal(size=(2, 3, 75, 91)).astype(np.float32)
MASK = np.ones((2, 75, 91), np.int64)
MASK[1, 60:] = MASK[1, :, 70:] = 0


@pytest.mark.parametrize("layer_type", ["bottleneck", "basic"])
@pytest.mark.parametrize("positions", ["sine", "learned"])
def test_detr_computes_as_transformers(layer_type: str, positions: str, tmp_path: Path) -> None:
    theirs = saved_detector(tmp_path, layer_type, position_embedding_type=positions)
    model = AutoModel.from_pretrained(tmp_path)
    assert isinstance(model, DetrForObjectDetection)
    for mask in (None, MASK):
        with torch.no_grad():
            expected = theirs(torch.tensor(PIXELS), None if mask is None else torch.tensor(mask))
        with tl.no_grad():
            found = model(tl.tensor(PIXELS), None if mask is None else tl.tensor(mask))
        assert expected.logits.std(1).max() > 0.005
        np.testing.assert_allclose(found.logits.numpy(), expected.logits.numpy(), atol=1e-4)
        np.testing.assert_allclose(found.pred_boxes.numpy(), expected.pred_boxes.numpy(), atol=1e-4)


def test_backbones_of_timm_load(tmp_path: Path) -> None:
    """The names are those of facebook/detr-resnet-50, whose backbone is a model of timm."""
    names = {
        "conv1.weight": "embedder.embedder.convolution.weight",
        "bn1.running_mean": "embedder.embedder.normalization.running_mean",
        "layer1.0.conv1.weight": "encoder.stages.0.layers.0.layer.0.convolution.weight",
        "layer2.1.bn3.bias": "encoder.stages.1.layers.1.layer.2.normalization.bias",
        "layer3.0.downsample.0.weight": "encoder.stages.2.layers.0.shortcut.convolution.weight",
        "layer4.0.downsample.1.running_var": "encoder.stages.3.layers.0.shortcut.normalization.running_var",
    }
    start = "model.backbone.conv_encoder.model."
    config = DetrForObjectDetection.config_class.from_entries(
        {"model_type": "detr", "use_timm_backbone": True, "backbone": "resnet50", "is_encoder_decoder": True}, "a file"
    )
    assert config.backbone_config.depths == (3, 4, 6, 3)
    found = config.separated({start + name: i for i, name in enumerate(names)} | {"model.decoder.layers.0.fc1": 9})
    assert found == {start + name: i for i, name in enumerate(names.values())} | {"model.decoder.layers.0.fc1": 9}
    with pytest.raises(CheckpointError, match="swin"):
        DetrForObjectDetection.config_class.from_entries({"backbone": "swin_tiny"}, "a file")


def test_objects_are_those_of_transformers(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    theirs = saved_detector(tmp_path)
    rng = np.random.default_rng(1)
    pictures = [rng.integers(0, 256, size, np.uint8) for size in ((50, 60, 3), (80, 33, 3))]
    processor = transformers.DetrImageProcessor.from_pretrained(tmp_path)
    inputs = processor([pillow.fromarray(each) for each in pictures], return_tensors="pt")
    with torch.no_grad():
        output = theirs(**inputs)
    scores = output.logits.softmax(-1)[..., :-1].amax(-1).flatten().sort().values
    widest = int(scores.diff()[2:-3].argmax()) + 2  # between scores that rounding does not exchange
    threshold = float(scores[widest : widest + 2].mean())
    expected = processor.post_process_object_detection(output, threshold, [each.shape[:2] for each in pictures])
    found = ObjectDetector.from_pretrained(tmp_path).detect(pictures, threshold)
    assert 3 <= sum(map(len, found)) <= 11
    for own, row in zip(found, expected, strict=True):
        order = row["scores"].argsort(descending=True)
        assert [each.label for each in own] == [f"LABEL_{label}" for label in row["labels"][order]]
        np.testing.assert_allclose([each.score for each in own], row["scores"][order], atol=1e-4)
        boxes = np.array([each.box for each in own]).reshape(-1, 4)
        np.testing.assert_allclose(boxes, row["boxes"][order], atol=1e-2)


def test_layers_of_the_backbone_are_counted_before_the_model_is_built(tmp_path: Path) -> None:
    saved_detector(tmp_path)
    entries = json.loads((tmp_path / "config.json").read_text())
    entries["backbone_config"]["depths"][0] = 1_000_000_000
    (tmp_path / "config.json").write_text(json.dumps(entries))
    with pytest.raises(CheckpointError, match="blocks="):
        ObjectDetector.from_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match="hidden_sizes"):
        ResNetConfig(hidden_sizes=(3,), depths=(1,))
    assert ResNetConfig(hidden_sizes=(3,), depths=(1,), layer_type="basic").blocks == 1


def test_weights_with_nan_are_an_error_and_no_empty_picture(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    saved_detector(tmp_path)
    detector = ObjectDetector.from_pretrained(tmp_path)
    detector.finder.model.class_labels_classifier.bias.data.fill_(float("nan"))  # type: ignore[attr-defined]
    with pytest.raises(NumericError, match="NaN"):
        detector.detect(np.zeros((40, 40, 3), np.uint8))


def test_a_picture_that_is_too_thin_does_not_end_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pillow = pytest.importorskip("PIL.Image")
    saved_detector(tmp_path)
    for name, size in (("a.png", (1, 3000)), ("b.png", (30, 40))):
        pillow.new("RGB", size).save(tmp_path / name)
    command = ["detect", str(tmp_path / "a.png"), str(tmp_path / "b.png"), "--model", str(tmp_path)]
    assert main([*command, "--threshold", "1"]) == 1
    output = capsys.readouterr()
    assert "1 by 3000 pixels is too thin" in output.err
    assert "b.png" in output.out


@pytest.mark.parametrize(
    "options", [{"layer_type": "basic"}, {"downsample_in_first_stage": True, "downsample_in_bottleneck": True}]
)
def test_resnet_labels_as_transformers(options: dict[str, Any], tmp_path: Path) -> None:
    config = transformers.ResNetConfig(**RESNET, **options, num_labels=4)
    theirs = random_weights(transformers.ResNetForImageClassification(config))
    theirs.save_pretrained(tmp_path)
    with torch.no_grad():
        expected = theirs(torch.tensor(PIXELS)).logits.numpy()
    with tl.no_grad():
        found = AutoModel.from_pretrained(tmp_path)(tl.tensor(PIXELS)).numpy()
    assert expected.std(0).max() > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-4)
