"""Pictures that say much and hold little are refused before they are decoded, wherever pictures are opened."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tallow import keras
from tallow.errors import ImageError
from tallow.io.images import MAX_PIXELS, read_image
from tallow.models import ImageProcessor

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")

Read = Callable[[Path], Any]
READERS: dict[str, Read] = {
    "read_image": read_image,
    "ImageProcessor": ImageProcessor(size=(4, 4), resample=0, image_mean=(0.0,) * 3, image_std=(1.0,) * 3),
    "load_img": keras.utils.load_img,
    "load_img of bytes": lambda path: keras.utils.load_img(io.BytesIO(path.read_bytes())),
}


def saved(image: Any, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def png(width: int, height: int, *chunks: bytes) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + chunk(b"IDAT", zlib.compress(bytes(72))) + chunk(b"IEND", b"")
    )


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def tiff(width: int, height: int, tile: int) -> bytes:
    """Return a grey TIFF of one tile, compressed by deflate."""
    data = zlib.compress(bytes(10000))
    values = {256: width, 257: height, 258: 8, 259: 8, 262: 1, 277: 1, 322: tile, 323: tile, 324: 8, 325: len(data)}
    data += bytes(len(data) % 2)
    tags = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in values.items())
    return struct.pack("<2sHI", b"II", 42, 8 + len(data)) + data + struct.pack("<H", len(values)) + tags + bytes(4)


def with_size(file: bytes, at: int, form: str, *size: int) -> bytes:
    raw = bytearray(file)
    struct.pack_into(form, raw, at, *size)
    return bytes(raw)


SMALL = Image.new("RGB", (8, 8), (9, 8, 7))
FRAMES = [Image.fromarray(np.full((8, 8, 3), grey, np.uint8)) for grey in (0, 90, 200)]
MOVING = {"save_all": True, "append_images": FRAMES[1:]}
JPEG = saved(SMALL, "JPEG")
WEBP = saved(FRAMES[0], "WEBP", **MOVING)
SIDE = 60_000  # its square exceeds the limit 40 times
TOO_LARGE = {
    "PNG": png(100_000, 100_000),
    "PNG a little too large": png(MAX_PIXELS // 8000 + 1, 8000),
    "JPEG": with_size(JPEG, JPEG.index(b"\xff\xc0") + 5, ">HH", SIDE, SIDE),
    "GIF": with_size(saved(SMALL, "GIF"), 6, "<HH", SIDE, SIDE),
    "moving WebP": with_size(WEBP, WEBP.index(b"VP8X") + 12, "<I2s", 16382, b"\xfe\x3f"),
    "BMP": with_size(saved(SMALL, "BMP"), 18, "<ii", SIDE, SIDE),
    "TIFF": tiff(SIDE, SIDE, SIDE),
    "tile of a TIFF": tiff(8, 8, 20_000),
}


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The images that Pillow began to decode."""
    from PIL import ImageFile

    names: list[str] = []
    load = ImageFile.ImageFile.load

    def recorded(self: Any) -> Any:
        names.append(type(self).__name__)
        return load(self)

    monkeypatch.setattr(ImageFile.ImageFile, "load", recorded)
    return names


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("kind", TOO_LARGE)
def test_an_image_of_too_many_pixels_is_not_decoded(
    kind: str, reader: Read, tmp_path: Path, decoded: list[str]
) -> None:
    path = tmp_path / "image"
    path.write_bytes(TOO_LARGE[kind])
    with pytest.raises(ImageError, match="pixels"):
        reader(path)
    assert not decoded


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_jpeg_of_many_scans_is_not_decoded(reader: Read, tmp_path: Path, decoded: list[str]) -> None:
    """119 bytes more take half a second more, for an image of 9000 by 9000."""
    file = saved(Image.new("L", (3000, 3000)), "JPEG", progressive=True)
    last = file.rindex(b"\xff\xda")
    path = tmp_path / "image.jpg"
    path.write_bytes(file[:last] + file[last:-2] * 200 + file[-2:])
    with pytest.raises(ImageError, match="in 205 parts"):
        reader(path)
    assert not decoded
    path.write_bytes(file)
    assert reader(path) is not None


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("name", ["a.svg", "a.eps"])
def test_programs_are_no_images(name: str, reader: Read, tmp_path: Path, decoded: list[str]) -> None:
    path = tmp_path / name
    if name == "a.eps":
        SMALL.save(path)
    else:
        path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><script>1</script></svg>')
    decoded.clear()
    with pytest.raises(ImageError, match="cannot identify"):
        reader(path)
    assert not decoded


@pytest.mark.parametrize("format", ["GIF", "WEBP", "TIFF"])
def test_only_the_first_image_of_a_file_is_decoded(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "image"
    path.write_bytes(saved(FRAMES[0], format, **MOVING))
    with Image.open(path) as picture:
        assert picture.n_frames == 3
        monkeypatch.delattr(type(picture), "seek")
    assert np.asarray(read_image(path)).max() < 3


@pytest.mark.skipif(int(Image.__version__.partition(".")[0]) < 13, reason="Pillow 13 bounds what it keeps of metadata")
def test_metadata_that_inflates(tmp_path: Path) -> None:
    """Text of 100 MB, a profile of 100 MB, and 5000 tags of 400 kB that overlap."""
    path = tmp_path / "image.png"
    zeros = zlib.compress(bytes(100 << 20), 9)
    directory = struct.pack("<2sHI400000sH", b"II", 42, 8 + 400_000, b"", 5000)
    directory += b"".join(struct.pack("<HHII", 30_000 + i, 7, 400_000, 8) for i in range(5000)) + bytes(4)
    for metadata in (chunk(b"zTXt", b"k\0\0" + zeros), chunk(b"iCCP", b"k\0\0" + zeros)):
        path.write_bytes(png(8, 8, metadata))
        with pytest.raises(ImageError, match="too large"):
            read_image(path)
    path.write_bytes(png(8, 8, chunk(b"eXIf", directory)))
    with pytest.warns(UserWarning, match="Tag data larger than file"):
        assert read_image(path).size == (8, 8)
