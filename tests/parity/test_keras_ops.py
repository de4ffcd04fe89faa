"""The functions of tallow.keras.ops compared with keras.ops, for tensors and symbolic tensors."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from support.keras_reference import KERAS_WARNS, keras

import tallow as tl
from tallow import keras as ours
from tallow.keras.functions import FUNCTIONS
from tallow.keras.functions.arrays import REDUCTIONS
from tallow.keras.functions.elements import BINARY, KERAS_ONLY, RENAMED, UNARY

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4)).astype(np.float32)
Y = rng.normal(size=(2, 3, 4)).astype(np.float32)
UNIT = (rng.random((2, 3, 4)) * 0.9 + 0.05).astype(np.float32)
BITS = rng.random((2, 3, 4)) > 0.5
INDICES = rng.integers(0, 3, (2, 2))
SPECIAL = X.copy()
SPECIAL[0, 1, 2], SPECIAL[1, 0, 0], SPECIAL[1, 2, 3] = np.inf, -np.inf, np.nan
HOLES = np.where(rng.random((2, 3, 4)) > 0.7, np.nan, X).astype(np.float32)
WHOLE = rng.integers(1, 20, (2, 3, 4)).astype(np.int32)
BITWISE = ("bitwise", "gcd", "lcm", "left_shift", "right_shift")
SQUARE = (X[0, :, :3] @ X[0, :, :3].T + 3 * np.eye(3)).astype(np.float32)  # symmetric, positive definite

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[(name, (WHOLE,) if name.startswith("bitwise") else (UNIT + 1,) if name == "arccosh" else (BITS,)
       if name == "logical_not" else (SPECIAL,) if name.startswith("is") else (UNIT,), {})
      for name in [*UNARY.split(), *KERAS_ONLY.split()]],
    *[(name, (WHOLE, WHOLE[::-1] % 5) if name.startswith(BITWISE) else (BITS, BITS[::-1].copy())
       if name.startswith("logical") else (X, WHOLE % 4) if name == "ldexp" else (UNIT, Y), {})
      for name in BINARY.split()],
    *[(name, (X, UNIT + 0.5), {}) for name in RENAMED if name not in ("matmul", "power") and "shift" not in name],
    ("power", (UNIT, Y), {}),
    ("matmul", (X, np.swapaxes(Y, 1, 2).copy()), {}),
    *[(name, (X > 0 if name in ("any", "all") else X,), {"axis": axis, "keepdims": keep})
      for name in (*REDUCTIONS, "logsumexp") for axis in (None, 1, (0, 2)) for keep in (False, True)
      if not (name == "prod" and isinstance(axis, tuple))],
    *[(name, (X,), {"axis": axis}) for name in ("argmax", "argmin", "cumsum") for axis in (None, 1)],
    *[(name, (WHOLE, WHOLE % 3), {}) for name in ("left_shift", "right_shift")],
    *[(name, (X,), {}) for name in ("fabs", "cbrt", "angle", "conj", "real", "isreal", "copy", "array")],
    ("bitwise_invert", (WHOLE,), {}),
    ("i0", (5 * X,), {}),
    ("round", (X,), {"decimals": 1}),
    ("divide_no_nan", (X, np.where(BITS, X, 0).astype(np.float32)), {}),
    ("isclose", (X, X + 1e-7), {}),
    ("allclose", (X, X + 1e-7), {}),
    ("nan_to_num", (SPECIAL,), {"nan": 1.0, "posinf": 5.0}),
    *[(name, (X,), {"axis": axis, "keepdims": keep}) for name in ("amax", "amin", "ptp", "median")
      for axis, keep in ((None, False), (1, True), ((0, 2), False), ((0, 2), True))],
    *[(name, (HOLES,), {"axis": axis, "keepdims": keep})
      for name in ("nansum", "nanmean", "nanmax", "nanmin", "nanprod", "nanvar", "nanstd", "nanmedian")
      for axis, keep in ((None, False), (1, True), ((0, 2), False))],
    *[(name, (HOLES,), {"axis": axis}) for name in ("nancumsum", "nancumprod") for axis in (None, 1)],
    *[(name, (np.nan_to_num(HOLES, nan=0.1),), {"axis": 1}) for name in ("nanargmax", "nanargmin", "cumprod")],
    *[(name, (HOLES if "nan" in name else X, 0.3 if "quantile" in name else 30.0), {"axis": 1, "method": method})
      for name in ("quantile", "nanquantile", "percentile", "nanpercentile") for method in ("linear", "lower")],
    ("quantile", (X, np.float32([0.1, 0.9])), {"axis": (0, 2), "keepdims": True}),
    ("average", (X,), {"axis": 1}),
    ("diff", (X,), {"n": 2, "axis": 1}),
    ("trapezoid", (X,), {"dx": 0.5, "axis": 1}),
    ("searchsorted", (np.float32([0.1, 0.3, 0.7]), UNIT[0, 0]), {"side": "right"}),
    ("digitize", (UNIT, np.float32([0.1, 0.3, 0.7])), {}),
    ("bincount", (WHOLE[0, 0],), {"minlength": 25}),
    ("isin", (WHOLE, np.int32([2, 3, 5])), {}),
    ("corrcoef", (X[0],), {}),
    ("append", (X, Y), {}),
    ("append", (X, Y), {"axis": 1}),
    ("array_split", (X, 3), {"axis": -1}),
    *[(name, (X, 2), {}) for name in ("dsplit", "vsplit")],
    ("hsplit", (X, 3), {}),
    *[(name, ([X, Y],), {}) for name in ("hstack", "vstack", "dstack")],
    *[(name, (X[0],), {}) for name in ("diag", "diagflat", "fliplr", "flipud", "rot90", "trace", "diagonal")],
    ("diagonal", (X,), {"offset": 1, "axis1": 1, "axis2": 2}),
    ("meshgrid", (X[0, 0], Y[0, 1, :3]), {}),
    ("vander", (X[0, 0],), {"N": 3}),
    ("tensordot", (X, Y), {"axes": ([1, 2], [1, 2])}),
    ("inner", (X, Y[0]), {}),
    ("outer", (X[0], Y[0, 0]), {}),
    ("vdot", (X[0, 0], Y[0, 0]), {}),
    ("kron", (X[0], Y[0]), {}),
    ("cross", (X, Y), {"axis": 1}),
    ("select", ([BITS, X > 0], [X, Y]), {"default": 2.0}),
    ("scatter", (INDICES, X[0, :2], (3, 3, 4)), {}),
    *[("scatter_update", (X, np.array([[0, 1], [1, 2], [0, 1]]), Y[0]), {"reduction": r})
      for r in ("add", "max", "mul")],
    ("scatter_update", (X, np.array([[0, 1], [1, 2]]), Y[0, :2]), {}),
    *[(f"segment_{kind}", (X[0], np.array([0, 2, 2]), 3), {}) for kind in ("sum", "prod")],
    *[(f"segment_{kind}", (X[0], np.array([0, 1, 1]), 2), {}) for kind in ("max", "min")],
    ("slice", (X, (0, 1, 1), (1, 2, 3)), {}),
    ("slice_update", (X, (0, 1, 1), Y[:1, :2, :3]), {}),
    ("unstack", (X,), {"axis": 1}),
    ("extract_sequences", (X, 3, 1), {}),
    ("in_top_k", (np.array([0, 1, 2]), X[0], 2), {}),
    ("saturate_cast", (100 * X, "int8"), {}),
    ("cdist", (X, Y), {}),
    ("rearrange", (X, "a (b c) d -> (a d) c b"), {"c": 3}),
    ("view", (X, "int32"), {}),
    ("unique", (WHOLE,), {}),
    ("cholesky", (SQUARE,), {}),
    ("cholesky", (SQUARE,), {"upper": True}),
    ("cholesky_inverse", (np.tril(SQUARE),), {}),
    *[(name, (SQUARE,), {}) for name in ("det", "inv", "logdet", "slogdet", "matrix_rank", "pinv")],
    ("qr", (SQUARE,), {}),
    ("svd", (SQUARE,), {"compute_uv": False}),
    ("eigh", (np.diag(np.float32([1, 2, 3])),), {}),
    ("solve", (SQUARE, X[0]), {}),
    ("solve_triangular", (SQUARE, X[0]), {"lower": True}),
    ("lstsq", (X[0].T.copy(), Y[0].T.copy()), {}),
    ("normalize", (X,), {"axis": (0, 2), "order": 1}),
    ("moments", (X,), {"axes": (0, 2), "keepdims": True}),
    ("batch_normalization", (X, X[0, 0], UNIT[0, 0], -1, Y[0, 0], Y[0, 1]), {}),
    ("layer_normalization", (X, Y[0, 0], Y[0, 1]), {}),
    ("rms_normalization", (X, Y[0, 0]), {}),
    ("multi_hot", (INDICES, 4), {}),
    *[(name, (UNIT, UNIT[::-1].copy()), {"from_logits": flag})
      for name in ("binary_crossentropy", "categorical_crossentropy") for flag in (False, True)],
    *[("sparse_categorical_crossentropy", (WHOLE[..., 0] % 4, UNIT), {"from_logits": flag}) for flag in (False, True)],
    ("psnr", (X, Y, 1.0), {}),
    ("ctc_loss", (np.array([[1, 2], [2, 1]]), np.concatenate([X, Y], 1), np.array([2, 1]), np.array([6, 5])), {}),
    *[("dot_product_attention", (X[..., None, :], Y[..., None, :], Y[..., None, :]), options)
      for options in ({}, {"is_causal": True}, {"scale": 0.3})],
    ("dot_product_attention", (X[..., None, :], Y[..., None, :], X[..., None, :], UNIT[:, None, :, :3]), {}),
    ("space_to_depth", (X[:, :2, :, None], 2), {}),
    ("depth_to_space", (X[:, :, None], 2), {}),
    ("unfold", (X[None], 2), {"padding": 1}),
    ("fold", (X[:1, :2].reshape(1, 4, 2), (2, 3), 2), {}),
    *[(name, (2 * X,), {}) for name in ("sparse_plus", "sparse_sigmoid", "squareplus", "celu", "glu")],
    ("conv", (X, np.stack([Y[0, :3].reshape(3, 4)] * 2, -1)), {"padding": "same"}),
    ("conv", (X[..., None], UNIT[:1, :2, :2, None].reshape(2, 2, 1, 1)), {"strides": 2, "padding": "same"}),
    ("conv_transpose", (X, np.stack([Y[0, :3].reshape(3, 4)] * 2, 1)), {"strides": 2}),
    ("depthwise_conv", (X, Y[0, :2].reshape(2, 4, 1)), {"padding": "same"}),
    ("separable_conv", (X, Y[0, :2].reshape(2, 4, 1), Y[0, :, None].reshape(1, 4, 3)), {"padding": "same"}),
    ("max_pool", (X, 2), {"strides": 1, "padding": "same"}),
    ("average_pool", (X[..., None], (2, 2)), {"strides": 1}),
    ("adaptive_average_pool", (X, 2), {}),
    ("adaptive_max_pool", (X[..., None], (2, 3)), {}),
    ("fft", ((X, Y),), {}),
    ("fft2", ((X, Y),), {}),
    ("ifft2", ((X, Y),), {}),
    *[("rfft", (X,), {"fft_length": n}) for n in (None, 3, 7)],
    *[("irfft", ((X, Y),), {"fft_length": n}) for n in (None, 5, 4, 9)],
    *[("stft", (X.reshape(2, 12), 4, 2, 6), {"window": w, "center": c}) for w in ("hann", None) for c in (False, True)],
    ("istft", ((X, Y), 6, 2, 6), {}),
    ("sort", (X,), {"axis": 1}),
    ("argsort", (X,), {}),
    ("top_k", (X, 2), {}),
    ("reshape", (X, (4, -1)), {}),
    ("transpose", (X, (0, 2, 1)), {}),
    ("expand_dims", (X, -1), {}),
    ("expand_dims", (X, (0, 2)), {}),
    ("squeeze", (X[:, :1],), {"axis": 1}),
    ("concatenate", ([X, Y],), {"axis": 1}),
    ("stack", ([X, Y],), {"axis": -1}),
    ("split", (X, 2), {"axis": -1}),
    ("split", (X, [1, 3]), {"axis": 2}),
    ("repeat", (X, 2), {"axis": 1}),
    ("tile", (X, (1, 2, 1)), {}),
    ("flip", (X,), {"axis": 1}),
    ("roll", (X, 1), {"axis": 1}),
    ("swapaxes", (X, 0, 2), {}),
    ("moveaxis", (X, 0, -1), {}),
    ("broadcast_to", (X[:1], (2, 3, 4)), {}),
    ("pad", (X, ((0, 0), (1, 2), (0, 1))), {}),
    ("pad", (X, ((1, 1),) * 3), {"constant_values": 2.0}),
    ("ravel", (X,), {}),
    ("tril", (X,), {}),
    ("triu", (X,), {"k": 1}),
    ("cast", (X, "int32"), {}),
    ("where", (BITS, X, Y), {}),
    ("clip", (X, -0.5, 0.5), {}),
    ("take", (X, INDICES), {"axis": 1}),
    ("take", (X, INDICES), {}),
    ("take_along_axis", (X, INDICES[:, :, None]), {"axis": 1}),
    ("one_hot", (INDICES, 4), {}),
    ("one_hot", (INDICES, 4), {"axis": 1}),
    ("einsum", ("bij,bkj->bik", X, Y), {}),
    ("dot", (X, Y[0].T.copy()), {}),
    ("norm", (X,), {"axis": -1}),
    ("normalize", (X,), {"axis": 1}),
    ("stop_gradient", (X,), {}),
    ("zeros_like", (X,), {}),
    ("ones_like", (X,), {}),
    ("full_like", (X, 3.0), {}),
    *[(name, (X,), {}) for name in ("relu", "softmax", "gelu", "sigmoid", "tanh", "leaky_relu", "silu", "log_softmax")],
]  # fmt: skip


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def as_(make: Any, leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return make(leaf)
    if isinstance(leaf, list | tuple) and leaf and isinstance(leaf[0], np.ndarray):
        return type(leaf)(as_(make, part) for part in leaf)
    return leaf


def assert_same(found: Any, expected: Any) -> None:
    assert len(flat(found)) == len(flat(expected))
    for one, other in zip(flat(found), flat(expected), strict=True):
        np.testing.assert_allclose(one.numpy(force=True), np.asarray(other.cpu()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "args", "options"), CASES, ids=[name for name, _, _ in CASES])
def test_function(name: str, args: Any, options: dict[str, Any]) -> None:
    expected = getattr(keras.ops, name)(*(as_(torch.tensor, arg) for arg in args), **options)
    function = getattr(ours.ops, name)
    assert_same(function(*(as_(tl.tensor, arg) for arg in args), **options), expected)
    assert_same(function(*args, **options), expected)  # arrays are accepted too


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [case for case in CASES if case[0] not in ("cast", "unique")],
    ids=lambda v: str(v)[:20],
)
def test_function_of_a_symbolic_tensor(name: str, args: Any, options: dict[str, Any]) -> None:
    """A model of the function gives the function's result, also after saving and loading."""
    inputs: list[Any] = []

    def symbolic(array: Any) -> Any:
        inputs.append(ours.Input(batch_shape=array.shape, dtype=str(array.dtype)))
        return inputs[-1]

    arrays = [a for arg in args for a in (arg if isinstance(arg, list | tuple) else [arg]) if isinstance(a, np.ndarray)]
    outputs = getattr(ours.ops, name)(*(as_(symbolic, arg) for arg in args), **options)
    model = ours.Model(inputs, list(flat(outputs)))
    expected = flat(getattr(ours.ops, name)(*args, **options))
    again = ours.models.model_from_json(model.to_json())
    for found in (model(arrays), again(arrays)):
        for symbol, one, other in zip(flat(outputs), found, expected, strict=True):
            assert symbol.shape == tuple(other.shape)
            np.testing.assert_array_equal(one.numpy(force=True), other.numpy(force=True))


