"""Calls that PyTorch takes: each of a family that tallow once refused."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.agreement import assert_agree  # noqa: E402 - imports torch

INPUTS = "m.nn.functional, m.arange(6.0).reshape(2, 3), m.tensor([[0, 1, 1], [1, 0, 0]])"


def check(call: str) -> None:
    assert_agree(f"(lambda F, x, i: {call})({INPUTS})", rtol=1e-5, atol=1e-6)


# Functions whose results are not in row-major order.
DERIVATIVES = """
m.func.jacrev(lambda x: x.T)(x)
m.func.jacfwd(lambda x: x.T)(x)
m.func.jvp(lambda x: x.T, (x,), (x,))[1]
m.func.hessian(lambda x: (x.T**2))(x)
m.func.vjp(lambda x: x.T, x)[1](x.T)[0]
m.func.jacrev(lambda x: x.T, chunk_size=1)(x)
m.func.jacrev(lambda x: x.expand(2,2,3))(x)
m.func.jacfwd(lambda x: x.expand(2,2,3))(x)
m.func.jacrev(lambda x: x[:, ::2])(x)
m.func.jacrev(lambda x: x.unfold(1,2,1))(x)
m.func.jacfwd(lambda x: x.unfold(1,2,1))(x)
m.func.jacrev(lambda x: x.diagonal())(x)
m.func.jacrev(lambda x: x.T * 2)(x)
m.func.vmap(lambda x: x.T)(x[None])
m.autograd.functional.jacobian(lambda x: x.T, x)
m.autograd.functional.jacobian(lambda x: x.T, x, vectorize=True)
m.autograd.functional.jacobian(lambda x: x.T, x, create_graph=True)
m.autograd.functional.jacobian(lambda x: x.expand(2,2,3), x)
m.autograd.functional.hessian(lambda x: (x.T**2).sum(), x)
m.autograd.functional.jvp(lambda x: x.T, x, x)[1]
m.autograd.functional.vjp(lambda x: x.T, x, x.T)[1]
m.autograd.functional.hvp(lambda x: (x.T**3).sum(), x, x)[1]
"""

# Zero-dim tensors that are drawn, and as the parameters of distributions.
DRAWS = """
m.rand((), dtype=m.float16).shape
m.rand((), dtype=m.bfloat16).dtype
m.rand((), dtype=m.float64).shape
m.randn((), dtype=m.float16).shape
m.randint(3, (), dtype=m.float16).shape
m.normal(0., 1., (), dtype=m.float16).shape
m.zeros((), dtype=m.float16).uniform_().shape
m.zeros((), dtype=m.bfloat16).normal_().dtype
m.zeros(()).exponential_().shape
m.zeros(()).cauchy_().shape
m.zeros(()).geometric_(0.5).shape
m.zeros(()).bernoulli_(0.5).shape
m.zeros(()).random_().shape
m.zeros((), dtype=m.float16).random_().shape
m.zeros(()).log_normal_().shape
m.rand_like(m.zeros((), dtype=m.float16)).shape
m.bernoulli(m.tensor(0.5)).shape
m.poisson(m.tensor(0.5)).shape
m.nn.functional.dropout(m.tensor(1.0, dtype=m.float16)).shape
m.zeros(2).uniform_(m.tensor(1.0), m.tensor(1.0))
m.zeros(2).normal_(m.tensor(1.0), m.tensor(0.0))
m.zeros(2).exponential_(m.tensor(1.0)).shape
m.zeros(2).cauchy_(m.tensor(1.0), m.tensor(1.0)).shape
m.zeros(2).log_normal_(m.tensor(1.0), m.tensor(1.0)).shape
m.zeros(2).geometric_(m.tensor(0.5)).shape
m.normal(m.tensor(1.0), m.tensor(0.0), (2,))
m.normal(m.tensor(1.0), m.tensor(0.0))
m.normal(1.0, m.tensor(0.0), (2,))
m.normal(m.tensor(1), m.tensor(0), size=(2,))
m.zeros(2).bernoulli_(m.tensor(1.0))
m.zeros(2).bernoulli_(m.tensor(1.0, dtype=m.float64))
m.zeros(2).bernoulli_(m.tensor([1.0, 0.0]))
"""

# Sums over a dim of one element keep the dtype of integers.
PRODUCTS_OF_INTEGERS = """
m.tensordot(m.ones(1,2,dtype=m.int32), m.ones(3,2,dtype=m.int32), dims=([0],[0]))
m.tensordot(m.ones(2,1,dtype=m.int32), m.ones(3,2,dtype=m.int32), dims=1)
m.tensordot(m.ones(2,1,dtype=m.int8), m.ones(3,2,dtype=m.int8), dims=1)
m.tensordot(m.ones(2,3,dtype=m.int32), m.ones(3,2,dtype=m.int32), dims=1)
m.tensordot(m.ones(2,1,dtype=m.bool), m.ones(3,2,dtype=m.bool), dims=1)
m.tensordot(m.ones(2,1,dtype=m.float16), m.ones(3,2,dtype=m.float16), dims=1)
"""

# Writes to views that are not written as such by NumPy, because it marks some of them as read-only.
WRITES = """
x.clone().unfold(1,2,2).add_(1)
x.clone().unfold(0,1,1).mul_(2)
x.clone().unfold(1,3,1).add_(1)
x.clone().expand(2,3).add_(1)
x.clone().expand(2,2,3).add_(1)
x[:1].clone().expand(1,3).add_(1)
x[:1].clone().expand(2,3).add_(1)
m.zeros(1).expand(0).add_(1)
m.zeros(1).expand(3,0).fill_(1)
m.zeros(0,1).expand(0,5).fill_(1)
m.tensor(1.0).expand(1).add_(1)
m.tensor(1.0).expand(1,1).add_(1)
x.clone().broadcast_to((2,3)).zero_()
x.clone().as_strided((2,2),(3,1)).add_(1)
x.clone().diagonal().add_(1)
x.clone().diagonal().fill_(1)
x.clone().T.diagonal().mul_(3)
x.clone().squeeze().add_(1)
x.clone().view(3,2).t().add_(1)
m.broadcast_tensors(x.clone(), x)[0].add_(1)
m.meshgrid(x[0].clone(), x[0,:1], indexing='ij')[0].add_(1)
x.clone().flip(0).add_(1)
x.clone().swapaxes(0,1).add_(1)
x.clone().unflatten(1,(3,1)).add_(1)
x.clone().repeat(1,1).add_(1)
x.clone().real.add_(1)
x.clone().detach().unfold(1,2,2).zero_()
x.clone().unfold(1,2,2).copy_(m.ones(2,1,2))
x.clone().unfold(1,2,2).__setitem__(0, 1.0)
x.clone().expand(2,3).__setitem__((0,0), 5.0)
m.nn.functional.relu_(x.clone().unfold(1,2,2))
x.clone().unfold(1,2,2).masked_fill_(m.tensor(True), 2)
x.clone().unfold(1,2,2).uniform_(0,0)
"""

# Two dtypes meet in an einsum where no matrices are multiplied: also where the dimensions to sum over have one element.
EINSUMS = """
m.einsum('ijk,lkj->il', m.ones(1,1,1), m.ones(1,1,1,dtype=m.int8))
m.einsum('ij,jk->ik', m.ones(3,1), m.ones(1,2,dtype=m.int64))
m.einsum('ij,jk->ik', m.ones(3,1,dtype=m.bool), m.ones(1,2,dtype=m.int8))
m.einsum('ij,j->i', m.ones(1,3), m.ones(1,dtype=m.float16))
m.einsum('ij,jk->ik', x, m.ones(3,2,dtype=m.float64))
m.einsum('i,j->ij', x[0], m.ones(2,dtype=m.int8))
"""

# Integers in layers and losses: computed where PyTorch computes, refused where it refuses.
INTEGERS = """
m.avg_pool1d(i[None], 2)
F.avg_pool1d(i[None], 2)
F.avg_pool2d(i[None], 2)
F.avg_pool2d(i[None], 2, 1)
F.avg_pool2d(i[None].to(m.int32), 2)
F.avg_pool3d(i[None,None], (1,2,2))
F.lp_pool1d(i[None], 2, 2)
F.lp_pool2d(i[None], 2, 2)
F.lp_pool2d(x[None].to(m.int32), 2, 2)
F.local_response_norm(i[None], 2)
F.local_response_norm(i[None].to(m.int32), 2)
F.bilinear(i, i, m.ones(2,3,3,dtype=m.int64))
F.bilinear(i, i, m.ones(2,3,3,dtype=m.int64), m.ones(2,dtype=m.int64))
F.l1_loss(i, i+1)
F.l1_loss(i, i+1, reduction='sum')
F.l1_loss(i, i+1, reduction='none')
F.l1_loss(i, x)
F.l1_loss(x, i)
F.mse_loss(i, i+1, reduction='none')
F.mse_loss(i, i+1, reduction='sum')
F.mse_loss(i, x)
F.smooth_l1_loss(i, i+1, reduction='none')
F.smooth_l1_loss(i, i+2, reduction='sum')
F.huber_loss(i, i+1, reduction='none')
F.max_pool2d(i[None], 2)
F.adaptive_max_pool2d(i[None], 1)
F.adaptive_avg_pool2d(i[None], 1)
F.pad(i, (1,1))
F.pad(i[None], (1,1), mode='reflect')
F.pad(i[None], (1,1), mode='replicate')
F.pad(i[None], (1,1), mode='circular')
F.interpolate(i[None,None].to(m.uint8), (4,6))
F.pixel_shuffle(m.ones(1,4,2,2,dtype=m.int64), 2)
F.conv2d(i[None,None], m.ones(1,1,2,2,dtype=m.int64))
F.conv1d(i[None], m.ones(1,2,2,dtype=m.int64))
F.conv_transpose1d(i[None], m.ones(2,1,2,dtype=m.int64))
F.linear(i, i)
F.linear(i, i, m.ones(2,dtype=m.int64))
F.relu(i)
F.relu6(i)
F.hardtanh(i)
F.threshold(i, 1, 0)
F.leaky_relu(i)
F.glu(m.ones(2,4,dtype=m.int64))
F.normalize(i)
F.cosine_similarity(i, i)
F.pairwise_distance(i, i)
F.margin_ranking_loss(i, i, i)
F.cosine_embedding_loss(i, i, m.ones(2,dtype=m.int64))
F.poisson_nll_loss(i, i)
F.kl_div(i, i)
F.triplet_margin_loss(i, i, i)
F.softsign(i)
F.logsigmoid(i)
F.tanhshrink(i)
F.hardshrink(i)
F.elu(i)
F.gelu(i)
F.silu(i)
F.softplus(i)
F.channel_shuffle(m.ones(1,4,2,dtype=m.int64), 2)
F.embedding(i, i)
F.prelu(i, m.ones(1,dtype=m.int64))
m.renorm(i, 2, 0, 1)
m.cdist(i, i)
m.dist(i, i)
m.nn.functional.gaussian_nll_loss(i, i, m.ones(2,3))
F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], m.ones(2, 2), is_causal=True)
F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], m.ones(2, 2) > 0, is_causal=True)
m.signal.windows.hann(m.tensor(1.0)).shape
m.signal.windows.kaiser(m.tensor(0.0)).shape
m.signal.windows.kaiser(3, beta=m.tensor(2.0, dtype=m.bfloat16))
m.signal.windows.bartlett(m.tensor(2.0)).shape
"""


@pytest.mark.filterwarnings("ignore")  # those of PyTorch
@pytest.mark.parametrize("call", DERIVATIVES.strip().splitlines())
def test_derivatives(call: str) -> None:
    check(call)


@pytest.mark.filterwarnings("ignore")  # those of PyTorch
@pytest.mark.parametrize("call", DRAWS.strip().splitlines())
def test_draws(call: str) -> None:
    check(call)


@pytest.mark.filterwarnings("ignore")  # those of PyTorch
@pytest.mark.parametrize("call", PRODUCTS_OF_INTEGERS.strip().splitlines())
def test_products_of_integers(call: str) -> None:
    check(call)


@pytest.mark.parametrize("call", EINSUMS.strip().splitlines())
def test_einsums_of_two_dtypes(call: str) -> None:
    check(call)


@pytest.mark.filterwarnings("ignore")  # those of PyTorch
@pytest.mark.parametrize("call", WRITES.strip().splitlines())
def test_writes(call: str) -> None:
    check(call)


@pytest.mark.filterwarnings("ignore")  # those of PyTorch
@pytest.mark.parametrize("call", INTEGERS.strip().splitlines())
def test_integers(call: str) -> None:
    check(call)


OTHER = """
m.tensor_split(x, m.tensor([1, 1, 3]), 1)
m.tensor_split(x, m.tensor(2))
m.tensor_split(x, m.tensor([0.5]))
m.tensor_split(x, m.tensor([[1]]))
F.multi_margin_loss(x.sum(), m.tensor(0))
F.multi_margin_loss(x[0], m.tensor([1]))
x[0].clone().resize_as_(x.sum())
F.multilabel_margin_loss(x.sum(), m.tensor(0))
m.func.grad(lambda x: sum(y.norm() for y in m.native_group_norm(x, None, None, 1, 6, 1, 2, 0.5)))(x.reshape(1, 6))
"""


@pytest.mark.parametrize("call", OTHER.strip().splitlines())
def test_other_calls(call: str) -> None:
    check(call)
