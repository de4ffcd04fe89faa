"""Every op of the table in a graph: an exported case computes what the op does, and comes back from a file."""

from __future__ import annotations

import io
from typing import Any

import pytest
from cases import Case, load_all

import tallow as tl
from tallow import export
from tallow.errors import TraceError

# Their shapes depend on values, or they return what values decide.
DATA_SHAPED = "argwhere bincount masked_select nonzero_tuple unique unique_consecutive"
DECIDED = "allclose equal"
TAKING_FUNCTIONS = "adjoint_map linear_map product_map quantized_linear with_value"  # or matrices that are no tensors
REFUSED = frozenset(f"{DATA_SHAPED} {DECIDED} {TAKING_FUNCTIONS}".split())
# One hot without a number of classes, repeats by a tensor, a result that is a dtype, an index by an array of NumPy, and
# a weight that the layer rescales.
OTHERS = "embedding-4 embedding-5 getitem-16 one_hot-0 one_hot-2 to_device-0 where-5 where-6"
FIRST = 2  # cases of each op


class Called(tl.nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(self, *inputs: tl.Tensor) -> Any:
        return self.case.call(tl, *inputs)


CASES = [case for case in load_all() if case.number < FIRST and case.id not in OTHERS.split()]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", [c for c in CASES if c.op not in REFUSED], ids=lambda c: c.id)
def test_an_op_is_exported(case: Case) -> None:
    program = export.export(Called(case), tuple(map(tl.tensor, case.inputs)))  # compares both
    assert all(node.op in ("placeholder", "call_function", "output") for node in program.graph.nodes)
    file = io.BytesIO()
    export.save(program, file)
    file.seek(0)
    assert export.load(file).graph_module.code == program.graph_module.code


@pytest.mark.parametrize("case", [c for c in CASES if c.op in REFUSED], ids=lambda c: c.id)
def test_an_op_is_refused(case: Case) -> None:
    with pytest.raises(TraceError):
        export.export(Called(case), tuple(map(tl.tensor, case.inputs)))
