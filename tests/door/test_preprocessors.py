"""Each `preprocessor_config.json` among the files of the Hub makes the images of transformers, or is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.hub_files import folders_of, records

from tallow.errors import CheckpointError
from tallow.models import ImageProcessor

transformers = pytest.importorskip("transformers")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

RECORDS = records("preprocessor_configs")
CONFIGS = {folder: record["content"] for record in records("configs") for folder in folders_of(record)}
# Kinds of processors of models that tallow lacks, and of sound.
REFUSED = ("Wav2Vec2", "Whisper", "Qwen2VL", "MobileNetV2", "Beit", "Fuyu", "Swin")
SIZES = [(300, 200), (90, 250)]

pytestmark = pytest.mark.skipif(not RECORDS, reason="no real data; set TALLOW_TEST_DATA")


def write_folder(record: dict[str, Any], folder: Path) -> str:
    """Write the file, and the `config.json` beside it. Return the kind of the processor."""
    (folder / record["file"]).write_text(json.dumps(record["content"]), encoding="utf-8")
    config = next((CONFIGS[name] for name in folders_of(record) if name in CONFIGS), {})
    if config:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    content = record["content"]
    named = content.get("image_processor_type") or content.get("feature_extractor_type")
    return named or {"vit": "ViTImageProcessor"}[config["model_type"]]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["source"])
def test_the_images_equal_those_of_transformers(record: dict[str, Any], tmp_path: Path) -> None:
    kind = write_folder(record, tmp_path)
    if kind.startswith(REFUSED):
        with pytest.raises(CheckpointError, match=kind):
            ImageProcessor.from_pretrained(tmp_path)
        return
    family = kind.removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
    module = f"transformers.models.{family.lower()}.image_processing_pil_{family.lower()}"
    name = f"{family}ImageProcessorPil"
    theirs = getattr(__import__(module, fromlist=[name]), name).from_pretrained(tmp_path)
    ours = ImageProcessor.from_pretrained(tmp_path)
    for size in SIZES:
        pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
        expected = np.asarray(theirs(Image.fromarray(pixels), return_tensors="np")["pixel_values"])
        np.testing.assert_array_equal(ours(pixels).numpy(), expected)
