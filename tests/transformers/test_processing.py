"""Image processors, feature extractors and processors: results equal those of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.tokenizer_folders import write

from tallow.errors import ArgumentError, CheckpointError, UnsupportedError

pytest.importorskip("transformers")
Image = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(0)
LEVELS = RNG.integers(0, 256, (37, 53, 3)).astype(np.uint8)
SOUNDS = [RNG.normal(size=6000).astype(np.float32), RNG.normal(size=20123).astype(np.float32) / 9]
SIZES: dict[str, dict[str, Any]] = {
    "ViTImageProcessor": {"size": {"height": 24, "width": 20}},
    "CLIPImageProcessor": {"size": {"shortest_edge": 26}, "crop_size": {"height": 20, "width": 22}},
    "BitImageProcessor": {"size": 26, "crop_size": 20},
}
IMAGES: dict[str, Any] = {
    "picture": Image.fromarray(LEVELS),
    "pictures": [Image.fromarray(LEVELS), Image.fromarray(LEVELS[::-1])],
    "levels": LEVELS,
    "channels first": LEVELS.transpose(2, 0, 1),
    "batch": np.stack([LEVELS, LEVELS[::-1]]),
    "0 to 1": (LEVELS / 255).astype(np.float32),
}
CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "tensors": {"return_tensors": "pt"},
    "no rescaling": {"do_rescale": False},
    "no normalization": {"do_normalize": False, "rescale_factor": 1 / 127.5},
    "size": {"size": (30, 31), "resample": 0},
    "crop": {"do_center_crop": True, "crop_size": 18},
    "mean": {"image_mean": [0.1, 0.2, 0.3], "image_std": [1.0, 2.0, 3.0], "return_tensors": "np"},
    "one mean": {"image_mean": 0.25, "image_std": 2.0, "return_tensors": "np"},
    "no resizing": {"do_resize": False},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", SIZES)
def test_images(name: str, changes: dict[str, Any]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        processor = getattr(tf, name)(**SIZES[name])
        rows = [processor(image, **changes)["pixel_values"] for image in IMAGES.values()]
        tensor = torch.tensor(LEVELS.tolist(), dtype=torch.uint8).permute(2, 0, 1)
        return [*rows, processor.preprocess(images=tensor, **changes)["pixel_values"]]

    both(program)


@pytest.mark.parametrize("name", SIZES)
def test_image_processor_files(name: str, tmp_path: Path) -> None:
    def write_files(tf: Any, torch: Any) -> Any:
        processor = getattr(tf, name)(**SIZES[name], image_mean=[0.1, 0.2, 0.3])
        processor.save_pretrained(tmp_path / tf.__name__)
        return processor.model_input_names

    both(write_files)
    for folder in sorted(tmp_path.iterdir()):
        for kind in ("AutoImageProcessor", name):

            def program(tf: Any, torch: Any, kind: str = kind, folder: Path = folder) -> Any:
                processor = getattr(tf, kind).from_pretrained(folder, do_normalize=False)
                shown = [dict(processor.size), processor.do_resize, processor.image_mean, processor.resample + 0]
                return [*shown, processor(LEVELS)["pixel_values"]]

            both(program)


def test_errors_of_images(tmp_path: Path) -> None:
    import tallow.transformers as tf

    processor = tf.ViTImageProcessor()
    for images, match in (
        ([], "no images"),
        (np.full((4, 4, 3), 300.0), "levels of"),
        (np.full((4, 4, 3), 1.5), "between"),
    ):
        with pytest.raises(ArgumentError, match=match):
            processor(images)
    with pytest.raises(ArgumentError, match="a size"):
        processor(LEVELS, size="large")
    with pytest.warns(UserWarning, match="no setting colour"):
        processor(LEVELS, colour="red")
    with pytest.raises(CheckpointError, match="no preprocessor_config"):
        tf.AutoImageProcessor.from_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "GLPNImageProcessor"}')
    with pytest.raises(CheckpointError, match="GLPNImageProcessor"):
        tf.AutoImageProcessor.from_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="GLPNImageProcessor"):
        tf.AutoFeatureExtractor.from_pretrained(tmp_path)


SPEECH: dict[str, dict[str, Any]] = {
    "as it is": {},
    "tensors": {"return_tensors": "pt"},
    "mask": {"return_attention_mask": True},
    "longest": {"padding": "longest", "truncation": False, "return_attention_mask": True},
    "normalized": {"do_normalize": True},
    "normalized, mask": {"do_normalize": True, "return_attention_mask": True},
    "multiple": {"max_length": 9000, "pad_to_multiple_of": 400},
}


@pytest.mark.parametrize("options", SPEECH.values(), ids=SPEECH)
def test_speech(options: dict[str, Any]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        extractor = tf.WhisperFeatureExtractor(chunk_length=1)
        sounds = [SOUNDS[0], SOUNDS, SOUNDS[0].tolist(), np.stack([SOUNDS[0]] * 2)]
        return [dict(extractor(sound, sampling_rate=16000, **options)) for sound in sounds]

    both(program)


def test_feature_extractor_files(tmp_path: Path) -> None:
    def write_files(tf: Any, torch: Any) -> Any:
        extractor = tf.WhisperFeatureExtractor(feature_size=40, chunk_length=1)
        extractor.save_pretrained(tmp_path / tf.__name__)
        return [extractor.n_samples, extractor.nb_max_frames, extractor.sampling_rate, extractor.hop_length]

    both(write_files)
    for folder in sorted(tmp_path.iterdir()):
        path = str(folder)
        both(lambda tf, torch, path=path: tf.AutoFeatureExtractor.from_pretrained(path)(SOUNDS[0], sampling_rate=16000))


def test_errors_of_speech() -> None:
    def program(tf: Any, torch: Any, *args: Any) -> Any:
        return tf.WhisperFeatureExtractor(chunk_length=1)(*args[:1], **args[1])

    both_raise(program, SOUNDS[0], {"sampling_rate": 8000}, errors=ArgumentError)
    both_raise(program, np.zeros((2, 2, 9)), {}, errors=ArgumentError)
    both_raise(program, SOUNDS, {"padding": "do_not_pad"}, errors=ArgumentError)
    both_raise(program, SOUNDS[0], {"padding": "long"}, errors=ArgumentError)
    import tallow.transformers as tf

    with pytest.raises(UnsupportedError, match="n_fft"):
        tf.WhisperFeatureExtractor(n_fft=200)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a CLIP processor, with a tokenizer of another kind, which is smaller."""
    import transformers

    folder = write(tmp_path_factory.mktemp("clip"), "RobertaTokenizer")
    transformers.CLIPImageProcessor(**SIZES["CLIPImageProcessor"]).save_pretrained(folder)
    config = {"model_type": "clip", "tokenizer_class": "RobertaTokenizer"}
    (Path(folder) / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    "inputs",
    [
        {"text": ["a cat", "a quick fox"]},
        {"images": IMAGES["picture"]},
        {"text": ["a cat"], "images": IMAGES["pictures"], "return_tensors": "pt", "padding": True},
        {"text": "cat", "images": LEVELS, "text_kwargs": {"add_special_tokens": False}, "do_normalize": False},
        {
            "text": "cat",
            "images": LEVELS,
            "images_kwargs": {"do_rescale": False},
            "common_kwargs": {"return_tensors": "np"},
        },
    ],
)
def test_texts_with_images(clip: str, inputs: dict[str, Any]) -> None:
    both(lambda tf, torch: dict(tf.CLIPProcessor.from_pretrained(clip)(**inputs)))


