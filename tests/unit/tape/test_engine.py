"""Autograd: depth, memory, modes, saved values, and behaviour without a PyTorch counterpart. See also tests/parity."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.core.tensor import wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, GraphError, ShapeError
from tallow.tape.saved import saved_arrays
from tallow.tape.writes import owner_of

COPIES_ELSEWHERE = pytest.mark.cpu("elsewhere it is a copy")


def leaf(*values: float) -> tl.Tensor:
    return tl.tensor(values, dtype=tl.float64, requires_grad=True)


# ------------------------------------------------------------------------------------------------ depth and memory


def test_a_chain_of_ten_thousand_ops_goes_back() -> None:
    assert sys.getrecursionlimit() < 10_000
    x = leaf(1.0)
    y = x
    for _ in range(10_000):
        y = y * 1.0001
    y.backward()
    np.testing.assert_allclose(x.grad.item(), 1.0001**10_000, rtol=1e-10)


def test_a_chain_of_ten_thousand_writes_goes_back() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    for i in range(5_000):
        y[i % 2] *= 1.0001
        y.mul_(1.0001)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [1.0001**7500] * 2, rtol=1e-10)


def test_a_long_chain_dies_without_recursion() -> None:
    y = leaf(1.0)
    for _ in range(50_000):
        y = y * 1.0
    del y


@pytest.fixture
def no_collector() -> Any:
    """Disable the garbage collector, so only objects without reference cycles are freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def memory_growth(array: Any) -> weakref.ref[Any]:
    return weakref.ref(owner_of(array))


@pytest.mark.usefixtures("no_collector")
def test_saved_values_die_with_backward() -> None:
    x = leaf(1.0, 2.0)
    h = x.exp()
    saved = memory_growth(h.array)
    y = h.sin().sum()
    del h
    assert saved() is not None
    y.backward()
    assert saved() is None


@pytest.mark.usefixtures("no_collector")
def test_retain_graph_keeps_saved_values_until_the_graph_dies() -> None:
    x = leaf(1.0, 2.0)
    h = x.exp()
    saved = memory_growth(h.array)
    y = h.sin().sum()
    del h
    y.backward(retain_graph=True)
    assert saved() is not None
    del y
    assert saved() is None


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    "make",
    [
        lambda x: x * 2,
        lambda x: (x * 2)[0],
        lambda x: (x * 2).view(1, 2).mul_(3),
        lambda x: (x * 2).unbind()[0],
        lambda x: x.clone().index_put_((tl.tensor([0]),), tl.ones(1, dtype=tl.float64)),
        lambda x: x.max(dim=0).values,
    ],
)
def test_a_graph_dies_with_its_last_tensor(make: Any) -> None:
    y = make(leaf(1.0, 2.0))
    node = weakref.ref(y.grad_fn)
    tensor = weakref.ref(y)
    del y
    assert tensor() is None
    assert node() is None


@pytest.mark.usefixtures("no_collector")
def test_a_view_of_a_written_base_makes_no_cycle() -> None:
    z = leaf(1.0, 2.0) * 1
    v = z[:1]
    z.mul_(2)
    assert v.grad_fn is not None  # extends the history of v
    tensor = weakref.ref(v)
    del v
    assert tensor() is None


def test_nothing_is_saved_where_nothing_is_recorded() -> None:
    x, c = leaf(1.0, 2.0), tl.ones(2, dtype=tl.float64)
    with tl.no_grad():
        y = x * x
    assert y.grad_fn is None
    assert (c * c).grad_fn is None


# ---------------------------------------------------------------------------------------------------------- modes


def test_each_thread_has_its_own_mode() -> None:
    seen = []
    with tl.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tl.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


test_each_thread_has_its_own_mode = pytest.mark.native(test_each_thread_has_its_own_mode)


def test_modes_nest_and_end_with_errors() -> None:
    mode = tl.no_grad()
    with mode, mode, tl.enable_grad():
        assert tl.is_grad_enabled()
    assert tl.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), mode:
        raise ZeroDivisionError
    assert tl.is_grad_enabled()
    with tl.inference_mode():
        assert tl.is_inference_mode_enabled()
        assert not tl.is_grad_enabled()
        with tl.inference_mode(False):
            assert not tl.is_inference_mode_enabled()
            assert tl.is_grad_enabled()


