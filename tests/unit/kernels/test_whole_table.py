"""Every op reaches its kernels through the table alone: `require`, `off` and registered kernels hold for all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl
import tallow.ops.quantized_linear  # registers kernels; programs import it late
from tallow import kernels
from tallow.errors import KernelUnavailable
from tallow.kernels import library, table

pytestmark = [
    pytest.mark.cpu("the cases are NumPy arrays"),
    pytest.mark.native,  # the same table: seconds natively, half a minute in Pyodide
]

# Kernels that no case reaches -> what calls them. Some are in the table once a program has imported their module.
ELSEWHERE = {
    **dict.fromkeys(("cast_half", "rounded_dtype", "factor_of_products", "gradient_product"), "ops of halves"),
    **dict.fromkeys(("arrange_blocks", "attention_decode", "experts", "chain", "random_keep"), "models and optimizers"),
    **dict.fromkeys(("adam_step", "adam_steps", "sgd_step", "sgd_steps", "scale_all", "total_norm"), "optimizers"),
    **dict.fromkeys(("image_convolution", "image_max_pool", "quantize_u8"), "loaded ONNX files"),
    **dict.fromkeys(("integer_convolution", "integer_product"), "layers of codes in loaded ONNX files"),
    **dict.fromkeys(("delta_rule", "selective_scan", "short_convolution"), "models with states"),
    **dict.fromkeys(("greedy_tokens", "sampled_tokens"), "generation"),
    **dict.fromkeys(
        ("decode_block", "decode_blocks", "state_block", "cross_decode_block", "encoder_blocks"), "fused blocks"
    ),
}


class Reached(NamedTuple):
    """A case, and the names of the kernels that it calls."""

    case: Case
    forward: frozenset[str]
    backward: frozenset[str]


def forward(case: Case) -> list[tl.Tensor]:
    inputs = [tl.as_tensor(x.astype(np.float32) if x.dtype.kind == "f" else x.copy()) for x in case.inputs]
    for x in inputs:
        x.requires_grad_(x.is_floating_point())
    tl.manual_seed(0)
    return [y for y in tensors_of(case.call(tl, *inputs)) if y.requires_grad]


def tensors_of(result: Any) -> list[tl.Tensor]:
    if isinstance(result, tl.Tensor):
        return [result]
    return [x for each in result for x in tensors_of(each)] if isinstance(result, list | tuple) else []


def backward(outputs: list[tl.Tensor]) -> None:
    tl.autograd.backward(outputs, [tl.ones(y.shape, dtype=y.dtype) for y in outputs])


def is_refused(function: Callable[..., Any], argument: Any) -> bool:
    with kernels.require("nothing"):
        try:
            function(argument)
        except KernelUnavailable:
            return True
    return False


def counted(name: str, function: Callable[..., Any], calls: set[str]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        calls.add(name)
        return function(*args)

    return call


@pytest.fixture(scope="module")
def reached() -> list[Reached]:
    """Run one case of each op with the kernels of a user, under `off`, where the compiled ones may not be called."""
    kernels.info()
    calls: set[str] = set()
    found = []
    with pytest.MonkeyPatch.context() as patch, kernels.off(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (name, backend), entry in list(table.KERNELS.items()):
            if backend in ("array", library.BACKEND):
                called = name if backend == "array" else f"compiled {name}"
                patch.setitem(table.KERNELS, (name, backend), entry._replace(fn=counted(called, entry.fn, calls)))
        table.forget_choices()
        for case in {case.op: case for case in load_all()[::-1]}.values():
            calls.clear()
            outputs, of_forward = forward(case), frozenset(calls)
            calls.clear()
            backward(outputs)
            found.append(Reached(case, of_forward, frozenset(calls)))
    table.forget_choices()
    return found


def test_the_cases_reach_every_kernel(reached: list[Reached]) -> None:
    names = frozenset().union(*(each.forward | each.backward for each in reached))
    assert names == {name for name, backend in table.KERNELS if backend == "array"} - ELSEWHERE.keys()


@pytest.mark.filterwarnings("ignore")
def test_a_backend_that_is_not_there_is_refused_by_each_op_with_kernels(reached: list[Reached]) -> None:
    for case, of_forward, of_backward in reached:
        assert is_refused(forward, case) == bool(of_forward), f"{case.id}: {of_forward}"
        assert is_refused(backward, forward(case)) == bool(of_backward), f"{case.id}: {of_backward}"
