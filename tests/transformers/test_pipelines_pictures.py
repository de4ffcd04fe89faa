"""Detection, segmentation and depth: pipelines of ONNX files, and image processors, equal those of transformers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, compare, plain

import tallow as tl
from tallow import transformers as tf
from tallow.errors import ArgumentError, CheckpointError
from tallow.optimum import onnxruntime as onnx_models

PICTURE = (np.random.default_rng(0).random((40, 60, 3)) * 255).astype(np.uint8)
LABELS = {"id2label": {0: "cat", 1: "dog", 2: "tree"}, "label2id": {"cat": 0, "dog": 1, "tree": 2}}
RESNET = {"embedding_size": 8, "hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1], "layer_type": "basic"}
DETR = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "num_queries": 6, "use_timm_backbone": False}
DETR |= {"encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
VIT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "patch_size": 8}
DINO = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "mlp_ratio": 1, "patch_size": 8}
DINO |= {"image_size": 40, "out_indices": [1, 2, 3, 4], "reshape_hidden_states": False}
# Task -> name -> class, entries of its config, settings of its image processor, arguments of calls.
MODELS: dict[str, dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]]] = {
    "object-detection": {
        "Detr": (
            "DetrForObjectDetection",
            DETR | {"backbone_config": RESNET},
            {"size": {"shortest_edge": 64, "longest_edge": 90}},
            {"threshold": 0.2},
        ),
        "Yolos": (
            "YolosForObjectDetection",
            VIT | {"image_size": [64, 96], "num_detection_tokens": 6, "use_mid_position_embeddings": False},
            {"size": {"shortest_edge": 66, "longest_edge": 200}},
            {"threshold": 0.2},
        ),
    },
    "image-segmentation": {
        "Segformer": (
            "SegformerForSemanticSegmentation",
            {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 1, 1]}
            | {"decoder_hidden_size": 8, "sr_ratios": [4, 2, 1, 1]},
            {"size": {"height": 64, "width": 64}},
            {},
        ),
    },
    "depth-estimation": {
        "DPT": (
            "DepthAnythingForDepthEstimation",
            {"backbone_config": DINO, "neck_hidden_sizes": [8, 8, 8, 8], "fusion_hidden_size": 8, "patch_size": 8}
            | {"head_hidden_size": 8, "reassemble_hidden_size": 16},
            {"size": {"height": 40, "width": 40}, "keep_aspect_ratio": True, "ensure_multiple_of": 8},
            {},
        ),
    },
}
CASES = [(task, name) for task, models in MODELS.items() for name in models]


def folder_of(task: str, name: str, path: Path) -> tuple[Any, Any]:
    """Write a folder of a random model in an ONNX file, and return the model and image processor of transformers."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    pytest.importorskip("onnx")
    architecture, entries, settings, _ = MODELS[task][name]
    kind = getattr(transformers, architecture)
    entries = dict(entries)
    if "backbone_config" in entries:
        backbone, more = (
            (transformers.ResNetConfig, {"out_features": ["stage4"]})
            if name == "Detr"
            else (transformers.Dinov2Config, {})
        )
        entries["backbone_config"] = backbone(**entries["backbone_config"], **more)
    torch.manual_seed(3)
    model = kind(kind.config_class(**entries, **LABELS)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(5)
    processor = getattr(transformers, f"{name}ImageProcessor")(**settings)
    model.config.architectures = [architecture]
    for each in (model.config, processor):
        each.save_pretrained(path)
    inputs = processor(PICTURE, return_tensors="pt")
    inputs = {key: value for key, value in inputs.items() if key == "pixel_values" or name == "Detr"}
    names = [key for key in ("logits", "pred_boxes", "predicted_depth") if key in model(**inputs)]
    (path / "onnx").mkdir()

    model.requires_grad_(False)

    class Chosen(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            result = model(**dict(zip(inputs, args, strict=True)))
            return tuple(result[key] for key in names)

    file = str(path / "onnx/model.onnx")
    options = {"input_names": list(inputs), "output_names": names, "dynamo": False, "opset_version": 17}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(Chosen(), tuple(inputs.values()), file, **options)
    return model, processor


def described(result: Any) -> Any:
    """Return a result with its pictures as arrays."""
    if isinstance(result, list):
        return [described(each) for each in result]
    if isinstance(result, dict):
        return {key: described(value) for key, value in result.items()}
    return np.asarray(result) if hasattr(result, "getbands") else result


@pytest.mark.native
@pytest.mark.parametrize(("task", "name"), CASES)
def test_results_are_those_of_transformers(task: str, name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    image = pytest.importorskip("PIL.Image").fromarray(PICTURE)
    model, processor = folder_of(task, name, tmp_path)
    arguments = MODELS[task][name][3]
    wanted = transformers.pipeline(task, model=model, image_processor=processor)(image, **arguments)
    pipe = tf.pipeline(task, model=str(tmp_path), device=-1)
    found = pipe(image, **arguments)
    assert wanted
    assert isinstance(pipe.model, onnx_models.ORTModel)
    compare(plain(described(found)), plain(described(wanted)), 1e-2)
    auto = f"AutoModelFor{''.join(map(str.title, task.split('-')))}"
    assert type(getattr(tf, auto).from_pretrained(str(tmp_path))) is type(pipe.model)
    again = tf.pipeline(model=str(tmp_path), device=-1)(image, **arguments)  # the task follows from the architecture
    compare(plain(described(again)), plain(described(found)), 0)


def test_objects_by_weights_are_those_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    image = pytest.importorskip("PIL.Image").fromarray(PICTURE)
    from support.image_folders import saved_detector

    saved_detector(tmp_path)
    pictures = [image, image.rotate(90, expand=True)]
    wanted = transformers.pipeline("object-detection", model=str(tmp_path), device=-1)(pictures, threshold=0.3)
    assert sum(map(len, wanted)) > 2
    pipe = tf.pipeline("object-detection", model=str(tmp_path), device=-1)
    assert type(pipe.model) is tf.DetrForObjectDetection
    found = pipe(pictures, threshold=0.3)
    for ours, theirs in zip(found, wanted, strict=True):
        assert [each["label"] for each in ours] == [each["label"] for each in theirs]
        np.testing.assert_allclose([e["score"] for e in ours], [e["score"] for e in theirs], atol=1e-4)
        boxes = [[list(each["box"].values()) for each in row] for row in (ours, theirs)]
        np.testing.assert_allclose(*boxes, atol=1)  # rounded down
    guessed = tf.pipeline(model=str(tmp_path), device=-1)  # the task follows from the architecture
    assert guessed(image, threshold=0.3) == found[0]
    with pytest.raises(ArgumentError, match="labels of 0 pictures"):
        pipe.model(tl.zeros(1, 3, 40, 40), labels=[])


def test_resnets_label_pictures_as_those_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from support.image_folders import RESNET as SIZES
    from support.image_folders import random_weights

    config = transformers.ResNetConfig(**SIZES, **LABELS)
    random_weights(transformers.ResNetForImageClassification(config)).save_pretrained(tmp_path)
    size = {"size": {"shortest_edge": 28}, "crop_pct": 0.8}
    transformers.ConvNextImageProcessor(**size).save_pretrained(tmp_path)
    image = pytest.importorskip("PIL.Image").fromarray(PICTURE)

    def program(tf: Any, torch: Any) -> Any:
        backend = None if torch is tl else "pil"
        classify = tf.pipeline("image-classification", model=str(tmp_path), device=-1)
        model = tf.AutoModelForImageClassification.from_pretrained(str(tmp_path))
        inputs = tf.AutoImageProcessor.from_pretrained(str(tmp_path), backend=backend)(image, return_tensors="pt")
        result = model(**inputs, labels=torch.tensor([1]))
        return [classify(image), result.loss, result.logits, inputs["pixel_values"]]

    both(program)


KINDS = ("DPT", "Detr", "Mask2Former", "MaskFormer", "RTDetr", "Segformer", "Yolos")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("height", "width"), [(40, 60), (70, 50), (64, 64)])
def test_pictures_get_the_size_that_a_model_needs(kind: str, height: int, width: int) -> None:
    generator = np.random.default_rng(1)
    pictures = [(generator.random((*size, 3)) * 255).astype(np.uint8) for size in ((height, width), (52, 67))]
    edges = {"size": {"shortest_edge": 48, "longest_edge": 66}}
    settings = (
        edges if kind in ("Detr", "Mask2Former", "MaskFormer", "Yolos") else {"size": {"height": 32, "width": 48}}
    )
    if kind == "DPT":
        settings |= {"keep_aspect_ratio": True, "ensure_multiple_of": 14}

    def program(tf: Any, torch: Any) -> Any:
        processor = getattr(tf, f"{kind}ImageProcessor")(**settings)
        pads = "longest_edge" in settings["size"]
        inputs = processor(pictures if pads else pictures[:1], return_tensors="pt")
        return [dict(inputs), dict(sorted(dict(processor.size).items())), processor.model_input_names]

    both(program)


def outputs_of(tf: Any, torch: Any, kind: str) -> Any:
    """Return random outputs of two pictures: 7 queries of 3 labels and none."""
    generator = np.random.default_rng(2)

    def draw(*sizes: int) -> Any:
        return torch.tensor((generator.normal(size=sizes) * 3).astype(np.float32))

    names = {"pred_boxes": draw(2, 7, 4).sigmoid(), "pred_masks": draw(2, 7, 6, 5), "logits": draw(2, 7, 4)}
    if kind in ("Segformer", "DPT"):
        names = {"logits": draw(2, 3, 6, 5), "predicted_depth": draw(2, 6, 5)}
    if kind in ("MaskFormer", "Mask2Former"):
        names = {"class_queries_logits": names["logits"], "masks_queries_logits": names["pred_masks"]}

    class Outputs:
        pass

    for name, value in names.items():
        setattr(Outputs, name, value)
    return Outputs


def sorted_masks(found: Any) -> Any:
    """Return the masks of instances in the order of their scores, and what they are."""
    entries = found["segments_info"]
    order = sorted(range(len(entries)), key=lambda i: entries[i]["score"])
    return [[entries[i] | {"id": 0}, found["segmentation"][i]] for i in order]


@pytest.mark.parametrize("sizes", [None, [(9, 12), (20, 8)]])
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_mean_what_they_mean_in_transformers(kind: str, sizes: Any) -> None:
    def program(tf: Any, torch: Any) -> Any:
        processor = getattr(tf, f"{kind}ImageProcessor")()
        outputs = outputs_of(tf, torch, kind)
        found: dict[str, Any] = {}
        for task in ("object_detection", "semantic_segmentation", "depth_estimation"):
            if (read := getattr(processor, f"post_process_{task}", None)) is not None:
                found[task] = read(outputs, target_sizes=sizes)
        limits = {"threshold": 0.3, "mask_threshold": 0.3, "overlap_mask_area_threshold": 0.2, "target_sizes": sizes}
        for task in ("instance", "panoptic"):
            if (read := getattr(processor, f"post_process_{task}_segmentation", None)) is not None:
                found[task] = read(outputs, **limits)
                if task == "instance" and "Former" in kind:  # which of several has a pixel follows from no rule
                    found[task] = [sorted_masks(each) for each in read(outputs, **limits, return_binary_maps=True)]
                found[f"{task}, none"] = read(outputs, **limits | {"threshold": 1.0})
        if "panoptic" in found:
            fused = processor.post_process_panoptic_segmentation(outputs, **limits, label_ids_to_fuse={0, 1, 2})
            found["fused"] = fused
        return found

    both(program)


def test_errors_say_what_is_missing(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image").fromarray(PICTURE)
    processor = tf.SegformerImageProcessor()
    with pytest.raises(ArgumentError, match="3 sizes for 2 pictures"):
        processor.post_process_semantic_segmentation(outputs_of(tf, tl, "Segformer"), [(1, 1)] * 3)
    with pytest.raises(ArgumentError, match="padded to"):
        tf.DetrImageProcessor()(PICTURE, pad_size={"height": 4, "width": 4})
    for size in ({"height": 60_000, "width": 60_000}, {"height": 9}, [3]):
        with pytest.raises(ArgumentError, match="pad_size="):
            tf.DetrImageProcessor()(PICTURE, pad_size=size)
    (tmp_path / "config.json").write_text('{"model_type": "yolos", "architectures": ["YolosForObjectDetection"]}')
    with pytest.raises(CheckpointError, match="has none of onnx"):
        tf.pipeline("object-detection", model=str(tmp_path))
    assert image.size == (60, 40)
