"""The names of recorded ops are PyTorch's: `type(y.grad_fn).__name__`, `grad_fn=<MulBackward0>`, `next_functions`."""

from __future__ import annotations

import re
from typing import Any

import pytest
from cases import Case, load_all

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

CASES = [case for case in load_all() if case.grad]
# By reason: the ops, or composed functions, some of whose cases have another name than in PyTorch.
EXCEPTIONS = {
    "PyTorch computes one axis as two, and an item without a batch as a batch of one, so it ends with squeeze": (
        "adaptive_avg_pool adaptive_max_pool avg_pool conv1d conv2d conv3d conv_transpose1d max_pool "
        "max_pool_with_indices max_unpool nanquantile quantile"
    ),
    "the name depends on an argument that a node does not keep": (
        "amax amin chunk copysign div fill float_power getitem huber_error lerp mean nll_loss_of_classes norm pad prod "
        "resample reshape round scatter sort split squeeze sub sum take_along_dim transpose xlog1py xlogy zeta"
    ),
    "one op here, composed in PyTorch": (
        "bilinear cdist cofactors combinations cross_entropy_of_classes csr_matmul ctc gelu_mul gru_cell gru_steps "
        "instance_norm kl_divergence linear linear_map lstm_cell lstm_steps matmul product_map quantized_linear "
        "rnn_relu_cell rnn_steps rnn_tanh_cell rotary rrelu scaled_dot_product_attention scaled_mask silu_mul "
        "with_value"
    ),
    "composed here of other ops": (
        "affine_grid binary_cross_entropy binary_cross_entropy_with_logits cat channel_shuffle cholesky_inverse "
        "copy cov cross_entropy diag diagonal_scatter dot einsum fill_diagonal_ flip geqrf index_reduce kron ldexp "
        "linalg_cond linalg_lstsq linalg_matrix_norm linalg_multi_dot linalg_norm linalg_tensorinv "
        "lu_factor matrix_exp matrix_power multi_head_attention_forward multi_margin multilabel_margin mvlgamma "
        "pairwise_distance pixel_shuffle pixel_unshuffle polygamma renorm repeat_interleave select_scatter "
        "slice_scatter soft_margin_loss std_mean sum_to_size trace trapezoid var_mean"
    ),
}


def leaves(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in leaves(item)] if isinstance(result, list | tuple) else [result]


def names(module: Any, case: Case) -> list[str]:
    inputs = [module.tensor(a) for a in case.inputs]
    for x in inputs:
        x.requires_grad_(x.is_floating_point())
    results = leaves(case.call(module, *inputs))
    return [type(y.grad_fn).__name__ for y in results if isinstance(y, module.Tensor) and y.requires_grad]


@pytest.mark.filterwarnings(r"ignore:index_reduce\(\) is in beta")  # raised by PyTorch
def test_names_of_all_cases() -> None:
    differs = {case.op for case in CASES if names(tl, case) != names(torch, case)}
    assert differs == {op for ops in EXCEPTIONS.values() for op in ops.split()}


def looks(module: Any) -> list[Any]:
    x = module.tensor([[1.0, 2.0]], requires_grad=True)
    y = (x * 2).sum()
    ((product, index),) = y.grad_fn.next_functions
    leaf = product.next_functions[0][0]
    written = x * 1
    view = written[0]
    view.mul_(2)
    nodes = [y.grad_fn, product, leaf, written.grad_fn, view.grad_fn]
    names = [type(node).__name__ for node in nodes]
    texts = [re.sub("0x[0-9a-f]+", "", repr(node)) for node in nodes]
    same = product is y.grad_fn.next_functions[0][0], leaf == product.next_functions[0][0], leaf.variable is x
    return [names, texts, same, index, product.next_functions[1], leaf.name(), repr(y), repr(written)]


def test_nodes_look_as_pytorchs() -> None:
    assert looks(tl) == looks(torch)


def test_backward_runs_through_nodes_that_were_looked_at() -> None:
    x = tl.tensor([3.0, 4.0], requires_grad=True)
    y = x * x
    z = (y + y.reshape(2, 1).sum(1)).unbind()
    assert [type(t.grad_fn).__name__ for t in z] == ["UnbindBackward0"] * 2
    assert y.grad_fn.next_functions
    assert z[0].grad_fn.next_functions[0][0].next_functions
    (g,) = tl.autograd.grad(z[0] + z[1], x, create_graph=True)
    assert type(g.grad_fn).__name__.endswith("Backward0")
    g.sum().backward()
    assert (g.tolist(), x.grad.tolist()) == ([12.0, 16.0], [4.0, 4.0])


class Double(tl.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tl.Tensor) -> tl.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: tl.Tensor) -> tl.Tensor:
        return g * 2


def test_a_function_is_named_after_its_class() -> None:
    y = Double.apply(tl.ones(1, requires_grad=True))
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "DoubleBackward"  # as in PyTorch
