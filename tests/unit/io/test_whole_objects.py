"""Files of any objects: whole modules, arrays, functions by name; and streams that cannot seek."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.errors import CheckpointError
from tallow.functions.storage import UntypedStorage


def _loaded(value: Any) -> Any:
    file = io.BytesIO()
    tl.save(value, file)
    file.seek(0)
    return tl.load(file, weights_only=False)


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    "name", ["relu", "nn.functional.gelu", "nn.functional.relu_", "linalg.inv", "einsum", "Tensor.add_", "special.erf"]
)
def test_functions_are_pickled_by_name(name: str, protocol: int) -> None:
    function: Any = tl
    for part in name.split("."):
        function = getattr(function, part)
    assert pickle.loads(pickle.dumps(function, protocol)) is function


def test_a_whole_module_is_saved_with_its_shared_weights() -> None:
    layer = tl.nn.TransformerEncoderLayer(4, 2, 8, activation="gelu", batch_first=True).eval()
    layer.linear2.weight = layer.linear1.weight = tl.nn.Parameter(tl.ones(4, 4))
    layer.linear1.bias = layer.linear2.bias
    loaded, array = _loaded((layer, np.arange(3)))
    x = tl.arange(12.0).reshape(1, 3, 4)
    assert loaded(x).tolist() == layer(x).tolist()
    assert loaded.linear1.weight is loaded.linear2.weight
    assert array.tolist() == [0, 1, 2]


def test_views_share_memory_again() -> None:
    x = tl.arange(6.0)
    loaded = _loaded({"all": x, "part": x[2:4], "kinds": (tl.float64, tl.device("cpu"), x.shape, np.float32(2))})
    loaded["part"][0] = 9
    assert loaded["all"].tolist() == [0.0, 1.0, 9.0, 3.0, 4.0, 5.0]
    assert loaded["kinds"] == (tl.float64, tl.device("cpu"), tl.Size([6]), 2)


def test_nothing_is_run_by_default() -> None:
    file = io.BytesIO()
    tl.save(tl.nn.Linear(2, 2), file)
    with pytest.raises(CheckpointError, match=r"tallow\.nn\.linear\.Linear"):
        tl.load(file.getvalue())


class _Hostile:
    """An object whose pickle calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    "value",
    [
        _Hostile(os.system, "false"),
        _Hostile(eval, "1"),
        _Hostile(tl.load, "weights.pt"),
        _Hostile(UntypedStorage.from_file, "/etc/hostname"),
        _Hostile(import_module, "antigravity"),
        tl.nn.functional.relu,
    ],
    ids=["system", "eval", "load", "from_file", "import_module", "relu"],
)
@pytest.mark.parametrize("options", [{}, {"weights_only": True}, {"weights_only": None}], ids=["unset", "True", "None"])
def test_names_beyond_tensors_are_refused_by_default(value: Any, options: dict[str, Any]) -> None:
    file = io.BytesIO()
    tl.save({"weights": tl.ones(2), "more": value}, file)
    with pytest.raises(CheckpointError, match=r"it names .*, which is refused"):
        tl.load(file.getvalue(), **options)


def test_a_member_of_an_archive_is_written_without_seeking() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive, archive.open("weights.pt", "w") as member:
        tl.save({"w": tl.ones(2)}, member)
    with zipfile.ZipFile(content) as archive:
        assert tl.load(archive.read("weights.pt"))["w"].tolist() == [1.0, 1.0]


def test_an_optimizer_around_another_one_needs_no_constructor() -> None:
    class Around(tl.optim.Optimizer):
        def __init__(self, inner: Any) -> None:
            self.inner = inner
            self.param_groups = inner.param_groups

        def step(self, closure: Any = None) -> Any:
            return self.inner.step(closure)

    w = tl.ones(1, requires_grad=True)
    w.sum().backward()
    Around(tl.optim.SGD([w], lr=0.5)).step()
    assert w.item() == 0.5
