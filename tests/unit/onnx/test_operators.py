"""Operators of ONNX that the other tests do not reach in every build: results by hand, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.onnx_graphs import call, loaded, typed

import tallow as tl
from tallow.devices import to_host
from tallow.errors import ArgumentError, CheckpointError, ImageError, ShapeError, TallowError
from tallow.onnx.operators.image import image_decoder
from tallow.onnx.protobuf import NodeProto


def run(nodes: list[Any], x: Any, **weights: Any) -> Any:
    model = loaded(nodes, [typed("x", *x.shape, dtype=x.dtype)], weights)
    with tl.no_grad():
        return model(x)


def test_random_numbers_differ_between_calls_unless_they_have_a_seed() -> None:
    x = tl.zeros(100)
    free = loaded([call("RandomNormalLike", "x", "y")], [typed("x", 100)], {})
    assert not tl.equal(free(x), free(x))
    seeded = loaded([call("RandomNormalLike", "x", "y", seed=1.0)], [typed("x", 100)], {})
    assert tl.equal(seeded(x), seeded(x))
    constant = loaded([call("RandomUniform", "", "r", shape=[100]), call("Add", "x r", "y")], [typed("x", 100)], {})
    assert not tl.equal(constant(x), constant(x))


def test_a_range_that_does_not_fit_is_not_computed_at_load() -> None:
    nodes = [call("Range", "start end step", "r"), call("Gather", "r i", "g"), call("Add", "x g", "y")]
    weights = {"start": 0, "end": 2**60, "step": 1, "i": 0}
    loaded(nodes, [typed("x", 1, dtype=tl.int64)], weights)  # the file is valid; running it is another matter


def test_integers_divide_towards_zero() -> None:
    x = tl.tensor([-7, 7, -8])
    assert run([call("Div", "x two", "y")], x, two=2).tolist() == [-3, 3, -4]


def test_the_last_of_equal_maxima() -> None:
    x = tl.tensor([[1.0, 3.0, 3.0]])
    assert run([call("ArgMax", "x", "y", axis=1, keepdims=0)], x).tolist() == [1]
    assert run([call("ArgMax", "x", "y", axis=1, keepdims=0, select_last_index=1)], x).tolist() == [2]


def test_slices_step_backwards() -> None:
    x = tl.arange(6)
    weights = {"s": [-1], "e": [-7], "a": [0], "t": [-2]}
    assert run([call("Slice", "x s e a t", "y")], x, **weights).tolist() == [5, 3, 1]


def test_quantization_rounds_halves_to_even_and_saturates() -> None:
    x = tl.tensor([0.5, 1.5, 2.5, 1000.0, -1000.0])
    y = run([call("QuantizeLinear", "x s z", "y")], x, s=1.0, z=tl.tensor(10, dtype=tl.uint8))
    assert y.tolist() == [10, 12, 12, 255, 0]


def test_a_window_of_more_channels_than_there_are_takes_no_memory() -> None:
    x = tl.ones(1, 2, 3)
    y = run([call("LRN", "x", "y", size=(1 << 40) + 1, alpha=float(1 << 40))], x)
    assert y.flatten().tolist() == pytest.approx([3**-0.75] * 6)  # 1 / (1 + the sum of 2 squares)^0.75


@pytest.mark.parametrize("axis", [1 << 62, -(1 << 62), 64])
def test_slice_of_an_axis_that_no_tensor_has(axis: int) -> None:
    weights = {"s": [0], "e": [1], "a": [axis]}
    with pytest.raises(TallowError, match=f"no axis {axis}"):
        run([call("Slice", "x s e a", "y")], tl.ones(3), **weights)


def test_products_of_bytes_are_exact() -> None:
    a = tl.tensor(np.full((2, 4000), 255, np.uint8))
    b = tl.tensor(np.full((4000, 1), 255, np.uint8))
    nodes = [call("MatMulInteger", "x b za", "y")]
    assert run(nodes, a, b=b, za=tl.tensor(0, dtype=tl.uint8)).tolist() == [[255 * 255 * 4000]] * 2


def test_scattered_sums() -> None:
    x = tl.zeros(4)
    weights = {"i": [[1], [1], [3]], "u": [1.0, 2.0, 4.0]}
    assert run([call("ScatterND", "x i u", "y", reduction="add")], x, **weights).tolist() == [0.0, 3.0, 0.0, 4.0]


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (call("Pad", "x p", "y", mode="mirror"), "Pad: mode='mirror'"),
        (call("BitShift", "x x", "y", direction="UP"), "BitShift: direction='UP'"),
        (call("Resize", "x  sizes", "y", mode="nearest"), "Resize: neither scales nor sizes"),
        (call("RNN", "x x x", "y", direction="down", hidden_size=2), "RNN: direction='down'"),
    ],
)
def test_words_that_no_operator_knows_are_named(node: Any, words: str) -> None:
    x = tl.zeros(1, 2)
    with pytest.raises(TallowError, match=words):
        run([node], x, p=[0, 0, 0, 0], sizes=tl.zeros(0))


def test_gradients_flow_through_operators() -> None:
    nodes = [call("Gemm", "x w b", "h", transB=1), call("Clip", "h low", "r"), call("ReduceSum", "r", "y", keepdims=0)]
    weights = {"w": tl.tensor([[1.0, -1.0]]), "b": tl.tensor([0.5]), "low": 0.0}
    model = loaded(nodes, [typed("x", "n", 2)], weights)
    x = tl.tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
    model(x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, -1.0], [0.0, 0.0]]
    assert {name: p.grad.tolist() for name, p in model.named_parameters() if p.grad is not None} == {
        "w": [[2.0, 1.0]],
        "b": [1.0],
    }


def test_pictures_that_are_programs_are_refused() -> None:
    """Pillow would run Ghostscript for PostScript."""
    pytest.importorskip("PIL")
    program = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    with pytest.raises(ImageError, match="cannot be read as an image"):
        image_decoder(tl.tensor(list(program), dtype=tl.uint8))


def test_split_makes_as_many_parts_as_the_node_has_outputs() -> None:
    with pytest.raises(CheckpointError, match="num_outputs=3, but the node has 1 outputs"):
        loaded([call("Split", "x", "y", num_outputs=3)], [typed("x", 6)], {})


@pytest.mark.parametrize(
    "node",
    [
        call("Gather", "x i", "y", axis=4),
        call("Flatten", "x", "y", axis=9),
        call("Split", "x", "y", axis=6),
        call("LayerNormalization", "x s", "y", axis=7),
        call("Unsqueeze", "x a", "y"),
    ],
    ids=lambda node: node.op_type,
)
def test_an_axis_out_of_range_is_named(node: Any) -> None:
    weights = {"i": tl.tensor([0]), "a": tl.tensor([9]), "s": tl.ones(3)}
    with pytest.raises(TallowError, match=str(node.attribute[0].i if node.attribute else 9)):
        loaded([node], [typed("x", 2, 3)], weights)(tl.ones(2, 3))


def test_clip_without_limits_gives_finite_numbers() -> None:
    model = loaded([call("Clip", "x", "y")], [typed("x", 3)], {})
    x = tl.tensor([-math.inf, 1.0, math.inf])
    largest = tl.finfo(tl.float32).max  # as onnxruntime, whose limits are those of the dtype
    assert model(x).tolist() == [-largest, 1.0, largest]


@pytest.mark.parametrize(
    ("name", "of_window"), [("MaxPool", np.max), ("AveragePool", np.mean), ("LpPool", np.linalg.norm)]
)
@pytest.mark.parametrize("kernel", [(70, 61), (3, 2)])
def test_windows_of_any_size(name: str, of_window: Any, kernel: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 80, 75)).astype(np.float32)
    model = loaded([call(name, "x", "y", kernel_shape=kernel, strides=[5, 7])], [typed("x", 1, 2, 80, 75)], {})
    found = to_host(model(tl.tensor(x)).array)
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))[:, :, ::5, ::7]
    expected = [[[of_window(w) for w in row] for row in plane] for plane in windows[0]]
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [1 << 40, 1]},
        {"kernel_shape": [1 << 31, 1 << 31], "pads": [(1 << 31) - 1] * 4},
        {"kernel_shape": [0, 1]},
        {"kernel_shape": [2, 2], "strides": [0, 1]},
    ],
)
def test_windows_that_no_memory_holds_are_refused(name: str, attributes: dict[str, Any]) -> None:
    with pytest.raises(TallowError, match="pooling"):
        loaded([call(name, "x", "y", **attributes)], [typed("x", 1, 1, 9, 9)], {})(tl.ones(1, 1, 9, 9))


def test_indices_of_many_huge_windows_are_refused() -> None:
    model = loaded([call("MaxPool", "x", "y i", kernel_shape=[500, 500])], [typed("x", 1, 1, "h", "w")], {})
    assert model(tl.ones(1, 1, 501, 500)).shape == (1, 1, 2, 1)
    with pytest.raises(ShapeError, match="take too long"):
        model(tl.ones(1, 1, 1100, 1100))


@pytest.mark.parametrize("size", [65, 66, 131, 1 << 40])
def test_wide_windows_of_channels(size: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 100, 3)).astype(np.float32)
    found = to_host(run([call("LRN", "x", "y", size=size, alpha=0.5)], tl.tensor(x)).array)
    before, after = (size - 1) // 2, size // 2
    sums = np.stack([(x[:, max(c - before, 0) : c + after + 1] ** 2).sum(1) for c in range(100)], 1)
    np.testing.assert_allclose(found, x / (1 + 0.5 / size * sums) ** 0.75, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("parts", [[1 << 20, 1 << 20], [0, 1], [1 << 40, 1]])
def test_parts_of_regions_are_bounded(parts: list[int]) -> None:
    node = call("MaxRoiPool", "x r", "y", pooled_shape=parts)
    with pytest.raises(ArgumentError, match="too many parts"):
        run([node], tl.ones(1, 1, 9, 9), r=tl.zeros(1, 5))


@pytest.mark.parametrize("name", ["MaxPool", "AveragePool", "LpPool"])
def test_pads_of_all_channels_are_bounded(name: str) -> None:
    node = call(name, "x", "y", kernel_shape=[600, 600], pads=[300, 300, 299, 299])
    with pytest.raises(ShapeError, match="pooling"):
        loaded([node], [typed("x", 1, 1000, 1, 1)], {})(tl.ones(1, 1000, 1, 1))


@pytest.mark.parametrize("size", [None, [1, 1, 1 << 16, 1 << 16]])
def test_results_of_unpooling_are_bounded(size: list[int] | None) -> None:
    strides = [1 << 16, 1 << 16] if size is None else [1, 1]
    node = call("MaxUnpool", "x i" if size is None else "x i s", "y", kernel_shape=[1, 1], strides=strides)
    weights = {"i": tl.zeros(1, 1, 2, 2, dtype=tl.int64)} | ({} if size is None else {"s": tl.tensor(size)})
    with pytest.raises(ShapeError, match="MaxUnpool"):
        run([node], tl.ones(1, 1, 2, 2), **weights)


@pytest.mark.parametrize("attributes", [{"ceil_mode": 1, "strides": [2, 2]}, {"pads": [0, 0, 1, 1]}])
def test_sums_of_halves_are_not_too_large(attributes: dict[str, Any]) -> None:
    x = tl.full((1, 1, 6, 6), 3000.0, dtype=tl.float16)
    found = run([call("AveragePool", "x", "y", kernel_shape=[5, 5], **attributes)], x)
    assert found.dtype is tl.float16
    assert found.unique().tolist() == [3000.0]
    norms = run([call("LpPool", "x", "y", kernel_shape=[2, 2], **attributes)], x)
    assert norms.dtype is tl.float16
    assert float(norms.max()) == 6000.0


@pytest.mark.parametrize("size", [4, 5, 100])
def test_squares_of_halves_are_not_too_large(size: int) -> None:
    x = tl.full((1, 6, 2), 300.0, dtype=tl.float16)
    found = run([call("LRN", "x", "y", size=size)], x)
    wide = run([call("LRN", "x", "y", size=size)], x.float())
    assert found.dtype is tl.float16
    np.testing.assert_allclose(to_host(found.float().array), to_host(wide.array), rtol=1e-3)
    assert float(wide.min()) > 1  # (1 + 1e-4 · 90,000)^0.75 = 5.6


def test_scales_of_codes_are_not_trained() -> None:
    codes = {"w": tl.ones(3, 2, dtype=tl.int8), "s": [0.5, 2.0, 1.0]}
    float_layer = [call("DequantizeLinear", "w s", "d", axis=0), call("MatMul", "x d", "y")]
    model = loaded(float_layer, [typed("x", 1, 3)], codes)
    assert {name for name, _ in model.named_parameters()} == {"d"}  # a float weight since the load
    layer = [call("DequantizeLinear", "q t", "x"), *float_layer]
    kept = loaded(layer, [typed("q", 1, 3, dtype=tl.int8)], codes | {"t": 0.5})
    assert not list(kept.parameters())
    assert {name for name, _ in kept.named_buffers()} >= {"w", "s"}
    sizes = {"k": [[1.0, 2.0]], "sizes": [2.0]}
    resized = [NodeProto(op_type="Resize", input=["x", "", "sizes"], output=["r"]), call("Add", "r k", "y")]
    assert [name for name, _ in loaded(resized, [typed("x", 2)], sizes).named_parameters()] == ["k"]