def test_views_made_without_recording_are_constants_until_recorded_ops_would_write_them() -> None:
    z = leaf(1.0, 2.0) * 1
    with tl.no_grad():
        v = z[:1]
        v.mul_(2)  # gradients are not recorded
    assert not v.requires_grad
    with pytest.raises(GraphError, match="made in no_grad mode"):
        v.mul_(leaf(2.0))


def test_is_inference() -> None:
    with tl.inference_mode():
        x = tl.ones(2) * 2
    assert x.is_inference()
    assert not x.clone().is_inference()
    with pytest.raises(GraphError, match="inference_mode cannot be saved"):
        x * tl.ones(2, requires_grad=True)


# --------------------------------------------------------------------------------------------- writes, saved values


def test_writing_to_a_constant_view_makes_its_base_depend_on_what_was_written() -> None:
    def f(x: tl.Tensor) -> tl.Tensor:
        c = tl.ones(2, 3, dtype=tl.float64)
        v = c[:, 1:]
        v.mul_(x)
        c[0] = x.sum()
        return c * v.sum()

    assert tl.autograd.gradcheck(f, (leaf(1.0, 2.0),))


def test_a_view_that_only_the_order_in_memory_allows_can_be_written() -> None:
    def f(x: tl.Tensor) -> tl.Tensor:
        z = (x * 1).view(2, 3).t().clone()  # in memory as (2, 3), column by column
        z.t().view(6)[1:4].mul_(x[:3])
        return z

    assert tl.autograd.gradcheck(f, (leaf(1, 2, 3, 4, 5, 6),))


@pytest.mark.parametrize(
    "view",
    [
        lambda z: z[1:, ::2],
        lambda z: z.t()[1],
        lambda z: z.view(4, 3),
        lambda z: z.reshape(12)[3:7],
        lambda z: z.unsqueeze(0).squeeze(0),
        lambda z: z.permute(1, 0).movedim(0, 1),
        lambda z: z.split(2, 1)[1],
        lambda z: z.chunk(3)[2],
        lambda z: z.unbind(1)[3],
        lambda z: z.tensor_split(3, 1)[1],
        lambda z: z.diagonal(1),
        lambda z: z.narrow(0, 1, 2).select(1, 0),
        pytest.param(lambda z: z.unfold(1, 2, 2), marks=COPIES_ELSEWHERE),
        pytest.param(lambda z: z.as_strided((2, 2), (4, 1), 5), marks=COPIES_ELSEWHERE),
        lambda z: z[None, ..., None][0],
        lambda z: z.unflatten(1, (2, 2)).flatten(1),
        lambda z: z.mT.T.swapaxes(0, 1),
        lambda z: z.expand(3, 4).ravel(),
    ],
)
def test_every_kind_of_view_shares_memory_and_takes_gradients_both_ways(view: Any) -> None:
    rng = np.random.default_rng(0)
    x = tl.tensor(rng.standard_normal((3, 4)), requires_grad=True)

    def through_the_view(x: tl.Tensor) -> tl.Tensor:
        z = x * 1
        v = view(z)
        v.mul_(v.detach() + 2)
        return z.sin() * z

    def through_the_base(x: tl.Tensor) -> tl.Tensor:
        z = x * 1
        v = view(z)
        z.mul_(z.detach() + 2)
        return v.sin() * v

    z = tl.arange(1, 13).reshape(3, 4)
    v = view(z)
    v.zero_()
    assert (z == 0).sum() == v.numel()
    assert tl.autograd.gradcheck(lambda x: view(x * 1), (x,))
    for f in (through_the_view, through_the_base):
        y = f(x)
        g = tl.tensor(rng.standard_normal(tuple(y.shape)))
        (analytic,) = tl.autograd.grad(y, x, g)
        # if the detached factor counts as constant, z becomes z · k with k = x + 2 at the view's positions, 1 elsewhere
        k = view_mask(view, x) * (x.detach() + 1) + 1 if f is through_the_view else x.detach() + 2
        places = tl.ones(3, 4) if f is through_the_view else view_mask(view, x)
        weight = g if f is through_the_view else spread(view, g)
        w = x.detach() * k
        np.testing.assert_allclose(
            analytic.tolist(), (weight * places * k * (w.cos() * w + w.sin())).tolist(), rtol=1e-12
        )


