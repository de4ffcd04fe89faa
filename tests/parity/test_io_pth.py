"""PyTorch checkpoints compared with PyTorch: each library reads the other's files, with equal values and storages."""

from __future__ import annotations

import io
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tallow as tl
from tallow import dtypes
from tallow.errors import CheckpointError
from tallow.nn.parameter import Parameter

NAMES = [dtype.name for dtype in dtypes.ALL]


def torch_bytes(value: Any, **options: Any) -> bytearray:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return bytearray(file.getvalue())


def bits(tensor: Any) -> Any:
    """Return a tensor's elements; bfloat16 as float32, which is exact."""
    return tensor.detach().float().numpy() if "bfloat16" in str(tensor.dtype) else tensor.detach().numpy()


def assert_same(ours: Any, theirs: Any) -> None:
    """Check for the same structure, with tensors of equal dtype, shape and elements."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, tl.Tensor)
        assert str(ours.dtype).removeprefix("tallow") == str(theirs.dtype).removeprefix("torch")
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert ours.requires_grad == theirs.requires_grad
        assert isinstance(ours, Parameter) == isinstance(theirs, torch.nn.Parameter)
        np.testing.assert_array_equal(bits(ours), bits(theirs), strict=True)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key, value in theirs.items():
            assert_same(ours[key], value)
    elif isinstance(theirs, torch.Size):
        assert tuple(ours) == tuple(theirs)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif isinstance(theirs, torch.dtype | torch.device):
        assert str(ours).rpartition(".")[2] == str(theirs).rpartition(".")[2]
    else:
        assert type(ours) is type(theirs)
        assert ours == theirs


@pytest.fixture(params=[True, False], ids=["zip", "legacy"])
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"_use_new_zipfile_serialization": request.param}


@pytest.mark.parametrize("name", NAMES)
def test_every_dtype_is_read(name: str, options: dict[str, Any]) -> None:
    x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, name))
    value = [x, x.T, x[:, 1], x[1:], x.expand(2, 2, 3), x[:0]]
    assert_same(tl.load(torch_bytes(value, **options)), value)


@pytest.mark.parametrize("name", NAMES)
def test_every_dtype_is_written(name: str) -> None:
    x = tl.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(tl, name))
    file = io.BytesIO()
    value = [x, x.T, x[:, 1], x[1:], x.expand(2, 2, 3), x[:0]]
    tl.save(value, file)
    file.seek(0)
    assert_same(value, torch.load(file, weights_only=True))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_training_checkpoint_is_read(protocol: int, options: dict[str, Any]) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.LSTM(4, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model[1](model[0](torch.ones(2, 3))).sum().backward()
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2])  # its milestones are a Counter
    value = {
        "model": model.state_dict(),
        "parameters": list(model.parameters()),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "rng": torch.get_rng_state(),
        "shape": torch.ones(2, 3).shape,
        "dtype": torch.bfloat16,
        "device": torch.device("cuda", 1),
        "losses": (1.5, None, True, "text", b"bytes", 2**40, {1, 2}),
    }
    loaded = tl.load(torch_bytes(value, pickle_protocol=protocol, **options))
    assert_same(loaded, value)
    assert loaded["model"]._metadata == model.state_dict()._metadata


@pytest.mark.parametrize("suffix", ["", ".safetensors", ".npz"])
def test_tensors_from_a_file_object_can_be_written(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    tl.save({"x": tl.zeros(2)}, path)
    for f in (path, io.BytesIO(path.read_bytes())):
        x = tl.load(f)["x"]
        x += 1
        assert x.tolist() == [1, 1]


def test_training_checkpoint_is_written(tmp_path: Path) -> None:
    model = tl.nn.Sequential(tl.nn.Linear(3, 4), tl.nn.LayerNorm(4))
    value = {
        "model": model.state_dict(),
        "parameters": list(model.parameters()),
        "shape": tl.ones(2, 3).shape,
        "dtype": tl.bfloat16,
        "device": tl.device("cuda", 1),
        "losses": (1.5, None, True, "text", b"bytes\xff", bytearray(b"ab"), 2**40, -1, 1j, {1, 2}),
        "ordered": OrderedDict(b=1, a=[{}]),
    }
    path = tmp_path / "model.pt"
    tl.save(value, path)
    for mmap in (False, True):
        assert_same(value, torch.load(path, weights_only=True, mmap=mmap))
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
    theirs.load_state_dict(torch.load(path)["model"])
    assert_same(model.state_dict(), theirs.state_dict())


def test_shared_storages_stay_shared_both_ways(options: dict[str, Any]) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    loaded = tl.load(torch_bytes([x, x.T, x[1, 1:], x], **options))
    loaded[0].array[1, 2] = 99
    assert loaded[1].tolist()[2][1] == 99
    assert loaded[2].tolist()[1] == 99
    assert loaded[3] is loaded[0]
    file = io.BytesIO()
    tl.save(loaded, file)
    file.seek(0)
    back = torch.load(file)
    assert {t.untyped_storage().data_ptr() for t in back} == {back[0].untyped_storage().data_ptr()}
    assert [t.stride() for t in back] == [(4, 1), (1, 4), (1,), (4, 1)]
    assert back[3] is back[0]


def test_attributes_of_tensors_and_parameters_are_read(options: dict[str, Any]) -> None:
    x, p = torch.ones(2), torch.nn.Parameter(torch.ones(2))
    x.note, p.note = "kept", [1]
    buffer = torch.nn.Buffer(torch.zeros(1))
    loaded = tl.load(torch_bytes([x, p, buffer], **options))
    assert [loaded[0].note, loaded[1].note] == ["kept", [1]]
    assert_same(loaded, [x, p, buffer.data])


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_load_as_flat_tensors(options: dict[str, Any]) -> None:
    x = torch.arange(4.0)
    assert_same(tl.load(torch_bytes(x.storage(), **options)), x)
    assert_same(tl.load(torch_bytes(x.untyped_storage(), **options)), x.view(torch.uint8))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.nn.Linear(1, 1), "torch.nn.modules.linear.Linear"),
        (torch.nn.functional.relu, "torch.nn.functional.relu"),
        (torch.Generator, "torch._C.Generator"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unsupported_objects_are_refused_by_name(value: Any, message: str, options: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError) as caught:
        tl.load(torch_bytes(value, **options))
    assert f"'{message}'" in str(caught.value)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_places_that_cannot_be_checked_are_refused(layout: Any) -> None:
    """Storages of the legacy format come after the pickle."""
    x = torch.ones(2, 2).to_sparse(layout=layout)
    assert_same(tl.load(torch_bytes(x)).to_dense(), x.to_dense())
    with pytest.raises(CheckpointError, match="a sparse tensor in the format before"):
        tl.load(torch_bytes(x, _use_new_zipfile_serialization=False))


def test_script_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "script.pt")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), path)
    with pytest.raises(CheckpointError, match="TorchScript"):
        tl.load(path)


def test_checkpoint_of_an_absent_device_needs_map_location() -> None:
    x = torch.ones(2)
    legacy = torch_bytes(x, _use_new_zipfile_serialization=False)
    raw = bytes(legacy.replace(b"\x03\x00\x00\x00cpu", b"\x06\x00\x00\x00cuda:9"))
    for load in (tl.load, torch.load):
        with pytest.raises(RuntimeError, match="map_location"):
            load(io.BytesIO(raw))
        with pytest.raises(RuntimeError):
            load(io.BytesIO(legacy), map_location="cuda:9")
        for location in ("cpu", {"cuda:9": "cpu"}, lambda storage, location: storage):
            assert load(io.BytesIO(raw), map_location=location).tolist() == [1, 1]


@st.composite
def views(draw: st.DrawFn) -> torch.Tensor:
    """Return a random view of eight elements: any size, strides and offset that fit."""
    size = draw(st.lists(st.integers(0, 3), max_size=3))
    stride = draw(st.lists(st.integers(0, 3), min_size=len(size), max_size=len(size)))
    last = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if all(size) else 0
    offset = draw(st.integers(0, max(0, 7 - last)))
    return torch.as_strided(torch.arange(8 if last < 8 else last + 1), size, stride, offset)


@given(st.lists(views(), min_size=1, max_size=3), st.booleans())
def test_any_view_makes_the_round_trip(tensors: list[torch.Tensor], new: bool) -> None:
    ours = tl.load(torch_bytes(tensors, _use_new_zipfile_serialization=new))
    assert_same(ours, tensors)
    file = io.BytesIO()
    tl.save(ours, file)
    file.seek(0)
    assert_same(ours, torch.load(file, weights_only=True))


def test_views_of_conjugates_and_negatives(tmp_path: Path) -> None:
    x = torch.tensor([1 + 2j, 3 - 4j]).conj()
    parameter = torch.nn.Parameter(x.clone())
    torch.save({"conj": x, "part": x[1:], "neg": (x * 2).conj().imag, "parameter": parameter}, tmp_path / "a.pt")
    loaded = tl.load(tmp_path / "a.pt")
    for name, tensor in torch.load(tmp_path / "a.pt").items():
        assert loaded[name].tolist() == tensor.tolist(), name
        assert loaded[name].requires_grad is tensor.requires_grad
