"""MNIST, Fashion-MNIST and CIFAR-10, from files written here in the published formats."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import struct
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.memory_limit import limit_peak_memory
from support.serving import serve

import tallow as tl
from tallow import keras
from tallow.data import CIFAR10, MNIST, DataLoader, FashionMNIST, Subset, TensorDataset
from tallow.data.cifar import unpack
from tallow.errors import DatasetError, MissingPackageError

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (7, 28, 28), np.uint8)
LABELS = np.array([3, 1, 4, 1, 5, 9, 2], np.uint8)
PHOTOS = RNG.integers(0, 256, (4, 3, 32, 32), np.uint8)
KINDS = [9, 0, 5, 5]


def idx(array: Any) -> bytes:
    """Write the IDX format, as http://yann.lecun.com/exdb/mnist/ describes it."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_mnist(folder: Path, part: str = "train", suffix: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in ((f"{part}-images-idx3-ubyte", IMAGES), (f"{part}-labels-idx1-ubyte", LABELS)):
        content = idx(array)
        (folder / f"{name}{suffix}").write_bytes(gzip.compress(content) if suffix else content)


def python2_batch(pixels: Any, labels: list[int]) -> bytes:
    """Write a pickle as Python 2 and its NumPy did with protocol 2: byte strings (U, T), numpy.core.multiarray."""

    def string(raw: bytes) -> bytes:
        return b"U" + bytes([len(raw)]) + raw if len(raw) < 256 else b"T" + struct.pack("<i", len(raw)) + raw

    def integer(n: int) -> bytes:
        return b"J" + struct.pack("<i", n)

    dtype = b"cnumpy\ndtype\n(" + string(b"u1") + integer(0) + integer(1) + b"tR("
    dtype += integer(3) + string(b"|") + b"NNN" + integer(-1) + integer(-1) + integer(0) + b"tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + integer(0) + b"\x85" + string(b"b") + b"tR("
    array += integer(1) + b"(" + integer(len(pixels)) + integer(3072) + b"t" + dtype + b"\x89"
    array += string(pixels.tobytes()) + b"tb"
    items = string(b"batch_label") + string(b"training batch 1 of 5")
    items += string(b"labels") + b"](" + b"".join(map(integer, labels)) + b"e"
    return b"\x80\x02}(" + items + string(b"data") + array + b"u."


def write_cifar(folder: Path, suffix: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        if suffix:
            content = b"".join(bytes([kind]) + photo.tobytes() for kind, photo in zip(KINDS, PHOTOS, strict=True))
        else:
            content = python2_batch(PHOTOS, KINDS)
        (folder / f"{name}{suffix}").write_bytes(content)


# ------------------------------------------------------------------------------------------------------------ MNIST


@pytest.mark.parametrize("folder", ["MNIST/raw", "MNIST", "."])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_mnist_is_found_in_its_layouts(tmp_path: Path, folder: str, suffix: str) -> None:
    write_mnist(tmp_path / folder, suffix=suffix)
    dataset = MNIST(tmp_path)
    assert len(dataset) == 7
    assert dataset.data.dtype is tl.uint8
    assert dataset.data.tolist() == IMAGES.tolist()
    assert dataset.targets.dtype is tl.int64
    assert dataset.targets.tolist() == LABELS.tolist()


def test_an_item_is_an_image_in_0_to_1_and_a_label(tmp_path: Path) -> None:
    write_mnist(tmp_path, "t10k")
    image, label = MNIST(tmp_path, train=False)[-2]
    assert image.dtype is tl.float32
    assert image.shape == (1, 28, 28)
    np.testing.assert_array_equal(image.numpy()[0], IMAGES[-2].astype(np.float32) / 255)
    assert label == 9
    assert type(label) is int


def test_the_classes_have_names(tmp_path: Path) -> None:
    write_mnist(tmp_path / "FashionMNIST" / "raw")
    dataset = FashionMNIST(tmp_path)
    assert dataset.classes[9] == "Ankle boot"
    assert dataset.class_to_idx["Trouser"] == 1
    assert MNIST.classes[3] == "3 - three"
    assert "7 images" in repr(dataset)


def test_transforms_are_called_for_each_item(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    dataset = MNIST(tmp_path, transform=lambda image: (image - 0.5) / 0.5, target_transform=lambda label: label % 2)
    image, label = dataset[2]
    np.testing.assert_allclose(image.numpy()[0], IMAGES[2] / 127.5 - 1, atol=1e-6)
    assert label == 0
    _, labels = next(iter(DataLoader(dataset, batch_size=7)))
    assert labels.tolist() == [1, 1, 0, 1, 1, 1, 0]


def test_a_batch_is_its_items(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    write_cifar(tmp_path)
    for dataset in (MNIST(tmp_path), CIFAR10(tmp_path), Subset(MNIST(tmp_path), [6, 2, 1, 0])):
        order = [3, 0, 2, 2]
        images, labels = next(iter(DataLoader(dataset, batch_size=4, sampler=order)))
        assert labels.dtype is tl.int64
        assert labels.tolist() == [dataset[i][1] for i in order]
        assert images.is_contiguous()
        np.testing.assert_array_equal(images.numpy(), np.stack([dataset[i][0].numpy() for i in order]))


def test_whole_tensors_are_all_items(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    write_cifar(tmp_path)
    for dataset in (MNIST(tmp_path), CIFAR10(tmp_path, train=False)):
        whole_dataset = TensorDataset(*dataset.tensors())
        assert len(whole_dataset) == len(dataset)
        image, label = whole_dataset[1]
        np.testing.assert_array_equal(image.numpy(), dataset[1][0].numpy())
        assert label.item() == dataset[1][1]


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10"])
def test_keras_gives_arrays_of_bytes(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    folder = tmp_path / "datasets"
    for part in ("train", "t10k"):
        write_mnist(folder / "MNIST" / "raw", part, ".gz")
        write_mnist(folder / "FashionMNIST" / "raw", part)
    write_cifar(folder)
    (x_train, y_train), (x_test, y_test) = getattr(keras.datasets, name).load_data()
    assert {array.dtype for array in (x_train, y_train, x_test, y_test)} == {np.dtype("uint8")}
    if name == "cifar10":
        np.testing.assert_array_equal(x_test, PHOTOS.transpose(0, 2, 3, 1))
        np.testing.assert_array_equal(y_train, np.array(KINDS * 5)[:, None])
    else:
        np.testing.assert_array_equal(x_train, IMAGES)
        np.testing.assert_array_equal(y_test, LABELS)


def test_data_and_targets_can_be_chosen_from(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    dataset = MNIST(tmp_path)
    ones = dataset.targets == 1
    dataset.data, dataset.targets = dataset.data[ones], dataset.targets[ones]
    assert [label for _, label in Subset(dataset, [0, 1])] == [1, 1]
    images, _ = next(iter(DataLoader(dataset, batch_size=2)))
    np.testing.assert_array_equal(images.numpy()[:, 0], IMAGES[[1, 3]].astype(np.float32) / 255)


def test_images_are_contiguous(tmp_path: Path) -> None:
    write_cifar(tmp_path)
    dataset = CIFAR10(tmp_path, train=False)
    dataset.data = np.ascontiguousarray(dataset.data)
    assert dataset[0][0].is_contiguous()
    assert dataset.tensors()[0].is_contiguous()


def test_a_subclass_with_items_of_its_own_has_batches_of_them(tmp_path: Path) -> None:
    class Inverted(MNIST):
        def __getitem__(self, index: int) -> tuple[Any, Any]:
            image, label = super().__getitem__(index)
            return 1 - image, label

        @property
        def raw_folder(self) -> str:
            return str(tmp_path)

    write_mnist(tmp_path)
    images, _ = next(iter(DataLoader(Inverted(tmp_path), batch_size=7)))
    np.testing.assert_array_equal(images.numpy()[:, 0], 1 - IMAGES.astype(np.float32) / 255)


def test_a_missing_file_is_named_with_the_searched_folders(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as caught:
        MNIST(tmp_path)
    message = str(caught.value)
    assert "train-images-idx3-ubyte or train-images-idx3-ubyte.gz" in message
    assert str(tmp_path / "MNIST" / "raw") in message
    assert "download=True" in message
    with pytest.raises(DatasetError, match=r"no data_batch_1 or data_batch_1\.bin"):
        CIFAR10(tmp_path)


DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "truncated": ("images", lambda raw: raw[:-1], "too small for 7 items|take 5488 bytes; it has 5487"),
    "truncated header": ("images", lambda raw: raw[:9], "truncated in its header"),
    "empty": ("images", lambda raw: b"", "not an idx file"),
    "too long": ("images", lambda raw: raw + b"\0", "it has more"),
    "other magic": ("images", lambda raw: b"<htm" + raw[4:], "not an idx file of bytes in 3 dimensions.*<htm"),
    "labels for images": ("images", lambda raw: idx(LABELS), "not an idx file of bytes in 3 dimensions"),
    "other size": (
        "images",
        lambda raw: idx(np.zeros((7, 28, 27), np.uint8)),
        r"items of \(28, 27\); expected \(28, 28\)",
    ),
    "too many images": ("images", lambda raw: raw[:4] + b"\xff\xff\xff\xff" + raw[8:], "too small for"),
    "fewer labels": ("labels", lambda raw: idx(LABELS[:-1]), "6 labels for 7 images"),
    "label out of range": ("labels", lambda raw: raw[:-1] + b"\x0a", "label 10; labels must be from 0 to 9"),
}


@pytest.mark.parametrize("case", DAMAGE)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_damaged_files_are_refused(tmp_path: Path, case: str, suffix: str) -> None:
    part, damage, message = DAMAGE[case]
    write_mnist(tmp_path, suffix=suffix)
    (path,) = tmp_path.glob(f"train-{part}*")
    content = path.read_bytes()
    path.write_bytes(gzip.compress(damage(gzip.decompress(content))) if suffix else damage(content))
    with pytest.raises(DatasetError, match=message) as caught:
        MNIST(tmp_path)
    assert path.name in str(caught.value)


@pytest.mark.parametrize("damage", [lambda raw: raw[:-9], lambda raw: raw[:20] + b"\xff" * 20 + raw[40:]])
def test_damaged_gzip_files_are_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    write_mnist(tmp_path, suffix=".gz")
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DatasetError, match=r"train-images-idx3-ubyte\.gz"):
        MNIST(tmp_path)


def test_no_more_is_unpacked_than_the_header_promises(tmp_path: Path) -> None:
    write_mnist(tmp_path, suffix=".gz")
    bomb = gzip.compress(idx(IMAGES) + bytes(2**26))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(bomb)
    with pytest.raises(DatasetError, match="it has more"):
        MNIST(tmp_path)


def test_a_file_that_expands_too_much_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """As archives are: deflate makes a thousand bytes of one, digits hardly ten."""
    write_mnist(tmp_path, suffix=".gz")
    raw = idx(np.zeros((100_000, 28, 28), np.uint8))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(raw))
    with limit_peak_memory(2**20), pytest.raises(DatasetError, match="take 78400000 bytes; the limit"):
        MNIST(tmp_path)


# ------------------------------------------------------------------------------------------------------------ CIFAR


@pytest.mark.parametrize(
    ("folder", "suffix"), [("cifar-10-batches-py", ""), ("cifar-10-batches-bin", ".bin"), (".", ""), (".", ".bin")]
)
def test_cifar_is_found_in_its_layouts(tmp_path: Path, folder: str, suffix: str) -> None:
    write_cifar(tmp_path / folder, suffix)
    train, test = CIFAR10(tmp_path), CIFAR10(tmp_path, train=False)
    assert (len(train), len(test)) == (20, 4)
    assert train.data.shape == (20, 32, 32, 3)
    assert train.data.dtype == np.uint8
    assert train.targets == KINDS * 5
    np.testing.assert_array_equal(test.data, PHOTOS.transpose(0, 2, 3, 1))
    image, kind = test[2]
    assert image.shape == (3, 32, 32)
    np.testing.assert_array_equal(image.numpy(), PHOTOS[2].astype(np.float32) / 255)
    assert (kind, train.classes[kind]) == (5, "dog")


@pytest.mark.filterwarnings("ignore:dtype.*align")
def test_the_batches_written_here_are_pickles_of_python_2() -> None:
    batch = pickle.loads(python2_batch(PHOTOS, KINDS), encoding="latin1")
    assert batch["labels"] == KINDS
    np.testing.assert_array_equal(batch["data"], PHOTOS.reshape(4, 3072))


class Malicious:
    def __reduce__(self) -> Any:
        return print, ("this must not run",)


BROKEN: dict[str, bytes] = {
    "code": pickle.dumps({"data": Malicious(), "labels": KINDS}, protocol=2),
    "truncated": python2_batch(PHOTOS, KINDS)[:-100],
    "no dict": pickle.dumps([1, 2], protocol=2),
    "no array": pickle.dumps({"data": b"", "labels": KINDS}, protocol=2),
    "another shape": pickle.dumps({"data": np.zeros((4, 9), np.uint8), "labels": KINDS}, protocol=2),
    "another dtype": pickle.dumps({"data": np.zeros((4, 3072)), "labels": KINDS}, protocol=2),
    "words for labels": pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": ["cat"]}, protocol=2),
    "huge labels": pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": [2**70]}, protocol=2),
    "few labels": python2_batch(PHOTOS, KINDS[:2]),
    "label out of range": python2_batch(PHOTOS, [0, 1, 2, 10]),
    "label below range": python2_batch(PHOTOS, [0, 1, 2, -1]),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_batches_are_refused(tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_cifar(tmp_path)
    (tmp_path / "test_batch").write_bytes(BROKEN[case])
    with pytest.raises(DatasetError, match="test_batch"):
        CIFAR10(tmp_path, train=False)
    assert not capsys.readouterr().out


def test_binary_batches_are_whole_records(tmp_path: Path) -> None:
    write_cifar(tmp_path, ".bin")
    path = tmp_path / "test_batch.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DatasetError, match="12291 bytes are not a multiple of 3073"):
        CIFAR10(tmp_path, train=False)


# --------------------------------------------------------------------------------------------------------- download


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Serve a folder; yield its address and the folder."""
    folder = tmp_path / "served"
    folder.mkdir()
    with serve(folder) as address:
        yield address, folder


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


@pytest.fixture
def mnist_served(server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Serve a folder with MNIST as the second mirror; the first mirror does not answer."""
    address, folder = server
    write_mnist(folder, "train", ".gz")
    write_mnist(folder, "t10k", ".gz")
    monkeypatch.setattr(MNIST, "mirrors", [f"{address}gone/", address])
    monkeypatch.setattr(MNIST, "resources", [(path.name, md5(path)) for path in sorted(folder.iterdir())])
    return folder


@pytest.mark.native
def test_mnist_is_downloaded_once(tmp_path: Path, mnist_served: Path) -> None:
    root = tmp_path / "data"
    assert len(MNIST(root, download=True)) == 7
    assert sorted(path.name for path in (root / "MNIST" / "raw").iterdir()) == sorted(
        path.name for path in mnist_served.iterdir()
    )
    for path in mnist_served.iterdir():
        path.unlink()
    assert len(MNIST(root, train=False, download=True)) == 7


@pytest.mark.native
def test_existing_files_are_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MNIST, "mirrors", [])
    monkeypatch.setattr(CIFAR10, "url", "")
    for part in ("train", "t10k"):
        write_mnist(tmp_path, part)
    write_cifar(tmp_path, ".bin")
    assert len(MNIST(tmp_path, download=True)) == 7
    assert len(CIFAR10(tmp_path, download=True)) == 20


@pytest.mark.native
def test_a_file_that_is_damaged_is_downloaded_again(tmp_path: Path, mnist_served: Path) -> None:
    raw = tmp_path / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "train-images-idx3-ubyte.gz").write_bytes(b"half of i")
    assert len(MNIST(tmp_path / "data", download=True)) == 7


@pytest.mark.native
def test_a_file_of_another_checksum_is_not_kept(tmp_path: Path, mnist_served: Path) -> None:
    (mnist_served / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(IMAGES[::-1])))
    with pytest.raises(DatasetError, match="does not match its checksum"):
        MNIST(tmp_path / "data", download=True)
    assert not list((tmp_path / "data").rglob("train-images*"))


@pytest.mark.native
def test_servers_that_do_not_answer_are_named(
    tmp_path: Path, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MNIST, "mirrors", [f"{server[0]}a/", f"{server[0]}b/"])
    with pytest.raises(DatasetError, match=r"(?s)download failed.*/a/train-images.*/b/train-images"):
        MNIST(tmp_path, download=True)


@pytest.mark.native
def test_cifar_is_downloaded_and_unpacked(
    tmp_path: Path, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, folder = server
    write_cifar(tmp_path / "made")
    with tarfile.open(folder / "cifar.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "made", "cifar-10-batches-py")
    monkeypatch.setattr(CIFAR10, "url", f"{address}cifar.tar.gz")
    monkeypatch.setattr(CIFAR10, "md5", md5(folder / "cifar.tar.gz"))
    root = tmp_path / "data"
    assert len(CIFAR10(root, download=True)) == 20
    assert sorted(path.name for path in root.iterdir()) == ["cifar-10-batches-py", "cifar.tar.gz"]
    (folder / "cifar.tar.gz").unlink()
    assert len(CIFAR10(root, train=False, download=True)) == 4


def _tar(path: Path, *members: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_an_archive_with_links_is_not_unpacked(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("a/b")
    member.type, member.linkname = kind, "/etc/passwd"
    _tar(tmp_path / "x.tar", member)
    with pytest.raises(DatasetError, match="entries that are not the files"):
        unpack(str(tmp_path / "x.tar"), ["a/b"], str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["x.tar"]


def test_only_the_files_asked_for_are_unpacked(tmp_path: Path) -> None:
    outside, inside = tarfile.TarInfo("../outside"), tarfile.TarInfo("a/b")
    inside.size = 3
    _tar(tmp_path / "x.tar", outside, inside)
    folder = tmp_path / "folder"
    folder.mkdir()
    unpack(str(tmp_path / "x.tar"), ["a/b"], str(folder))
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()] == [
        "x.tar",
        "folder/a/b",
    ]
    with pytest.raises(DatasetError, match="cannot be unpacked"):
        unpack(str(tmp_path / "x.tar"), ["a/c"], str(folder))


def test_a_browser_cannot_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "emscripten")
    with pytest.raises(DatasetError, match="write them to the dataset's root"):
        MNIST(tmp_path, download=True)


@pytest.mark.native
def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingPackageError, match=r'pip install "pooch>=1.8" "tqdm>=4.66"'):
        MNIST(tmp_path, download=True)
