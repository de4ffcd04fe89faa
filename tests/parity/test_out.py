"""The arguments `out`, `layout`, `pin_memory` and `generator` have the effect that they have in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

from support.agreement import assert_agree  # noqa: E402 - imports torch

CALLS = """
m.zeros(2,pin_memory=False)
m.zeros(2,layout=m.strided)
m.zeros(2,layout='strided')
m.zeros(2,layout=None)
m.zeros(2,out=m.empty(0,dtype=m.int64))
m.zeros(2,dtype=m.float32,out=m.empty(0,dtype=m.int64))
m.zeros(2,out=m.empty(3))
m.ones(2,out=m.empty(3))
m.empty(2,out=m.empty(3)).shape
m.arange(3,out=m.empty(0))
m.full((2,),1.5,out=m.empty(0,dtype=m.int64))
m.full((2,),2,out=m.empty(0))
m.eye(2,out=m.empty(0,dtype=m.int64))
m.eye(2,3,out=m.empty(2,3))
m.linspace(0,1,3,out=m.empty(0,dtype=m.float64))
m.logspace(0,1,3,out=m.empty(0))
m.randn(2,out=m.empty(0)).shape
m.randint(3,(2,),out=m.empty(0,dtype=m.int64)).shape
m.randint(0,3,(2,),out=m.empty(0)).dtype
m.randperm(3,out=m.empty(0,dtype=m.int32)).dtype
m.normal(0.,1.,(2,),out=m.empty(0)).shape
m.normal(m.zeros(2),m.ones(2),out=m.empty(0)).shape
m.normal(0.,m.ones(2),out=m.empty(0)).shape
m.zeros(2,requires_grad=True,out=m.empty(2))
m.zeros(2,out=m.empty(2,requires_grad=True))
m.zeros_like(x,pin_memory=False,layout=None)
m.ones_like(x,layout=m.strided)
m.full_like(x,2,pin_memory=False)
m.empty_like(x,pin_memory=False).shape
m.rand_like(x,generator=m.Generator().manual_seed(1)).shape
m.randn_like(x,generator=None,layout=m.strided).shape
m.randint_like(x,3,generator=None).shape
x.new_zeros(2,pin_memory=False,layout=m.strided)
x.new_full((2,),1,pin_memory=False)
x.new_empty((2,),layout=m.strided).shape
m.tensor([1],pin_memory=False)
m.scalar_tensor(1,pin_memory=False)
m.tril_indices(2,2,layout=m.strided,pin_memory=False)
m.tril_indices(2,2,requires_grad=False)
m.empty_strided((2,),(1,),pin_memory=False).shape
m.hann_window(3,pin_memory=False,layout=m.strided)
m.kaiser_window(3,layout=m.strided)
m.hstack([x,x],out=m.empty(0))
m.vstack([x,x],out=m.empty(0))
m.dstack([x,x],out=m.empty(0))
m.column_stack([x,x],out=m.empty(0))
m.row_stack([x,x],out=m.empty(0))
m.tensordot(x,x,2,out=m.empty(0))
m.linalg.matrix_rank(x,out=m.empty(0,dtype=m.int64))
m.linalg.cond(spd,out=m.empty(0))
m.linalg.multi_dot([x,x.T],out=m.empty(0))
m.linalg.lu(spd,out=(m.empty(0),m.empty(0),m.empty(0)))[1]
m.linalg.lu_factor(spd,out=(m.empty(0),m.empty(0,dtype=m.int32)))[0]
m.linalg.tensorinv(spd,ind=1,out=m.empty(0))
m.chain_matmul(x,x.T,out=m.empty(0))
m.linalg.norm(x,out=m.empty(0))
m.linalg.qr(spd,out=(m.empty(0),m.empty(0)))[1].shape
m.sum(x,0,out=m.empty(7))
m.add(x,1,out=m.empty(2,2))
m.add(x,1,out=m.empty(3,2).t())
m.add(x,1,out=m.empty(2,3,dtype=m.float64))
m.add(x,1,out=m.empty(2,3,dtype=m.int64))
m.max(x,0,out=(m.empty(3),m.empty(3,dtype=m.int64)))[0]
m.max(x,0,out=(m.empty(1),m.empty(1,dtype=m.int64)))[1]
m.sort(x,0,out=(m.empty(1),m.empty(1,dtype=m.int64)))[1]
m.cat([x,x],out=m.empty(1))
m.stack([x,x],out=m.empty(1))
m.matmul(x,x.T,out=m.empty(1))
m.add(x,1,out=[m.empty(1)])
m.exp(x,out=3)
m.std(x,0,out=m.empty(3))
m.cross(x,x,dim=1,out=m.empty(0))
m.diag(x[0],out=m.empty(0))
m.nonzero(x,out=m.empty(0,dtype=m.int64))
m.masked_select(x,x>1,out=m.empty(0))
m.index_select(x,0,m.tensor([0]),out=m.empty(0))
m.gather(x,1,i,out=m.empty(0))
m.take(x,m.tensor([0]),out=m.empty(0))
m.tril(x,out=m.empty(0))
m.bernoulli(x*0,out=m.empty(0))
m.multinomial(x[1],1,out=m.empty(0,dtype=m.int64)).shape
m.searchsorted(x[0],x[0],out=m.empty(0,dtype=m.int64))
m.bucketize(x,x[0],out=m.empty(0,dtype=m.int64))
m.kron(x,x,out=m.empty(0))
m.outer(x[0],x[0],out=m.empty(0))
m.nanmean(x,out=m.empty(0))
m.quantile(x,0.5,out=m.empty(()))
m.renorm(x,2,0,1.0,out=m.empty(0))
m.histc(x,3,out=m.empty(0))
m.conj_physical(x,out=m.empty(0))
m.logcumsumexp(x,0,out=m.empty(0))
m.special.erf(x,out=m.empty(0))
m.special.logsumexp(x,0,out=m.empty(0))
m.special.softmax(x,0)
m.nn.functional.softmax(x,0)
m.mode(x,0,out=(m.empty(0),m.empty(0,dtype=m.int64)))[0]
m.frexp(x,out=(m.empty(0),m.empty(0,dtype=m.int32)))[0]
m.float_power(x,2,out=m.empty(0,dtype=m.float64))
m.clamp(x,1,2,out=m.empty(0))
m.nan_to_num(x,out=m.empty(0))
m.polygamma(1,x+1,out=m.empty(0))
m.inner(x,x,out=m.empty(0))
m.addmm(x@x.T,x,x.T,out=m.empty(0))
m.any(x>1,0,out=m.empty(0,dtype=m.bool))
m.svd(x,out=(m.empty(0),m.empty(0),m.empty(0)))[1]
m.linalg.svd(x,out=(m.empty(0),m.empty(0),m.empty(0)))[1]
m.linalg.eigh(spd,out=(m.empty(0),m.empty(0)))[0]
m.linalg.slogdet(spd,out=(m.empty(0),m.empty(0)))[1]
m.linalg.inv(spd,out=m.empty(0))
m.linalg.solve(spd,x,out=m.empty(0))
m.cholesky(spd,out=m.empty(0))
m.diff(x,out=m.empty(0))
m.aminmax(x,dim=0,out=(m.empty(0),m.empty(0)))[0]
m.isin(x,x,out=m.empty(0,dtype=m.bool))
m.isposinf(x,out=m.empty(0,dtype=m.bool))
m.heaviside(x,x,out=m.empty(0))
m.copysign(x,x,out=m.empty(0))
m.lcm(i,i,out=m.empty(0,dtype=m.int64))
"""
INPUTS = "m.arange(6.0).reshape(2, 3), m.tensor([[0, 1, 1], [1, 0, 0]]), m.tensor([[2.0, 1.0], [1.0, 3.0]])"


@pytest.mark.filterwarnings("ignore")  # both warn about deprecated functions, and when out is resized
@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_calls(call: str) -> None:
    assert_agree(f"(lambda x, i, spd: {call})({INPUTS})", rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("m", [torch, tl], ids=["torch", "tallow"])
class TestOut:
    """Each holds for PyTorch, and for tallow."""

    def test_the_result_is_out(self, m) -> None:
        for out in (m.empty(0), m.ones(2), m.ones(2, dtype=m.float64)):
            assert m.add(m.ones(2), 1, out=out) is out
            assert out.tolist() == [2, 2]
            assert m.zeros(2, out=out) is out
            assert out.tolist() == [0, 0]

    def test_strides_and_memory_stay(self, m) -> None:
        base = m.zeros(3, 2)
        out = base.t()
        m.ones(2, 3, out=out)
        assert out.stride() == (1, 2)
        assert base.sum() == 6

    def test_only_out_with_elements_warns(self, m, recwarn) -> None:
        m.add(m.ones(2), 1, out=m.empty(0))
        m.ones(2, out=m.empty(3))  # a function that creates a tensor
        assert not recwarn
        with pytest.warns(UserWarning, match="was resized since it had shape"):
            m.add(m.ones(2), 1, out=m.ones(3))

    def test_functions_without_tensors_refuse_out(self, m) -> None:
        with pytest.raises(TypeError):
            m.numel(m.ones(2), out=m.empty(1))

    def test_leaf_that_requires_grad(self, m) -> None:
        with pytest.raises(RuntimeError):
            m.zeros(2, out=m.empty(2, requires_grad=True))
        assert m.zeros(2, out=m.empty(2), requires_grad=True).requires_grad


def test_generators_of_like_functions() -> None:
    x = tl.ones(4)
    for function, other in ((tl.rand_like, tl.rand), (tl.randn_like, tl.randn)):
        drawn = function(x, generator=tl.Generator().manual_seed(3))
        np.testing.assert_array_equal(drawn.numpy(), other(4, generator=tl.Generator().manual_seed(3)).numpy())
    drawn = tl.randint_like(x, 100, generator=tl.Generator().manual_seed(3))
    assert drawn.tolist() == tl.randint(100, (4,), generator=tl.Generator().manual_seed(3)).tolist()


def test_layout() -> None:
    assert tl.ones(2).layout is tl.strided
    assert repr(tl.strided) == "tallow.strided"
    with pytest.raises(TypeError, match="layout"):
        tl.ones(2, layout="strided")
