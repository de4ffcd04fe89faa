"""Depth Anything and SegFormer compared with transformers on the same folder, and their commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.image_folders import saved_depth, saved_segmenter

import tallow as tl
from tallow import transformers as tf
from tallow.cli import main
from tallow.errors import CheckpointError, NumericError, ShapeError
from tallow.models import AutoModel, DepthEstimator, ImageSegmenter
from tallow.models.vision.depth_anything import DepthAnythingConfig

PIXELS = np.random.default_rng(0).normal(size=(2, 3, 47, 62)).astype(np.float32)
SIZES = ((50, 61, 3), (33, 80, 3))
PICTURES = [np.random.default_rng(i).integers(0, 256, size, np.uint8) for i, size in enumerate(SIZES)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"depth_estimation_type": "metric", "max_depth": 20, "head_in_index": 1, "neck_hidden_sizes": [4, 6]}
        | {"reassemble_factors": [3, 0.25], "dino": {"out_indices": [-3, -1], "use_swiglu_ffn": True}},
        {"dino": {"out_indices": None, "out_features": ["stem", "stage2", "stage3", "stage5"]}}
        | {"reassemble_factors": [1, 2, 0.5, 1]},
        {"dino": {"apply_layernorm": False}},
    ],
)
def test_depths_are_those_of_transformers(options: dict[str, Any], tmp_path: Path) -> None:
    theirs = saved_depth(tmp_path, **options)
    model = AutoModel.from_pretrained(tmp_path)
    with torch.no_grad():
        expected = theirs(torch.tensor(PIXELS)).predicted_depth.numpy()
    with tl.no_grad():
        found = model(tl.tensor(PIXELS)).numpy()
    assert found.shape == (2, 42, 60)
    assert expected.std() > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-4 * max(1, abs(expected).max()))


@pytest.mark.parametrize("kind", ["ForSemanticSegmentation", "ForImageClassification"])
def test_stages_compute_as_those_of_transformers(kind: str, tmp_path: Path) -> None:
    theirs = saved_segmenter(tmp_path, kind, hidden_act="relu")
    model = AutoModel.from_pretrained(tmp_path)
    with torch.no_grad():
        expected = theirs(torch.tensor(PIXELS)).logits.numpy()
    with tl.no_grad():
        found = model(tl.tensor(PIXELS)).numpy()
    assert expected.std() > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-4)
    with pytest.raises(ShapeError, match="leave a cell"):
        model(tl.zeros(1, 3, 4, 60))


def test_pixels_are_learned_as_with_transformers(tmp_path: Path) -> None:
    """One class with its own loss for one label and for several; weights go both ways."""
    labels = np.random.default_rng(3).integers(0, 3, (2, 47, 62))
    labels[:, :9] = 255
    for count in (3, 1):
        own = tmp_path / str(count)
        theirs = saved_segmenter(own, **{"num_labels": 1, "id2label": None, "label2id": None} if count == 1 else {})
        ours = tf.AutoModelForSemanticSegmentation.from_pretrained(own)
        targets = np.where(labels == 255, 255, labels % count if count > 1 else labels > 0)
        results = []
        for torch_, model in ((torch, theirs), (tl, ours)):
            result = model(torch_.tensor(PIXELS), labels=torch_.tensor(targets))
            result.loss.backward()
            results.append((result.loss.item(), model.decode_head.classifier.weight.grad.numpy()))
        np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-4)
        np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-4)
        ours.save_pretrained(own / "again")
        again = transformers.SegformerForSemanticSegmentation.from_pretrained(own / "again")
        for name, value in theirs.state_dict().items():
            np.testing.assert_array_equal(again.state_dict()[name].numpy(), value.numpy(), err_msg=name)


def test_pipelines_by_weights_are_those_of_transformers(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pictures = [image.fromarray(each) for each in PICTURES]
    saved_depth(tmp_path / "depth")
    saved_segmenter(tmp_path / "pixels")
    path = str(tmp_path / "depth")
    wanted = transformers.pipeline("depth-estimation", model=path, device=-1)(pictures)
    found = tf.pipeline(model=path, device=-1)(pictures)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours["predicted_depth"].numpy(), theirs["predicted_depth"].numpy(), atol=0.02)
        gap = np.asarray(ours["depth"], int) - np.asarray(theirs["depth"], int)
        assert abs(gap).max() <= 1
    path = str(tmp_path / "pixels")
    wanted = transformers.pipeline("image-segmentation", model=path, device=-1)(pictures)
    found = tf.pipeline(model=path, device=-1)(pictures)
    assert {each["label"] for each in found[0]} == {"sky", "road", "tree"}
    for ours, theirs in zip(found, wanted, strict=True):
        assert [each["label"] for each in ours] == [each["label"] for each in theirs]
        for mine, other in zip(ours, theirs, strict=True):
            assert (np.asarray(mine["mask"]) != np.asarray(other["mask"])).mean() < 0.01


def test_depth_in_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = pytest.importorskip("PIL.Image")
    saved_depth(tmp_path / "near")
    saved_depth(tmp_path / "metres", depth_estimation_type="metric", max_depth=20)
    photos = tmp_path / "photos"
    photos.mkdir()
    for i, each in enumerate(PICTURES):
        image.fromarray(each).save(photos / f"{i}.png")
    (photos / "broken.jpg").write_bytes(b"\xff\xd8\xff no picture")
    image.new("RGB", (1, 3000)).save(photos / "thin.png")
    out = tmp_path / "out"
    assert main(["depth", str(photos), "--model", str(tmp_path / "metres"), "--json", "--save", str(out)]) == 1
    output = capsys.readouterr()
    assert "broken.jpg cannot be read" in output.err
    assert "too thin" in output.err
    lines = [json.loads(line) for line in output.out.splitlines()]
    depths = DepthEstimator.from_pretrained(tmp_path / "metres").estimate(PICTURES)
    for i, (line, depth) in enumerate(zip(lines, depths, strict=True)):
        assert [line["height"], line["width"], line["unit"]] == [*SIZES[i][:2], "m"]
        np.testing.assert_allclose([line["least"], line["largest"]], [depth.min(), depth.max()], rtol=1e-4)
        with image.open(out / f"{i}.png") as written:
            np.testing.assert_allclose(np.asarray(written) / 1000, np.maximum(depth, 0), atol=6e-4)
    assert main(["depth", str(photos / "0.png"), "--model", str(tmp_path / "near"), "--save", str(out)]) == 0
    assert "(nearest)" in capsys.readouterr().out
    with image.open(out / "0.png") as written:
        levels = np.asarray(written)
    assert (levels.min(), levels.max()) == (0, 65535)


def test_segments_in_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = pytest.importorskip("PIL.Image")
    saved_segmenter(tmp_path)
    for i, each in enumerate(PICTURES):
        image.fromarray(each).save(tmp_path / f"{i}.png")
    command = ["segment", str(tmp_path / "0.png"), str(tmp_path / "1.png"), "--model", str(tmp_path)]
    assert main([*command, "--json", "--save", str(tmp_path / "out")]) == 0
    first, _ = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    (numbers,) = ImageSegmenter.from_pretrained(tmp_path).segment(PICTURES[0])
    shares = sorted(((numbers == i).mean() for i in range(3)), reverse=True)
    np.testing.assert_allclose([each["share"] for each in first["segments"]], shares, atol=1e-6)
    with image.open(tmp_path / "out/0.png") as drawn:
        assert drawn.size == (61, 50)
    assert main(command) == 0
    assert "%  road" in capsys.readouterr().out


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    saved_segmenter(tmp_path)
    with pytest.raises(CheckpointError, match="tells no depths"):
        DepthEstimator.from_pretrained(tmp_path)
    segmenter = ImageSegmenter.from_pretrained(tmp_path)
    segmenter.model.decode_head.classifier.bias.data.fill_(float("nan"))
    with pytest.raises(NumericError, match="NaN"):
        segmenter.segment(PICTURES[0])
    wrong: dict[str, Any]
    for wrong in (
        {"backbone_config": {"model_type": "swin"}},
        {"reassemble_factors": [1, 2, 3, 0]},
        {"reassemble_factors": [1e9, 2, 3, 1]},
        {"neck_hidden_sizes": [1]},
        {"head_in_index": 4},
        {"patch_size": 7},
        {"backbone": "vitl14"},
    ):
        with pytest.raises(CheckpointError, match=next(iter(wrong)).partition("_")[0]):
            DepthAnythingConfig.from_entries(wrong, "a file")
    with pytest.raises(CheckpointError, match="out_features"):
        DepthAnythingConfig.from_entries({"backbone_config": {"out_features": ["last"]}}, "a file")
