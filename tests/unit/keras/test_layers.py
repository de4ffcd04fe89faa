"""The layers of tallow.keras: formulas, modes, masks, weights, errors. tests/parity compares them with Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import keras
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError
from tallow.keras import layers
from tallow.keras.layers import normalization


@pytest.fixture(autouse=True)
def _names_start_over() -> None:
    keras.utils.clear_session()
    tl.manual_seed(0)


def normal(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def numbers(x: Any) -> np.ndarray[Any, Any]:
    return x.numpy(force=True)


# --------------------------------------------------------------------------------------------------------- every layer

VOLUME, IMAGE, STEPS, VECTOR = (4, 6, 5, 2), (6, 5, 4), (7, 4), (5,)
EVERY: list[tuple[Callable[[], Any], list[tuple[int, ...]]]] = [
    (lambda: layers.Dense(3, activation="relu"), [VECTOR]),
    (lambda: layers.Dense(3), [STEPS]),
    (lambda: layers.Conv1D(3, 2, strides=2, padding="causal"), [STEPS]),
    (lambda: layers.Conv2D(6, (3, 2), strides=(2, 1), padding="same", groups=2), [IMAGE]),
    (lambda: layers.Conv2D(3, 2, dilation_rate=2), [IMAGE]),
    (lambda: layers.Conv3D(3, 2, padding="same"), [VOLUME]),
    (lambda: layers.Conv3DTranspose(3, 2, strides=2), [VOLUME]),
    (lambda: layers.DepthwiseConv1D(2, depth_multiplier=2), [STEPS]),
    (lambda: layers.SeparableConv1D(5, 2), [STEPS]),
    (lambda: layers.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="e"), [STEPS]),
    (lambda: layers.EinsumDense("...x,xy->...y", 5, bias_axes="y"), [IMAGE]),
    (lambda: layers.DepthwiseConv2D(2, depth_multiplier=3, padding="same"), [IMAGE]),
    (lambda: layers.SeparableConv2D(5, 2), [IMAGE]),
    (lambda: layers.Conv2DTranspose(3, 3, strides=2), [IMAGE]),
    (lambda: layers.Conv1DTranspose(3, 3, strides=2, padding="same"), [STEPS]),
    (lambda: layers.MaxPooling1D(3, padding="same"), [STEPS]),
    (lambda: layers.MaxPooling2D(2, strides=1), [IMAGE]),
    (lambda: layers.AveragePooling1D(3), [STEPS]),
    (lambda: layers.AveragePooling2D((3, 2), padding="same"), [IMAGE]),
    (lambda: layers.MaxPooling3D(2), [VOLUME]),
    (lambda: layers.AveragePooling3D(2, padding="same"), [VOLUME]),
    (lambda: layers.AdaptiveMaxPooling2D((3, 2)), [IMAGE]),
    (lambda: layers.AdaptiveAveragePooling3D(2), [VOLUME]),
    (lambda: layers.GlobalAveragePooling3D(), [VOLUME]),
    (lambda: layers.GlobalAveragePooling1D(), [STEPS]),
    (lambda: layers.GlobalMaxPooling2D(keepdims=True), [IMAGE]),
    (lambda: layers.Flatten(), [IMAGE]),
    (lambda: layers.Reshape((-1, 2)), [IMAGE]),
    (lambda: layers.Permute((2, 1)), [STEPS]),
    (lambda: layers.RepeatVector(4), [VECTOR]),
    (lambda: layers.ZeroPadding1D((1, 2)), [STEPS]),
    (lambda: layers.ZeroPadding2D(((1, 0), (2, 3))), [IMAGE]),
    (lambda: layers.Cropping1D((1, 2)), [STEPS]),
    (lambda: layers.Cropping2D(1), [IMAGE]),
    (lambda: layers.ZeroPadding3D(1), [VOLUME]),
    (lambda: layers.Cropping3D((1, 1, (0, 1))), [VOLUME]),
    (lambda: layers.UpSampling3D((2, 1, 2)), [VOLUME]),
    (lambda: layers.UpSampling1D(3), [STEPS]),
    (lambda: layers.UpSampling2D((2, 3)), [IMAGE]),
    (lambda: layers.BatchNormalization(), [IMAGE]),
    (lambda: layers.LayerNormalization(axis=[1, 2]), [IMAGE]),
    (lambda: layers.GroupNormalization(2), [IMAGE]),
    (lambda: layers.RMSNormalization(), [STEPS]),
    (lambda: layers.UnitNormalization(), [STEPS]),
    (lambda: layers.Rescaling(2.0, 1.0), [IMAGE]),
    (lambda: layers.Normalization(), [STEPS]),
    (lambda: layers.Activation("softmax"), [STEPS]),
    (lambda: layers.ReLU(6.0), [STEPS]),
    (lambda: layers.LeakyReLU(), [STEPS]),
    (lambda: layers.ELU(), [STEPS]),
    (lambda: layers.Softmax(axis=(1, 2)), [STEPS]),
    (lambda: layers.PReLU(shared_axes=[1]), [STEPS]),
    (lambda: layers.Dropout(0.5), [STEPS]),
    (lambda: layers.SpatialDropout1D(0.5), [STEPS]),
    (lambda: layers.SpatialDropout2D(0.5), [IMAGE]),
    (lambda: layers.SpatialDropout3D(0.5), [VOLUME]),
    (lambda: layers.AlphaDropout(0.5), [STEPS]),
    (lambda: layers.GaussianNoise(0.5), [STEPS]),
    (lambda: layers.GaussianDropout(0.5), [STEPS]),
    (lambda: layers.RandomFlip(), [IMAGE]),
    (lambda: layers.RandomRotation(0.1, "nearest"), [IMAGE]),
    (lambda: layers.RandomZoom(0.2, (-0.1, 0.3), interpolation="nearest"), [IMAGE]),
    (lambda: layers.RandomTranslation(0.1, 0.2, "constant", fill_value=1.0), [IMAGE]),
    (lambda: layers.RandomContrast(0.2, seed=1), [IMAGE]),
    (lambda: layers.RandomBrightness((0.1, 0.2), value_range=(0, 1)), [IMAGE]),
    (lambda: layers.RandomShear(0.2, 0.1), [IMAGE]),
    (lambda: layers.RandomErasing(fill_value=0.0), [IMAGE]),
    (lambda: layers.RandomPerspective(scale=0.3), [IMAGE]),
    (lambda: layers.RandomElasticTransform(scale=0.5), [IMAGE]),
    (lambda: layers.RandomCrop(3, 2), [IMAGE]),
    (lambda: layers.Resizing(4, 7), [IMAGE]),
    (lambda: layers.CenterCrop(3, 7), [IMAGE]),
    (lambda: layers.ActivityRegularization(0.1), [STEPS]),
    (lambda: layers.Masking(), [STEPS]),
    (lambda: layers.Identity(), [STEPS]),
    (lambda: layers.Lambda(lambda x: x[:, :2] * 2), [STEPS]),
    (lambda: layers.Add(), [STEPS, STEPS]),
    (lambda: layers.Subtract(), [STEPS, STEPS]),
    (lambda: layers.Maximum(), [STEPS, STEPS, (1, 4)]),
    (lambda: layers.Concatenate(axis=1), [STEPS, (2, 4)]),
    (lambda: layers.Dot(axes=(2, 2)), [STEPS, (2, 4)]),
    (lambda: layers.SimpleRNN(3, return_sequences=True), [STEPS]),
    (lambda: layers.LSTM(3), [STEPS]),
    (lambda: layers.GRU(3, return_sequences=True), [STEPS]),
    (lambda: layers.GRU(3, reset_after=False, activation="relu"), [STEPS]),
    (lambda: layers.Bidirectional(layers.LSTM(3, return_sequences=True)), [STEPS]),
    (lambda: layers.RNN(layers.LSTMCell(3)), [STEPS]),
    (lambda: layers.RNN([layers.GRUCell(3), layers.SimpleRNNCell(4)], return_sequences=True), [STEPS]),
    (lambda: layers.ConvLSTM2D(2, 2, padding="same"), [VOLUME]),
    (lambda: layers.Bidirectional(layers.RNN(layers.GRUCell(3))), [STEPS]),
    (lambda: layers.TimeDistributed(layers.Dense(3)), [STEPS]),
    (lambda: layers.Pipeline([layers.Dense(3), layers.LayerNormalization()]), [STEPS]),
    (lambda: layers.SpectralNormalization(layers.Dense(3)), [STEPS]),
    (lambda: layers.Attention(use_scale=True, score_mode="concat"), [STEPS, STEPS]),
    (lambda: layers.AdditiveAttention(), [STEPS, STEPS, STEPS]),
    (lambda: layers.GroupQueryAttention(2, 4, 2, use_gate=True), [STEPS, STEPS]),
    (lambda: layers.MultiHeadAttention(2, 3), [STEPS, STEPS]),
]  # fmt: skip
NAMES = [f"{index}-{type(make()).__name__}" for index, (make, _) in enumerate(EVERY)]


def call(layer: Any, inputs: list[Any]) -> Any:
    if isinstance(layer, layers.MultiHeadAttention | layers.GroupQueryAttention):
        return layer(*inputs)
    return layer(inputs if len(inputs) > 1 else inputs[0])


@pytest.mark.parametrize(("make", "shapes"), EVERY, ids=NAMES)
def test_the_symbolic_shape_is_that_of_the_result(make: Callable[[], Any], shapes: list[tuple[int, ...]]) -> None:
    layer = make()
    symbolic = call(layer, [keras.Input(shape) for shape in shapes])
    result = call(layer, [tl.tensor(normal(3, *shape)) for shape in shapes])
    assert symbolic.shape[0] is None
    assert symbolic.shape[1:] == tuple(result.shape[1:])
    assert result.shape[0] == 3


@pytest.mark.parametrize(("make", "shapes"), EVERY, ids=NAMES)
def test_a_copy_with_equal_weights_gives_equal_results(make: Callable[[], Any], shapes: list[tuple[int, ...]]) -> None:
    layer = make()
    inputs = [tl.tensor(normal(3, *shape)) for shape in shapes]
    expected = call(layer, inputs)
    copy = type(layer).from_config(layer.get_config())
    call(copy, inputs)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(numbers(call(copy, inputs)), numbers(expected))
    assert copy.name == layer.name


@pytest.mark.parametrize(("make", "shapes"), EVERY, ids=NAMES)
def test_every_weight_gets_a_gradient(make: Callable[[], Any], shapes: list[tuple[int, ...]]) -> None:
    layer = make()
    inputs = [tl.tensor(normal(3, *shape)).requires_grad_() for shape in shapes]
    (call(layer, inputs) ** 2).sum().backward()
    assert all(x.grad is not None for x in inputs)
    assert all(weight.grad is not None and weight.grad.shape == weight.shape for weight in layer.trainable_weights)
    assert sorted(map(id, layer.parameters())) == sorted(map(id, layer.trainable_weights))


@pytest.mark.parametrize(("make", "shapes"), EVERY, ids=NAMES)
def test_a_state_dict_restores_everything(make: Callable[[], Any], shapes: list[tuple[int, ...]]) -> None:
    inputs = [tl.tensor(normal(3, *shape)) for shape in shapes]
    one, other = make(), make()
    expected = call(one, inputs)
    call(other, inputs)
    other.load_state_dict(one.state_dict())
    np.testing.assert_array_equal(numbers(call(other, inputs)), numbers(expected))


# ------------------------------------------------------------------------------------------------------------ formulas


def test_dense_is_its_formula() -> None:
    layer = layers.Dense(3, activation="relu")
    x = normal(4, 5)
    layer.build((None, 5))
    w, b = normal(5, 3, seed=1), normal(3, seed=2)
    layer.set_weights([w, b])
    np.testing.assert_allclose(numbers(layer(x)), np.maximum(x @ w + b, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("padding", ["valid", "same"])
def test_conv2d_is_a_sum_over_windows(padding: str) -> None:
    layer = layers.Conv2D(2, 3, padding=padding, strides=2)
    x = normal(1, 6, 7, 3)
    y = numbers(layer(x))
    w, b = layer.get_weights()
    # "same": ceil(n / stride) windows; half of the padding they need comes before, the rest after.
    pads = [((1 if n % 2 else 0) if padding == "same" else 0, 1 if padding == "same" else 0) for n in (6, 7)]
    padded = np.pad(x[0], [*pads, (0, 0)])
    for i in range(y.shape[1]):
        for j in range(y.shape[2]):
            window = padded[2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
            np.testing.assert_allclose(y[0, i, j], np.einsum("hwc,hwco->o", window, w) + b, rtol=1e-4, atol=1e-5)


def test_average_pooling_leaves_padding_out() -> None:
    x = np.arange(1.0, 5.0, dtype=np.float32).reshape(1, 2, 2, 1)
    # Windows of 2 x 2 with stride 1: padding comes after, so the last window of a row has one column.
    result = numbers(layers.AveragePooling2D(2, strides=1, padding="same")(x))[0, :, :, 0]
    np.testing.assert_allclose(result, [[2.5, 3.0], [3.5, 4.0]])


def test_layer_normalization_over_a_middle_axis() -> None:
    x = normal(2, 5, 3)
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(numbers(layers.LayerNormalization(axis=1)(x)), expected, rtol=1e-4, atol=1e-5)


def test_batch_normalization_follows_its_batches() -> None:
    layer = layers.BatchNormalization()
    x = 3 * normal(50, 4) + 2
    y = numbers(layer(x, training=True))
    np.testing.assert_allclose(y, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(layer.moving_mean.numpy(), 0.01 * x.mean(0), rtol=1e-4)
    np.testing.assert_allclose(layer.moving_variance.numpy(), 0.99 + 0.01 * x.var(0), rtol=1e-4)
    mean, variance = (weight.numpy() for weight in layer.non_trainable_weights)
    np.testing.assert_allclose(numbers(layer(x)), (x - mean) / np.sqrt(variance + 1e-3), rtol=1e-4, atol=1e-4)


def test_batch_normalization_that_is_frozen_keeps_its_statistics() -> None:
    layer = layers.BatchNormalization()
    layer.build((None, 4))
    layer.trainable = False
    x = normal(8, 4)
    np.testing.assert_allclose(numbers(layer(x, training=True)), x / np.sqrt(1 + 1e-3), rtol=1e-5)
    assert not layer.moving_mean.numpy().any()


def test_batch_normalization_of_one_value_and_with_a_mask() -> None:
    np.testing.assert_allclose(numbers(layers.BatchNormalization()(normal(1, 3), training=True)), 0)
    x, mask = normal(2, 3, 2), np.array([[1, 1, 0], [1, 0, 0]], bool)
    y = numbers(layers.BatchNormalization()(x, training=True, mask=tl.tensor(mask)))
    seen = x[mask]
    np.testing.assert_allclose(y[mask], (seen - seen.mean(0)) / np.sqrt(seen.var(0) + 1e-3), rtol=1e-4, atol=1e-5)


def test_lstm_is_its_formula() -> None:
    layer = layers.LSTM(2, return_sequences=True)
    x = normal(1, 4, 3)
    y = numbers(layer(x))
    kernel, recurrent, bias = layer.get_weights()
    assert bias.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]  # unit_forget_bias
    h = c = np.zeros(2)
    for t in range(4):
        i, f, g, o = np.split(x[0, t] @ kernel + h @ recurrent + bias, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        np.testing.assert_allclose(y[0, t], h, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("options", [{}, {"go_backwards": True}, {"use_bias": False}])
def test_all_steps_at_once_are_the_steps_one_by_one(name: str, options: dict[str, Any]) -> None:
    at_once = getattr(layers, name)(3, return_sequences=True, **options)
    one_by_one = getattr(layers, name)(3, return_sequences=True, activation=lambda x: tl.tanh(x), **options)
    x = normal(2, 5, 4)
    for layer in (at_once, one_by_one):
        layer.build(x.shape)
        layer.set_weights([normal(*w.shape, seed=i) for i, w in enumerate(layer.weights)])
    np.testing.assert_allclose(numbers(at_once(x)), numbers(one_by_one(x)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("axis", [-1, 1, None])
def test_normalization_adapts_part_by_part(axis: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalization, "AT_ONCE", 50)  # two and a half rows
    x = np.random.default_rng(0).integers(0, 256, (7, 5, 4), np.uint8)
    layer = layers.Normalization(axis=axis)
    layer.adapt(x)
    kept = {-1: (0, 1), 1: (0, 2), None: (0, 1, 2)}[axis]
    np.testing.assert_allclose(layer.mean.numpy(), x.mean(axis=kept), rtol=1e-6)
    np.testing.assert_allclose(layer.variance.numpy(), x.var(axis=kept), rtol=1e-6)
    with pytest.raises(ArgumentError, match="data is empty"):
        layer.adapt(x[:0])


def test_normalization_adapts() -> None:
    x = 2 * normal(30, 3) + 1
    layer = layers.Normalization()
    layer.adapt(x)
    y = numbers(layer(x))
    np.testing.assert_allclose(y, (x - x.mean(0)) / x.std(0), rtol=1e-3, atol=1e-4)
    back = layers.Normalization(mean=x.mean(0), variance=x.var(0), invert=True)
    np.testing.assert_allclose(numbers(back(y)), x, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("make", [
    lambda **k: layers.Conv2D(3, 2, padding="same", **k),
    lambda **k: layers.DepthwiseConv2D(2, **k),
    lambda **k: layers.Conv2DTranspose(3, 2, strides=2, **k),
    lambda **k: layers.MaxPooling2D(2, padding="same", **k),
    lambda **k: layers.AveragePooling2D(2, padding="same", **k),
    lambda **k: layers.UpSampling2D(2, **k),
    lambda **k: layers.ZeroPadding2D(1, **k),
    lambda **k: layers.GlobalMaxPooling2D(**k),
])  # fmt: skip
def test_channels_may_be_first(make: Callable[..., Any]) -> None:
    last, first = make(), make(data_format="channels_first")
    x = normal(2, 5, 6, 4)
    y = numbers(last(x))
    x_first = np.moveaxis(x, -1, 1)
    first(x_first)
    first.set_weights(last.get_weights())
    result = numbers(first(x_first))
    np.testing.assert_allclose(np.moveaxis(result, 1, -1), y, rtol=1e-5, atol=1e-6)
    assert first(keras.Input(x_first.shape[1:])).shape[1:] == result.shape[1:]


# --------------------------------------------------------------------------------------------------------------- modes


def test_layers_start_in_inference_mode_and_a_call_may_ask_for_another() -> None:
    seen = []

    class Watch(layers.Layer):
        def call(self, x: Any, training: Any = None) -> Any:
            seen.append(training)
            return x

    class Outer(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Watch()

        def call(self, x: Any) -> Any:
            return self.inner(x)

    outer, x = Outer(), tl.ones(1)
    outer(x)
    outer(x, training=True)
    outer(x)
    outer.train()
    outer(x)
    outer(x, training=False)
    outer.inner(x, training=False)
    outer(x)
    assert seen == [False, True, False, True, False, False, True]


def test_dropout_drops_in_training_only() -> None:
    layer = layers.Dropout(0.25)
    x = tl.ones(100, 100)
    assert layer(x) is x
    y = numbers(layer(x, training=True))
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    assert not numbers(layers.Dropout(1.0)(x, training=True)).any()
    rows = numbers(layers.Dropout(0.5, noise_shape=(None, 1))(x, training=True))
    assert (rows == rows[:, :1]).all()
    channels = numbers(layers.SpatialDropout2D(0.5)(tl.ones(4, 5, 5, 8), training=True))
    assert (channels == channels[:, :1, :1]).all()
    assert 0 < (channels == 0).mean() < 1


@pytest.mark.parametrize("make", [lambda: layers.Dropout(0.5, seed=3), lambda: layers.GaussianNoise(1.0, seed=3),
                                  lambda: layers.GaussianDropout(0.5, seed=3),
                                  lambda: layers.RandomRotation(0.5, seed=3),
                                  *[lambda options=options: layers.TimeDistributed(layers.LSTM(4, seed=3, **options))
                                    for options in ({"dropout": 0.5}, {"recurrent_dropout": 0.5})]])  # fmt: skip
def test_a_seed_fixes_the_noise(make: Callable[[], Any]) -> None:
    x = tl.tensor(normal(3, 5, 5, 2))
    one, other = make(), make()
    other(x), one(x)
    other.set_weights(one.get_weights())
    first = numbers(one(x, training=True))
    np.testing.assert_array_equal(numbers(other(x, training=True)), first)
    assert (numbers(one(x, training=True)) != first).any()


def test_images_change_in_training_only_and_independently() -> None:
    image = normal(6, 5, 2)
    x = tl.tensor(np.stack([image] * 40))
    for layer in (layers.RandomFlip("horizontal"), layers.RandomRotation(0.2), layers.RandomContrast(0.5, (-9, 9))):
        np.testing.assert_array_equal(numbers(layer(x)), numbers(x))
        changed = numbers(layer(x, training=True))
        assert 2 <= len({picture.tobytes() for picture in changed}) <= 40
        assert np.isfinite(changed).all()
    flipped = numbers(layers.RandomFlip("horizontal")(x, training=True))
    assert {picture.tobytes() for picture in flipped} == {image.tobytes(), image[:, ::-1].tobytes()}
    assert layers.RandomFlip()(tl.tensor(image), training=True).shape == (6, 5, 2)
    assert layers.RandomFlip()(tl.ones(2, 3, 3, 1, dtype=tl.uint8)).dtype is tl.float32


def test_contrast_increases_and_decreases() -> None:
    x = tl.tensor([0.0, 2.0]).reshape(1, 2, 1, 1).expand(500, 2, 1, 1)
    changed = numbers(layers.RandomContrast(0.5, value_range=(-5, 5))(x, training=True))
    width = (changed[:, 1] - changed[:, 0]) / 2  # 1 ± 0.5, around the mean 1
    np.testing.assert_allclose(changed.mean(1), 1, rtol=1e-6)
    assert 0.5 <= width.min() < 0.55
    assert 1.45 < width.max() <= 1.5


@pytest.mark.parametrize("make", [lambda: layers.RandomFlip("left"), lambda: layers.RandomRotation(2.0),
                                  lambda: layers.RandomZoom((0.1,)), lambda: layers.RandomContrast(-0.1),
                                  lambda: layers.RandomTranslation(0.1, 0.1, fill_mode="wrap"),
                                  lambda: layers.RandomBrightness(0.1, value_range=255)])  # fmt: skip
def test_invalid_image_augmentations(make: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError, match=r"random_\w+: \w+="):
        make()


# --------------------------------------------------------------------------------------------------------------- masks


def test_the_configuration_of_a_recurrent_layer_has_its_defaults() -> None:
    config = layers.GRU(3, dropout=0.5).get_config()
    assert {"units": 3, "activation": "tanh", "dropout": 0.5, "reset_after": True, "return_state": False}.items() <= (
        config.items()
    )


def test_masks_of_merged_sequences() -> None:
    one, other = tl.tensor([[True, False, False]]), tl.tensor([[True, True, False]])
    x, y = tl.ones(1, 3, 2), tl.ones(1, 3, 4)
    either = [[True, True, False]]
    assert layers.Add().compute_mask([x, x], [one, other]).tolist() == either
    assert layers.Add().compute_mask([x, x], [one, None]) is None
    assert layers.Concatenate().compute_mask([x, y], [one, other]).tolist() == either
    assert layers.Concatenate().compute_mask([x, y], [one, None]).all()
    behind = layers.Concatenate(axis=1).compute_mask([x, x], [one, None])
    assert behind.tolist() == [[True, False, False, True, True, True]]


@pytest.mark.parametrize("name", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("activation", ["tanh", "softsign"])
def test_masked_steps_have_no_effect(name: str, activation: str) -> None:
    layer = getattr(layers, name)(3, activation=activation)
    x = normal(1, 6, 4)
    kept_axes = np.array([0, 1, 1, 0, 1, 0], bool)
    alone = numbers(layer(x[:, kept_axes]))
    np.testing.assert_allclose(numbers(layer(x, mask=tl.tensor(kept_axes[None]))), alone, rtol=1e-5, atol=1e-6)
    both = np.concatenate([x, normal(1, 6, 4, seed=1)])
    mask = np.stack([kept_axes, np.ones(6, bool)])
    result = numbers(layer(both, mask=tl.tensor(mask)))
    np.testing.assert_allclose(result[:1], alone, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(result[1:], numbers(layer(both[1:])), rtol=1e-5, atol=1e-6)


def test_an_embedding_passes_a_padding_mask_on() -> None:
    model = keras.Sequential([layers.Embedding(9, 4, mask_zero=True), layers.Dense(4), layers.LSTM(3)])
    padded, plain = np.array([[0, 0, 5, 6]]), np.array([[5, 6]])
    np.testing.assert_allclose(numbers(model(padded)), numbers(model(plain)), rtol=1e-5, atol=1e-6)


def test_a_layer_that_drops_a_mask_warns() -> None:
    masked = layers.Embedding(9, 4, mask_zero=True)(np.array([[1, 0]]))
    with pytest.warns(UserWarning, match="flatten: the layer does not support masks"):
        layers.Flatten()(masked)


def test_masking_and_pooling() -> None:
    x = normal(1, 4, 3)
    x[0, 2:] = 7.0
    masked = layers.Masking(7.0)(x)
    np.testing.assert_array_equal(numbers(masked)[0, 2:], 0)
    pooled = numbers(layers.GlobalAveragePooling1D()(masked))
    np.testing.assert_allclose(pooled[0], x[0, :2].mean(0), rtol=1e-5)


def test_states_carry_over() -> None:
    x = normal(2, 6, 3)
    with_sequences = layers.GRU(4, return_sequences=True)
    y = numbers(with_sequences(x))
    halves = layers.GRU(4, return_sequences=True, stateful=True)
    halves.build(x.shape)
    halves.set_weights(with_sequences.get_weights())
    parts = [numbers(halves(x[:, :3])), numbers(halves(x[:, 3:]))]
    np.testing.assert_allclose(np.concatenate(parts, 1), y, rtol=1e-5, atol=1e-6)
    halves.reset_states()
    np.testing.assert_allclose(numbers(halves(x[:, :3])), y[:, :3], rtol=1e-5, atol=1e-6)


def test_recurrent_dropout_keeps_the_mean_of_a_layer_without_state() -> None:
    layer = layers.SimpleRNN(200, activation="linear", recurrent_dropout=0.5, dropout=0.3)
    x = np.ones((4, 2, 8), np.float32)
    first = numbers(layer(x, training=True))
    assert (first != numbers(layer(x))).any()
    assert first.shape == (4, 200)


def test_causal_attention() -> None:
    layer = layers.MultiHeadAttention(2, 3)
    x = normal(1, 5, 4)
    y = numbers(layer(x, x, use_causal_mask=True))
    changed = x.copy()
    changed[:, 3:] += 1
    np.testing.assert_allclose(numbers(layer(changed, changed, use_causal_mask=True))[:, :3], y[:, :3], rtol=1e-5)
    _, scores = layer(x, x, use_causal_mask=True, return_attention_scores=True)
    np.testing.assert_allclose(numbers(scores).sum(-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(np.triu(numbers(scores), 1), 0)


# ------------------------------------------------------------------------------------------------------------- weights


def test_names_and_paths_of_weights() -> None:
    class Mine(layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.scale = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="gain")
            self.count = self.add_weight(shape=(), initializer="zeros", trainable=False, name="count")
            self.inner = [layers.Dense(2), "no layer", layers.Dense(2)]
            self.more = []
            self.more.append(layers.Dense(2))

        def call(self, x: Any) -> Any:
            for layer in (self.inner[0], self.inner[-1], *self.more):
                x = layer(x * self.scale if x.shape[-1] == 3 else x)
            return x

    layer = Mine()
    assert layer.weights == []
    assert layer(np.ones((1, 3))).shape == (1, 2)
    assert layer.name == "mine"
    assert [w.name for w in layer.weights[:2]] == ["gain", "count"]
    assert list(layer.state_dict())[:3] == ["scale", "count", "inner.0.kernel"]
    assert len(layer.trainable_weights) == 7
    assert [w.name for w in layer.non_trainable_weights] == ["count"]
    assert layer.count_params() == 4 + 8 + 6 + 6


def test_set_weights_takes_all_or_nothing() -> None:
    layer = layers.Dense(2)
    layer.build((None, 3))
    before = layer.get_weights()
    with pytest.raises(ShapeError, match=r"(?s)kernel is \(3, 2\), got \(2, 3\).*bias is \(2,\), got \(3,\)"):
        layer.set_weights([np.zeros((2, 3)), np.zeros(3)])
    with pytest.raises(ShapeError, match="expected 2 weights, got 1"):
        layer.set_weights([np.ones((3, 2))])
    for one, other in zip(layer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)
    layer.kernel.assign(np.ones((3, 2))).assign_add(np.ones((3, 2)))
    np.testing.assert_array_equal(layer.get_weights()[0], 2)
    with pytest.raises(ShapeError, match="kernel: cannot assign"):
        layer.kernel.assign(np.ones(3))


def test_frozen_layers_learn_nothing() -> None:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4), layers.Dense(2)])
    model.layers[0].trainable = False
    assert model.trainable_weights == model.layers[1].weights
    assert len(model.non_trainable_weights) == 2
    model(tl.ones(1, 3)).sum().backward()
    assert all(w.grad is None for w in model.layers[0].weights)
    model.trainable = True
    assert len(model.trainable_weights) == 4
    late = layers.Dense(2, trainable=False)
    late.build((None, 3))
    assert not late.kernel.requires_grad
    assert late.trainable_weights == []


def test_penalties() -> None:
    layer = layers.Dense(2, kernel_regularizer=keras.regularizers.L1L2(0.1, 0.01), activity_regularizer="l2")
    x = normal(4, 3)
    y = numbers(layer(x))
    kernel = layer.get_weights()[0]
    expected = [0.01 * (y**2).sum() / 4, 0.1 * np.abs(kernel).sum() + 0.01 * (kernel**2).sum()]
    np.testing.assert_allclose([float(loss.detach()) for loss in layer.losses], expected, rtol=1e-5)


def test_a_loss_that_a_layer_adds_is_of_the_last_call() -> None:
    class Adds(layers.Layer):
        def call(self, x: Any) -> Any:
            self.add_loss(x.sum())
            return x

    model = keras.Sequential([keras.Input((2,)), Adds()])
    for _ in range(2):
        model(tl.ones(1, 2))
        assert [float(loss) for loss in model.losses] == [2.0]


def test_embedding_refuses_indices_out_of_range() -> None:
    layer = layers.Embedding(5, 2)
    with pytest.raises(ArgumentError, match="embedding: indices from -1 to 7; input_dim=5"):
        layer(np.array([[-1, 7]]))
    inputs = normal(5, 2)
    np.testing.assert_array_equal(numbers(layers.Embedding(5, 2, weights=[inputs])(np.array([[3]])))[0, 0], inputs[3])


def test_inputs_of_other_dtypes() -> None:
    layer = layers.Dense(2)
    for x in (np.ones((1, 3)), np.ones((1, 3), np.float16), np.ones((1, 3), np.uint8), np.ones((1, 3), np.int64)):
        assert layer(x).dtype is tl.float32
    assert layers.Dense(2, dtype="float64")(np.ones((1, 3), np.float32)).dtype is tl.float64
    assert layers.Conv2D(2, 2)(np.ones((1, 3, 3, 1), np.uint8)).dtype is tl.float32


# ----------------------------------------------------------------------------------------------------- custom layers


def test_a_layer_of_ones_own_has_its_shape_found_by_running_it() -> None:
    class Pairs(layers.Layer):
        def call(self, x: Any) -> Any:
            return x[:, ::2] + x[:, 1::2], x.sum(-1)

    pairs, total = Pairs()(keras.Input((8, 3)))
    assert (pairs.shape, total.shape) == ((None, 4, 3), (None, 8))
    pairs, total = Pairs()(keras.Input((None, 3)))
    assert (pairs.shape, total.shape) == ((None, None, 3), (None, None))
    fixed, _ = Pairs()(keras.Input(batch_shape=(5, 8, 3)))
    assert fixed.shape == (5, 4, 3)


def test_a_layer_of_ones_own_is_configured_by_its_arguments() -> None:
    class Scaled(layers.Layer):
        def __init__(self, factor: float, inner: Any = None, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.factor = factor
            self.inner = inner

        def call(self, x: Any) -> Any:
            return self.inner(x) * self.factor

    layer = Scaled(2.0, inner=layers.Dense(3, kernel_initializer="ones"), name="mine")
    config = layer.get_config()
    assert config["factor"] == 2.0
    assert config["inner"]["class_name"] == "Dense"
    copy = Scaled.from_config(config)
    assert copy.name == "mine"
    np.testing.assert_array_equal(numbers(copy(np.ones((1, 2)))), 4.0)


def test_errors_in_shape_inference_say_so() -> None:
    class Wrong(layers.Layer):
        def call(self, x: Any) -> Any:
            return x @ tl.ones(7, 7)

    with pytest.raises(ShapeError) as caught:
        Wrong()(keras.Input((3,)))
    assert "wrong was called with zeros" in caught.value.__notes__[0]


# -------------------------------------------------------------------------------------------------------------- errors

BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: layers.Dense(0), ArgumentError, "dense: units must be a positive integer, got 0"),
    (lambda: layers.Dense(2.5), ArgumentError, "units"),  # type: ignore[arg-type]
    (lambda: layers.Dense(2, activation="rellu"), ArgumentError, "'rellu' is not the name of an activation(?s:.)*relu"),
    (lambda: layers.Dense(2, unit=3), ArgumentTypeError, "Dense: unexpected arguments: unit"),
    (lambda: layers.Dense(2, kernel_constraint="max_nor"), ArgumentError, "max_norm"),
    (lambda: layers.Dense(2, kernel_initializer="glorot")(np.ones((1, 2))), ArgumentError, "glorot_uniform"),
    (lambda: layers.Conv2D(2, (3, 3, 3)), ArgumentError, r"kernel_size=\(3, 3, 3\)(?s:.)*tuple of 2"),
    (lambda: layers.Conv2D(2, 3, padding="causal"), ArgumentError, "padding='causal'"),
    (lambda: layers.Conv2D(2, 3, data_format="NCHW"), ArgumentError, "channels_last"),
    (lambda: layers.Conv2D(3, 3, groups=2), ArgumentError, "multiple of groups"),
    (lambda: layers.Conv2D(2, 3, strides=2, dilation_rate=2), ArgumentError, "cannot both be greater than 1"),
    (lambda: layers.Dropout(1.5), ArgumentError, "dropout: rate must be from 0 to 1"),
    (lambda: layers.Reshape((-1, -1)), ArgumentError, "more than one -1"),
    (lambda: layers.Reshape((4, 4))(keras.Input((15,))), ShapeError, "cannot reshape"),
    (lambda: layers.Permute((0, 1)), ArgumentError, "1 to 2"),
    (lambda: layers.Bidirectional(layers.Dense(2)), ArgumentTypeError, "not a recurrent layer"),
    (lambda: layers.Bidirectional(layers.LSTM(2), merge_mode="plus"), ArgumentError, "merge_mode"),
    (lambda: layers.Dense(2)(np.ones(3)), ShapeError, "dense: expected 2 dims or more, got 1"),
    (lambda: layers.LSTM(2)(np.ones((3, 2))), ShapeError, "lstm: expected 3 dims, got 2"),
    (lambda: layers.Conv2D(2, 5)(keras.Input((3, 3, 1))), ArgumentError, "window of 5 is larger"),
    (lambda: layers.Dense(2)(keras.Input((None,))), ShapeError, "must be known"),
    (lambda: layers.Add()(np.ones((1, 2))), ArgumentError, "list of"),
    (lambda: layers.Subtract()([keras.Input((2,))] * 3), ArgumentError, "list of 2"),
    (lambda: layers.Add()([keras.Input((2,)), keras.Input((3,))]), ShapeError, "differ in axis 1"),
    (lambda: layers.Concatenate()([keras.Input((2, 2)), keras.Input((3, 2))]), ShapeError, "same in all axes"),
    (lambda: layers.Dot(1)([keras.Input((2,)), keras.Input((3,))]), ShapeError, "differ: 2, 3"),
    (lambda: layers.LSTM(2)(np.ones((1, 2, 3)), initial_state=[tl.ones(1, 2)]), ArgumentError, "needs 2 tensors"),
    (lambda: layers.Lambda(3), ArgumentTypeError, "not callable"),  # type: ignore[arg-type]
    (lambda: keras.Input(784), ArgumentError, "784 is not a shape"),  # type: ignore[arg-type]
    (lambda: keras.Input(), ArgumentError, "pass either shape or batch_shape"),
    (lambda: layers.Dense(2).count_params(), ArgumentError, "not built"),
]


@pytest.mark.parametrize(("make", "kind", "message"), BAD, ids=[m[:30] for _, _, m in BAD])
def test_errors_name_the_layer_and_what_was_wrong(make: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_a_layer_that_is_built_refuses_another_width() -> None:
    layer = layers.Dense(2, name="mine")
    layer(np.ones((1, 64)))
    with pytest.raises(ShapeError, match=r"mine: expected last axis of size 64, got 32: shape \(1, 32\)"):
        layer(np.ones((1, 32)))
    with pytest.raises(ShapeError, match="mine: expected last axis of size 64, got 32"):
        layer(keras.Input((32,)))


@pytest.mark.parametrize("use", [np.asarray, bool, list, float, tl.relu])
def test_symbolic_tensors_have_no_values(use: Callable[[Any], Any]) -> None:
    with pytest.raises((ArgumentTypeError, TypeError)):
        use(keras.Input((2,)))


# --------------------------------------------------------------------------------------------- initializers, utilities


def test_orthogonal_kernels_and_identity() -> None:
    q = keras.initializers.Orthogonal(gain=2.0)((6, 4)).numpy()
    np.testing.assert_allclose(q.T @ q, 4 * np.eye(4), atol=1e-5)
    np.testing.assert_array_equal(keras.initializers.get("identity")((3, 3)).numpy(), np.eye(3))
    np.testing.assert_array_equal(keras.initializers.Constant([1.0, 2.0])((3, 2)).numpy(), [[1, 2]] * 3)
    with pytest.raises(ArgumentError, match="glorot_uniform"):
        keras.initializers.get("glorot_unifrom")


def test_a_seeded_initializer_repeats_itself() -> None:
    draw = keras.initializers.HeNormal(seed=1)
    np.testing.assert_array_equal(draw((4, 5)).numpy(), draw((4, 5)).numpy())
    free = keras.initializers.HeNormal()
    assert (free((4, 5)).numpy() != free((4, 5)).numpy()).any()


def test_to_categorical() -> None:
    np.testing.assert_array_equal(keras.utils.to_categorical([[1], [0]], 3), [[0, 1, 0], [1, 0, 0]])
    assert keras.utils.to_categorical(np.zeros((2, 4), int)).shape == (2, 4, 1)
    with pytest.raises(ArgumentError, match="labels from -1 to 3"):
        keras.utils.to_categorical([-1, 3])


def test_pad_sequences() -> None:
    sequences = [[1, 2, 3], [4], []]
    pad = keras.preprocessing.sequence.pad_sequences
    assert pad is keras.utils.pad_sequences
    np.testing.assert_array_equal(pad(sequences), [[1, 2, 3], [0, 0, 4], [0, 0, 0]])
    np.testing.assert_array_equal(pad(sequences, 2), [[2, 3], [0, 4], [0, 0]])
    behind = pad(sequences, 2, padding="post", truncating="post", value=9)
    np.testing.assert_array_equal(behind, [[1, 2], [4, 9], [9, 9]])
    with pytest.raises(ArgumentError, match="item 1 is not a sequence"):
        pad([[1], 2])


def test_set_random_seed_fixes_weights_and_noise() -> None:
    values = []
    for _ in range(2):
        keras.utils.set_random_seed(7)
        model = keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dropout(0.5)])
        values.append(numbers(model(tl.ones(5, 4), training=True)))
    np.testing.assert_array_equal(values[0], values[1])


def test_config() -> None:
    assert keras.config.floatx() == keras.backend.floatx() == "float32"
    keras.config.set_floatx("float64")
    try:
        assert layers.Dense(2)(np.ones((1, 2))).dtype is tl.float64
    finally:
        keras.config.set_floatx("float32")
    with pytest.raises(ArgumentError):
        keras.config.set_image_data_format("NHWC")


def test_images_that_are_moved_keep_what_is_the_same_everywhere() -> None:
    """A uniform image does not change when moved, so a wrong fill value would show."""
    flat = tl.full((2, 8, 9, 3), 0.4)
    for layer in (layers.RandomElasticTransform(value_range=(0, 1)), layers.RandomShear(0.3, 0.3)):
        np.testing.assert_allclose(numbers(layer(flat, training=True)), 0.4, rtol=1e-5)
    seen = numbers(layers.RandomPerspective((1, 1), scale=0.5, fill_value=1.0)(flat, training=True))
    assert (seen[:, 4, 4] - 0.4 < 1e-5).all()
    assert (np.abs(seen[:, 0, 0] - 0.4) > 1e-3).all()  # the corner has moved


def test_erased_rectangles_have_the_requested_size() -> None:
    image = tl.ones(50, 20, 30, 3)
    erased = numbers(layers.RandomErasing(scale=(0.25, 0.25), fill_value=0.0, seed=0)(image, training=True)) == 0
    rows, columns = erased.any((2, 3)).sum(1), erased.any((1, 3)).sum(1)
    assert rows.max() == 10  # half of each side, unless an edge cuts it
    assert columns.max() == 14
    assert (erased.sum((1, 2, 3)) == 3 * rows * columns).all()
    assert not (numbers(layers.RandomErasing(factor=0.0, fill_value=0.0)(image, training=True)) == 0).any()


def test_attention_with_a_seed_drops_the_same_scores_again() -> None:
    x = tl.tensor(normal(2, 7, 4))
    attention_layers = [layers.MultiHeadAttention(2, 3, dropout=0.5, seed=seed) for seed in (1, 1, 2)]
    for layer in attention_layers:
        layer(x, x)
        layer.set_weights(attention_layers[0].get_weights())
    first, again, other = (numbers(layer(x, x, training=True)) for layer in attention_layers)
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    assert not np.allclose(first, numbers(attention_layers[0](x, x, training=True)))  # and continues from call to call


class Counting(layers.Layer):
    """Counts its calls, and scales by a trained number."""

    def __init__(self) -> None:
        super().__init__(name="counting")
        self.calls = keras.Variable(0, dtype="int32", trainable=False, name="calls")
        self.scale = keras.Variable(2.0, name="scale")
        self.shift = self.add_weight(shape=(2,), initializer="ones", name="shift")

    def call(self, x: Any) -> Any:
        self.calls.assign_add(1)
        return x * self.scale + self.shift


def test_a_variable_of_a_layer_is_one_of_its_weights() -> None:
    layer = Counting()
    assert layer(np.ones((1, 2), np.float32)).tolist() == [[3.0, 3.0]]
    assert [variable.name for variable in layer.trainable_variables] == ["scale", "shift"]
    assert [int(variable.value) for variable in layer.non_trainable_variables] == [1]
    assert layer.shift.path == "counting/shift"
    assert set(layer.state_dict()) == {"calls", "scale", "shift"}


def test_a_variable_is_made_from_values_or_an_initializer() -> None:
    variable = keras.Variable([1.0, 2.0], name="v")
    variable.assign_add([1.0, 1.0])
    assert (variable.numpy().tolist(), variable.name, variable.path, variable.trainable) == ([2.0, 3.0], "v", "v", True)
    assert keras.Variable("ones", (2, 3), dtype="float16").dtype == tl.float16
    assert keras.Variable(keras.initializers.Constant(4), shape=(2,)).tolist() == [4.0, 4.0]
    assert not keras.Variable(3).trainable
    values = np.zeros(2, np.float32)
    keras.Variable(values).assign([5.0, 5.0])
    assert values.tolist() == [0.0, 0.0]
    with pytest.raises(ArgumentError, match="an initializer needs a shape"):
        keras.Variable("zeros")
    with pytest.raises(ShapeError, match=r"values of shape \(2,\), but shape=\(3,\)"):
        keras.Variable([1.0, 2.0], shape=(3,))
