"""Training compared with Keras: equal weights and equal order of data give equal histories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.keras_reference import KERAS_WARNS, keras

from tallow import keras as ours

pytestmark = pytest.mark.filterwarnings(KERAS_WARNS)

TOLERANCE = 1e-5
EPOCHS = 4

rng = np.random.default_rng(8)
X = rng.normal(size=(100, 6)).astype("float32")
SCORES = X @ rng.normal(size=(6, 3)).astype("float32")
LABELS = SCORES.argmax(1)
ONE_HOT = np.eye(3, dtype="float32")[LABELS]
BITS = (SCORES[:, 0] > 0).astype("float32")


def perceptron(library: Any, units: int, activation: str | None) -> Any:
    layers = library.layers
    return library.Sequential(
        [
            library.Input(shape=(6,)),
            layers.Dense(8, activation="relu", kernel_regularizer=library.regularizers.L2(1e-3)),
            layers.BatchNormalization(),
            layers.Dense(units, activation=activation),
        ]
    )


def forked(library: Any) -> Any:
    """Return a model with two inputs and two outputs."""
    layers = library.layers
    left, right = library.Input(shape=(4,), name="left"), library.Input(shape=(2,), name="right")
    hidden = layers.Dense(5, activation="tanh")(layers.Concatenate()([left, right]))
    outputs = [layers.Dense(3, activation="softmax", name="kind")(hidden), layers.Dense(1, name="size")(hidden)]
    return library.Model([left, right], outputs)


def pair_of(make: Any, *args: Any) -> tuple[Any, Any]:
    """Return a model of each library, with the same weights."""
    mine, theirs = make(ours, *args), make(keras, *args)
    start = np.random.default_rng(1)
    weights = [start.normal(size=w.shape).astype("float32") * 0.5 for w in theirs.get_weights()]
    if any(isinstance(layer, keras.layers.BatchNormalization) for layer in theirs.layers):
        weights = [np.abs(w) + 0.5 if w.ndim == 1 else w for w in weights]  # variances are positive
    mine.set_weights(weights)
    theirs.set_weights(weights)
    return mine, theirs


def assert_same_training(mine: Any, theirs: Any, options: dict[str, Any], *data: Any, **fit: Any) -> None:
    histories = []
    for library, model in ((ours, mine), (keras, theirs)):
        arguments_of = {key: value(library) if callable(value) else value for key, value in options.items()}
        model.compile(**arguments_of)
        arguments = {key: value(library) if callable(value) else value for key, value in fit.items()}
        history = model.fit(*data, **({"epochs": EPOCHS, "shuffle": False, "verbose": 0} | arguments))
        histories.append(history.history)
    mine_history, reference = histories
    assert mine_history.keys() == reference.keys()
    for name, values in reference.items():
        np.testing.assert_allclose(mine_history[name], values, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)
    for one, other in zip(mine.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "rmsprop"])
def test_sparse_classification(optimizer: str) -> None:
    mine, theirs = pair_of(perceptron, 3, "softmax")
    options = {"optimizer": optimizer, "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]}
    assert_same_training(mine, theirs, options, X, LABELS, validation_split=0.25, batch_size=16)
    assert mine.evaluate(X, LABELS, verbose=0) == pytest.approx(theirs.evaluate(X, LABELS, verbose=0), rel=1e-4)
    np.testing.assert_allclose(mine.predict(X, verbose=0), theirs.predict(X, verbose=0), rtol=1e-4, atol=1e-5)


def test_one_hot_with_class_weights_and_more_metrics() -> None:
    mine, theirs = pair_of(perceptron, 3, "softmax")
    options = {
        "optimizer": "adam",
        "loss": lambda library: library.losses.CategoricalCrossentropy(label_smoothing=0.1),
        "metrics": lambda library: ["acc", library.metrics.AUC(name="auc"), "mse"],
        "weighted_metrics": ["accuracy"],
    }
    assert_same_training(mine, theirs, options, X, ONE_HOT, class_weight={0: 0.2, 2: 3.0})


def test_binary_with_sample_weights_and_validation_data() -> None:
    mine, theirs = pair_of(perceptron, 1, "sigmoid")
    options = {
        "optimizer": lambda library: library.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        "loss": "binary_crossentropy",
        "metrics": lambda library: ["accuracy", library.metrics.Precision(name="p"), library.metrics.Recall(name="r")],
    }
    weights = np.linspace(0, 2, 100).astype("float32")
    validation = (X[:30], BITS[:30], weights[:30])
    assert_same_training(
        mine, theirs, options, X, BITS, sample_weight=weights, validation_data=validation, validation_freq=2
    )


def test_several_inputs_and_outputs() -> None:
    mine, theirs = pair_of(forked)
    options = {
        "optimizer": "adam",
        "loss": {"kind": "sparse_categorical_crossentropy", "size": "mse"},
        "loss_weights": {"kind": 1.0, "size": 0.3},
        "metrics": {"kind": ["accuracy"], "size": ["mae"]},
    }
    data = ({"left": X[:, :4], "right": X[:, 4:]}, {"kind": LABELS, "size": SCORES[:, :1]})
    assert_same_training(mine, theirs, options, *data, validation_split=0.2)
    for one, other in zip(mine.predict(data[0], verbose=0), theirs.predict(data[0], verbose=0), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    results = mine.evaluate(*data, verbose=0, return_dict=True)
    expected = theirs.evaluate(*data, verbose=0, return_dict=True)
    assert results == pytest.approx(expected, rel=1e-4)


def test_lists_of_losses_and_metrics() -> None:
    mine, theirs = pair_of(forked)
    options = {
        "optimizer": "sgd",
        "loss": ["sparse_categorical_crossentropy", "mae"],
        "loss_weights": [0.5, 2.0],
        "metrics": [["accuracy"], ["mse", "mae"]],
    }
    data = ([X[:, :4], X[:, 4:]], [LABELS, SCORES[:, :1]])
    assert_same_training(mine, theirs, options, *data)


def batches(size: int) -> Any:
    for start in range(0, 96, size):
        yield X[start : start + size], LABELS[start : start + size]


def test_a_generator_with_steps_per_epoch() -> None:
    mine, theirs = pair_of(perceptron, 3, "softmax")
    options = {"optimizer": "sgd", "loss": "sparse_categorical_crossentropy"}
    assert_same_training(mine, theirs, options, x=lambda _: batches(8), steps_per_epoch=3)


def test_batches_one_by_one() -> None:
    mine, theirs = pair_of(perceptron, 3, "softmax")
    for model in (mine, theirs):
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    for x, y in batches(24):
        assert mine.train_on_batch(x, y) == pytest.approx(theirs.train_on_batch(x, y), rel=1e-4)
        assert mine.test_on_batch(x, y) == pytest.approx(theirs.test_on_batch(x, y), rel=1e-4)
    np.testing.assert_allclose(mine.predict_on_batch(X), theirs.predict_on_batch(X), rtol=1e-4, atol=1e-5)


# -------------------------------------------------------------------------------------------------------- callbacks


CALLBACKS = {
    "early_stopping": lambda library: [
        library.callbacks.EarlyStopping(patience=2, min_delta=0.01, restore_best_weights=True)
    ],
    "early_stopping_on_accuracy": lambda library: [
        library.callbacks.EarlyStopping("val_accuracy", patience=3, start_from_epoch=2, baseline=0.9)
    ],
    "plateau": lambda library: [
        library.callbacks.ReduceLROnPlateau(factor=0.5, patience=1, min_delta=0.02, cooldown=1, min_lr=0.01)
    ],
    "scheduler": lambda library: [library.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.8)],
    "scheduler_of_epochs": lambda library: [library.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))],
    "nan": lambda library: [library.callbacks.TerminateOnNaN()],
}


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks_decide_as_keras(name: str) -> None:
    mine, theirs = pair_of(perceptron, 3, "softmax")
    options = {
        "optimizer": lambda library: library.optimizers.SGD(0.2 if name != "nan" else 1e20),
        "loss": "sparse_categorical_crossentropy",
        "metrics": ["accuracy"],
    }
    if name == "nan":
        for library, model in ((ours, mine), (keras, theirs)):
            model.compile(**{key: value(library) if callable(value) else value for key, value in options.items()})
        runs = [
            model.fit(X, LABELS, epochs=3, verbose=0, shuffle=False, callbacks=CALLBACKS[name](library))
            for library, model in ((ours, mine), (keras, theirs))
        ]
        assert runs[0].epoch == runs[1].epoch
        return
    assert_same_training(mine, theirs, options, X, LABELS, epochs=12, validation_split=0.3, callbacks=CALLBACKS[name])


def test_the_csv_file_is_keras(tmp_path: Any) -> None:
    mine, theirs = pair_of(perceptron, 3, "softmax")
    options = {"optimizer": "sgd", "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]}

    def logger(library: Any) -> Any:
        return [library.callbacks.CSVLogger(tmp_path / f"{library.__name__}.csv", append=True)]

    for _ in range(2):
        assert_same_training(mine, theirs, options, X, LABELS, callbacks=logger)
    our_text, expected = ((tmp_path / f"{library.__name__}.csv").read_text().split() for library in (ours, keras))
    assert our_text[0] == expected[0]
    assert len(our_text) == len(expected) == 1 + 2 * EPOCHS
    for row, reference in zip(our_text[1:], expected[1:], strict=True):
        numbers, expected_numbers = (
            [float(cell) for cell in text.split(",") if cell != "NA"] for text in (row, reference)
        )
        np.testing.assert_allclose(numbers, expected_numbers, rtol=1e-4)


def test_padding_does_not_count() -> None:
    def tagger(library: Any) -> Any:
        layers = library.layers
        return library.Sequential(
            [
                library.Input(shape=(7,), dtype="int32"),
                layers.Embedding(9, 4, mask_zero=True),
                layers.GRU(5, return_sequences=True),
                layers.Dense(3, activation="softmax"),
            ]
        )

    mine, theirs = pair_of(tagger)
    draw = np.random.default_rng(4)
    words, tags = draw.integers(1, 9, (40, 7)).astype("int32"), draw.integers(0, 3, (40, 7))
    for row, length in zip(words, draw.integers(2, 8, 40), strict=True):
        row[length:] = 0
    options = {
        "optimizer": "sgd",
        "loss": "sparse_categorical_crossentropy",
        "metrics": ["accuracy"],
        "weighted_metrics": ["accuracy"],
    }
    weights = np.linspace(0.5, 1.5, 40).astype("float32")[:, None] * np.ones((40, 7), "float32")
    # One batch: on PyTorch, Keras writes the mask into the weights, so metrics weigh batches differently.
    assert_same_training(mine, theirs, options, words, tags, sample_weight=weights, batch_size=40)


@pytest.mark.parametrize("swap_on_epoch", [False, True])
def test_averages_are_measured_as_in_keras(swap_on_epoch: bool) -> None:
    def line(library: Any) -> Any:
        return library.Sequential([library.Input((3,)), library.layers.Dense(2, "tanh"), library.layers.Dense(1)])

    mine, theirs = pair_of(line)
    draw = np.random.default_rng(5)
    x, y = draw.normal(size=(32, 3)).astype("float32"), draw.normal(size=(32, 1)).astype("float32")
    for model, library in ((mine, ours), (theirs, keras)):
        model.compile(library.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.8), "mse")
        swapping = library.callbacks.SwapEMAWeights(swap_on_epoch)
        options = {"epochs": 3, "batch_size": 8, "shuffle": False, "validation_data": (x, y), "verbose": 0}
        model.fit(x, y, callbacks=[swapping], **options)
    for name in ("loss", "val_loss"):
        np.testing.assert_allclose(mine.history.history[name], theirs.history.history[name], rtol=1e-5)
    for weight, reference in zip(mine.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(weight, reference, rtol=1e-5, atol=1e-6)


def test_batches_by_number_are_keras() -> None:
    def line(library: Any) -> Any:
        return library.Sequential([library.Input((3,)), library.layers.Dense(1)])

    mine, theirs = pair_of(line)
    for model, library in ((mine, ours), (theirs, keras)):

        class Batches(library.utils.PyDataset):  # type: ignore[misc, name-defined]
            def __len__(self) -> int:
                return 5

            def __getitem__(self, index: int) -> Any:
                x = np.random.default_rng(index).normal(size=(4, 3)).astype("float32")
                return x, x[:, :1]

        model.compile("sgd", "mse")
        model.fit(Batches(), epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(mine.history.history["loss"], theirs.history.history["loss"], rtol=1e-5)


def test_orthogonal_regularizer_is_keras() -> None:
    kernel = np.random.default_rng(6).normal(size=(4, 5)).astype("float32")
    for mode in ("rows", "columns"):
        expected = keras.regularizers.OrthogonalRegularizer(0.3, mode)(keras.ops.convert_to_tensor(kernel))
        result = ours.regularizers.OrthogonalRegularizer(0.3, mode)(ours.ops.convert_to_tensor(kernel))
        assert float(result) == pytest.approx(float(expected), rel=1e-5)
