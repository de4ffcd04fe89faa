"""Imports of packages for PyTorch that are not installed: the error says how to install them."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

import pytest

from tallow.compat import install_torch
from tallow.errors import MissingModuleError


def test_an_import_says_how_to_install_a_package() -> None:
    with install_torch(replace=True):
        with pytest.raises(MissingModuleError, match="--no-deps torch-frobnicate") as error:
            importlib.import_module("torch_frobnicate.layers")
        assert error.value.name == "torch_frobnicate"
        assert find_spec("torch_frobnicate") is None, "a program may ask whether there is a package"
        with pytest.raises(ModuleNotFoundError) as other:
            importlib.import_module("frobnicate")
        assert not isinstance(other.value, MissingModuleError)
    with pytest.raises(ModuleNotFoundError) as after:
        importlib.import_module("torch_frobnicate")
    assert not isinstance(after.value, MissingModuleError)
