"""Device meta: shapes, strides and offsets of views and results are PyTorch's, without memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tallow as tl

# Within `with m.device("meta")`.
CALLS = """
m.empty(2,3,4)
m.empty(2,3,4).permute(2,0,1)
m.empty(2,3).t()
m.empty(2,3).t()+1
m.empty(4,6)[:, ::2]
m.empty(4,6)[1]
m.empty(4,6)[1,2]
m.empty(3).expand(4,3)
m.empty(2,3,4,4).to(memory_format=m.channels_last)
m.empty(2,3,4,4).contiguous(memory_format=m.channels_last).relu()
m.nn.functional.conv2d(m.empty(1,2,5,5),m.empty(3,2,2,2))
m.empty(2,3)@m.empty(3,4)
m.empty(2,3,4).transpose(0,2).contiguous()
m.empty_strided((2,3),(1,2))
m.empty(2,3,4).diagonal()
m.empty(2,3,4).unfold(2,2,1)
m.empty(4).as_strided((2,2),(1,2))
m.empty(2,3,4).transpose(0,1).sum(0)
m.empty(2,3,4).unsqueeze(1)
m.empty(2,3,4).transpose(0,1).unsqueeze(1)
m.empty(2,3,4).view(6,4)
m.empty(2,1,4).squeeze(1)
m.empty(5,0,3)
m.empty(2,3,4).transpose(0,1).clone()
m.empty_like(m.empty(2,3).t())
m.zeros_like(m.empty(2,3).t())
m.empty(2,3,4).transpose(0,1).relu()
m.empty(2,3,4).transpose(0,1).exp()*2
m.empty(6).view(2,3)[:,1]
m.empty(6).split(2)[1]
m.empty(4,4).narrow(1,1,2)
m.empty(4,4).select(1,1)
m.empty(2,3).movedim(0,1)
m.empty(2,3).swapaxes(0,1)
m.empty(2,3).mT
m.empty(2,3)[None]
m.empty(2,3)[:,None]
m.empty(2,3)[...,1:]
m.empty(2,6).unflatten(1,(2,3))
m.empty(2,6).chunk(2,1)[1]
m.empty(2,6).unbind(1)[0]
m.empty(2,3).t().detach()
m.empty(2,3).flip(0)
m.empty(2,3).t().reshape(3,2)
m.empty(2,3).t().reshape(6)
m.empty(2,3).t().view(6)
m.empty(2,3).t().view(3,2)
m.empty(2,3).t().contiguous()
m.empty(2,3).t().double()
m.empty(2,3).t().to(m.float64)
m.empty(2,3)[m.tensor([0,1,1])]
m.nn.Linear(3,4).weight.t()
m.empty(2,3,4,5).permute(0,2,3,1).softmax(-1)
m.stack([m.empty(2,3).t()]*2)
m.cat([m.empty(2,3).t()]*2)
m.empty(2,3,dtype=m.complex64).real
m.view_as_real(m.empty(2,3,dtype=m.complex64))
m.empty(2,3).t_()
m.empty(2,3).squeeze_().T
m.empty(2,3,4)[1].as_strided((2,2),(1,2))
m.empty(2,3,4)[:,1:].view(m.int32)
m.empty(2,3,4).view(m.int16)
m.empty(2,3,4)[1].view(m.float64)
m.empty(2,3).t().view(m.int64)
"""


def layout(m: Any, call: str) -> Any:
    try:
        with m.device("meta"):
            x = eval(call, {"m": m})
    except RuntimeError:
        return "refused"
    return tuple(x.shape), tuple(x.stride()), x.is_contiguous(), x.storage_offset(), x.device.type


@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_layouts(call: str) -> None:
    assert layout(tl, call) == layout(torch, call)


def test_elements_are_never_read() -> None:
    x = tl.empty(1 << 20, 1 << 8, device="meta")
    for y in (x.t()[5:7, ::3], x[7, 5], x.expand(3, -1, -1)[2, 1:, 4]):
        assert y.device.type == "meta"
        assert (y * 2).shape == y.shape
        with pytest.raises(tl.errors.DeviceError):
            y.tolist()