def spread(view: Any, g: tl.Tensor) -> tl.Tensor:
    """Return zeros, with g at the positions of the view."""
    full = tl.zeros(3, 4, dtype=tl.float64)
    view(full).copy_(g)
    return full


def view_mask(view: Any, like: tl.Tensor) -> tl.Tensor:
    mask = tl.zeros(3, 4, dtype=tl.float64)
    view(mask).fill_(1)
    return mask


def test_a_reshape_that_copies_is_not_a_view() -> None:
    z = tl.arange(6).reshape(2, 3)
    copied = z.t().reshape(6)
    copied.zero_()
    assert z.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_expanded_views_cannot_be_written() -> None:
    x = tl.zeros(4)
    with pytest.raises(ShapeError, match="single memory location"):
        x.expand(2, 4).add_(1)


@COPIES_ELSEWHERE
def test_windows_can_be_written_where_they_do_not_overlap() -> None:
    x = tl.zeros(4)
    with pytest.raises(ShapeError, match="single memory location"):
        x.unfold(0, 2, 1).add_(1)
    x.unfold(0, 2, 2).add_(1)
    assert x.tolist() == [1, 1, 1, 1]
    x.expand(3, 4)[1].add_(1)
    x.unfold(0, 2, 1)[::2].add_(1)
    assert x.tolist() == [3, 3, 3, 3]


@pytest.mark.cpu("memory that Python made")
def test_writes_through_numpy_helpers_and_buffers_are_seen() -> None:
    memory = bytearray(32)
    x = tl.frombuffer(memory, dtype=tl.float64)
    w = leaf(1.0, 2.0)
    y = x[1:3] * w
    x[2:].fill_(1)
    with pytest.raises(GraphError, match="modified by an inplace operation"):
        y.sum().backward()


def test_the_error_of_an_overwritten_value_tells_the_op_and_the_shape() -> None:
    x = leaf(1.0, 2.0)
    z = x * 1
    y = z.sin()
    z.zero_()
    with pytest.raises(GraphError, match=r"SinBackward0 saved an array of shape \(2,\)"):
        y.sum().backward()


def test_a_value_may_be_overwritten_after_backward() -> None:
    x = leaf(1.0, 2.0)
    for _ in range(3):
        (x * x).sum().backward()
        with tl.no_grad():
            x.sub_(0.1 * x.grad)
        x.grad = None


