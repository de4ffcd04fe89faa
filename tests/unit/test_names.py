"""Every public module raises for missing names, lists its names, and caches what it imports lazily."""

from __future__ import annotations

import importlib
import subprocess
import sys
import traceback

import pytest

import tallow as tl
from tallow.errors import MissingImportError, MissingNameError

PARTS = ["autograd", "cuda", "io", "linalg", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "optim"]
PARTS += ["data", "optim.lr_scheduler", "special", "text", "utils", "utils.data"]
PARTS += ["generation", "hub", "kernels", "models", "peft", "training"]
KERAS = "activations backend config constraints dtype_policies initializers layers losses metrics mixed_precision"
KERAS += " models ops optimizers preprocessing random regularizers saving tree utils"
PARTS += ["keras", *(f"keras.{part}" for part in KERAS.split())]
MODULES = ["tallow", *(f"tallow.{part}" for part in PARTS)]


@pytest.mark.parametrize("name", MODULES)
def test_a_missing_name_is_an_error_that_names_it_and_its_module(name: str) -> None:
    module = importlib.import_module(name)
    with pytest.raises(MissingNameError, match=rf"module '{name}' has no attribute 'Frobnicate'"):
        _ = module.Frobnicate
    assert not hasattr(module, "Frobnicate")


@pytest.mark.parametrize(
    ("owner", "misspelt", "name"),
    [
        (tl, "arrange", "arange"),
        (tl.nn, "Liner", "Linear"),  # imported at first use
        (tl.nn.functional, "sotfmax", "softmax"),
        (tl.ones(1), "dettach", "detach"),
        (tl.nn.Linear(1, 1), "wieght", "weight"),
    ],
)
def test_a_traceback_suggests_a_name_once(owner: object, misspelt: str, name: str) -> None:
    with pytest.raises(MissingNameError) as error:
        getattr(owner, misspelt)
    text = "".join(traceback.format_exception_only(error.value))
    assert text.endswith(f". Did you mean: '{name}'?\n")
    assert text.count("Did you mean") == 1


@pytest.mark.native
@pytest.mark.parametrize("wrong", ["tl.arrange", "tl.nn.Liner", "tl.ones(1).dettach", "tl.nn.Linear(1, 1).wieght"])
def test_an_uncaught_error_suggests_a_name_once(wrong: str) -> None:
    program = [sys.executable, "-c", f"import tallow as tl\n{wrong}"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stderr.count("Did you mean") == 1
    assert done.stderr.rstrip().endswith("'?")


def test_an_import_of_a_name_of_transformers_says_where_it_is() -> None:
    for module, name in (("tallow", "AutoTokenizer"), ("tallow.models", "AutoModelForCausalLM")):
        with pytest.raises(MissingImportError, match=rf"from tallow\.transformers import {name}"):
            exec(f"from {module} import {name}", {})
        assert not hasattr(importlib.import_module(module), name)
    with pytest.raises(ImportError, match="cannot import name 'Frobnicate'"):
        exec("from tallow.models import Frobnicate", {})


def test_no_name_is_suggested_where_none_is_near() -> None:
    with pytest.raises(MissingNameError) as error:
        _ = tl.frobnicate
    assert "Did you mean" not in "".join(traceback.format_exception_only(error.value))


@pytest.mark.parametrize("name", MODULES)
def test_names_in_dir_exist(name: str) -> None:
    module = importlib.import_module(name)
    assert [listed for listed in dir(module) if not hasattr(module, listed)] == []
    assert set(getattr(module, "__all__", ())) <= set(dir(module))


def test_a_name_stands_for_a_module_or_for_what_it_has() -> None:
    assert tl.nn is importlib.import_module("tallow.nn")
    assert tl.save is importlib.import_module("tallow.io").save
    assert tl.special.expit is tl.sigmoid
    assert "expit" in dir(tl.special)


def test_an_op_offered_later_is_found() -> None:
    @tl.op("F", name="test_names_double")
    def double(x):  # type: ignore[no-untyped-def]
        return x * 2, lambda g: (g * 2,)

    assert tl.nn.functional.test_names_double(tl.ones(1)).item() == 2
