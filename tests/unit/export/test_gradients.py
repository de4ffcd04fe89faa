"""Gradients of exported programs: those of the module, also where it computes without one."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

import tallow as tl
from tallow.export import export, load, save

nn, F = tl.nn, tl.nn.functional


def sample(*shape: int) -> tl.Tensor:
    return tl.randn(shape, generator=tl.Generator().manual_seed(1))


def encoded(model: nn.Sequential, x: tl.Tensor) -> tl.Tensor:
    with tl.no_grad():
        h = model[0](x).tanh()[:, 1:]
    return model[1](h) * x


def inference(model: nn.Sequential, x: tl.Tensor) -> tl.Tensor:
    return model[1](tl.no_grad()(model[0])(x).view(-1, 4)[:, :3])


class Doubled(tl.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tl.Tensor) -> tl.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: tl.Tensor) -> tl.Tensor:
        return g * 2


def in_place(model: nn.Sequential, x: tl.Tensor) -> tl.Tensor:
    h = model[0](x).detach()
    h.mul_(2)
    return model[1](h[:, :3]) + x


def taken(model: nn.Sequential, x: tl.Tensor) -> tl.Tensor:
    h = model[0](x) * 1
    return h.detach_() * model[0](x)


GRADIENTS: dict[str, Callable[[Any, tl.Tensor], tl.Tensor]] = {
    "no_grad": encoded,
    "decorated": inference,
    "detach": lambda m, x: m[0](x).detach() * m[0](x),
    "data": lambda m, x: m[0](x).data * m[0](x),
    "detach_": taken,
    "view of detach": lambda m, x: (h := m[0](x)).detach()[:, 1:] * h[:, 1:],
    "parameter": lambda m, x: F.linear(x, m[0].weight.detach(), m[0].bias),
    "argument": lambda m, x: x * x.detach(),
    "in-place": in_place,
    "dropout": lambda m, x: F.dropout(x, 0.5) * 1 + tl.no_grad()(F.dropout)(m[0](x)[:, 1:], 0.5),
    "straight through": lambda m, x: (h := m[0](x)) + (h.round() - h).detach(),
    "function": lambda m, x: Doubled.apply(m[0](x)),
    "checkpoint": lambda m, x: tl.utils.checkpoint.checkpoint(m[0], x),
    "vmap": lambda m, x: tl.func.vmap(m[0])(x),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_gradients_of_a_program_are_those_of_the_module(name: str) -> None:
    class Model(nn.Sequential):
        def forward(self, x: tl.Tensor) -> tl.Tensor:
            return GRADIENTS[name](self, x)

    tl.manual_seed(0)
    model = Model(nn.Linear(3, 4), nn.Linear(3, 3))
    program = export(model, (sample(5, 3),))
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    found = []
    for module in (model, program.module(), load(file).module()):
        x = (sample(5, 3) + 1).requires_grad_()
        module.to(x.device).zero_grad()
        tl.manual_seed(0)
        module(x).square().sum().backward()
        found.append([x.grad, *(p.grad for p in module.parameters())])
        found[-1] = [tl.zeros(1) if g is None else g.clone() for g in found[-1]]
    for got in found[1:]:
        tl.testing.assert_close(got, found[0])
