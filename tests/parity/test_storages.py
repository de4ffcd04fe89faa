"""Storages, and the former classes of them by dtype: the answers of PyTorch's."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl
from tallow.compat.typed_storages import STORAGES

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated", "ignore:ComplexHalf")
stand_in: Any = importlib.import_module("tallow.compat.torch")
CALLS = """
S("Float")([1, 2, 3]).tolist()
S("Long")(4).size()
S("Short")([1, 2]).float().tolist()
S("Double")([1.5, -2]).type()
isinstance(t.storage(), S("Float"))
isinstance(t.storage(), S("Long"))
t.storage().half().element_size()
t.storage().bfloat16().tolist()
t.storage().complex_float()[1]
t.storage().fill_(2).tolist()
t.storage().copy_(S("Int")([3, 2, 1])).tolist()
t.storage().clone().resizable()
t.storage().pickle_storage_type()
repr(t.storage()).replace("tallow.float32", "torch.float32")
(t.storage().filename, t.storage().is_cuda, t.storage().get_device(), t.storage().is_shared())
list(t.storage().long())
t.untyped_storage().float().tolist()
t.untyped_storage().byteswap(m.float32)
t.untyped_storage().type()
t.untyped_storage().new().nbytes()
t.untyped_storage().is_pinned()
t.untyped_storage().get_device()
"""


@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_calls_agree(call: str) -> None:
    results = []
    for m, home in ((tl, stand_in), (torch, torch)):
        t = m.tensor([1.0, 2.0, 3.0])
        value = eval(call, {"m": m, "t": t, "S": lambda name, home=home: getattr(home, f"{name}Storage")})
        results.append((value, t.tolist()))
    ours, theirs = results
    assert ours == theirs


def test_each_class_is_pytorchs() -> None:
    for name in STORAGES:
        assert getattr(torch, name)().dtype == getattr(torch, str(getattr(stand_in, name)().dtype)[7:])


def test_a_shared_file_is_named(tmp_path: Path) -> None:
    np.arange(4, dtype=np.float32).tofile(path := tmp_path / "numbers")
    for storages in (stand_in, torch):
        shared = storages.UntypedStorage.from_file(str(path), True, 16)
        assert shared.filename == str(path)
        assert not shared.resizable() or storages is torch
        assert storages.FloatStorage.from_file(str(path), False, 3).tolist() == [0, 1, 2]


def test_capsules_share_memory() -> None:
    from tallow.compat.torch.utils.dlpack import from_dlpack, to_dlpack

    x = tl.ones(3)
    y = from_dlpack(to_dlpack(x))
    z = tl.from_dlpack(torch.utils.dlpack.to_dlpack(theirs := torch.ones(2)))
    x[0], theirs[1] = 5, 7
    assert (y.tolist(), z.tolist()) == ([5, 1, 1], [1, 7])


def test_halves_of_complex_numbers_convert() -> None:
    for m in (tl, torch):
        x = m.tensor([1.5, -2.0]).chalf()
        assert (x.dtype, x.to(m.complex64).tolist()) == (m.complex32, [1.5, -2.0])