# Functions that Keras lacks for PyTorch tensors, or that differ from NumPy's.
OF_NUMPY: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[("correlate", (a, b), {"mode": mode}) for mode in ("valid", "same", "full")
      for a, b in ((X[0, 0], Y[0, 0, :3]), (X[0, 0, :2], Y[0, 0]), (X.ravel(), Y[0, 0]))],
    ("average", (X, 1, np.float32([0.2, 0.3, 0.5])), {}),
    ("average", (X,), {"weights": UNIT}),
    ("count_nonzero", (BITS,), {"axis": 1}),
    ("vdot", (X, Y), {}),
    ("cross", (X[..., :3], Y[..., :3]), {}),
    ("imag", (X,), {}),
    ("unique", (WHOLE,), {"return_index": True, "return_inverse": True, "return_counts": True}),
    ("histogram", (X,), {"bins": 5}),
    ("nonzero", (X > 0,), {}),
    ("unravel_index", (np.array([3, 7, 23]), (2, 3, 4)), {}),
    *[(name, (6,), {}) for name in ("bartlett", "blackman", "hamming", "hanning")],
    ("kaiser", (6, 2.0), {}),
    ("tri", (3, 4), {"k": 1}),
    ("logspace", (0.0, 2.0, 5), {}),
    ("geomspace", (1.0, 100.0, 5), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "options"), OF_NUMPY)
