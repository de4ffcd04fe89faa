"""The layers of tallow.keras compared with Keras: equal weights give equal outputs, shapes and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.keras_cases import CASES, IMAGES, STEPS, VECTORS
from support.keras_layers import TOLERANCE, agree, as_list, plain_call, values
from support.keras_reference import KERAS_WARNS, keras

import tallow as tl
from tallow import keras as ours

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

# Layers that change images at random, with ranges that leave one possible change.
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("RandomRotation", {"factor": (0.1, 0.1)}),
    ("RandomRotation", {"factor": (-0.3, -0.3), "fill_mode": "nearest"}),
    ("RandomRotation", {"factor": (0.2, 0.2), "fill_mode": "constant", "fill_value": 0.5}),
    ("RandomZoom", {"height_factor": (0.3, 0.3)}),
    ("RandomZoom", {"height_factor": (-0.3, -0.3), "width_factor": (0.4, 0.4), "fill_mode": "constant"}),
    ("RandomTranslation", {"height_factor": (0.2, 0.2), "width_factor": (-0.4, -0.4)}),
    ("RandomTranslation", {"height_factor": (0.23, 0.23), "width_factor": (0.1, 0.1), "interpolation": "nearest"}),
    ("RandomBrightness", {"factor": (0.2, 0.2), "value_range": (-1, 1)}),
]

# The same, for colours from 0 to 1 or from 0 to 255.
COLORS: list[tuple[str, dict[str, Any], int]] = [
    ("RandomGrayscale", {"factor": 1.0}, 1),
    ("RandomInvert", {"factor": (1.0, 1.0), "value_range": (0, 1)}, 1),
    ("RandomPosterization", {"factor": (3, 3), "value_range": (0, 1)}, 1),
    ("RandomPosterization", {"factor": (4, 4)}, 255),
    ("Solarization", {}, 255),
    ("Solarization", {"value_range": (0, 1)}, 1),
    ("RandomSaturation", {"factor": (0.3, 0.3), "value_range": (0, 1)}, 1),
    ("RandomSaturation", {"factor": (0.3, 0.3)}, 255),
    ("RandomColorDegeneration", {"factor": (0.4, 0.4)}, 255),
    *[("RandomSharpness", {"factor": (f, f)}, 255) for f in (0.2, 0.8)],
    ("RandomGaussianBlur", {"factor": (1.0, 1.0), "sigma": (0.5, 0.5), "data_format": "channels_last"}, 255),
    ("AutoContrast", {}, 255),
    ("AutoContrast", {"value_range": (0, 1)}, 1),
    ("Equalization", {}, 255),
    ("Equalization", {"value_range": (0, 1), "bins": 64}, 1),
    ("RandomColorJitter", {"brightness_factor": (0.2, 0.2), "saturation_factor": (0.4, 0.4)}, 255),
    ("Resizing", {"height": 5, "width": 11}, 255),
    ("Resizing", {"height": 5, "width": 11, "crop_to_aspect_ratio": True, "interpolation": "nearest"}, 1),
    ("Resizing", {"height": 4, "width": 3, "pad_to_aspect_ratio": True, "antialias": True}, 1),
    ("CenterCrop", {"height": 4, "width": 5}, 1),
    ("CenterCrop", {"height": 12, "width": 5}, 1),
]


SOUNDS: list[tuple[str, dict[str, Any]]] = [
    ("MelSpectrogram", {"fft_length": 64, "sequence_stride": 16, "num_mel_bins": 8}),
    (
        "MelSpectrogram",
        {"fft_length": 64, "sequence_stride": 16, "num_mel_bins": 8, "power_to_db": False, "mag_exp": 1},
    ),
]


@pytest.mark.parametrize(("name", "arguments"), SOUNDS)
def test_spectrograms(name: str, arguments: dict[str, Any]) -> None:
    x = values((2, 300), 1)
    expected = keras.ops.convert_to_numpy(getattr(keras.layers, name)(**arguments)(x))
    layer = getattr(ours.layers, name)(**arguments)
    np.testing.assert_allclose(layer(tl.tensor(x)).numpy(), expected, rtol=1e-3, atol=1e-3)
    assert layer(ours.Input((300,))).shape[1:] == expected.shape[1:]
    assert getattr(ours.layers, name).from_config(layer.get_config())(tl.tensor(x)).shape == expected.shape


@pytest.mark.filterwarnings("ignore:Tensor.T is deprecated on 0-D tensors")  # the one that Keras uses
@pytest.mark.parametrize(("name", "arguments", "most"), COLORS)
def test_color_augmentations(name: str, arguments: dict[str, Any], most: int) -> None:
    count = 1 if name == "Equalization" else 2  # Keras equalizes all images of a batch together
    x = most * np.random.default_rng(0).random((count, 9, 8, 3)).astype(np.float32)
    expected = keras.ops.convert_to_numpy(getattr(keras.layers, name)(**arguments)(x, training=True))
    layer = getattr(ours.layers, name)(**arguments)
    again = getattr(ours.layers, name).from_config(layer.get_config())
    for instance in (layer, again):
        y = instance(tl.tensor(x), training=True).numpy()
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4 * most)
    assert layer(tl.tensor(x[0]), training=True).shape == expected.shape[1:]
    assert layer(ours.Input((9, 8, 3))).shape == (None, *expected.shape[1:])


CODES = np.array([[3, 1, 1], [0, 2, 3]])
NUMBERS = np.array([[-1.5, 1.0, 3.4], [0.5, 3.0, 1.3]], np.float32)
ENCODINGS: list[tuple[str, dict[str, Any], Any]] = [
    *[("CategoryEncoding", {"num_tokens": 4, "output_mode": mode}, CODES)
      for mode in ("one_hot", "multi_hot", "count")],
    ("CategoryEncoding", {"num_tokens": 4, "output_mode": "one_hot"}, CODES[:, :1]),
    ("CategoryEncoding", {"num_tokens": 4}, CODES[0]),
    *[("Discretization", {"bin_boundaries": [0.0, 1.0, 2.0], "output_mode": mode}, NUMBERS)
      for mode in ("int", "one_hot", "multi_hot", "count")],
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "inputs"), ENCODINGS)
def test_encoding(name: str, arguments: dict[str, Any], inputs: Any) -> None:
    theirs, mine = getattr(keras.layers, name)(**arguments), getattr(ours.layers, name)(**arguments)
    expected = keras.ops.convert_to_numpy(theirs(inputs))
    np.testing.assert_array_equal(mine(inputs).numpy(), expected)
    np.testing.assert_array_equal(getattr(ours.layers, name).from_config(mine.get_config())(inputs).numpy(), expected)
    symbol = mine(ours.Input(batch_shape=inputs.shape, dtype=str(inputs.dtype)))
    assert symbol.shape == expected.shape


def test_adapted_ranges_are_those_of_keras() -> None:
    layers = [library.layers.Discretization(num_bins=5, epsilon=0.02) for library in (keras, ours)]
    for layer in layers:
        layer.update_state(values((300,), 1))
        layer.update_state(values((200,), 2))
        layer.finalize_state()
    np.testing.assert_allclose(layers[1].bin_boundaries, layers[0].bin_boundaries, rtol=1e-5)


@pytest.mark.parametrize(("name", "arguments"), CHANGES)
def test_image_augmentations(name: str, arguments: dict[str, Any]) -> None:
    x = values(IMAGES, 1)
    expected = getattr(keras.layers, name)(**arguments)(x, training=True)
    y = getattr(ours.layers, name)(**arguments)(tl.tensor(x), training=True)
    np.testing.assert_allclose(y.numpy(), keras.ops.convert_to_numpy(expected), **TOLERANCE)


@pytest.mark.parametrize(
    ("name", "arguments", "shapes"), CASES, ids=lambda v: str(v) if not isinstance(v, list) else ""
)
def test_layer(name: str, arguments: dict[str, Any], shapes: list[tuple[int, ...]]) -> None:
    theirs, mine = getattr(keras.layers, name)(**arguments), getattr(ours.layers, name)(**arguments)
    agree(theirs, mine, [values(shape, i) for i, shape in enumerate(shapes)], plain_call)
    inputs = [keras.Input(shape[1:]) for shape in shapes], [ours.Input(shape[1:]) for shape in shapes]
    assert plain_call(mine, inputs[1]).shape == plain_call(theirs, inputs[0]).shape
    again = getattr(ours.layers, name).from_config(mine.get_config())
    assert plain_call(again, inputs[1]).shape == plain_call(theirs, inputs[0]).shape


@pytest.mark.parametrize("name", [name for name, _, shapes in CASES if "Conv" in name and shapes == [IMAGES]])
def test_unknown_sizes_stay_unknown(name: str) -> None:
    arguments = next(arguments for case_name, arguments, _ in CASES if case_name == name)
    shape = (None, None, 4)
    theirs = getattr(keras.layers, name)(**arguments)(keras.Input(shape))
    assert getattr(ours.layers, name)(**arguments)(ours.Input(shape)).shape == theirs.shape


@pytest.mark.parametrize("shape", [VECTORS, STEPS, IMAGES])
def test_batch_normalization_in_training(shape: tuple[int, ...]) -> None:
    theirs, mine = keras.layers.BatchNormalization(), ours.layers.BatchNormalization()
    x = 2 * values(shape, 3) + 1
    agree(theirs, mine, [x], lambda layer, xs: layer(xs[0], training=True))
    for one, other in zip(theirs.get_weights(), mine.get_weights(), strict=True):
        np.testing.assert_allclose(other, one, **TOLERANCE)
    assert not np.allclose(mine.moving_mean.numpy(), 0)


MASKS = {
    "behind": [[1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0, 0]],
    "before": [[0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1]],
    "gaps": [[0, 1, 0, 1, 1, 0, 0], [1, 0, 0, 0, 1, 0, 1], [1, 1, 1, 1, 1, 1, 1]],
    "none left": [[0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1], [0, 1, 0, 0, 0, 0, 0]],
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("name", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "softsign"])
def test_recurrent_layer_with_a_mask(name: str, mask: list[list[int]], backwards: bool, activation: str) -> None:
    arguments = {"units": 5, "return_sequences": True, "return_state": True, "go_backwards": backwards}
    arguments["activation"] = activation
    theirs, mine = getattr(keras.layers, name)(**arguments), getattr(ours.layers, name)(**arguments)

    def call(layer: Any, tensors: list[Any]) -> Any:
        make = torch.tensor if isinstance(tensors[0], torch.Tensor) else tl.tensor
        return layer(tensors[0], mask=make(np.array(mask, bool)))

    agree(theirs, mine, [values(STEPS, 1)], call)


@pytest.mark.parametrize("name", ["SimpleRNN", "LSTM", "GRU"])
def test_recurrent_layer_from_a_state(name: str) -> None:
    arguments = {"units": 5, "return_state": True}
    count = 2 if name == "LSTM" else 1
    theirs, mine = getattr(keras.layers, name)(**arguments), getattr(ours.layers, name)(**arguments)
    arrays = [values(STEPS, 1), *(values((3, 5), 2 + i) for i in range(count))]
    agree(theirs, mine, arrays, lambda layer, xs: layer(xs[0], initial_state=xs[1:]))


@pytest.mark.parametrize("merge_mode", ["concat", "sum", "mul", "ave", None])
@pytest.mark.parametrize("name", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("sequences", [False, True])
def test_bidirectional(name: str, merge_mode: str | None, sequences: bool) -> None:
    def make(library: Any) -> Any:
        layer = getattr(library.layers, name)(5, return_sequences=sequences, return_state=sequences)
        return library.layers.Bidirectional(layer, merge_mode=merge_mode)

    theirs, mine = make(keras), make(ours)
    agree(theirs, mine, [values(STEPS, 1)], plain_call)
    expected, results = as_list(theirs(keras.Input((7, 4)))), as_list(mine(ours.Input((7, 4))))
    assert [tuple(t.shape) for t in results] == [tuple(t.shape) for t in expected]


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("sequences", [False, True])
def test_bidirectional_with_a_mask(mask: list[list[int]], sequences: bool) -> None:
    layers = [
        library.layers.Bidirectional(library.layers.GRU(5, return_sequences=sequences)) for library in (keras, ours)
    ]

    def call(layer: Any, tensors: list[Any]) -> Any:
        make = torch.tensor if isinstance(tensors[0], torch.Tensor) else tl.tensor
        return layer(tensors[0], mask=make(np.array(mask, bool)))

    agree(layers[0], layers[1], [values(STEPS, 1)], call)


def test_time_distributed() -> None:
    theirs = keras.layers.TimeDistributed(keras.layers.Conv2D(3, 2))
    mine = ours.layers.TimeDistributed(ours.layers.Conv2D(3, 2))
    agree(theirs, mine, [values((2, 3, 5, 6, 2), 1)], plain_call)
    assert mine(ours.Input((3, 5, 6, 2))).shape == theirs(keras.Input((3, 5, 6, 2))).shape


def test_embedding() -> None:
    theirs, mine = keras.layers.Embedding(10, 4), ours.layers.Embedding(10, 4)
    agree(theirs, mine, [np.array([[1, 2, 9], [0, 0, 3]])], plain_call)


@pytest.mark.parametrize("with_masks", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize(("name", "arguments"), [("Add", {}), ("Concatenate", {}), ("Concatenate", {"axis": 1})])
def test_masks_of_several_become_one(name: str, arguments: dict[str, Any], with_masks: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(0)
    masks = [rng.random((3, 7)) > 0.5 for _ in range(2)]
    results = []
    for library, make in ((keras, keras.ops.convert_to_tensor), (ours, tl.tensor)):
        layer = getattr(library.layers, name)(**arguments)
        inputs = [make(values(STEPS, seed)) for seed in (1, 2)]
        mask = layer.compute_mask(
            inputs, [make(m) if has_mask else None for m, has_mask in zip(masks, with_masks, strict=True)]
        )
        results.append(None if mask is None else np.asarray(mask.cpu()))
    np.testing.assert_array_equal(results[1], results[0])


def test_masks_travel_from_an_embedding() -> None:
    indices = np.array([[1, 2, 0, 0], [3, 0, 0, 0], [4, 5, 6, 7]])

    def make(library: Any) -> Any:
        layers = library.layers
        return library.Sequential(
            [
                layers.Embedding(10, 4, mask_zero=True),
                layers.Dropout(0.5),
                layers.LSTM(5, return_sequences=True),
                layers.Bidirectional(layers.GRU(3, return_sequences=True)),
                layers.TimeDistributed(layers.Dense(4)),
                layers.GlobalAveragePooling1D(),
            ]
        )

    agree(make(keras), make(ours), [indices], plain_call)


ATTENTION: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"value_dim": 3}, {}),
    ({"output_shape": 5, "use_bias": False}, {}),
    ({}, {"use_causal_mask": True}),
    ({}, {"return_attention_scores": True}),
    ({}, {"attention_mask": True}),
    ({}, {"attention_mask": True, "use_causal_mask": True, "return_attention_scores": True}),
    ({"sliding_window": 3}, {}),
    ({"sliding_window": 3}, {"use_causal_mask": True, "return_attention_scores": True}),
    ({"use_gate": True}, {}),
]


@pytest.mark.parametrize("heads", [2, (4, 4, 2)], ids=["MultiHead", "GroupQuery"])
@pytest.mark.parametrize(("arguments", "options"), ATTENTION)
def test_multi_head_attention(heads: Any, arguments: dict[str, Any], options: dict[str, Any]) -> None:
    if heads == 2:
        layers = [library.layers.MultiHeadAttention(2, 4, **arguments) for library in (keras, ours)]
    elif {"value_dim", "output_shape"} & set(arguments):
        return  # GroupQueryAttention has no such arguments
    else:
        layers = [library.layers.GroupQueryAttention(*heads, **arguments) for library in (keras, ours)]
    mask = np.random.default_rng(0).random((3, 7, 5)) > 0.4
    mask[:, :, 0] = True  # a fully masked query has no defined result: Keras has two, depending on the code path

    def call(layer: Any, tensors: list[Any]) -> Any:
        make = torch.tensor if isinstance(tensors[0], torch.Tensor) else tl.tensor
        call_options = {**options, "attention_mask": make(mask)} if "attention_mask" in options else options
        return layer(*tensors, **call_options)

    agree(layers[0], layers[1], [values((3, 7, 6), 1), values((3, 5, 6), 2), values((3, 5, 8), 3)], call)


@pytest.mark.parametrize("axes", [None, (1,), (2,), (1, 2)])
@pytest.mark.parametrize("scores", [False, True])
def test_attention_along_several_dims(axes: Any, scores: bool) -> None:
    layers = [library.layers.MultiHeadAttention(2, 4, attention_axes=axes) for library in (keras, ours)]
    arrays = [values((2, 3, 4, 5), 1), values((2, 3, 4, 5), 2)]
    agree(layers[0], layers[1], arrays, lambda layer, xs: layer(*xs, return_attention_scores=scores))
    if not scores:
        x, y = (library.Input((3, 4, 5)) for library in (keras, ours))
        assert layers[1](y, y).shape == layers[0](x, x).shape


def test_scored_attention_with_masks() -> None:
    rng = np.random.default_rng(0)
    masks = [rng.random((3, 7)) > 0.5, rng.random((3, 5)) > 0.5]
    for name in ("Attention", "AdditiveAttention"):
        layers = [getattr(library.layers, name)() for library in (keras, ours)]

        def call(layer: Any, tensors: list[Any]) -> Any:
            make = torch.tensor if isinstance(tensors[0], torch.Tensor) else tl.tensor
            options = {"use_causal_mask": True, "return_attention_scores": True}
            return layer(tensors, mask=[make(mask) for mask in masks], **options)

        agree(layers[0], layers[1], [values(STEPS, 1), values((3, 5, 4), 2)], call)


def test_reversible_embedding() -> None:
    for arguments in ({}, {"tie_weights": False}, {"logit_soft_cap": 2.0}):
        layers = [library.layers.ReversibleEmbedding(10, 4, **arguments) for library in (keras, ours)]
        agree(
            layers[0],
            layers[1],
            [np.array([[1, 2, 9], [0, 0, 3]])],
            lambda layer, xs: layer(layer(xs[0]), reverse=True),
        )


@pytest.mark.parametrize("name", ["Dense", "Conv2D"])
def test_spectral_normalization(name: str) -> None:
    arguments = {"units": 5} if name == "Dense" else {"filters": 5, "kernel_size": 2}
    layers = [
        library.layers.SpectralNormalization(getattr(library.layers, name)(**arguments), power_iterations=2)
        for library in (keras, ours)
    ]
    x = values((4, 6) if name == "Dense" else (2, 5, 5, 3), 1)
    agree(layers[0], layers[1], [x], plain_call)
    for layer, make in ((layers[0], torch.tensor), (layers[1], tl.tensor)):
        layer(make(x), training=True)
    for one, other in zip(layers[0].get_weights(), layers[1].get_weights(), strict=True):
        np.testing.assert_allclose(other, one, **TOLERANCE)


@pytest.mark.parametrize(
    ("name", "arguments", "shape"),
    [("EinsumDense", {"equation": "abc,cde->abde", "output_shape": (None, 30, 20)}, (2, 3, 40)),
     ("Dense", {"units": 600}, (2, 40)), ("MultiHeadAttention", {"num_heads": 30, "key_dim": 20}, (2, 3, 40))],
)  # fmt: skip
def test_kernels_start_with_the_same_spread(name: str, arguments: dict[str, Any], shape: tuple[int, ...]) -> None:
    layers = [getattr(library.layers, name)(**arguments) for library in (keras, ours)]
    for layer in layers:
        layer.build(shape, shape) if name == "MultiHeadAttention" else layer.build(shape)
    for one, other in zip(layers[0].get_weights(), layers[1].get_weights(), strict=True):
        np.testing.assert_allclose(np.abs(other).max(), np.abs(one).max(), rtol=0.01)


def test_attention_uses_the_masks_of_its_arguments() -> None:
    indices = np.array([[1, 2, 0, 0], [3, 0, 0, 0], [4, 5, 6, 7]])

    def make(library: Any) -> Any:
        x = library.Input((4,), dtype="int32")
        y = library.layers.Embedding(10, 6, mask_zero=True)(x)
        return library.Model(x, library.layers.MultiHeadAttention(2, 4)(y, y))

    def call(model: Any, tensors: list[Any]) -> Any:
        y = model(tensors[0])
        return y[:, :1]  # the others are padding of some sequence: fully masked queries

    agree(make(keras), make(ours), [indices], call)
