"""Numbers in a file that ask for more memory than any machine has: refused before it is taken, by the node's name."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from support.onnx_graphs import call, loaded, typed

import tallow as tl
from tallow.errors import ShapeError, TallowError
from tallow.onnx.protobuf import NodeProto

HUGE = 1 << 40 if sys.maxsize > 1 << 32 else 1 << 29  # an array in Pyodide has at most 2^31 bytes
IMAGE = (1, 1, 4, 4)
CASES: dict[str, tuple[Any, tuple[int, ...], dict[str, Any]]] = {
    "Pad": (call("Pad", "x p", "y"), (2,), {"p": [HUGE, 0]}),
    "Pad by edges": (call("Pad", "x p", "y", mode="edge"), (2,), {"p": [0, HUGE]}),
    "Expand": (call("Expand", "x s", "y"), (2,), {"s": [HUGE, 2]}),
    "Tile": (call("Tile", "x s", "y"), (2,), {"s": [HUGE]}),
    "Range": (call("Range", "a b c", "y"), (2,), {"a": 0, "b": HUGE, "c": 1}),
    "ConstantOfShape": (call("ConstantOfShape", "s", "y"), (2,), {"s": [HUGE]}),
    "OneHot": (call("OneHot", "i d v", "y"), (2,), {"i": [0, 1], "d": HUGE, "v": [0.0, 1.0]}),
    "Resize": (NodeProto(op_type="Resize", input=["x", "", "", "s"], output=["y"]), IMAGE, {"s": [1, 1, 4, HUGE]}),
    "RoiAlign": (
        call("RoiAlign", "x r n", "y", output_height=HUGE),
        IMAGE,
        {"r": [[0.0, 0.0, 1.0, 1.0]], "n": [0]},
    ),
    "RandomNormal": (call("RandomNormal", "", "y", shape=[HUGE]), (2,), {}),
    "RandomUniform": (call("RandomUniform", "", "y", shape=[HUGE]), (2,), {}),
    "Multinomial": (call("Multinomial", "x", "y", sample_size=HUGE), (1, 2), {}),
    "HannWindow": (call("HannWindow", "n", "y"), (2,), {"n": HUGE}),
    "DFT": (call("DFT", "x n", "y"), (1, 4, 1), {"n": HUGE}),
    "MelWeightMatrix": (
        call("MelWeightMatrix", "n d r low high", "y"),
        (2,),
        {"n": HUGE, "d": 8, "r": 16000, "low": 0.0, "high": 8000.0},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_result_is_bounded_by_the_operands(name: str) -> None:
    node, shape, weights = CASES[name]
    with pytest.raises(ShapeError, match="at most") as caught:
        loaded([node], [typed("x", *shape)], weights)(tl.ones(*shape))
    assert any(f"'y', {node.op_type}" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("options", [{"op": "Conv", "pads": [HUGE] * 4}, {"op": "ConvTranspose", "strides": [HUGE, 1]}])
@pytest.mark.parametrize("is_known", [False, True])
def test_convolutions_are_bounded_as_soon_as_sizes_are_known(options: dict[str, Any], is_known: bool) -> None:
    node = call(options["op"], "x w", "y", **{name: value for name, value in options.items() if name != "op"})
    with pytest.raises(TallowError, match=f"{options['op']}: a result of shape"):
        loaded([node], [typed("x", *(IMAGE if is_known else "abcd"))], {"w": tl.ones(1, 1, 1, 1)})(tl.ones(IMAGE))


@pytest.mark.parametrize("name", ["Expand", "Tile", "Pad"])
def test_numbers_of_an_input_are_bounded_too(name: str) -> None:
    node = call(name, "x s", "y")
    model = loaded([node], [typed("x", 1), typed("s", 2 if name == "Pad" else 1, dtype=tl.int64)], {})
    numbers = tl.tensor([HUGE, 0][: 2 if name == "Pad" else 1])
    with pytest.raises(ShapeError, match="at most"):
        model(tl.ones(1), numbers)


def test_usual_pads_are_plain_calls() -> None:
    model = loaded([call("Conv", "x w", "y", pads=[64, 64])], [typed("x", "n", 1, "t")], {"w": tl.ones(1, 1, 3)})
    assert "conv1d" in model.code
    assert model(tl.ones(1, 1, 1)).shape == (1, 1, 127)
    wide = loaded([call("Conv", "x w", "y", pads=[99, 99])], [typed("x", "n", 1, "t")], {"w": tl.ones(1, 1, 3)})
    assert wide(tl.ones(1, 1, 1)).shape == (1, 1, 197)


@pytest.mark.cpu("the limit is that of NumPy")
def test_more_dims_than_numpy_has() -> None:
    model = loaded([call("Expand", "x s", "y")], [typed("x", 1), typed("s", 70, dtype=tl.int64)], {})
    with pytest.raises(TallowError, match="'y', Expand"):
        model(tl.ones(1), tl.ones(70, dtype=tl.int64))


@pytest.mark.parametrize("starts", [[0, 0], [0, HUGE]])
def test_skips_and_starts_of_n_grams_end_with_the_text(starts: list[int]) -> None:
    numbers = {"max_gram_length": 2, "min_gram_length": 2, "max_skip_count": HUGE, "mode": "TF"}
    node = call("TfIdfVectorizer", "x", "y", ngram_counts=starts, ngram_indexes=[0], pool_int64s=[5, 6], **numbers)
    model = loaded([node], [typed("x", 4, dtype=tl.int64)], {})
    found = model(tl.tensor([5, 6, 6, 6])).tolist()  # the pair with 0, 1 and 2 elements between
    assert found == ([3.0] if starts == [0, 0] else [0.0])


@pytest.mark.parametrize("op", ["GatherND", "ScatterND"])
def test_rows_of_an_index_name_at_most_the_dims_of_the_data(op: str) -> None:
    rest = [typed("u", 2)] if op == "ScatterND" else []
    node = call(op, "x i u" if rest else "x i", "y")
    model = loaded([node], [typed("x", 3), typed("i", 2, "n", dtype=tl.int64), *rest], {})
    with pytest.raises(TallowError, match="name 3 dims"):
        model(tl.ones(3), tl.zeros(2, 3, dtype=tl.int64), *[tl.ones(2)] * len(rest))
