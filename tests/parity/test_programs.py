"""Short programs with the same results under `import tallow as tl` and `import torch as tl`.

Each is a few statements and an expression. The test compares its value (tensors by dtype, shape, elements and
requires_grad) or the built-in class of its error.
"""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import tallow
import tallow.nn.functional
from tallow.errors import TallowError

GRAPHS = """
x = R(3, rg=True); y = x * 2; y.retain_grad(); y.mul_(3); y.sum().backward(); (y.grad, x.grad, y.retains_grad)
x = R(3, rg=True); y = x * 2; y.retain_grad(); y[0] = 5; y.sum().backward(); (y.grad, x.grad)
x = R(3, rg=True); y = x * 2; v = y[:2]; v.retain_grad(); y.mul_(3); (v * v).sum().backward(); (v.grad, x.grad)
x = R(3, rg=True); h = x * 2; (h * h).sum().backward(inputs=[h]); (x.grad, h.grad)
x = R(3, rg=True); h = x * 2; (h * h).sum().backward(inputs=[h, x]); (x.grad, h.grad)
x = R(3, rg=True); h = x * 2; h.retain_grad(); (h * h).sum().backward(inputs=[h]); (x.grad, h.grad)
x = R(3, rg=True); y = x * 2; y.retain_grad(); y.register_hook(lambda g: g * 10); y.sum().backward(); (y.grad, x.grad)
x = R(3, rg=True); y = x * 2; y.register_hook(lambda g: g * 10); y.retain_grad(); y.sum().backward(); (y.grad, x.grad)
x = R(3, rg=True); x.sum().backward(); copy.deepcopy(x).grad
p = tl.nn.Parameter(R(3)); p.sum().backward(); copy.deepcopy(p).grad
m = tl.nn.Linear(3, 2); tl.autograd.grad(m(R(4, 3)).sum(), m.parameters())
m = tl.nn.Linear(3, 2); tl.autograd.grad(m(R(4, 3)).sum(), dict(m.named_parameters()).values())
x = R(3, rg=True); tl.autograd.backward(iter([x.sum(), x.exp().sum()])); x.grad
m = tl.nn.Linear(3, 2); m(R(4, 3)).sum().backward(inputs=list(m.parameters())); m.weight.grad
x = R(3, rg=True); tl.autograd.grad(x.sum(), 3)
x = R(3, rg=True); tl.autograd.grad(x.sum(), [3])
x = R(3, rg=True); tl.autograd.grad(x.sum(), [])
tl.autograd.grad(3, tl.ones(2))
tl.autograd.backward(3)
x = R(3, rg=True); x.sum().backward(inputs=[])
x = R(3, rg=True); x.sum().backward(inputs=[tl.ones(3)])
x = R(3, rg=True); y = x * 2; (y.long().requires_grad, y.int().is_leaf, (y > 0).requires_grad, y.to(tl.uint8).sum())
x = R(3, rg=True); i = tl.zeros(3, dtype=tl.int64); i.copy_(x); i.requires_grad
x = R(3, rg=True); h = x * 2; h.register_hook(lambda g: g[:1]); h.sum().backward()
x = R(3, rg=True); x.register_hook(lambda g: g[:1]); x.sum().backward()
x = R(3, rg=True); x.register_hook(lambda g: 3); x.sum().backward()
x = R(3, rg=True); h = x * 2; h.register_hook(lambda g: "no"); h.sum().backward()
x = R(3, rg=True); w = R(3, 3, rg=True, seed=1); tl.autograd.grad((w @ x).sum(), x)
x = R(3, rg=True); w = R(3, rg=True, seed=1); h = x * w; k = h.exp(); tl.autograd.grad((k * h * w).sum(), [h, x])
"""

