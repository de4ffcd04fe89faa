"""Storages: the memory of tensors as bytes, and tensors laid over it."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

import tallow as tl
from tallow.errors import ArgumentError, DeviceError, GraphError, UnsupportedError
from tallow.functions.storage import UntypedStorage


def test_views_have_the_storage_of_their_base() -> None:
    x = tl.arange(12.0).reshape(3, 4)
    part = x[1:, 1:].t()
    storage = part.untyped_storage()
    assert storage.nbytes() == 48
    assert storage.data_ptr() == x.data_ptr() == part.data_ptr() - 4 * part.storage_offset()
    assert storage[4:8].tolist() == x[0, 1].numpy().reshape(1).view(np.uint8).tolist()
    assert part.storage()[5] == 5.0


@pytest.mark.cpu("CuPy does not say whose memory strides show")
def test_a_tensor_laid_over_a_storage_shares_its_memory() -> None:
    x = tl.arange(12.0)
    z = tl.empty(0).set_(x.untyped_storage(), 2, (2, 2), (4, 1))
    assert z.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    z[0, 0] = 50
    assert x[2].item() == 50.0
    assert tl.empty(0).set_(x.untyped_storage()).shape == (12,)
    x.as_strided_((2, 2), (1, 2), 1)
    assert x.tolist() == [[1.0, 3.0], [50.0, 4.0]]
    with pytest.raises(ArgumentError, match="reaches byte 52 of a storage of 48"):
        z.set_(x.untyped_storage(), 2, (11,))


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [
        ((2,), (-1,), 0),
        ((2,), (-1,), 5),
        ((-1,), (1,), 0),
        ((2, 2), (1,), 0),
        ((1,), (1,), 6),
        ((1,), (1,), -1),
        ((3,), (3,), 0),
    ],
)
def test_no_tensor_reaches_beyond_its_storage(size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> None:
    x = tl.arange(6.0)
    with pytest.raises(ArgumentError, match="a tensor of size"):
        x.as_strided_(size, stride, offset)
    with pytest.raises(ArgumentError, match="a tensor of size"):
        tl.empty(0).set_(x.untyped_storage(), offset, size, stride)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.cpu("CuPy does not say whose memory strides show")
def test_resize() -> None:
    x = tl.arange(6.0)
    same = x.view(6)
    assert x.resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert x.data_ptr() == same.data_ptr()
    assert x.resize_(8)[:6].tolist() == same.tolist()
    with pytest.raises(GraphError, match="require grad"):
        tl.ones(2, requires_grad=True).resize_(3)
    with pytest.raises(UnsupportedError, match="storage of a tensor"):
        x.view(2, 4).untyped_storage()[:16].resize_(64)


@pytest.mark.cpu("maps a file to memory")
@pytest.mark.native
def test_a_file_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    storage = UntypedStorage.from_file(path)
    elements = tl.asarray(storage[4:12], dtype=tl.uint8)
    assert elements.view(tl.int32).tolist() == [0x07060504, 0x0B0A0908]
    elements[0] = 99
    assert storage[4] == 99
    assert path.read_bytes() == bytes(range(16))
    UntypedStorage.from_file(path, shared=True, nbytes=16)[0] = 7
    assert path.read_bytes()[0] == 7
    with pytest.raises(ArgumentError, match="bytes"):
        UntypedStorage.from_file(path, nbytes=17)


@pytest.mark.cpu("maps a file to memory")
@pytest.mark.native
def test_a_tensor_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    x = tl.from_file(path, shared=True, size=4, dtype=tl.float64)
    x.copy_(tl.tensor([1.0, 2.0, 3.0, 4.0]))
    assert np.fromfile(path).tolist() == [1, 2, 3, 4]
    own = tl.from_file(path, size=3, dtype=tl.float64)
    own[0] = 9
    assert own.tolist() == [9, 2, 3]
    assert np.fromfile(path)[0] == 1
    with pytest.raises(FileNotFoundError):
        tl.from_file(tmp_path / "missing", size=1)
    with pytest.raises(DeviceError, match="on cpu, not on meta"):
        tl.from_file(path, size=1, device="meta")


def _fill(tensor: tl.Tensor) -> None:
    tensor.fill_(5)


@pytest.mark.cpu("memory of two processes")
@pytest.mark.native
def test_a_forked_process_writes_to_shared_memory() -> None:
    x = tl.ones(3)
    assert not x.is_shared()
    assert x.share_memory_()[1:].is_shared()
    process = multiprocessing.get_context("fork").Process(target=_fill, args=(x,))
    process.start()
    process.join()
    assert x.tolist() == [5.0, 5.0, 5.0]
