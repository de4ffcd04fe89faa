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


class Function(tl.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: tl.Tensor) -> Any:
        return self.function(*args)


def assert_agrees(function: Any, *args: tl.Tensor) -> None:
    from support import onnx_runs as runs

    program, file = runs.exported(Function(function), args)
    runs.assert_runtime_agrees(program, runs.session(file), Function(function), args, {}, TOLERANCE)


INF = float("inf")
X, Y = tl.tensor([-INF, INF, 1.0, -INF, -200.0, 1e10]), tl.tensor([-INF, INF, 2.0, 0.0, 3.0, 7.0])


@pytest.mark.parametrize("op", [tl.logaddexp, tl.logaddexp2])
def test_logarithms_of_sums_of_infinities(op: Any) -> None:
    assert_agrees(op, X, Y)


def test_functions_of_large_numbers() -> None:
    assert_agrees(tl.expm1, tl.tensor([-INF, -200.0, -17.0, -1e-6, 1e-6, 80.0, INF]))
    assert_agrees(tl.expm1, tl.tensor([-200.0, -9.0, 1.0], dtype=tl.float16))
    assert_agrees(
        tl.remainder, tl.tensor([-5.0, 5.0, 1e10, -0.5, 3.0, -3.0]), tl.tensor([3.0, -3.0, 3.0, 7.0, INF, 1.5])
    )


@pytest.mark.parametrize("op", [tl.amin, tl.amax, tl.nansum])
def test_reductions_of_booleans(op: Any) -> None:
    assert_agrees(lambda x: op(x, 0), tl.tensor([[True, False], [True, False], [False, False]]))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_norm_of_a_number_is_its_size(order: int) -> None:
    assert_agrees(lambda x: tl.linalg.vector_norm(x, order), tl.tensor(-3.0))


@pytest.mark.parametrize("size", [(1, 1), (1, 3), (10, 4)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_pictures_become_small_and_large(size: tuple[int, int], mode: str, antialias: bool) -> None:
    x = tl.arange(70.0).reshape(1, 2, 5, 7).sin()
    assert_agrees(lambda x: tl.nn.functional.interpolate(x, size, mode=mode, antialias=antialias), x)


def test_antialias_with_align_corners_is_refused() -> None:
    from support import onnx_runs as runs

    def small(x: tl.Tensor) -> tl.Tensor:
        return tl.nn.functional.interpolate(x, (2, 2), mode="bilinear", align_corners=True, antialias=True)

    with pytest.raises(UnsupportedError, match="antialias with align_corners"):
        runs.exported(Function(small), (tl.ones(1, 1, 4, 4),))