def test_function_of_numpy(name: str, args: Any, options: dict[str, Any]) -> None:
    found, expected = getattr(ours.ops, name)(*args, **options), getattr(np, name)(*args, **options)
    for one, other in zip(flat(found), flat(expected), strict=True):
        np.testing.assert_allclose(one.numpy(force=True), other, rtol=1e-4, atol=1e-5)


IMAGES = rng.random((2, 6, 7, 3)).astype(np.float32)
FOUR = np.float32([[0, 0], [6, 0], [6, 5], [0, 5]])
OF_IMAGES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[("resize", (IMAGES, size), {"interpolation": kind, "antialias": smooth})
      for size in ((4, 9), (3, 3)) for kind in ("bilinear", "nearest", "bicubic") for smooth in (False, True)
      if not (smooth and kind == "nearest")],
    *[("resize", (IMAGES, size), {option: True}) for size in ((4, 9), (5, 2), (8, 3))
      for option in ("crop_to_aspect_ratio", "pad_to_aspect_ratio")],
    ("resize", ((255 * IMAGES[0]).astype(np.uint8), (4, 4)), {}),
    *[(name, (IMAGES,), {}) for name in ("rgb_to_grayscale", "rgb_to_hsv", "hsv_to_rgb", "sobel_edges")],
    ("rgb_to_grayscale", (np.moveaxis(IMAGES, -1, 1).copy(),), {"data_format": "channels_first"}),
    ("gaussian_blur", (IMAGES,), {"kernel_size": (3, 3), "sigma": (0.7, 0.7), "data_format": "channels_last"}),
    ("pad_images", (IMAGES, 1, 2, 0, 3), {}),
    ("pad_images", (IMAGES, 1, 2), {"target_height": 9, "target_width": 9}),
    ("crop_images", (IMAGES, 1, 2), {"target_height": 3, "target_width": 4}),
    ("extract_patches", (IMAGES, (2, 3)), {"strides": 2, "padding": "same"}),
    ("extract_patches_3d", (IMAGES[..., None], 2), {}),
    ("ssim", (IMAGES, IMAGES[::-1].copy()), {"filter_size": 5}),
    *[("map_coordinates", (X[0], np.abs(2 * Y[:, 0])), {"order": o, "fill_mode": m, "fill_value": 0.5})
      for o in (0, 1) for m in ("constant", "nearest", "wrap", "mirror", "reflect")],
    # No coordinate is within 0.05 of halfway between two pixels, where rounding would choose the nearest.
    *[("affine_transform", (IMAGES, np.float32([[1.17, 0.17, -1.1, 0.17, 0.83, 0.58, 0, 0]] * 2)),
       {"interpolation": kind, "fill_mode": mode})
      for kind in ("bilinear", "nearest") for mode in ("constant", "reflect", "wrap")],
    ("perspective_transform", (IMAGES, FOUR, FOUR + np.float32([[0, 1], [-1, 0], [0, 0], [1, -1]])), {}),
    *[("scale_and_translate", (IMAGES, (2, 4, 9, 3), np.float32([0.7, 1.2]), np.float32([0.3, -0.5]), (1, 2), kind), {})
      for kind in ("linear", "cubic", "lanczos3")],
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "options"), OF_IMAGES, ids=[name for name, _, _ in OF_IMAGES])
def test_function_of_images(name: str, args: Any, options: dict[str, Any]) -> None:
    expected = getattr(keras.ops.image, name)(*(as_(torch.tensor, arg) for arg in args), **options)
    function = getattr(ours.ops.image, name)
    assert_same(function(*args, **options), expected)
    symbol = function(ours.Input(batch_shape=args[0].shape, dtype=str(args[0].dtype)), *args[1:], **options)
    assert symbol.shape == tuple(expected.shape)


