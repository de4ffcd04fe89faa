"""ViT, DINOv2 and CLIP compared with transformers: equal weights give equal outputs and gradients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from support import model_pairs
from support.model_pairs import (
    CLIP_SIZES,
    CLIP_TEXT_SIZES,
    END,
    IMAGE_MODELS,
    IMAGE_SIZES,
    inputs_of,
    reference_model,
)
from support.outputs import outputs_of, without_padding

import tallow as tl
from tallow import models
from tallow.errors import CheckpointError, ShapeError
from tallow.models import AutoModel

# Both compute in float32; sums of up to 64 terms are taken in a different order.
ATOL = 1e-4
RNG = np.random.default_rng(0)
WIDE = RNG.standard_normal((2, 3, 33, 50)).astype(np.float32)  # no multiple of the patches
SQUARE = RNG.standard_normal((2, 3, 24, 24)).astype(np.float32)


def save_model(variant: str, folder: Path) -> Any:
    """Save a transformers model in `folder`."""
    model = reference_model(variant)
    model.save_pretrained(folder, max_shard_size="20KB")
    return model


def assert_near(ours: Any, theirs: Any) -> None:
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(our, their, atol=ATOL)


@pytest.mark.parametrize("variant", IMAGE_MODELS)
def test_outputs(variant: str, tmp_path: Path) -> None:
    reference, inputs = save_model(variant, tmp_path), inputs_of(variant)
    model = AutoModel.from_pretrained(tmp_path)
    assert type(model).__name__ == IMAGE_MODELS[variant][0]
    expected = without_padding(model_pairs.outputs_of(reference, inputs), inputs)
    assert_near(without_padding(outputs_of(model, inputs), inputs), expected)


@pytest.mark.parametrize("variant", [name for name in IMAGE_MODELS if "text" not in name and "rect" not in name])
def test_other_sizes_of_images(variant: str, tmp_path: Path) -> None:
    reference, inputs = save_model(variant, tmp_path), inputs_of(variant) | {"pixel_values": WIDE}
    options = {} if "dinov2" in variant else {"interpolate_pos_encoding": True}
    model = AutoModel.from_pretrained(tmp_path)
    with torch.no_grad():
        theirs = reference(**{name: torch.tensor(array) for name, array in inputs.items()}, **options).to_tuple()
    with tl.no_grad():
        ours = model(*map(tl.tensor, inputs.values()), **options)
        if options:
            with pytest.raises(ShapeError, match="interpolate_pos_encoding"):
                model(*map(tl.tensor, inputs.values()))
    ours = [ours] if isinstance(ours, tl.Tensor) else ours
    assert_near([each.numpy() for each in ours], [each.numpy() for each in theirs if isinstance(each, torch.Tensor)])


@pytest.mark.parametrize("shape", [(3, 24, 24), (1, 1, 24, 24), (1, 3, 3, 24)])
def test_wrong_shapes(shape: tuple[int, ...], tmp_path: Path) -> None:
    save_model("dinov2", tmp_path)
    with pytest.raises(ShapeError, match="expected"):
        AutoModel.from_pretrained(tmp_path)(tl.zeros(shape))


def loss_of(outputs: Any, library: Any) -> Any:
    """Return CLIP's contrastive loss, or the cross entropy of a classifier's logits."""
    cross_entropy = library.nn.functional.cross_entropy
    if hasattr(outputs, "logits_per_text"):
        targets = library.tensor([0, 1])
        return cross_entropy(outputs.logits_per_text, targets) + cross_entropy(outputs.logits_per_image, targets)
    logits = outputs if isinstance(outputs, tl.Tensor) else outputs.logits
    return cross_entropy(logits, library.tensor([2, 0]))


@pytest.mark.parametrize("variant", ["vit ForImageClassification", "dinov2 ForImageClassification", "clip"])
def test_gradients(variant: str, tmp_path: Path) -> None:
    reference, inputs = save_model(variant, tmp_path), inputs_of(variant)
    model = AutoModel.from_pretrained(tmp_path)
    loss_of(reference(**{name: torch.tensor(array) for name, array in inputs.items()}), torch).backward()
    loss_of(model(*map(tl.tensor, inputs.values())), tl).backward()
    assert_same_gradients(model, reference, tmp_path)


def assert_same_gradients(model: Any, reference: Any, folder: Path) -> None:
    """Compare by the names of parameters in a file; in memory transformers has others."""
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    reference.save_pretrained(folder / "gradients")
    expected = tl.load(folder / "gradients/model.safetensors")
    compared = 0
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), expected[name].numpy(), atol=1e-4, err_msg=name)
        compared += 1
    assert compared == len(expected) - sum(name.endswith("mask_token") for name in expected)


@pytest.mark.parametrize("variant", ["vit ForImageClassification", "dinov2 ForImageClassification"])
def test_a_checkpoint_with_a_head_loads_without_it(variant: str, tmp_path: Path) -> None:
    reference = save_model(variant, tmp_path)
    model = getattr(models, IMAGE_MODELS[variant][0].replace("ForImageClassification", "Model")).from_pretrained(
        tmp_path
    )
    assert model.config.labels == ("bad", "good", "so so")
    with torch.no_grad(), tl.no_grad():
        expected = reference.base_model(torch.tensor(SQUARE)).last_hidden_state
        np.testing.assert_allclose(model(tl.tensor(SQUARE)).last_hidden_state.numpy(), expected.numpy(), atol=ATOL)


def test_encoders_of_a_clip_load_alone(tmp_path: Path) -> None:
    reference, inputs = save_model("clip", tmp_path), inputs_of("clip")
    ids, pixels = inputs["input_ids"], inputs["pixel_values"]
    whole = AutoModel.from_pretrained(tmp_path)
    with torch.no_grad(), tl.no_grad():
        texts = reference.get_text_features(torch.tensor(ids)).pooler_output.numpy()
        images = reference.get_image_features(torch.tensor(pixels)).pooler_output.numpy()
        text_model = models.CLIPTextModel.from_pretrained(tmp_path)
        vision_model = models.CLIPVisionModel.from_pretrained(tmp_path)
        projected_texts = models.CLIPTextModelWithProjection.from_pretrained(tmp_path)
        projected_images = models.CLIPVisionModelWithProjection.from_pretrained(tmp_path)
        assert_near(
            [
                whole.get_text_features(tl.tensor(ids)).numpy(),
                whole.text_projection(text_model(tl.tensor(ids)).pooler_output).numpy(),
                whole.get_image_features(tl.tensor(pixels)).numpy(),
                whole.visual_projection(vision_model(tl.tensor(pixels)).pooler_output).numpy(),
                projected_texts(tl.tensor(ids)).text_embeds.numpy(),
                projected_images(tl.tensor(pixels)).image_embeds.numpy(),
            ],
            [texts, texts, images, images, texts, images],
        )


def test_padding_behind_a_text_does_not_change_its_vector(tmp_path: Path) -> None:
    save_model("clip", tmp_path)
    model, inputs = AutoModel.from_pretrained(tmp_path), inputs_of("clip")
    ids, mask = tl.tensor(inputs["input_ids"]), tl.tensor(inputs["attention_mask"])
    with tl.no_grad():
        np.testing.assert_allclose(
            model.get_text_features(ids).numpy(), model.get_text_features(ids, mask).numpy(), atol=1e-5
        )


def test_settings_of_older_clip_files() -> None:
    """`text_config_dict` takes the place of `text_config`; the settings of generation are of no model."""
    older = {
        "eos_token_id": 2,
        "dropout": 0.0,
        "tie_word_embeddings": True,
        "projection_dim": 512,
        "top_k": 50,
        "model_type": "clip_text_model",
    }
    entries = {"model_type": "clip", **CLIP_SIZES, "text_config": CLIP_TEXT_SIZES | older}
    config = models.CLIPConfig.from_entries(entries, "the file")
    assert config.text_config.eos_token_id == 2
    assert config.text_config.hidden_size == 32
    config = models.CLIPConfig.from_entries(
        entries | {"text_config_dict": {"hidden_size": 64}, "vision_config_dict": None}, "the file"
    )
    assert (config.text_config.hidden_size, config.text_config.eos_token_id) == (64, 49407)
    assert config.vision_config.hidden_size == 32


@pytest.mark.parametrize(
    ("kind", "entries", "message"),
    [
        ("Dinov2Config", {"drop_path_rate": 1.0}, "drop_path_rate=1.0"),
        ("ViTConfig", {"image_size": [224, 192, 3]}, "image_size"),
        ("ViTConfig", {"image_size": [224, 8]}, "patch_size"),
        ("CLIPConfig", {"vision_config": {"image_size": [224, 192]}}, "image_size"),
        ("ViTConfig", {"patch_size": 32, "image_size": 16}, "patch_size"),
        ("ViTConfig", {"num_attention_heads": 5}, "5 heads"),
        (
            "CLIPConfig",
            {"text_config": {"hidden_size": 30, "num_attention_heads": 4}},
            "the file: text_config: .*4 heads",
        ),
        ("CLIPConfig", {"vision_config": {"num_query_tokens": 3}}, "num_query_tokens"),
        ("CLIPConfig", {"vision_config": 3}, "vision_config is 3"),
    ],
)
def test_configs_refuse_by_name(kind: str, entries: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        getattr(models, kind).from_entries(entries, "the file", strict=True)


# The small SwiGLU has no rows of whole blocks.
@pytest.mark.parametrize("variant", [name for name in IMAGE_MODELS if name != "dinov2"])
def test_int8_is_near_float32(variant: str, tmp_path: Path) -> None:
    save_model(variant, tmp_path)
    inputs = inputs_of(variant)
    exact = outputs_of(AutoModel.from_pretrained(tmp_path), inputs)
    model = AutoModel.from_pretrained(tmp_path, quant="int8")
    assert any(name.endswith(".blocks") for name in model.state_dict())
    for ours, expected in zip(outputs_of(model, inputs), exact, strict=True):
        assert 0 < np.linalg.norm(ours - expected) < 0.05 * np.linalg.norm(expected)


def test_fresh_weights_have_the_spread_of_transformers() -> None:
    tl.manual_seed(0)
    model = models.ViTModel(models.ViTConfig(**(IMAGE_SIZES | {"initializer_range": 0.05, "hidden_size": 128})))
    spreads: list[npt.NDArray[Any]] = [
        model.embeddings.position_embeddings,
        model.embeddings.patch_embeddings.projection.weight,
        model.encoder.layer[0].output.dense.weight,
    ]
    for weight in spreads:
        assert weight.std().item() == pytest.approx(0.05, rel=0.1)
    assert model.embeddings.patch_embeddings.projection.bias.abs().max().item() == 0
    clip = models.CLIPModel(models.CLIPConfig())
    assert clip.logit_scale.item() == pytest.approx(2.6592)


def test_round_trip(tmp_path: Path) -> None:
    save_model("clip", tmp_path)
    model, inputs = AutoModel.from_pretrained(tmp_path), inputs_of("clip")
    copy = tmp_path / "copy"
    copy.mkdir()
    tl.save(model.state_dict(), copy / "model.safetensors")
    (copy / "config.json").write_text((tmp_path / "config.json").read_text(encoding="utf-8"), encoding="utf-8")
    for ours, again in zip(outputs_of(model, inputs), outputs_of(AutoModel.from_pretrained(copy), inputs), strict=True):
        np.testing.assert_array_equal(ours, again)
    assert json.loads((copy / "config.json").read_text(encoding="utf-8"))["text_config"]["eos_token_id"] == END
