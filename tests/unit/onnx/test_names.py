"""Public names of `tallow.onnx` stay what they are, whatever modules were imported before."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import tallow as tl


@pytest.mark.parametrize("name", tl.onnx.__all__)
def test_no_module_has_the_name_of_a_public_object(name: str) -> None:
    # Python sets a module that is imported as an attribute of its package, in place of what was there.
    assert name not in {module.name for module in pkgutil.iter_modules(tl.onnx.__path__)}
    importlib.import_module("tallow.onnx.exporters.program")
    assert callable(getattr(tl.onnx, name))