def test_sparsemax_is_the_projection_onto_the_simplex() -> None:
    """Martins & Astudillo 2016, figure 1; Keras on PyTorch subtracts another threshold."""
    found = ours.ops.sparsemax(np.float32([[0.1, 0.4, 1.2], [0.0, 0.2, 0.1], [-3.0, 2.0, 2.0]]))
    np.testing.assert_allclose(found.numpy(), [[0, 0.1, 0.9], [7 / 30, 13 / 30, 1 / 3], [0, 0.5, 0.5]], atol=1e-6)


CONTROL: dict[str, Any] = {
    "cond": lambda ops, x: ops.cond(ops.sum(x) > 0, lambda: x + 1, lambda: x - 1),
    "switch": lambda ops, x: ops.switch(1, [lambda y: y, lambda y: 2 * y], x),
    "while_loop": lambda ops, x: ops.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, x))[1],
    "fori_loop": lambda ops, x: ops.fori_loop(1, 4, lambda i, y: y * i, x),
    "map": lambda ops, x: ops.map(lambda row: ops.sum(row), x),
    "vectorized_map": lambda ops, x: ops.vectorized_map(lambda row: row * 2, x),
    "scan": lambda ops, x: ops.scan(lambda c, row: (c + row, c * row), x[0], x)[1],
    "scan backwards": lambda ops, x: ops.scan(lambda c, row: (c + row, c * row), x[0], x, reverse=True)[1],
    "associative_scan": lambda ops, x: ops.associative_scan(lambda a, b: a + b, x, axis=1),
    "associative_scan backwards": lambda ops, x: ops.associative_scan(lambda a, b: a * b, x, reverse=True),
}


