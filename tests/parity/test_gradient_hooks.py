"""Hooks of tensors, nodes and modules see one tensor for a gradient, and have second derivatives, as in PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")


def leaf(m: Any, *values: float) -> Any:
    return m.tensor(values, dtype=m.float64, requires_grad=True)


def twice(m: Any, y: Any, *inputs: Any) -> list[Any]:
    """Return the gradients of a sum of squares, and the gradients of the sum of their squares."""
    first = m.autograd.grad((y * y).sum(), inputs, create_graph=True)
    second = m.autograd.grad(sum((g * g).sum() for g in first), inputs)
    return [*first, *second]


def identities(seen: list[Any]) -> list[list[bool]]:
    return [[a is b for b in seen] for a in seen]


def same_tensor_in_all_hooks(m: Any) -> Any:
    x, seen = leaf(m, 1, 2), []
    y = x * x
    for hook in (seen.append, seen.append):
        x.register_hook(hook)
        y.register_hook(hook)
    y.retain_grad()
    y.grad_fn.register_prehook(lambda gs: seen.append(gs[0]))
    y.grad_fn.register_hook(lambda gi, go: seen.extend(go) or seen.extend(gi))
    (y * 3).sum().backward()
    return identities([*seen, y.grad, x.grad])


def same_tensor_around_modules(m: Any) -> Any:
    x, seen, layer = leaf(m, 1, 2), [], m.nn.ReLU()

    def mark(module: Any, args: Any, result: Any) -> Any:
        result.register_hook(lambda g: setattr(g, "relevance", 7))
        return result.clone()

    layer.register_forward_hook(mark)
    layer.register_full_backward_pre_hook(lambda module, go: seen.extend(go))
    layer.register_full_backward_hook(lambda module, gi, go: seen.extend(go))
    y = layer(x * 1)
    y.register_hook(seen.append)
    y.sum().backward()
    return identities(seen), [g.relevance for g in seen], type(y.grad_fn).__name__


def order_of_hooks(m: Any) -> Any:
    x, seen = leaf(m, 1, 2), []
    y = x * x
    y.grad_fn.register_prehook(lambda gs: seen.append("before the node"))
    y.register_hook(lambda g: seen.append("tensor"))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("after the node", len(gi), len(go))))
    end = y.grad_fn.next_functions[0][0]
    x.register_hook(lambda g: seen.append("leaf"))
    end.register_prehook(lambda gs: seen.append(("before .grad", len(gs))))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("after .grad"))
    end.register_hook(lambda gi, go: seen.append((gi, go[0].tolist(), x.grad.tolist())))
    y.sum().backward()
    return seen


def hooks_of_nodes_replace(m: Any) -> Any:
    x, other = leaf(m, 1, 2), leaf(m, 3, 4)
    y = x * other
    removed = y.grad_fn.register_prehook(lambda gs: (gs[0] * 100,))
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, gi[1] + go[0]))
    removed.remove()
    (y * 3).sum().backward()
    return x.grad, other.grad


def retained(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = x * x
    y.retain_grad()
    (y * y).sum().backward(create_graph=True)
    first = y.grad
    (y * y).sum().backward(inputs=[y], create_graph=True)
    return first, y.grad, first.requires_grad, y.grad.requires_grad, m.autograd.grad(first.sum(), x)


def replaced_twice(m: Any) -> Any:
    x = leaf(m, 1, 2)
    y = x * x
    y.register_hook(lambda g: g * x)
    return twice(m, y, x)


def modules_twice(m: Any) -> Any:
    x, layer = leaf(m, 1, 2), m.nn.Tanh()
    layer.register_full_backward_pre_hook(lambda module, go: (go[0] * go[0],))
    layer.register_full_backward_hook(lambda module, gi, go: (gi[0] * go[0],))
    return twice(m, layer(x), x)


def checkpoints_twice(m: Any) -> Any:
    checkpoint = importlib.import_module(f"{m.__name__}.utils.checkpoint").checkpoint
    w, x = leaf(m, 2, 3), leaf(m, 1, 2)

    def inner(a: Any) -> Any:
        return checkpoint(lambda b: (b * w).sin(), a * 2, use_reentrant=False) * a

    return twice(m, checkpoint(inner, x, use_reentrant=False), x, w)


def checkpoints_use_outer_results(m: Any) -> Any:
    checkpoint = importlib.import_module(f"{m.__name__}.utils.checkpoint").checkpoint
    w, x = leaf(m, 2, 3), leaf(m, 1, 2)
    outer = w * w
    (checkpoint(lambda a: (a * outer).sin(), x, use_reentrant=False) + outer).sum().backward()
    return x.grad, w.grad


def functions_twice(m: Any) -> Any:
    class Powers(m.autograd.Function):
        """e^x and its cube, which saves a result and a value between."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            y = x.exp()
            ctx.save_for_backward(x, y)
            return y, y**3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            x, y = ctx.saved_tensors
            return (0 if g is None else g * y) + (0 if h is None else h * 3 * (3 * x).exp())

    x = leaf(m, 0.5, 1)
    return [twice(m, y, x) for y in (Powers.apply(x)[0], Powers.apply(x)[1], sum(Powers.apply(x)))]


