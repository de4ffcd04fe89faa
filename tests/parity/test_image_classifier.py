"""Labels and vectors of images, and `tallow classify`, compared with transformers on the same files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from support.image_folders import END, RESNET, processor, random_weights, saved, tokenizer
from support.model_pairs import CLIP_SIZES, DINOV2_SIZES, IMAGE_SIZES, LABELS

import tallow as tl
from tallow.cli import main
from tallow.errors import ArgumentError, CheckpointError, NumericError
from tallow.models import ImageClassifier, ImageEncoder

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

ATOL = 1e-5
CHOICES = ["a cat", "two dogs", "a tree"]


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    return saved("ViTForImageClassification", IMAGE_SIZES | LABELS, tmp_path_factory.mktemp("vit"))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    sizes = CLIP_SIZES | {"text_config": CLIP_SIZES["text_config"] | {"eos_token_id": END}}
    folder, model = saved("CLIPModel", sizes, tmp_path_factory.mktemp("clip"))
    tokenizer().save_pretrained(folder)
    return folder, model


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    paths = [str(folder / f"{i}.png") for i in range(3)]
    for i, path in enumerate(paths):
        Image.fromarray(rng.integers(0, 256, (40 + i, 60, 3), dtype=np.uint8)).save(path)
    return paths


def pixels(photos: list[str]) -> Any:
    return processor()([Image.open(photo) for photo in photos], return_tensors="pt")["pixel_values"]


def zero_shot(model: Any, photos: list[str], template: str) -> npt.NDArray[np.float32]:
    """Return the logits of transformers for the choices."""
    texts = tokenizer()([template.format(choice) for choice in CHOICES], padding=True, return_tensors="pt")
    ids, mask = texts["input_ids"], texts["attention_mask"]
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask, pixel_values=pixels(photos)).logits_per_image.numpy()


def test_labels_of_a_model(vit: tuple[Path, Any], photos: list[str]) -> None:
    folder, reference = vit
    classifier = ImageClassifier.from_pretrained(folder)
    assert classifier.labels == ("bad", "good", "so so")
    with torch.no_grad():
        expected = reference(pixels(photos)).logits
    np.testing.assert_allclose(classifier.logits(photos, batch_size=2), expected.numpy(), atol=ATOL)
    np.testing.assert_allclose(classifier.predict(photos), expected.softmax(-1).numpy(), atol=ATOL)
    with pytest.raises(ArgumentError, match="labels of its own"):
        ImageClassifier.from_pretrained(folder, labels=CHOICES)


def test_labels_and_vectors_of_a_resnet(photos: list[str], tmp_path: Path) -> None:
    import transformers
    from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil

    reference = random_weights(transformers.ResNetForImageClassification(transformers.ResNetConfig(**RESNET, **LABELS)))
    prepare = ConvNextImageProcessorPil(size={"shortest_edge": 32})
    for each in (reference, prepare):
        each.save_pretrained(tmp_path)
    inputs = prepare([Image.open(photo) for photo in photos], return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        expected, pooled = reference(inputs).logits, reference.resnet(inputs).pooler_output
    classifier = ImageClassifier.from_pretrained(tmp_path)
    assert classifier.labels == ("bad", "good", "so so")
    np.testing.assert_allclose(classifier.logits(photos, batch_size=2), expected.numpy(), atol=1e-4)
    np.testing.assert_allclose(ImageEncoder.from_pretrained(tmp_path).encode(photos), pooled.flatten(1), atol=1e-4)


@pytest.mark.parametrize("template", ["This is a photo of {}.", "{}!", "{} of {}"])
def test_labels_in_words(clip: tuple[Path, Any], photos: list[str], template: str) -> None:
    folder, reference = clip
    classifier = ImageClassifier.from_pretrained(folder, labels=CHOICES, template=template)
    expected = zero_shot(reference, photos, template.replace("{}", "{0}"))
    np.testing.assert_allclose(classifier.logits(photos), expected, atol=1e-4)


def test_wrong_labels(clip: tuple[Path, Any]) -> None:
    for labels in (None, [], ["a cat"], "a cat"):
        with pytest.raises(ArgumentError, match="two or more labels"):
            ImageClassifier.from_pretrained(clip[0], labels=labels)
    with pytest.raises(ArgumentError, match="no place for a label"):
        ImageClassifier.from_pretrained(clip[0], labels=CHOICES, template="a photo")


def test_vectors(clip: tuple[Path, Any], photos: list[str]) -> None:
    folder, reference = clip
    encoder = ImageEncoder.from_pretrained(folder)
    with torch.no_grad():
        images = reference.get_image_features(pixels(photos)).pooler_output.numpy()
        ids = tokenizer()(CHOICES, padding=True, return_tensors="pt")["input_ids"]
        texts = reference.get_text_features(ids).pooler_output.numpy()
    vectors = encoder.encode(photos, batch_size=2)
    np.testing.assert_allclose(vectors, images, atol=ATOL)
    np.testing.assert_allclose(encoder.encode_texts(CHOICES), texts, atol=ATOL)
    np.testing.assert_allclose(encoder.encode(photos[0]), images[0], atol=ATOL)
    one = encoder.encode_texts("two dogs", normalize=True)
    np.testing.assert_allclose(one, texts[1] / np.linalg.norm(texts[1]), atol=ATOL)
    np.testing.assert_allclose(np.linalg.norm(encoder.encode(photos, normalize=True), axis=1), 1, atol=ATOL)
    assert encoder.encode_texts("a cat " * 50).shape == (12,)  # longer than the model's context


@pytest.mark.parametrize(
    "name", ["Dinov2Model", "Dinov2ForImageClassification", "ViTModel", "ViTForImageClassification"]
)
def test_vectors_are_of_the_first_position(name: str, photos: list[str], tmp_path: Path) -> None:
    folder, reference = saved(name, DINOV2_SIZES if "Dino" in name else IMAGE_SIZES, tmp_path)
    encoder = ImageEncoder.from_pretrained(folder)
    with torch.no_grad():
        expected = reference.base_model(pixels(photos)).last_hidden_state[:, 0]
    np.testing.assert_allclose(encoder.encode(photos), expected.numpy(), atol=ATOL)
    with pytest.raises(ArgumentError, match="reads no texts"):
        encoder.encode_texts(["a cat"])


def test_wrong_arguments(vit: tuple[Path, Any], photos: list[str], tmp_path: Path) -> None:
    classifier = ImageClassifier.from_pretrained(vit[0])
    with pytest.raises(ArgumentError, match="batch_size=0"):
        classifier.predict(photos, batch_size=0)
    with pytest.raises(ArgumentError, match="0 images"):
        classifier.predict([])
    with pytest.raises(ArgumentError, match="int9"):
        ImageClassifier.from_pretrained("someone/nothing", quant="int9")
    folder, _ = saved("ViTModel", IMAGE_SIZES, tmp_path)
    with pytest.raises(CheckpointError, match="ImageClassifier does not take a ViTModel"):
        ImageClassifier.from_pretrained(folder)


def test_weights_with_nan(vit: tuple[Path, Any], photos: list[str]) -> None:
    classifier = ImageClassifier.from_pretrained(vit[0])
    classifier.model.classifier.bias = tl.nn.Parameter(tl.full((3,), float("nan")))
    with pytest.raises(NumericError, match="NaN"):
        classifier.predict(photos)


def test_command_prints_labels(vit: tuple[Path, Any], photos: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    classifier = ImageClassifier.from_pretrained(vit[0])
    scores = classifier.predict(photos[:1])[0]
    assert main(["classify", photos[0], "--model", str(vit[0]), "--top-k", "2"]) == 0
    best = np.argsort(-scores)[:2]
    expected = "".join(f"{scores[i]:7.2%}  {classifier.labels[i]}\n" for i in best)
    assert capsys.readouterr().out == expected
    assert main(["classify", *photos[:2], "--model", str(vit[0]), "--top-k", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{photos[0]}\n{expected}\n{photos[1]}\n")
    assert len(out.splitlines()) == 8


def test_command_prints_json(clip: tuple[Path, Any], photos: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--labels", *CHOICES, "--template", "{}!", "--json", "--batch-size", "2"]
    assert main(["classify", *photos, "--model", str(clip[0]), *options]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["image"] for row in rows] == photos
    exp = np.exp(zero_shot(clip[1], photos, "{}!"))
    for row, expected in zip(rows, exp / exp.sum(1, keepdims=True), strict=True):
        assert [each["label"] for each in row["labels"]] == [CHOICES[i] for i in np.argsort(-expected)]
        np.testing.assert_allclose([each["score"] for each in row["labels"]], np.sort(expected)[::-1], atol=1e-4)


def test_command_in_int8(vit: tuple[Path, Any], photos: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classify", photos[0], "--model", str(vit[0]), "--quant", "int8", "--json"]) == 0
    scores = {each["label"]: each["score"] for each in json.loads(capsys.readouterr().out)["labels"]}
    classifier = ImageClassifier.from_pretrained(vit[0], quant="int8")
    expected = classifier.predict(photos[:1])[0].tolist()
    np.testing.assert_allclose([scores[label] for label in classifier.labels], expected, rtol=1e-6)


def test_errors_of_the_command(
    vit: tuple[Path, Any], clip: tuple[Path, Any], photos: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for argv, message in (
        ([photos[0], "--model", str(clip[0])], "two or more labels; pass labels"),
        ([photos[0], "--model", str(vit[0]), "--labels", "a", "b"], "has labels of its own"),
    ):
        assert main(["classify", *argv]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert message in captured.err
        assert captured.err.count("\n") == 1


def test_command_goes_on_after_an_unreadable_file(
    vit: tuple[Path, Any], photos: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["classify", "nothing.png", str(vit[0] / "config.json"), photos[0], "--model", str(vit[0])]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{photos[0]}\n")
    first, second = captured.err.splitlines()
    assert "nothing.png: No such file" in first
    assert "config.json cannot be read as an image" in second
    assert main(["classify", "nothing.png", "--model", str(vit[0])]) == 1
