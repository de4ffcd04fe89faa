"""Preprocessing compared with transformers' image processors that use Pillow: equal values; and hostile images."""

from __future__ import annotations

import json
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tallow.errors import ArgumentError, CheckpointError, ImageError, MissingPackageError, ShapeError
from tallow.models import ImageProcessor

transformers = pytest.importorskip("transformers")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

RNG = np.random.default_rng(0)
KINDS = ("ViT", "CLIP", "Bit", "ConvNext")
# Kind of processor and its settings, other than transformers' defaults.
SETTINGS = [
    *((kind, {}) for kind in KINDS),
    ("ViT", {"size": {"height": 30, "width": 50}, "resample": 3}),
    ("ViT", {"do_resize": False, "do_center_crop": True, "crop_size": {"height": 40, "width": 80}}),
    ("CLIP", {"size": {"shortest_edge": 33}, "crop_size": {"height": 40, "width": 21}, "resample": 1}),
    ("ConvNext", {"size": {"shortest_edge": 33}, "crop_pct": 0.7}),
    ("Bit", {"do_normalize": False, "rescale_factor": 1 / 100}),
    ("Bit", {"do_rescale": False, "image_mean": [1, 2, 3], "image_std": [4, 5, 6], "resample": 0}),
]


def theirs(kind: str, **settings: Any) -> Any:
    name = f"{kind}ImageProcessorPil"
    module = __import__(f"transformers.models.{kind.lower()}.image_processing_pil_{kind.lower()}", fromlist=[name])
    return getattr(module, name)(**settings)


def picture(height: int, width: int, channels: int = 3) -> npt.NDArray[np.uint8]:
    """Return an image with sharp edges and flat areas."""
    blocks = RNG.integers(0, 256, (height // 6 + 1, width // 6 + 1, channels), dtype=np.uint8)
    return blocks.repeat(6, 0).repeat(6, 1)[:height, :width]


def vit(folder: Path) -> ImageProcessor:
    theirs("ViT", size={"height": 12, "width": 16}).save_pretrained(folder)
    return ImageProcessor.from_pretrained(folder)


@pytest.mark.parametrize(("kind", "settings"), SETTINGS, ids=str)
def test_values(kind: str, settings: dict[str, Any], tmp_path: Path) -> None:
    reference = theirs(kind, **settings)
    reference.save_pretrained(tmp_path)
    processor = ImageProcessor.from_pretrained(tmp_path)
    for shape in ((60, 90), (91, 50), (25, 31)):
        pixels = picture(*shape)
        expected = np.asarray(reference(Image.fromarray(pixels), return_tensors="np")["pixel_values"])
        np.testing.assert_array_equal(processor(pixels).numpy(), expected)
        np.testing.assert_array_equal(processor([Image.fromarray(pixels)] * 2)[1:].numpy(), expected)


@pytest.mark.parametrize("mode", ["L", "P", "CMYK", "1", "LA", "RGBA", "PA"])
def test_kinds_of_images(mode: str, tmp_path: Path) -> None:
    """Transparent parts are put on white."""
    reference = theirs("CLIP")
    reference.save_pretrained(tmp_path)
    image = Image.fromarray(picture(40, 60, 4)).convert(mode)
    expected = np.asarray(reference(image, return_tensors="np")["pixel_values"])
    np.testing.assert_array_equal(ImageProcessor.from_pretrained(tmp_path)(image).numpy(), expected)


def test_arrays_of_grey_levels_and_with_opacity(tmp_path: Path) -> None:
    processor = vit(tmp_path)
    for pixels in (picture(20, 30, 4), picture(20, 30)[:, :, 0]):
        np.testing.assert_array_equal(processor(pixels).numpy(), processor(Image.fromarray(pixels)).numpy())


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_of_files(orientation: int, tmp_path: Path) -> None:
    processor = vit(tmp_path)
    exif = Image.Exif()
    exif[0x112] = orientation
    path = tmp_path / "photo.jpg"
    Image.fromarray(picture(40, 60)).save(path, exif=exif)
    upright = transformers.image_utils.load_image(str(path))
    expected = np.asarray(theirs("ViT", size={"height": 12, "width": 16})(upright, return_tensors="np")["pixel_values"])
    np.testing.assert_array_equal(processor(path).numpy(), expected)
    np.testing.assert_array_equal(processor([str(path)]).numpy(), expected)


@pytest.mark.parametrize(
    ("entries", "usual"),
    [
        # ViT, DINOv2 and CLIP before transformers 4.20: no name of the kind, or an older one, and one number for a size
        ({"do_normalize": True, "do_resize": True, "size": 224}, "ViT"),
        ({"feature_extractor_type": "ViTFeatureExtractor", "size": 224, "resample": 2}, "ViT"),
        ({"image_processor_type": "ViTImageProcessorFast", "do_convert_rgb": None}, "ViT"),
        (
            {"feature_extractor_type": "CLIPFeatureExtractor", "size": 224, "crop_size": 224, "do_center_crop": True},
            "CLIP",
        ),
        ({"image_processor_type": "BitImageProcessor", "_valid_processor_keys": ["images"]}, "Bit"),
    ],
    ids=str,
)
def test_older_files(entries: dict[str, Any], usual: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit"}), encoding="utf-8")
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(entries), encoding="utf-8")
    pixels = picture(60, 90)
    expected = np.asarray(theirs(usual)(Image.fromarray(pixels), return_tensors="np")["pixel_values"])
    np.testing.assert_array_equal(ImageProcessor.from_pretrained(tmp_path)(pixels).numpy(), expected)


def test_the_file_for_texts_and_images(tmp_path: Path) -> None:
    expected = vit(tmp_path)
    entries = json.loads((tmp_path / "preprocessor_config.json").read_text(encoding="utf-8"))
    (tmp_path / "preprocessor_config.json").unlink()
    nested = {"image_processor": entries, "processor_class": "CLIPProcessor"}
    (tmp_path / "processor_config.json").write_text(json.dumps(nested), encoding="utf-8")
    assert ImageProcessor.from_pretrained(tmp_path) == expected
    (tmp_path / "processor_config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match="no image_processor"):
        ImageProcessor.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"image_processor_type": "SwinImageProcessor"}, "SwinImageProcessor.*supports ViT, Bit, .*CLIP"),
        ({"image_processor_type": None}, "image_processor_type is None"),
        ({"do_pad": True}, "do_pad is True"),
        ({"crop_pct": 0.9}, "crop_pct is 0.9 of a"),
        ({"size": {"longest_edge": 30}}, "size"),
        ({"size": {"height": 10**6, "width": 1000}}, "size"),
        ({"size": {"height": -1, "width": 1000}}, "size"),
        ({"size": "big"}, "size"),
        ({"crop_size": {"shortest_edge": []}}, "crop_size"),
        ({"do_center_crop": True}, "crop_size"),
        ({"resample": 6}, "resample"),
        ({"image_mean": [0.5, 0.5]}, "image_mean"),
        ({"image_std": [0.5, 0.5, 0]}, "image_std"),
        ({"image_std": 0.5}, "image_std"),
        ({"do_resize": "yes"}, "do_resize"),
    ],
    ids=str,
)
def test_files_that_are_refused(entries: dict[str, Any], message: str, tmp_path: Path) -> None:
    vit(tmp_path)
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | entries), encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        ImageProcessor.from_pretrained(tmp_path)


