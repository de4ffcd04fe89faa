"""Images as cameras, scanners and telephones leave them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tallow.errors import ImageError, MissingPackageError
from tallow.io.images import as_rgb, read_image
from tallow.models import ImageProcessor

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

RAMP = (np.arange(64).reshape(8, 8) * 1040).astype(np.uint16)  # to 65520
GREYS = np.asarray(RAMP >> 8, np.uint8)


def pixels_of(image: object, tmp_path: Path, name: str, **options: object) -> np.ndarray:
    path = tmp_path / name
    image.save(path, **options)  # type: ignore[attr-defined]
    picture = read_image(path)
    assert picture.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(as_rgb(Image.open(path))), np.asarray(picture))
    return np.asarray(picture)[..., 0]


@pytest.mark.parametrize(
    ("levels", "name"),
    [
        (RAMP, "a.png"),
        (RAMP, "a.tiff"),
        (RAMP.astype(">u2"), "b.tiff"),
        (RAMP.astype(np.int32), "c.tiff"),
        (RAMP.astype(np.int32) << 15, "d.tiff"),
        (GREYS.astype(np.int32), "e.tiff"),
        (GREYS.astype(np.float32), "f.tiff"),
        ((GREYS / 255).astype(np.float32), "g.tiff"),
    ],
    ids=lambda x: x if isinstance(x, str) else f"{x.dtype}",
)
def test_grey_levels_of_more_than_8_bits(levels: np.ndarray, name: str, tmp_path: Path) -> None:
    np.testing.assert_array_equal(pixels_of(Image.fromarray(levels), tmp_path, name), GREYS)


@pytest.mark.parametrize("levels", [np.float32(-1), np.float32(300), np.float32("nan"), np.int32(-1)], ids=str)
def test_grey_levels_without_a_scale(levels: np.generic, tmp_path: Path) -> None:
    Image.fromarray(np.full((8, 8), levels)).save(tmp_path / "a.tiff")
    with pytest.raises(ImageError, match=r"grey levels from .*\n  hint: scale them"):
        read_image(tmp_path / "a.tiff")


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_opacity_of_a_file_is_dropped(mode: str, tmp_path: Path) -> None:
    """As transformers' `load_image` does; an image that Pillow opened is put on white, as its processors do."""
    path = tmp_path / "a.png"
    Image.new("RGBA", (4, 4), (200, 200, 200, 0)).convert(mode).save(path)
    assert np.asarray(read_image(path)).min() == 200
    assert np.asarray(as_rgb(Image.open(path))).min() == 255
    processor = ImageProcessor(size=(4, 4), resample=0, image_mean=(0.0,) * 3, image_std=(1.0,) * 3)
    np.testing.assert_allclose(processor(path).numpy(), 200 / 255, rtol=1e-6)
    np.testing.assert_allclose(processor(Image.open(path)).numpy(), 1, rtol=1e-6)


DAMAGES = {
    "not a TIFF header": b"Exif\0\0not a TIFF header",
    "empty": b"",
    "an offset beyond its end": b"Exif\0\0" + struct.pack("<2sHI", b"II", 42, 10**6),
    "a string for the orientation": b"Exif\0\0" + struct.pack("<2sHIHHHIII", b"II", 42, 8, 1, 0x112, 2, 2, 0x61, 0),
    "a count beyond its end": b"Exif\0\0" + struct.pack("<2sHIH", b"II", 42, 8, 60000),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's, about the EXIF block
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["a.png", "a.webp", "a.jpg"])
def test_a_damaged_exif_block(damage: str, name: str, tmp_path: Path) -> None:
    Image.new("RGB", (8, 6), (9, 9, 9)).save(tmp_path / name, exif=DAMAGES[damage])
    assert read_image(tmp_path / name).size == (8, 6)


def test_avif(tmp_path: Path) -> None:
    if ".avif" not in Image.registered_extensions():
        pytest.skip("this Pillow cannot write AVIF")
    image = Image.new("RGB", (32, 24), (200, 10, 10))
    image.save(tmp_path / "a.avif", quality=100)
    np.testing.assert_allclose(np.asarray(read_image(tmp_path / "a.avif"), int), np.asarray(image), atol=3)


def test_heic_names_the_package_that_reads_it(tmp_path: Path) -> None:
    try:
        import pillow_heif  # noqa: F401
    except ImportError:
        path = tmp_path / "photo.heic"
        path.write_bytes(struct.pack(">I4s4sI", 24, b"ftyp", b"heic", 0) + b"mif1heic" + bytes(100))
        with pytest.raises(MissingPackageError, match=r"photo\.heic, a HEIC image, needs the package pillow-heif"):
            read_image(path)
    else:
        pytest.skip("pillow-heif is installed")