@pytest.mark.parametrize("use", CONTROL.values(), ids=CONTROL)
def test_control(use: Any) -> None:
    assert_same(use(ours.ops, tl.tensor(X)), use(keras.ops, torch.tensor(X)))


def test_custom_gradient() -> None:
    @ours.ops.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = ours.ops.exp(x)

        def gradient(*args: Any, upstream: Any) -> Any:
            return upstream * (1 - 1 / (1 + e))

        return ours.ops.log(1 + e), gradient

    x = tl.tensor(X, requires_grad=True)
    log1pexp(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1 / (1 + np.exp(-X)), rtol=1e-5)


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "stft", "istft"])
def test_gradient_of_a_transform(name: str) -> None:
    arguments = {"stft": (6, 2, 6), "istft": (6, 2, 6)}.get(name, ())
    grads = []
    for ops, make in ((keras.ops, torch.tensor), (ours.ops, tl.tensor)):
        parts = [make(X.reshape(2, 12) if name == "stft" else X), make(Y)]
        for part in parts:
            part.requires_grad_(True)
        given = parts[0] if name in ("rfft", "stft") else tuple(parts)
        total = sum((part**2).sum() * (i + 1) for i, part in enumerate(flat(getattr(ops, name)(given, *arguments))))
        total.backward()
        grads.append(parts[0].grad)
    np.testing.assert_allclose(grads[1].numpy(), grads[0].numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("name", "args"), [
    ("identity", (3,)), ("zeros", ((2, 3),)), ("ones", ((2, 3), "int32")), ("full", ((2, 3), 4.0)), ("eye", (3,)),
    ("arange", (5,)),
    ("arange", (1, 7, 2)), ("linspace", (0.0, 1.0, 5)),
])  # fmt: skip
def test_new_tensors(name: str, args: Any) -> None:
    found, expected = getattr(ours.ops, name)(*args), getattr(keras.ops, name)(*args)
    assert_same(found, expected)
    assert found.dtype.is_floating_point == expected.dtype.is_floating_point


