"""Exporters have the parameters of their ops, so that no argument is lost."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tallow as tl
from tallow.ops.parameters import REQUIRED
from tallow.ops.table import OPS

tl.onnx.export  # noqa: B018 - registers the exporters
from tallow.onnx.exporters.registry import EXPORTERS, NEUTRAL  # noqa: E402


def parameters(function: Any) -> dict[str, Any]:
    return {p.name: p.default for p in list(inspect.signature(function).parameters.values())[1:]}


@pytest.mark.parametrize("name", sorted(EXPORTERS.keys() & OPS.keys()))
def test_an_exporter_has_the_parameters_of_its_op(name: str) -> None:
    own, op = parameters(EXPORTERS[name]), OPS[name].all_defaults
    assert own.keys() <= op.keys()
    required = {parameter for parameter, default in op.items() if default is REQUIRED}
    assert required - NEUTRAL <= own.keys()