# unpickled arrays have dtype objects that are equal, not identical
COPIES = """
x = pickle.loads(pickle.dumps(R(4).bfloat16())); (x + x, x.exp(), x.sum(), x.masked_fill(x > 0, 2.0), -x, x * 2)
x = pickle.loads(pickle.dumps(R(4).half())) * 10; (x * 1000, x.exp(), x.sum(), x.softmax(0))
x = pickle.loads(pickle.dumps(R(4, 4).half())).requires_grad_(); (x * 3 - x).sum().backward(); x.grad
x = pickle.loads(pickle.dumps(R(4).bfloat16())).requires_grad_(); (x * 2).sum().backward(); x.grad
x = pickle.loads(pickle.dumps(R(4, rg=True))); y = R(4, rg=True, seed=1); (x + y + x).sum().backward(); (x.grad, y.grad)
x = pickle.loads(pickle.dumps(R(4, rg=True))); g = tl.ones(4); (x + x).backward(g); (x.grad, g)
x = copy.deepcopy(pickle.loads(pickle.dumps(R(4).bfloat16()))); (x + 1, x @ x, x.float())
"""

NUMBERS = """
f"{tl.tensor(1.5):.2f}"
f"{tl.tensor([1.5]):.2f}"
int(tl.ones(2))
float(tl.ones(2))
tl.ones(2).item()
tl.tensor([1, "a"])
tl.ones(10**12)
tl.zeros(2**62, 4)
tl.arange(10**13)
tl.full((10**13,), 2.5)
x = tl.ones(2).expand(10**12, 2); x.clone()
x = tl.tensor([0, 128, 255], dtype=tl.uint8); (x / 255, x / 256, x / -1, 300 / x[1:], x / 2.0, x // 2)
x = tl.tensor([1, -2, 100], dtype=tl.int8); (x / 300, x.true_divide(300), tl.div(x, 7, rounding_mode="trunc"))
x = tl.tensor([2**40 + 1, 3]); (x / 3, x / x, 1 / x, x / tl.tensor(2))
x = R(4); (x.add(1), x.mul(2.5), x.sub(1, alpha=2), x.div(3), x.pow(2), x.clamp(0, 1), x.add_(1), x.mul_(True))
x = R(4).half(); (x.add(1), x.mul(2.5), x.add_(1e-4), x.pow(2))
x = tl.arange(4); (x.add(1), x.mul(2.5), x.sub(1, alpha=2), x.div(3), x.pow(2), x.add_(1), x.mul(True))
x = tl.arange(4, dtype=tl.uint8); (x.add(255), x.mul(300), x.sub(1), x.add_(1))
"""

# a tensor that becomes a view of itself
RESHAPED = """
x = R(2, 3, rg=True); y = x * 2; y.unsqueeze_(0); (y * y).sum().backward(); (x.grad, y)
x = R(2, 3, rg=True); y = x * 2; y.t_(); (y * R(3, 2, seed=1)).sum().backward(); x.grad
x = R(2, 3, rg=True); y = (x * 2)[None]; y.squeeze_(0); (y * R(2, 3, seed=1)).sum().backward(); (x.grad, y)
x = R(2, 3, rg=True); y = x * 2; y.transpose_(0, 1); y.mul_(3); y[0] = 1.0; (y * y).sum().backward(); x.grad
x = R(2, 3, rg=True); y = x * 2; y.t_(); v = y[0]; v.mul_(5); (y * y).sum().backward(); (x.grad, v)
x = R(2, 3, rg=True); y = (x * 2)[0]; y.unsqueeze_(1); y.add_(1); (y * y).sum().backward(); x.grad
x = R(2, 3, rg=True); x.t_()
x = R(2, 3, rg=True); y = x[0]; y.unsqueeze_(0)
x = R(2, 3, rg=True); tl.no_grad()(x.t_)(); x
x = R(2, 3); x.t_(); x.requires_grad_(); (x * x).sum().backward(); x.grad
x = R(2, 3); y = x[0]; x.t_(); y.mul_(2); x
"""

