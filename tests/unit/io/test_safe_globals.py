"""Classes and functions that a program permits in files, beyond tensors and plain containers."""

from __future__ import annotations

import importlib
import io
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.compat import install_torch
from tallow.errors import ArgumentTypeError, CheckpointError
from tallow.io.safe_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals


class Kind(Enum):
    SMALL = 1


@dataclass
class Config:
    width: int
    kind: Kind


class Slotted:
    __slots__ = ("weights",)


class Hostile:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def saved(value: Any) -> bytes:
    file = io.BytesIO()
    tl.save(value, file)
    return file.getvalue()


def test_objects_of_permitted_classes_are_loaded() -> None:
    slotted = Slotted()
    slotted.weights = tl.arange(3.0)  # type: ignore[attr-defined]
    data = saved({"config": Config(4, Kind.SMALL), "slots": slotted, "class": Config, "path": PurePosixPath("a/b")})
    with safe_globals([Config, Kind, Slotted, PurePosixPath]):
        loaded = tl.load(data)
    assert loaded["config"] == Config(4, Kind.SMALL)
    assert loaded["slots"].weights.tolist() == [0.0, 1.0, 2.0]
    assert loaded["class"] is Config
    assert loaded["path"] == PurePosixPath("a/b")
    with pytest.raises(CheckpointError, match="Config"):
        tl.load(data)


@pytest.mark.parametrize("value", [Hostile(os.system, "false"), Hostile(Config.__init__, 1), Kind.SMALL])
def test_nothing_else_becomes_permitted(value: Any) -> None:
    with safe_globals([Config]), pytest.raises(CheckpointError, match=r"is refused|unexpected"):
        tl.load(saved({"config": Config(4, value), "more": value}))


def test_what_tallow_knows_stays_checked() -> None:
    """PyTorch's programs permit NumPy's classes, whose own unpickling trusts a file."""
    array = saved({"x": np.arange(2.0), "more": Config})
    with safe_globals([np.ndarray, np.dtype, type(np.dtype("f8")), Config]):
        assert tl.load(array)["x"].tolist() == [0.0, 1.0]
        with pytest.raises(CheckpointError, match="NumPy dtype"):
            tl.load(saved({"x": np.array([{}], dtype=object), "more": Config}))


def test_a_module_of_pytorch_is_permitted_by_its_name_there() -> None:
    torch = pytest.importorskip("torch")
    x, file = np.ones((1, 4, 8), "float32"), io.BytesIO()
    model = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).eval()
    torch.save(model, file)
    expected = model(torch.from_numpy(x)).detach().numpy()
    with install_torch(replace=True):
        modules = importlib.import_module("torch.nn.modules")
        kinds = [
            modules.transformer.TransformerEncoderLayer,
            modules.activation.MultiheadAttention,
            modules.linear.NonDynamicallyQuantizableLinear,
            modules.normalization.LayerNorm,
            modules.dropout.Dropout,
            importlib.import_module("torch").nn.functional.relu,
        ]
        with safe_globals(kinds), pytest.raises(CheckpointError, match=r"torch\.nn\.modules\.linear\.Linear"):
            tl.load(file.getvalue())
        with safe_globals([*kinds, modules.linear.Linear]):
            loaded = tl.load(file.getvalue())
            output = loaded(tl.tensor(x, device="cpu")).detach().numpy()
            np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_the_list_of_what_is_permitted() -> None:
    try:
        add_safe_globals([Config, (Kind, "elsewhere.Kind")])
        add_safe_globals([Config])
        assert get_safe_globals() == [Config, (Kind, "elsewhere.Kind")]
        with safe_globals([Slotted]):
            assert len(get_safe_globals()) == 3
        with pytest.raises(ArgumentTypeError, match="a str"):
            add_safe_globals(["Config"])
    finally:
        clear_safe_globals()
    assert get_safe_globals() == []