@pytest.mark.parametrize("product", [tl.nn.functional.linear, lambda x, w: x @ w.mT], ids=["linear", "matmul"])
@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float32, tl.float64], ids=str)
def test_a_factor_may_be_written_where_only_its_own_gradient_is_wanted(product: Any, dtype: tl.dtype) -> None:
    """dW = gᵀ x does not involve W, so an optimizer may step between two backward passes; dx = g W does."""
    x, w = tl.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=dtype), tl.ones(3, 2, dtype=dtype, requires_grad=True)
    y = product(x, w)
    for passes in (1, 2):
        y.sum().backward(retain_graph=passes == 1)
        assert w.grad.tolist() == [[4 * passes, 7 * passes]] * 3
        with tl.no_grad():
            w.sub_(w.grad)
    x.requires_grad_()
    y = product(x, w)
    with tl.no_grad():
        w.zero_()
    with pytest.raises(GraphError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("promised", [False, True])
def test_an_op_says_whether_only_its_functions_for_single_operands_read_arrays(promised: bool) -> None:
    """Without the promise `reads_per_operand`, overwriting any array that the closure holds is an error."""
    from tallow.core.apply import apply
    from tallow.ops.table import Op

    def product(a: Array, b: Array) -> Any:
        return a * b, lambda g: (lambda: g * b, lambda: g * a)

    op = Op(product, "product", "", "same", False, None, reads_per_operand=promised)
    a, b = tl.ones(2, dtype=tl.float64), leaf(1.0, 2.0)
    y = apply(op, a, b * 1)
    reads_a = apply(op, leaf(3.0, 4.0), a)
    saved = dict(zip(y._node.backward.__code__.co_freevars, y._node.backward.__closure__, strict=True))
    wrap(saved["b"].cell_contents).zero_()  # only the gradient of `a` would read it, and that is not needed
    if promised:
        y.sum().backward()
        assert b.grad.tolist() == [1, 1]
    else:
        with pytest.raises(GraphError, match="ProductBackward0 saved an array"):
            y.sum().backward()
    a.zero_()
    with pytest.raises(GraphError, match="ProductBackward0 saved an array"):
        reads_a.sum().backward()


def test_an_op_in_place_computes_from_a_copy_of_its_target() -> None:
    """Its closure may hold what it overwrites, under any name, and in an operand that shares memory with the target."""
    x = leaf(2.0, 3.0)
    y = x * 1
    y.mul_(y)
    y.sum().backward()
    assert x.grad.tolist() == [4, 6]
    z = leaf(1.0, 2.0) * 1
    former = z.array.copy()
    node = z.mul_(3.0).pow_(2).grad_fn
    assert node is not None
    assert not any(np.shares_memory(held, z.array) for held in saved_arrays(node.backward))
    assert z.tolist() == ((former * 3) ** 2).tolist()


def test_a_quotient_may_be_overwritten() -> None:
    a, b = leaf(1, 2), leaf(2, 4)
    (a / b).mul_(10).sum().backward()
    assert a.grad.tolist() == [5, 2.5]
    assert b.grad.tolist() == [-2.5, -1.25]


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_module_hooks_may_write_tensors_that_they_refer_to(register: str) -> None:
    layer, total, x = tl.nn.Linear(2, 2), tl.zeros(()), tl.ones(3, 2, requires_grad=True)
    getattr(layer, register)(lambda module, *grads: [total.add_(1)][1:] or None)
    layer(layer(x)).sum().backward()
    assert total.item() == 2
    assert x.grad is not None


def test_a_function_holds_only_the_arguments_that_it_saves() -> None:
    class Double(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tl.Tensor) -> tl.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: tl.Tensor) -> tl.Tensor:
            return grad * 2

    x = leaf(1, 2)
    middle = x * 3
    y = Double.apply(middle)
    middle.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [6, 6]


def test_a_closure_may_hold_its_arrays_in_any_way() -> None:
    """Saved arrays in lists, objects, methods, partial functions and default cells are checked for overwrites."""
    from functools import partial

    class Holder:
        def __init__(self, x: Any) -> None:
            self.x = x

        def slope(self, g: Any) -> Any:
            return (2 * self.x * g,)

    from tallow.core.apply import apply
    from tallow.ops.table import Op

    def in_a_list(x: Array) -> Any:
        arrays = [x]
        return x * x, lambda g: (2 * arrays[0] * g,)

    def in_an_object(x: Array) -> Any:
        holder = Holder(x)
        return x * x, lambda g: holder.slope(g)

    def in_a_method(x: Array) -> Any:
        return x * x, Holder(x).slope

    def in_a_partial(x: Array) -> Any:
        slope = partial(lambda x, g: (2 * x * g,), x)
        return x * x, lambda g: slope(g)

    def in_a_dictionary(x: Array) -> Any:
        arrays = {"x": x}
        return x * x, lambda g: (2 * arrays["x"] * g,)

    for function in (in_a_list, in_an_object, in_a_method, in_a_partial, in_a_dictionary):
        op = Op(function, function.__name__, "", "same", False, None)
        z = leaf(1.0, 2.0) * 1
        y = apply(op, z)
        z.mul_(2)
        with pytest.raises(GraphError, match="modified by an inplace operation"):
            y.sum().backward()


# ------------------------------------------------------------------------------------- backward, GradStore, gradcheck


def test_backward_returns_the_gradients_of_this_pass() -> None:
    x, y, unused = leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(5.0)
    (x * 2).sum().backward()
    store = (x * y).sum().backward()
    assert store[x].tolist() == store.get(x).tolist() == [3, 4]  # and x.grad has the sum
    assert x.grad.tolist() == [5, 6]
    assert x in store
    assert unused not in store
    assert store.get(unused) is None
    with pytest.raises(KeyError):
        store[unused]
    assert len(store) == 2
    assert {id(t) for t in store} == {id(x), id(y)}
    assert {id(t): g.tolist() for t, g in store.items()}[id(y)] == [1, 2]
    assert store.remove(x).tolist() == [3, 4]
    assert x not in store
    assert repr(store) == "GradStore(1 gradients)"