def test_processor_files(clip: str, tmp_path: Path) -> None:
    def write_files(tf: Any, torch: Any) -> Any:
        processor = tf.AutoProcessor.from_pretrained(clip)
        processor.save_pretrained(tmp_path / tf.__name__)
        ids = processor(text="a cat")["input_ids"]
        return [
            type(processor).__name__,
            processor.decode(ids),
            processor.batch_decode([ids], skip_special_tokens=True),
        ]

    both(write_files)
    for folder in sorted(tmp_path.iterdir()):
        path = str(folder)
        both(lambda tf, torch, path=path: dict(tf.CLIPProcessor.from_pretrained(path)(text="cat", images=LEVELS)))


def test_processor_of_one_part(tmp_path: Path) -> None:
    folder = write(tmp_path, "BertTokenizer")
    (Path(folder) / "config.json").write_text('{"model_type": "bert"}')
    both(lambda tf, torch: type(tf.AutoProcessor.from_pretrained(folder)).__name__)


def test_errors_of_processors(clip: str, tmp_path: Path) -> None:
    both_raise(lambda tf, torch: tf.CLIPProcessor.from_pretrained(clip)(), errors=ArgumentError)
    both_raise(lambda tf, torch: tf.CLIPProcessor(tf.CLIPImageProcessor()), errors=TypeError)
    both_raise(lambda tf, torch: tf.AutoProcessor(), errors=TypeError)
    both_raise(lambda tf, torch: tf.AutoProcessor.from_pretrained(tmp_path), errors=CheckpointError)