DTYPES = ("bool", "uint8", "int8", "int16", "int32", "float16", "float32")
# Functions whose result has another dtype than their input, with what they need beside it.
OF_ANOTHER_DTYPE = {
    "all": (), "any": (), "argmax": (), "argmin": (), "argsort": (), "argpartition": (1,), "average": (), "ceil": (),
    "count_nonzero": (), "cumprod": (), "cumsum": (), "digitize": (np.float32([1, 2]),), "exp": (), "floor": (),
    "matmul": (np.ones((3, 2), np.float32),), "mean": (), "median": (), "nanargmax": (), "nancumsum": (), "nanmax": (),
    "nanmean": (), "nanprod": (), "nansum": (), "norm": (), "prod": (), "sqrt": (), "std": (), "sum": (),
    "tensordot": (np.ones((3, 2), np.int32), 1), "trace": (), "var": (),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's, about counts of booleans
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_ANOTHER_DTYPE)
def test_dtypes(name: str, dtype: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    found = getattr(ours.ops, name)(x, *OF_ANOTHER_DTYPE[name])
    expected = getattr(keras.ops, name)(x, *OF_ANOTHER_DTYPE[name])
    assert found.dtype.name == keras.backend.standardize_dtype(expected.dtype)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-2)


@pytest.mark.parametrize(
    "call",
    """
arange(3)
arange(0.0, 3.0)
arange(3, dtype="int64")
array([1])
convert_to_tensor([1])
convert_to_tensor(1.5)
convert_to_tensor([True])
convert_to_tensor(np.ones(2))
convert_to_tensor(np.arange(2))
add(1, 2)
add(True, 1)
where(np.array([True]), 1, 2)
sum([1, 2])
argmax([1, 2])
bincount(np.array([1, 2]))
bincount(np.array([1, 2]), weights=np.float32([1, 2]))
searchsorted(np.float32([1, 2]), np.float32([1]))
logaddexp(np.array([1, 2]), np.array([1, 2]))
""".strip().splitlines(),
)
def test_dtypes_of_numbers(call: str) -> None:
    found, expected = (eval(f"ops.{call}", {"np": np, "ops": ops}) for ops in (ours.ops, keras.ops))
    assert found.dtype.name == keras.backend.standardize_dtype(expected.dtype)
    np.testing.assert_allclose(found.numpy(), expected.numpy())


