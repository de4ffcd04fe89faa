"""torch.library: ops of Python functions, called as `torch.ops.NAMESPACE.NAME`."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tallow.compat import install_torch, registry
from tallow.errors import ArgumentError, MissingNameError, UnsupportedError


@pytest.fixture
def torch() -> Iterator[Any]:
    with install_torch(replace=True):
        yield importlib.import_module("torch")


def cubed(torch: Any) -> Any:
    """Define an op whose gradient is registered: tripled, so that it differs from that of its code."""

    @torch.library.custom_op("tests::cubed", mutates_args=())
    def op(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return scale * x.detach() ** 3

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    op.register_autograd(lambda ctx, grad: (9 * grad * ctx.saved_tensors[0] ** 2, None), setup_context=setup_context)
    return op


@pytest.mark.parametrize("transposed", [False, True])
def test_the_convolution_of_the_core_has_any_number_of_dims(torch: Any, transposed: bool) -> None:
    x, weight = torch.arange(48.0).reshape(2, 4, 6).sin(), torch.arange(24.0).reshape(4, 2, 3).cos()
    found = torch.ops.aten.convolution(x, weight, None, [2], [1], [1], transposed, [0], 2)
    convolve = torch.nn.functional.conv_transpose1d if transposed else torch.nn.functional.conv1d
    assert found.tolist() == convolve(x, weight, stride=2, padding=1, groups=2).tolist()


def test_a_custom_op_has_its_own_gradient(torch: Any) -> None:
    op = cubed(torch)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.ops.tests.cubed(x, 1.0)
    y.sum().backward()
    assert y.tolist() == op(x.detach()).tolist() == torch.ops.tests.cubed.default(x).tolist() == [1.0, 8.0]
    assert x.grad.tolist() == [9.0, 36.0]
    op(scale=1.0, x=x).sum().backward()  # setup_context gets the arguments in their order
    assert x.grad.tolist() == [18.0, 72.0]
    assert op._opoverload.schema == "(Tensor x, float scale=1.0) -> Tensor"


@pytest.mark.cpu("functions of an op for it")
def test_a_library_defines_ops_and_their_functions_by_device(torch: Any) -> None:
    library = torch.library.Library("tests", "FRAGMENT")
    assert library.define("added(Tensor x, Tensor y) -> Tensor") == "added"
    with pytest.raises(UnsupportedError, match="no function for CPU"):
        torch.ops.tests.added(torch.ones(1), torch.ones(1))
    library.impl("added", lambda x, y: x + y, "CPU")
    torch.library.register_fake("tests::added", lambda x, y: torch.empty_like(x))
    assert torch.ops.tests.added(torch.ones(1), torch.ones(1)).item() == 2
    assert torch.ops.tests.added(torch.ones(3, device="meta"), torch.ones(3, device="meta")).shape == (3,)
    assert repr(torch.ops.tests.added.default) == "<OpOverload(op='tests.added', overload='default')>"


def test_a_kernel_serves_the_function_that_replaces_it(torch: Any) -> None:
    from tallow.compat.torch import library  # with the stand-in, as its module of ops

    original = library.get_kernel(torch.ops.aten.sin.default, "CPU")
    with library._scoped_library("aten", "IMPL") as lib:
        lib.impl("sin", lambda keys, x: original.call_boxed(keys, x) + 10, "CPU", with_keyset=True)
        try:
            assert torch.ops.aten.sin(torch.zeros(2)).tolist() == [10, 10]
            assert library.get_kernel("aten::sin", "CPU").call_boxed(None, torch.zeros(1)).item() == 10
        finally:
            del registry.OPS["aten::sin"]
    for name, key in (("aten::no_such_op", "CPU"), ("aten::sin", "Autocast")):
        with pytest.raises(RuntimeError, match="does not exist"):
            library.get_kernel(name, key)


def test_names_of_ops_are_checked(torch: Any) -> None:
    with pytest.raises(ArgumentError, match="no namespace"):
        torch.library.define("lonely", "(Tensor x) -> Tensor")
    with pytest.raises(MissingNameError, match="object has no attribute 'absent'"):
        _ = torch.ops.tests.absent
    with pytest.raises(OSError, match="compiled for PyTorch"):
        torch.ops.load_library("_C.so")


def test_ops_of_the_core_are_functions_of_tallow(torch: Any) -> None:
    x = torch.arange(6.0).view(2, 3)
    assert torch.ops.aten.mm.default(x, x.T).tolist() == (x @ x.T).tolist()
    assert torch.ops.aten.slice.Tensor(x, 1, 1, 3).tolist() == x[:, 1:3].tolist()
    assert torch.ops.aten.index.Tensor(x, [None, torch.tensor([1, 0])]).tolist() == x[:, [1, 0]].tolist()
    assert not hasattr(torch.ops.aten, "axis_taps")
    assert str(torch.ops.aten.add.Tensor) == "aten.add.Tensor"
    assert torch.ops.aten.add.Tensor is torch.ops.aten.add.Tensor
    table = {torch.ops.aten.mm: 1, torch.ops.aten.mm.default: 2}
    assert copy.deepcopy(table) == table


def test_nms_keeps_boxes_that_do_not_overlap_a_better_one(torch: Any) -> None:
    """By the definition: of boxes by decreasing score, one is dropped if it overlaps one that is kept."""
    torch.ops.load_library("site-packages/torchvision/_C.so")
    rng = np.random.default_rng(0)
    corners, sizes, scores = rng.random((40, 2)), rng.random((40, 2)) * 0.4, rng.random(40)
    boxes = np.concatenate([corners, corners + sizes], axis=1)

    def overlap(a: Any, b: Any) -> float:
        width, height = (max(0.0, min(a[i + 2], b[i + 2]) - max(a[i], b[i])) for i in (0, 1))
        area_a, area_b = ((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
        return width * height / (area_a + area_b - width * height)

    expected: list[int] = []
    for i in np.argsort(-scores):
        if all(overlap(boxes[i], boxes[j]) <= 0.3 for j in expected):
            expected.append(int(i))
    found = torch.ops.torchvision.nms(torch.from_numpy(boxes), torch.from_numpy(scores), 0.3)
    assert found.dtype == torch.int64
    assert found.tolist() == expected
    assert 5 < len(expected) < 40
    # The overlap is 0.6, in float32 0.6000000238: torchvision compares that with the threshold in float64.
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 6]], np.float32)
    for kind, kept in ((np.float32, [0]), (np.float64, [0, 1])):
        assert torch.ops.torchvision.nms(torch.from_numpy(boxes.astype(kind)), torch.ones(2), 0.6).tolist() == kept
    with pytest.raises(UnsupportedError, match="torchvision::deform_conv2d"):
        torch.ops.torchvision.deform_conv2d(torch.ones(2))


def test_a_call_with_a_proxy_is_recorded(torch: Any) -> None:
    """Even where the op's function could be computed with a proxy."""
    fx, op = importlib.import_module("torch.fx"), cubed(torch)
    profiler, aten = torch.ops.profiler, torch.ops.aten

    def forward(x: Any) -> Any:
        profiler._record_function_exit(x)
        return aten.mul.Tensor(torch.ops.tests.cubed(x, scale=2.0), 3)

    graph = fx.symbolic_trace(forward).graph
    calls = [node.target for node in graph.nodes if node.op == "call_function"]
    assert calls == [profiler._record_function_exit, torch.ops.tests.cubed, aten.mul.Tensor]
    assert aten.mul.Tensor(op(torch.tensor([2.0]), scale=2.0), 3).tolist() == [48.0]
