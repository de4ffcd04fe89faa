"""Ops of the table that have an exporter: onnxruntime computes what the op does."""

from __future__ import annotations

from typing import Any

import pytest
from cases import Case, load_all

import tallow as tl
from tallow.errors import TraceError, UnsupportedError

pytest.importorskip("onnx", reason="onnx, which checks the files, is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime, the reference of these tests, is not installed")
pytestmark = [pytest.mark.native, pytest.mark.cpu("onnxruntime computes on the CPU")]

tl.onnx.export  # noqa: B018 - registers the exporters
from tallow.onnx.exporters.registry import EXPORTERS  # noqa: E402

TOLERANCE = 2e-4  # float32, by other formulas
FIRST = 2  # cases of each op
CASES = [case for case in load_all() if case.op in EXPORTERS and case.number < FIRST]


class Called(tl.nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(self, *inputs: tl.Tensor) -> Any:
        return self.case.call(tl, *inputs)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_op_is_exported(case: Case) -> None:
    from support import onnx_runs as runs

    module, args = Called(case), tuple(runs.single(tl.tensor(x)) for x in case.inputs)
    try:
        program, file = runs.exported(module, args)
    except (TraceError, UnsupportedError) as error:
        pytest.skip(f"no form: {error!s:.200}")
    runs.assert_runtime_agrees(program, runs.session(file), module, args, {}, TOLERANCE)


def test_most_ops_have_an_exporter() -> None:
    assert len({case.op for case in CASES}) >= 230


@pytest.mark.parametrize(
    "call",
    [
        lambda x, index: x.scatter(1, index, 2.0),
        lambda x, index: x.scatter(1, index, x * 2),
        lambda x, index: x.scatter_add(1, index, x * 2),
        lambda x, index: x.scatter_reduce(1, index, x * 2, "amax"),
    ],
    ids=["number", "scatter", "scatter_add", "scatter_reduce"],
)
@pytest.mark.parametrize("dynamic", [None, ({0: "batch"}, {0: "batch"})], ids=["fixed", "dynamic"])
def test_a_write_of_the_first_elements_of_a_larger_source(call: Any, dynamic: Any) -> None:
    from support import onnx_runs as runs

    class Writes(tl.nn.Module):
        def forward(self, x: tl.Tensor, index: tl.Tensor) -> tl.Tensor:
            return call(x, index)

    x = tl.arange(12.0).reshape(2, 6) - 5
    index = tl.tensor([[3, 1, 0], [5, 2, 4]])
    program, file = runs.exported(Writes(), (x, index), dynamic_shapes=dynamic)
    runs.assert_runtime_agrees(program, runs.session(file), Writes(), (x, index), {}, TOLERANCE)