def with_axis() -> list[str]:
    """Return the functions of one tensor that have an argument `axis`."""
    signatures = {name: inspect.signature(function).parameters for name, function in FUNCTIONS.items()}
    first = {name: next(iter(parameters), "") for name, parameters in signatures.items()}
    return [name for name, parameters in signatures.items() if "axis" in parameters and first[name] in ("x", "a")]


# What a function needs beside the tensor.
OTHERS = {
    "argpartition": (1,), "batch_normalization": (np.ones(4, np.float32), np.ones(4, np.float32)),
    "array_split": (2,), "one_hot": (3,), "multi_hot": (3,), "percentile": (50,), "nanpercentile": (50,),
    "quantile": (0.5,), "nanquantile": (0.5,), "repeat": (2,), "roll": (1,), "split": (2,),
    "take": ([0],), "take_along_axis": (np.zeros((3, 4), int),),
}  # fmt: skip


@pytest.mark.parametrize("name", with_axis())
@pytest.mark.parametrize("axis", [5, -5])
def test_an_axis_that_does_not_exist(name: str, axis: int) -> None:
    x = X[0].astype(np.int32) if name.endswith("hot") else X[0]
    for function, given in ((getattr(keras.ops, name), x), (getattr(ours.ops, name), x)):
        with pytest.raises((IndexError, ValueError, RuntimeError, AttributeError)):
            function(given, *OTHERS.get(name, ()), axis=axis)
    symbol = ours.Input(batch_shape=x.shape, dtype=str(x.dtype))
    with pytest.raises((IndexError, ValueError)):
        getattr(ours.ops, name)(symbol, *OTHERS.get(name, ()), axis=axis)


@pytest.mark.parametrize("axis", [0, (1,), [0, 1]])
def test_squeeze_refuses_axes_of_other_sizes(axis: Any) -> None:
    """As Keras does for symbolic tensors, and with its other backends."""
    for x in (X[0], ours.Input(batch_shape=(3, 4))):
        with pytest.raises(ValueError, match="squeeze"):
            ours.ops.squeeze(x, axis)


@pytest.mark.parametrize("shift", [0, 1, -2])
def test_roll_by_one_number_along_several_axes(shift: int) -> None:
    """As NumPy does, and Keras for symbolic tensors."""
    for axis in ([0, 1], (0, 2)):
        np.testing.assert_array_equal(ours.ops.roll(X, shift, axis=axis).numpy(), np.roll(X, shift, tuple(axis)))
        assert ours.ops.roll(ours.Input(batch_shape=X.shape), shift, axis=axis).shape == X.shape


def test_every_function_is_one_of_keras() -> None:
    assert [name for name in FUNCTIONS if not hasattr(keras.ops, name)] == []
    assert ours.ops.shape(X) == (2, 3, 4)
    assert ours.ops.shape(ours.Input((3,))) == (None, 3)
    assert ours.ops.ndim(ours.Input((3,))) == 2
