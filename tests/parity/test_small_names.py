"""Names that torch has at its top level, with the signatures of its C++ code, and small methods."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.agreement import assert_agree  # noqa: E402 - imports torch

INPUTS = "m.arange(12.0).reshape(3, 4) / 7, m.tensor([[0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 0, 0]])"
CALLS = """
x.narrow_copy(1, 1, 2)
m.unsafe_chunk(x, 2, 1)[1]
x.unsafe_split(2)[1]
m.unsafe_split_with_sizes(x, [1, 2])[1]
m.as_strided_scatter(x, m.ones(2, 2), (2, 2), (1, 2), 1)
m.func.grad(lambda s: (m.as_strided_scatter(x, s, (2, 2), (1, 2), 1) ** 2).sum())(m.ones(2, 2))
m.histogramdd(x / 3, bins=1)[0]
m.view_copy(x, (4, 3))
m.split_copy(x, 2)[1]
m.slice_copy(x, 1, 1, 4, 2)
m.alias_copy(x)
m.permute_copy(x, (1, 0))
m.expand_copy(x[0], (2, 4))
m.nonzero_static(i, size=9, fill_value=5)
i.nonzero_static(size=2)
x.t().dim_order()
m.ones(2, 1, 3).dim_order(ambiguity_check=True)
m.ones(2, 3).dim_order(ambiguity_check=True)
m.ones(2, 3).dim_order(ambiguity_check=[m.contiguous_format])
m.zeros(4).resize_(size=(2, 3)).shape
m.ones(2, 3, 4).permute(2, 0, 1).dim_order()
m.empty_permuted((2, 3, 4), (1, 0, 2)).stride()
m.zeros(3, 4).map_(x, lambda a, b: a + 2 * b)
m.ones(3, 4).map2_(x, x[0], lambda a, b, c: a + b * c)
m.typename([])
m.typename(len)
m.histogramdd(x[:, :2], bins=[2, 3])[0]
m.histogramdd(x[:, :2], bins=2, range=[0., 1., 0., 1.], weight=x[:, 2])[0]
m.histogramdd(x[:, :2], bins=[m.tensor([0., .5, 2.]), m.tensor([0., 1.])], density=True)[0]
m.constant_pad_nd(x, (1, 2, 0, 1), 7)
m.grid_sampler(x[None, None], m.zeros(1, 2, 2, 2) + .3, 0, 1, True)
m.batch_norm(x, None, None, None, None, True, .1, 1e-5, False)
m.batch_norm(x, m.ones(4), m.zeros(4), m.zeros(4), m.ones(4), False, .1, 1e-5, False)
m.instance_norm(x[None], None, None, None, None, True, .1, 1e-5, False)
m.native_layer_norm(x, (4,), m.ones(4), None, 1e-5)[2]
m.native_group_norm(x[None], None, None, 1, 3, 4, 3, 1e-5)[1]
m.native_batch_norm(x, None, None, m.zeros(4), m.ones(4), True, .1, 1e-5)[2]
m.kl_div(x, x.softmax(1), 1)
m.kl_div(x, x.softmax(1), 2, log_target=False)
m.binary_cross_entropy_with_logits(x, i.float(), None, None, 0)
m.hinge_embedding_loss(x, i * 2. - 1, 1.0, 1)
m.margin_ranking_loss(x, x.flip(0), i * 2. - 1, 0.5, 2)
m.cosine_embedding_loss(x, x.flip(0), m.tensor([1, -1, 1]), 0.1, 0)
m.triplet_margin_loss(x, x.flip(0), x * 2, 1., 2., 1e-6, False, 1)
m.poisson_nll_loss(x, i.float(), True, False, 1e-8, 1)
m.embedding(x, i, -1, False, False)
m.embedding_renorm_(x.clone(), i, 0.5, 2.0)
m.feature_dropout(x, 0.5, False)
m.native_dropout(x, 0.5, False)[1]
m.norm_except_dim(x, 2, 1)
m.norm_except_dim(x, 2, -1)
m.nuclear_norm(x)
m.frobenius_norm(x, [0, 1])
m.fill_(m.zeros(2), 3)
m.zero_(m.ones(2))
m.index_put_(m.zeros(4), (i[0],), m.tensor(2.), True)
m.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15)
m.fake_quantize_per_tensor_affine(x, m.tensor(0.1), m.tensor(3, dtype=m.int32), 0, 15)
m.func.grad(lambda x: (x * m.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15)).sum())(x)
[m.nn.Conv2d(1, 1, 1).transposed, m.nn.ConvTranspose1d(1, 1, 1).transposed]
m.nn.functional.linear_cross_entropy(x, x, m.tensor([0, 2, 1]), linear_bias=x[:, 0], label_smoothing=0.1)
m.nn.functional.linear_cross_entropy(x[0], x, m.tensor(2), reduction="none")
m.nn.functional.linear_cross_entropy(x, m.stack([x, x * 2], 1), m.tensor([[0, 2], [1, 1], [2, -100]]))
m.func.grad(lambda w: m.nn.functional.linear_cross_entropy(x, w, m.tensor([0, 2, 1])))(x)
m.fake_quantize_per_channel_affine(x, m.tensor([.1, .2, .3]), m.tensor([0, 1, 2], dtype=m.int32), 0, 0, 7)
"""


@pytest.mark.filterwarnings("ignore")  # raised by PyTorch
@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_equals_pytorch(call: str) -> None:
    assert_agree(f"(lambda x, i: {call})({INPUTS})", rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*range is deprecated")
@pytest.mark.parametrize("call", ["m.range(1, 4)", "m.range(0, 1, 0.25)", "m.range(3, 0, -1)"])
def test_range(call: str) -> None:
    assert_agree(call)


@pytest.mark.parametrize("name", ["dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_"])
def test_dropout_in_place(name: str) -> None:
    assert_agree(f"(lambda x: m.{name}(x, 1.0, True) is x and x)(m.ones(2, 3, 4))")