# an operand's own gradient does not need it, so it may be overwritten meanwhile, as an optimizer does with weights
OVERWRITTEN = """
x = R(2, 2); w = R(2, 2, rg=True, seed=1); y = (x @ w).sum(); tl.no_grad()(w.mul_)(2); tl.autograd.grad(y, w)
x = R(2, 2); w = R(2, rg=True, seed=1); y = (x @ w).sum(); tl.no_grad()(w.mul_)(2); tl.autograd.grad(y, w)
x = R(2); w = R(2, 2, rg=True, seed=1); y = (x @ w).sum(); tl.no_grad()(w.mul_)(2); tl.autograd.grad(y, w)
x = R(3, 2, 2); w = R(2, 2, rg=True, seed=1); y = (x @ w).sum(); tl.no_grad()(w.mul_)(2); tl.autograd.grad(y, w)
x = R(2, 2); w = R(2, 2, rg=True, seed=1); y = (x @ w).sum(); tl.no_grad()(x.mul_)(2); tl.autograd.grad(y, w)
x = R(2, 2); w = R(2, 2, rg=True, seed=1); y = F.linear(x, w).sum(); tl.no_grad()(w.mul_)(2); tl.autograd.grad(y, w)
x = R(2, 2); w = R(2, 2, rg=True, seed=1); y = (x * w).sum(); tl.no_grad()(w.mul_)(2); tl.autograd.grad(y, w)
"""

# results in row-major order, whatever the order of the operands: a program may call view() on them
ORDERED = """
a = R(2, 3, 4).mT; b = a + 1; (tl.cat([a, b], 1).view(-1), tl.cat([a, b], 2).view(2, -1), tl.stack([a, b]).view(-1))
a = R(2, 3, 4).mT; (a.softmax(2).view(-1), a.softmax(1).view(-1), a.log_softmax(2).view(-1))
a = R(2, 3, 4).mT; (F.rms_norm(a[0], (3,)).view(-1), F.layer_norm(a[0], (3,)).view(-1))
a = R(2, 3, 4).mT; (F.group_norm(a, 2).view(-1), F.instance_norm(a).view(-1), tl.nn.BatchNorm1d(4)(a).view(-1))
a = R(2, 3, 4).mT; tl.nn.BatchNorm1d(4).eval()(a).view(-1)
a = R(2, 3, 4).mT; (a.index_select(1, tl.tensor([0, 2])).view(-1), a[:, [0, 2]].view(-1), a.roll(1, 1).view(-1))
a = R(2, 3, 4).mT; (F.pad(a, (1, 1), "reflect").view(-1), F.pad(a, (-1, 1), "reflect").view(-1))
a = R(2, 3, 4).mT; a.masked_fill(a > 0, 0).view(-1)
a = R(2, 3, 4, 5).permute(3, 2, 1, 0); (a.sum(1).view(-1), a.sum((0, 1)).view(-1), a.mean(2, keepdim=True).view(-1))
a = R(2, 3, 4, 5).permute(3, 2, 1, 0); [y.view(-1) for y in (a.sum(3), a.long().sum(0), a.amax(1), a.amin(3))]
a = R(20, 30, 40, 5).permute(3, 2, 1, 0); (a.sum(1).view(-1), a.sum(3).view(-1), a.mean((0, 1)).view(-1))
a = R(2, 3, 4).mT; [y.view(-1) for y in (a.cumsum(1), a.cumprod(0), a.cummax(2)[0], a.logcumsumexp(1))]
a = R(2, 3, 4).mT; i = (a > 0).long(); [y.view(-1) for y in (a.gather(1, i), a.take(i), a.tril(), a.triu())]
a = R(2, 3, 4, 5).to(memory_format=tl.channels_last); (tl.cat([a, a], 1).stride(), F.group_norm(a, 3).stride())
a = R(2, 3, 4, 5).to(memory_format=tl.channels_last); (F.instance_norm(a).stride(), tl.nn.BatchNorm2d(3)(a).stride())
"""

# a value takes the dtype of the tensor it is written to
FILLED = """
x = R(3); [x.masked_fill(x > 0.5, v) for v in (tl.tensor(-2), tl.tensor(2.5).double(), tl.tensor(1.5).half(), True)]
x = R(3).half(); [x.masked_fill(x > 0.5, v) for v in (tl.tensor(-2), tl.tensor(2.5), tl.tensor(1.5).bfloat16())]
x = tl.arange(3); (x.masked_fill(x > 0, tl.tensor(2.5)), x.masked_fill_(x > 1, tl.tensor(True)))
x = R(3, rg=True); v = tl.ones(()).half().requires_grad_(); x.masked_fill(x > 0.5, v).sum().backward(); (v.grad, x.grad)
x = R(3); x.masked_fill(x > 0.5, tl.ones(1))
x = R(2, 3); x[x > 0] = tl.tensor(7); x[:, x[0] < 0] = tl.tensor([2.5]).double(); x
x = tl.arange(3); x[x > 1] = tl.tensor(2.5); x
x = R(2, 3); v = tl.ones(()).double().requires_grad_(); x[x > 0] = v; x.sum().backward(); (x, v.grad)
x = R(3); x[tl.tensor([0])] = tl.tensor(7); x
x = R(3); x[x > 0] = tl.arange(3); x
x = R(3); x.index_put_((x > 0,), tl.tensor(1), accumulate=True)
"""