def test_gradients_are_tensors_of_their_own() -> None:
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    (x + y).sum().backward()
    assert not np.shares_memory(x.grad.numpy(), y.grad.numpy())
    g = tl.ones(2, dtype=tl.float64)
    z = leaf(1.0, 2.0)
    z.backward(g)
    g.zero_()
    assert z.grad.tolist() == [1, 1]


def test_invalid_arguments_raise() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(GraphError, match="only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(ShapeError, match=r"grad_output\[0\] has a shape of"):
        (x * 2).backward(tl.ones(3))
    with pytest.raises(ArgumentError, match="got 1 gradients for 2 outputs"):
        tl.autograd.backward([x * 2, x * 3], [tl.ones(2)])
    with pytest.raises(ArgumentTypeError, match="grad must be a Tensor"):
        x.grad = 3  # type: ignore[assignment]


def test_gradcheck_finds_a_wrong_gradient_and_wants_float64() -> None:
    from tallow.core.apply import apply
    from tallow.ops.table import Op

    wrong = Op(lambda x: (x * x, lambda g: (g * x,)), "wrong", "", "same", False, None)
    with pytest.raises(GraphError, match="differs by up to"):
        tl.autograd.gradcheck(lambda x: apply(wrong, x), (leaf(1.0, 2.0),))
    assert not tl.autograd.gradcheck(lambda x: apply(wrong, x), (leaf(1.0, 2.0),), raise_exception=False)
    with pytest.raises(ArgumentTypeError, match="float64"):
        tl.autograd.gradcheck(lambda x: x * 2, (tl.ones(2, requires_grad=True),))


def test_sixteen_bit_gradients_travel_in_float32() -> None:
    for dtype in (tl.float16, tl.bfloat16):
        x = tl.ones(1, dtype=dtype, requires_grad=True)
        y = x
        for _ in range(9):
            y = y + x * 2**-9  # each step's gradient would be lost next to 1 in bfloat16
        y.sum().backward()
        assert x.grad.dtype is dtype
        assert x.grad.item() == tl.tensor(1 + 9 * 2**-9).to(dtype).item()


def test_hooks_can_be_removed_and_used_as_context() -> None:
    x = leaf(1.0)
    seen = []
    with x.register_hook(lambda g: seen.append(g.item())):
        (x * 2).backward()
    (x * 3).backward()
    assert seen == [2]


def test_a_tensor_becomes_a_view_of_itself_but_no_leaf_does() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(GraphError, match="unsqueeze_: a leaf Variable that requires grad"):
        x.unsqueeze_(0)
    y = (x * 2).unsqueeze_(0)
    assert y.shape == (1, 2)
    z = tl.zeros(2, 3)
    v = z[1:]
    v.transpose_(0, 1)  # a view that becomes another view
    v.mul_(0).add_(x[0])
    z.sum().backward()
    assert x.grad.tolist() == [3, 0]


def test_views_of_what_has_become_a_view_of_itself() -> None:
    x = tl.ones(2, 3, requires_grad=True)
    y = x * 2
    row = y[0]
    y.t_()
    column = y[0]
    assert column.requires_grad
    (row.sum() + 5 * column.sum()).backward()
    assert x.grad.tolist() == [[12, 2, 2], [10, 0, 0]]


def test_a_gradient_that_is_passed_on_is_copied_only_if_something_refers_to_it() -> None:
    addresses, held = [], []

    @tl.op
    def double_for_test(x: np.ndarray, hold: bool) -> Any:  # type: ignore[type-arg]
        def backward(g: Any) -> Any:
            d = 2 * g
            addresses.append(id(d))
            if hold:
                held.append(d)
            return (d,)

        return 2 * x, backward

    @tl.op
    def pass_on_for_test(x: np.ndarray) -> Any:  # type: ignore[type-arg]
        return x * 1, lambda g: (g,)

    for hold in (False, True):
        x = tl.ones(3, requires_grad=True)
        double_for_test(pass_on_for_test(x), hold).backward(tl.ones(3))
        assert x.grad is not None
        assert (id(x.grad.array) == addresses[-1]) is not hold
        assert x.grad.tolist() == [2, 2, 2]
