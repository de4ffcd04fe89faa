"""`import torch` gives tallow after `install_torch()`; a missing name raises an error that says so."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
import types
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import tallow as tl
from tallow import fx
from tallow.compat import install_torch, uninstall_torch
from tallow.compat.modules import OWN
from tallow.compat.stand_in import all_modules
from tallow.compat.version import TorchVersion
from tallow.errors import GraphError, MissingModuleError, MissingNameError

MISSING = r"torch\._lazy: tallow, which stands in for torch here, has no '_lazy'"


@pytest.fixture
def torch() -> Iterator[Any]:
    with install_torch(replace=True):
        yield importlib.import_module("torch")


@pytest.mark.parametrize("name", all_modules())
def test_every_module_can_be_imported_and_lists_what_it_has(torch: Any, name: str) -> None:
    if name in ("torch.hub", "torch.utils.model_zoo"):
        pytest.importorskip("tqdm")  # PyTorch's module has it as an attribute
    if name.startswith("torch.utils.tensorboard"):
        pytest.importorskip("tensorboardX")
    module = importlib.import_module(name)
    assert [listed for listed in dir(module) if not hasattr(module, listed)] == []


@pytest.mark.parametrize("path", OWN)
def test_names_that_only_the_compat_module_has(torch: Any, path: str) -> None:
    module, _, name = path.rpartition(".")
    assert getattr(importlib.import_module(module), name) is not None


@pytest.mark.parametrize("path", ["nn.utils.weight_norm", "nn.utils.spectral_norm", "autograd.gradcheck"])
def test_a_function_hides_the_module_of_its_name(torch: Any, path: str) -> None:
    importlib.import_module(f"torch.{path}")
    assert attrgetter(path)(torch) is attrgetter(path)(tl)


def test_the_errors_of_linear_algebra_are_caught_by_both_names(torch: Any) -> None:
    for kind in (torch.linalg.LinAlgError, torch._C._LinAlgError):
        with pytest.raises(kind, match="singular"):
            torch.linalg.inv(torch.zeros(2, 2))


def test_the_usual_imports(torch: Any) -> None:
    scope: dict[str, Any] = {}
    exec(
        "import torch, torch.nn as nn, torch.nn.functional as F, torch.optim as optim\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "from torch.optim.lr_scheduler import StepLR\n"
        "import torch.backends.cudnn as cudnn\n"
        "from torch import nn as again, Tensor\n"
        "from torch.nn import *\n"
        "from torch.nn.common_types import _size_1_t, _size_2_t, _size_3_t, _size_any_t\n"
        "from torch.cuda.amp import GradScaler, autocast, custom_bwd, custom_fwd\n"
        "from torch.optim.lbfgs import LBFGS\n"
        "from torch.autograd.gradcheck import gradcheck\n",
        scope,
    )
    assert scope["nn"].Linear is scope["Linear"] is tl.nn.Linear
    assert scope["F"].relu is tl.nn.functional.relu
    assert scope["again"] is scope["nn"] is torch.nn
    assert scope["Tensor"] is tl.Tensor


@pytest.mark.parametrize(
    "statement",
    [
        "import torch._lazy",
        "from torch import _lazy",
        "from torch._lazy import metrics",
        "import torch._lazy.deep",
    ],
)
def test_importing_a_missing_module_raises(torch: Any, statement: str) -> None:
    with pytest.raises(ImportError, match=MISSING) as error:
        exec(statement)
    assert isinstance(error.value, MissingModuleError)


def test_a_missing_attribute_raises(torch: Any) -> None:
    with pytest.raises(MissingNameError, match=MISSING):
        _ = torch._lazy
    with pytest.raises(MissingNameError, match=r"torch\.nn\.Frobnicate: tallow"):
        _ = torch.nn.Frobnicate
    with pytest.raises(MissingNameError, match=r"torch\.optim\.Frobnicate: tallow"):
        _ = torch.optim.Frobnicate
    assert not hasattr(torch, "_lazy")


def test_modules_of_tallow_that_pytorch_does_not_have_stay_out(torch: Any) -> None:
    assert not hasattr(torch, "kernels")
    assert torch.ops is not tl.ops
    assert not hasattr(torch.nn, "convolution")
    assert "functions" not in dir(torch)


def test_vars_of_a_module_are_its_names(torch: Any) -> None:
    assert vars(torch.optim)["Adam"] is tl.optim.Adam
    assert {"Bernoulli", "Normal"} <= torch.distributions.__dict__.keys()


def test_a_distribution_named_torch_has_a_version(torch: Any) -> None:
    assert importlib.metadata.version("torch") == torch.__version__
    assert "torch" in {distribution.name for distribution in importlib.metadata.distributions()}


@pytest.mark.cpu("a tensor on another device prints it")
def test_values_print_as_those_of_torch(torch: Any) -> None:
    x = torch.ones(2, dtype=torch.float64)
    assert repr(x) == "tensor([1., 1.], dtype=torch.float64)"
    assert f"{x.shape} {x.dtype} {x.layout} {torch.channels_last}" == (
        "torch.Size([2]) torch.float64 torch.strided torch.channels_last"
    )
    uninstall_torch()
    assert repr(x.shape) == "tallow.Size([2])"


def test_a_setting_is_set_on_tallow(torch: Any) -> None:
    before = tl.backends.cudnn.benchmark
    try:
        torch.backends.cudnn.benchmark = not before
        assert tl.backends.cudnn.benchmark is torch.backends.cudnn.benchmark is not before
        with pytest.raises(MissingNameError, match=r"torch\.backends\.cudnn has no 'benchmarc'"):
            torch.backends.cudnn.benchmarc = True
    finally:
        tl.backends.cudnn.benchmark = before


def test_a_patched_function_is_the_one_that_layers_call(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.functional, "linear", lambda *args: "patched")
    assert torch.nn.Linear(2, 2)(torch.ones(2)) == "patched"


def test_it_refuses_to_replace_pytorch_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    with pytest.raises(GraphError, match="PyTorch is imported already"):
        install_torch()


def test_replaced_modules_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    real, below = types.ModuleType("torch"), types.ModuleType("torch.nn")
    monkeypatch.setitem(sys.modules, "torch", real)
    monkeypatch.setitem(sys.modules, "torch.nn", below)
    with install_torch(replace=True):
        assert importlib.import_module("torch.nn").Linear is tl.nn.Linear
    assert sys.modules["torch"] is real
    assert sys.modules["torch.nn"] is below


def test_installing_twice(torch: Any) -> None:
    first = len(sys.meta_path)
    assert install_torch() is install_torch(replace=True)
    assert len(sys.meta_path) == first
    uninstall_torch()
    assert len(sys.meta_path) == first - 4  # of torch, of packages that tallow has, of their hints, and of its models
    uninstall_torch()


def test_the_version_parses_and_compares(torch: Any) -> None:
    assert "tallow" in torch.__version__
    major, minor, *_ = torch.__version__.split(".")
    assert (int(major), int(minor)) >= (2, 0)
    assert torch.__version__ >= "2.0"
    assert torch.__version__ > (1, 13)
    assert not torch.__version__ < "2.2.1"  # compared as text, "2.13" would be
    assert TorchVersion("2.0") >= "2"
    assert TorchVersion("2.9") < "2.10.0"
    assert torch.version.cuda is None


def test_repeated_lookups_return_the_same_object(torch: Any) -> None:
    assert torch.nn is torch.nn
    assert torch.compile is tl.compile
    assert torch.ones is tl.ones


@pytest.mark.native
class TestCommandLine:
    @staticmethod
    def run(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "tallow.compat", *args], capture_output=True, text=True, cwd=cwd)

    def test_a_script_runs_with_its_arguments_and_its_neighbours(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "model.py").write_text("from torch import nn\nlayer = nn.Linear(2, 3)\n")
        (tmp_path / "sub" / "train.py").write_text(
            "import sys, torch\nfrom model import layer\n"
            "if __name__ == '__main__': print(len(layer(torch.ones(2))), *sys.argv)\n"
        )
        process = self.run("sub/train.py", "--lr", "0.1", "-m", cwd=tmp_path)
        assert process.stdout.split() == ["3", "sub/train.py", "--lr", "0.1", "-m"], process.stderr

    def test_a_module(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("import sys, torch; print(torch.__version__, *sys.argv[1:])")
        process = self.run("-m", "train", "--lr", "1", cwd=tmp_path)
        assert "tallow" in process.stdout
        assert process.stdout.endswith(" --lr 1\n")

    def test_the_exit_status_is_the_programs(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("import torch; raise SystemExit(7)")
        assert self.run("train.py", cwd=tmp_path).returncode == 7

    def test_the_last_line_names_the_missing_module(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("import torch\nimport torch._lazy\n")
        process = self.run("train.py", cwd=tmp_path)
        assert process.returncode == 1
        assert process.stderr.splitlines()[-1].endswith("has no '_lazy'")

    def test_a_missing_file(self, tmp_path: Path) -> None:
        done = self.run("trian.py", cwd=tmp_path)
        assert done.returncode == 2
        assert "file not found: 'trian.py'" in done.stderr


def test_graphs_print_as_those_of_torch() -> None:
    with install_torch(replace=True):
        import torch

        graph = torch.fx.symbolic_trace(lambda x: torch.log(x) + torch.zeros_like(x, dtype=torch.float64))
        assert "log = torch.log(x)" in graph.code
        assert "dtype = torch.float64" in graph.code
        assert "call_function[target=torch.log]" in str(graph.graph)
        assert graph(torch.ones(2)).tolist() == [0, 0]
    assert "log = tallow.log(" in fx.symbolic_trace(tl.log).code