KEYWORDS = """
(tl.zeros(size=(2,)), tl.ones(size=[2, 1]), tl.rand(size=(2, 3)) * 0, tl.randn(size=(2,)) * 0)
x = R(1).half(); (x.new_zeros(size=(2,)), x.new_ones(size=(2,)), x.new_empty(size=()).ndim, tl.empty(size=(2, 3)).ndim)
tl.zeros(size=(-1,))
R(5).split(split_size=2)
(tl.Tensor(np.arange(3)), tl.Tensor(np.ones(2)), tl.Tensor(np.array([True])), tl.Tensor(np.array(3.0)))
x = np.ones(2, np.float32); t = tl.Tensor(x); u = tl.Tensor(x.astype(float)); x[0] = 5; (t, u)
(tl.Generator().device.type, str(tl.Generator(device="cpu").device))
"""

MODULES = """
m = tl.nn.Sequential(tl.nn.Linear(1, 1), tl.nn.Tanh(), tl.nn.Linear(1, 1)); (list(m[1:].state_dict()), repr(m[1:][-1:]))
m = tl.nn.Sequential(tl.nn.ReLU(), tl.nn.Tanh()); (repr(m.pop(0)), repr(m))
m = tl.nn.ModuleList([tl.nn.ReLU(), tl.nn.Tanh()]); (repr(m[1:]), repr(m.pop(-1)), len(m))
m = tl.nn.ModuleList([tl.nn.ReLU()]); m.pop(1)
m = tl.nn.BatchNorm1d(2); d = m.state_dict(); m.load_state_dict({k: R(2) for k in d if k[0] != "n"}); list(d.values())
m = tl.nn.BatchNorm1d(2); m.load_state_dict({"weight": R(2)})
"""

# a result of PyTorch is in row-major order, so that `view` works
CONTIGUOUS = """
y = tl.fill(R(2, 3), 2.0); y[0] = 1; (y, y.is_contiguous())
y = tl.searchsorted(R(2, 5).sort().values, R(2, 3, seed=1)); (y, y.is_contiguous())
y = tl.kthvalue(R(4, 3), 2); (y.values, y.indices, y.indices.is_contiguous())
y = R(4, 3).median(0); (y.values, y.indices, y.indices.is_contiguous())
x = R(2, 3, 4, 4, rg=True); y = F.grid_sample(x, R(2, 5, 5, 2, seed=1), align_corners=False); (y, y.is_contiguous())
y = F.fold(R(1, 9, 9), (5, 5), 3, padding=1, stride=2); (y, y.is_contiguous())
u = tl.nn.utils.rnn; p = u.pack_sequence([R(2, 2), R(3, 2)], False); u.pad_packed_sequence(p, True)[0].view(-1)
"""