def test_a_folder_without_the_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"preprocessor_config\.json does not exist"):
        ImageProcessor.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "array",
    [np.zeros((8, 8, 3)), np.zeros((3, 8, 8), np.uint8), np.zeros((0, 8, 3), np.uint8), np.zeros(8, np.uint8)],
    ids=lambda array: f"{array.dtype} {array.shape}",
)
def test_arrays_that_are_no_images(array: npt.NDArray[Any], tmp_path: Path) -> None:
    with pytest.raises(ShapeError, match="expected uint8"):
        vit(tmp_path)(array)


def test_batches(tmp_path: Path) -> None:
    theirs("CLIP", do_center_crop=False).save_pretrained(tmp_path)
    processor = ImageProcessor.from_pretrained(tmp_path)
    with pytest.raises(ShapeError, match="do not form a batch"):
        processor([picture(40, 60), picture(60, 40)])
    with pytest.raises(ArgumentError, match="no images"):
        processor([])
    with pytest.raises(ImageError, match="pixels"):  # the longer side would have 22 million pixels
        processor(np.zeros((1, 100_000), np.uint8))


@pytest.mark.parametrize("format", ["png", "jpeg", "gif", "bmp", "webp", "tiff"])
def test_damaged_files(format: str, tmp_path: Path) -> None:
    """A file that is cut or changed is read, or refused with an ImageError."""
    processor, path = vit(tmp_path), tmp_path / f"image.{format}"
    Image.fromarray(picture(40, 60)).save(path, format=format)
    whole = path.read_bytes()
    messages = []
    for _ in range(120):
        changed = bytearray(whole[: RNG.integers(0, len(whole) + 1)] if RNG.random() < 0.5 else whole)
        for place in RNG.integers(0, max(len(changed), 1), RNG.integers(0, 4)):
            changed[place : place + 1] = RNG.bytes(1)
        path.write_bytes(changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's
            try:
                shape = processor(path).shape
            except ImageError as error:
                messages.append(str(error))
            else:
                assert shape == (1, 3, 12, 16)
    assert len(messages) > 20
    assert all(str(path) in message and "hint: " in message for message in messages)


@pytest.mark.parametrize("side", [10_000, 50_000])
def test_decompression_bombs(side: int, tmp_path: Path) -> None:
    """A few bytes that claim to be hundreds of megabytes. Pillow itself refuses only the larger one."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    path = tmp_path / "bomb.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b""))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ImageError, match="pixels"):
            vit(tmp_path)(path)


def test_files_that_run_programs_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "image.eps"
    Image.fromarray(picture(40, 60)).save(path)
    with pytest.raises(ImageError, match="cannot identify"):
        vit(tmp_path)(path)


def test_missing_files_and_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processor = vit(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nothing\.png"):
        processor(tmp_path / "nothing.png")
    Image.fromarray(picture(40, 60)).save(tmp_path / "picture.png")
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    for image in (picture(40, 60), tmp_path / "picture.png"):
        with pytest.raises(MissingPackageError, match=r"(?i)install it: .*pillow"):
            processor(image)