def saved_results(m: Any) -> Any:
    """Return what backward sees of an input, a result, and a result that has no gradient."""
    seen: list[Any] = []

    class Exp(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y, sign = x.exp(), x.sign()
            ctx.mark_non_differentiable(sign)
            ctx.save_for_backward(x, y, sign)
            return y, sign

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            x, y, sign = ctx.saved_tensors
            seen.append([x.requires_grad, y.requires_grad, sign.requires_grad, y.grad_fn.name(), (y * 2).requires_grad])
            with m.enable_grad():
                seen.append((y * 2).requires_grad)
            return g * y

    Exp.apply(leaf(m, 0.5, 1) * 1)[0].sum().backward()
    return seen


PROGRAMS: list[Callable[[Any], Any]] = [
    same_tensor_in_all_hooks, same_tensor_around_modules, order_of_hooks, hooks_of_nodes_replace, retained,
    replaced_twice, modules_twice, checkpoints_twice, checkpoints_use_outer_results, functions_twice, saved_results,
]  # fmt: skip


def comparable(x: Any) -> Any:
    if isinstance(x, tl.Tensor | torch.Tensor):
        return np.round(x.detach().numpy(), 9).tolist()
    return [comparable(item) for item in x] if isinstance(x, list | tuple) else x


@pytest.mark.filterwarnings("ignore:Using backward\\(\\) with create_graph=True")  # raised by PyTorch
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_agrees_with_pytorch(program: Callable[[Any], Any]) -> None:
    assert comparable(program(tl)) == comparable(program(torch))


def test_once_differentiable_raises_where_it_is_differentiated_again() -> None:
    class Square(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @tl.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

    x = leaf(tl, 1, 2)
    (g,) = tl.autograd.grad((Square.apply(x) ** 2).sum(), x, create_graph=True)
    assert g.tolist() == [4, 32]
    with pytest.raises(tl.errors.GraphError, match="marked with @once_differentiable"):
        g.sum().backward()


def packed(m: Any) -> Any:
    """Compute in blocks of hooks for saved tensors."""
    graph = m.autograd.graph if m is torch else importlib.import_module("tallow.compat.torch.autograd.graph")
    x, w, log = leaf(m, 1, 2, 3), m.ones(3, 2, dtype=m.float64, requires_grad=True), []

    def pack(t: Any) -> Any:
        log.append(t.numel())
        return t.detach().numpy().copy()

    with graph.saved_tensors_hooks(pack, lambda a: m.from_numpy(a + 1)):
        y = (x * x).sum() + (x.exp() @ w).sum() + m.nn.functional.softmax(x, 0)[0]
    with graph.saved_tensors_hooks(pack, lambda a: 3), graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        inner = (x * x).sum()
    with graph.save_on_cpu():
        z = (x**3).sum()
    found = [*m.autograd.grad(y, (x, w)), *m.autograd.grad(inner, x), *twice(m, z, x)]
    with graph.allow_mutation_on_saved_tensors():
        a = x.clone()
        b = (a**2).sum() + m.ones_like(x).scatter_reduce(0, m.tensor([0, 0, 1]), a, "prod").sum()
        a.sin_()
        found += m.autograd.grad(b, x)
    with graph.saved_tensors_hooks(pack, lambda a: 3):
        wrong = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        wrong.sum().backward()
    with pytest.raises(RuntimeError, match="not here"), graph.disable_saved_tensors_hooks("not here"):
        graph.saved_tensors_hooks(pack, pack).__enter__()
    return [g.tolist() for g in found], sorted(log)


def test_saved_tensors_are_packed() -> None:
    (ours, our_log), (theirs, their_log) = packed(tl), packed(torch)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert our_log == their_log