FUNCTIONAL = """
m = tl.nn.Linear(3, 2); w = R(2, 3, rg=True); y = call(m, {"weight": w}, (R(4, 3),)); y.sum().backward(); w.grad
m = tl.nn.Linear(3, 2); w = R(2, 3); y = call(m, {"weight": w, "bias": w[:, 0]}, (R(4, 3),)); (y, m.weight is w)
m = tl.nn.Linear(3, 2); call(m, ({"weight": R(2, 3)}, {"bias": R(2)}), R(4, 3))
m = tl.nn.Linear(3, 3, bias=False); n = tl.nn.Sequential(m, m); call(n, {"0.weight": R(3, 3)}, R(2, 3))
m = tl.nn.BatchNorm1d(3); t = {"running_mean": tl.ones(3)}; y = call(m, t, R(4, 3)); (t["running_mean"], m.running_mean)
call(tl.nn.Linear(3, 2), {"weight": R(2, 3)}, R(4, 3), strict=True)
tl.func.grad(lambda x: (x**3).sum())(R(3))
tl.func.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(R(3), R(3, seed=1))
g = tl.func.grad(lambda p: p["a"].sum() + (p["b"][0] ** 2).sum())({"a": R(3), "b": [R(2)]}); (g["a"], g["b"])
tl.func.grad_and_value(lambda x: ((x**3).sum(), x + 1), has_aux=True)(R(3))
tl.func.grad(lambda x: ((x**3).sum(), x * 5), has_aux=True)(R(3))
tl.autograd.functional.jacobian(lambda x: x**2, R(3))
tl.autograd.functional.jacobian(lambda x, y: (x.sum() * y, x[0] * x), (R(2), R(2, 2, seed=1)))
tl.autograd.functional.jacobian(lambda x, y: x * 2, (R(2), R(3)), strict=True)
tl.autograd.functional.jacobian(lambda x: 3, R(2))
tl.autograd.functional.vjp(lambda x: x**2, R(3), R(3, seed=1))
tl.autograd.functional.vjp(lambda x, y: (x * y).sum(), (R(3), R(3, seed=1)))
tl.autograd.functional.vjp(lambda x: (x**2, x**3), R(3), (R(3, seed=1), R(3, seed=2)))
m = tl.nn.Sequential(tl.nn.ReLU()) + tl.nn.Sequential(tl.nn.Tanh(), tl.nn.Flatten()); (len(m), m(R(2, 3)))
s = R(2, 3).shape + (4,); (s.numel(), list(s))
x = R(3); (x.real is x, tl.real(x), x.conj(), tl.isreal(x), x.is_conj(), tl.resolve_conj(x))
tl.special.entr(tl.tensor([-1.0, 0.0, 0.5, 2.0]))
x = R(4, rg=True); y = tl.special.ndtr(x); y.sum().backward(); (y, x.grad)
tl.special.logsumexp(R(2, 3), 1)
"""

PROGRAMS = (GRAPHS, COPIES, NUMBERS, RESHAPED, OVERWRITTEN, ORDERED, FILLED, KEYWORDS, MODULES, CONTIGUOUS, FUNCTIONAL)


def R(tl: Any, *size: int, seed: int = 0, rg: bool = False) -> Any:
    x = tl.tensor(np.random.RandomState(seed).randn(*size).astype(np.float32))
    return x.requires_grad_() if rg else x


def outcome(program: str, tl: Any) -> Any:
    *statements, expression = program.split("; ")
    names: dict[str, Any] = {"tl": tl, "F": tl.nn.functional, "np": np, "copy": copy, "math": math, "pickle": pickle}
    names["call"] = tl.func.functional_call
    names["R"] = lambda *args, **kwargs: R(tl, *args, **kwargs)
    try:
        exec("\n".join(statements), names)
        return comparable(eval(expression, names), tl)
    except Exception as error:
        return error


def comparable(x: Any, tl: Any) -> Any:
    if isinstance(x, tl.Tensor):
        plain = x.detach()
        numbers = (plain.float() if plain.dtype is tl.bfloat16 else plain).numpy()
        return str(x.dtype).split(".")[-1], tuple(x.shape), numbers, x.requires_grad
    return type(x)(comparable(item, tl) for item in x) if type(x) in (list, tuple) else x


def assert_same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    if isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    else:
        assert ours == theirs


@pytest.mark.parametrize("program", [line for part in PROGRAMS for line in part.split("\n") if line])
def test_program_does_the_same_as_under_pytorch(program: str) -> None:
    ours, theirs = outcome(program, tallow), outcome(program, torch)
    if isinstance(theirs, Exception):
        expected = next(c for c in type(theirs).__mro__ if c.__module__ == "builtins")
        assert isinstance(ours, TallowError), ours
        assert isinstance(ours, expected), ours
    elif isinstance(ours, Exception):
        raise ours
    else:
        assert_same(ours, theirs)
