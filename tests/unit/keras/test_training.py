"""compile, fit, evaluate and predict of tallow.keras: training results, accepted data, and refused arguments."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import keras, nn
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError
from tallow.keras import layers
from tallow.keras.trainer import Trainer

rng = np.random.default_rng(2)
X = rng.normal(size=(100, 4)).astype("float32")
LABELS = rng.integers(0, 3, 100)
SEES_LABELS = pytest.mark.cpu("elsewhere, looking at labels would wait for the device")


def classifier(loss: Any = "sparse_categorical_crossentropy", units: int = 3, **options: Any) -> keras.Sequential:
    tl.manual_seed(3)
    model = keras.Sequential([keras.Input(shape=(4,)), layers.Dense(units, activation="softmax")])
    model.compile("sgd", loss, **options)
    return model


def fit(model: Any, *data: Any, **options: Any) -> dict[str, list[float]]:
    return model.fit(*data, **({"verbose": 0} | options)).history


# --------------------------------------------------------------------------------------------- results of training


def two_moons(count: int) -> tuple[Any, Any]:
    angle, upper = rng.random(count) * np.pi, rng.integers(0, 2, count)
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle)) + rng.normal(0, 0.1, count)
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle)) + rng.normal(0, 0.1, count)
    return np.stack([x, y], 1), upper


def random_shapes(count: int) -> tuple[Any, Any]:
    """Noisy images, (12, 12, 1), of three shapes at random positions: a bar, a cross, a frame."""
    bar, cross, frame = np.zeros((3, 5, 5))
    bar[:, 2] = 1
    cross[range(5), range(5)] = cross[range(5), range(4, -1, -1)] = 1
    frame[[0, 4]] = frame[:, [0, 4]] = 1
    labels = rng.integers(0, 3, count)
    pictures = rng.normal(0, 0.15, (count, 12, 12))
    for picture, label, (row, column) in zip(pictures, labels, rng.integers(0, 8, (count, 2)), strict=True):
        picture[row : row + 5, column : column + 5] += (bar, cross, frame)[label]
    return pictures[..., None], labels


def test_a_perceptron_learns_two_moons() -> None:
    tl.manual_seed(0)
    model = keras.Sequential([layers.Dense(32, activation="relu"), layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["accuracy"])
    history = fit(model, *two_moons(800), epochs=25, validation_split=0.2)
    assert history["val_accuracy"][-1] > 0.95
    assert model.evaluate(*two_moons(200), verbose=0)[1] > 0.95


def test_a_convolution_learns_drawn_signs() -> None:
    tl.manual_seed(0)
    model = keras.Sequential(
        [
            keras.Input(shape=(12, 12, 1)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(3),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    fit(model, *random_shapes(400), epochs=10)
    assert model.evaluate(*random_shapes(100), verbose=0, return_dict=True)["accuracy"] > 0.9


def test_the_same_seed_gives_the_same_training() -> None:
    def run() -> dict[str, list[float]]:
        keras.utils.set_random_seed(7)
        model = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dropout(0.3), layers.Dense(3)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return fit(model, X, LABELS, epochs=3)

    assert run() == run()


class Line(Trainer, nn.Module):
    """y = a x + b as a plain module with the mixin: `fit` requires nothing else of a model."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(1, 1)

    def forward(self, x: tl.Tensor, training: bool = False) -> tl.Tensor:
        return self.inner(x)


def test_any_module_can_be_trained() -> None:
    model = Line()
    model.compile(keras.optimizers.SGD(0.3), "mse")
    x = np.linspace(-1, 1, 64)
    fit(model, x[:, None], 3 * x - 1, epochs=40)
    assert model.inner.weight.item() == pytest.approx(3, abs=0.05)
    assert model.inner.bias.item() == pytest.approx(-1, abs=0.05)


@pytest.mark.parametrize(
    "optimizer", [tl.optim.AdamW, lambda params: tl.optim.SGD(params, lr=0.1)], ids=["class", "object"]
)
def test_optimizers_of_tallow_are_accepted(optimizer: Any) -> None:
    model = classifier()
    model.compile(optimizer if isinstance(optimizer, type) else optimizer(model.parameters()), model.loss)
    before = model.get_weights()
    fit(model, X, LABELS)
    assert not np.array_equal(before[0], model.get_weights()[0])
    model.optimizer.learning_rate = 0.25
    assert model.optimizer.inner.param_groups[0]["lr"] == 0.25


# ---------------------------------------------------------------------------------------------------- accepted data


def one_by_one(count: int = 100) -> Iterator[Any]:
    for start in range(0, count, 20):
        yield X[start : start + 20], LABELS[start : start + 20]


def loader() -> tl.data.DataLoader[Any]:
    return tl.data.DataLoader(tl.data.TensorDataset(tl.tensor(X), tl.tensor(LABELS)), batch_size=20)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda: (X, LABELS), id="arrays"),
        pytest.param(lambda: (X.astype("float64"), LABELS.astype("float64")), id="float64"),
        pytest.param(lambda: (X, LABELS[:, None]), id="column"),
        pytest.param(lambda: (tl.tensor(X), tl.tensor(LABELS)), id="tensors"),
        pytest.param(lambda: (X.tolist(), LABELS.tolist()), id="lists"),
        pytest.param(lambda: (one_by_one(),), id="generator"),
        pytest.param(lambda: (loader(),), id="DataLoader"),
        pytest.param(lambda: ([*one_by_one()].__iter__(),), id="iterator"),
    ],
)
def test_the_same_data_in_any_form_gives_the_same_training(data: Any) -> None:
    expected = fit(classifier(), X, LABELS, batch_size=20, shuffle=False)
    dataset = data()
    options = {"batch_size": 20, "shuffle": False} if len(dataset) == 2 else {}
    assert fit(classifier(), *dataset, **options)["loss"] == pytest.approx(expected["loss"], rel=1e-6)


def test_a_dataset_is_batched_and_shuffled() -> None:
    dataset = tl.data.TensorDataset(tl.tensor(X), tl.tensor(LABELS))
    plain = fit(classifier(), dataset, batch_size=20, shuffle=False)
    assert plain["loss"] == pytest.approx(fit(classifier(), X, LABELS, batch_size=20, shuffle=False)["loss"])
    assert fit(classifier(), dataset, batch_size=20)["loss"] != plain["loss"]


def test_every_sample_comes_once_an_epoch() -> None:
    seen: list[float] = []

    class Watching(Line):
        def forward(self, x: tl.Tensor, training: bool = False) -> tl.Tensor:
            seen.extend(x[:, 0].tolist())
            return super().forward(x)

    model = Watching()
    model.compile("sgd", "mse")
    fit(model, np.arange(50.0)[:, None], np.zeros(50), epochs=2, batch_size=16)
    first, second = seen[:50], seen[50:]
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second != sorted(second)
    seen.clear()
    fit(model, np.arange(50.0)[:, None], np.zeros(50), batch_size=16, shuffle="batch")
    assert sorted(seen) == list(range(50))
    assert sum(after == before + 1 for before, after in pairwise(seen)) >= 46  # together within a batch


def test_validation_takes_the_last_samples() -> None:
    marked = np.concatenate([np.zeros((80, 1)), np.ones((20, 1))])
    model = Line()
    model.compile(keras.optimizers.SGD(0.0), "mae")
    model.inner.weight.array[...], model.inner.bias.array[...] = 1, 0
    history = fit(model, marked, np.zeros(100), validation_split=0.2)
    assert (history["loss"], history["val_loss"]) == ([0.0], [1.0])


def test_validation_frequency() -> None:
    history = fit(classifier(), X, LABELS, epochs=5, validation_data=(X, LABELS), validation_freq=2)
    assert (len(history["loss"]), len(history["val_loss"])) == (5, 2)
    history = fit(classifier(), X, LABELS, epochs=5, validation_data=(X, LABELS), validation_freq=[1, 2, 5])
    assert len(history["val_loss"]) == 3


@pytest.mark.parametrize("data", [lambda: (X, LABELS), loader], ids=["arrays", "DataLoader"])
def test_validation_steps_use_the_first_batches(data: Any) -> None:
    model = classifier()
    model.compile(keras.optimizers.SGD(0.0), model.loss)
    history = fit(model, X, LABELS, epochs=3, validation_data=data(), validation_steps=2, validation_batch_size=20)
    assert history["val_loss"] == [pytest.approx(model.evaluate(X[:40], LABELS[:40], verbose=0))] * 3


def test_class_weights_are_sample_weights() -> None:
    weights = np.array([0.5, 1.0, 3.0])[LABELS]
    by_class = fit(classifier(), X, LABELS, class_weight={0: 0.5, 2: 3.0}, shuffle=False)
    assert by_class == fit(classifier(), X, LABELS, sample_weight=weights, shuffle=False)
    by_batch = fit(classifier(), one_by_one(), class_weight={0: 0.5, 2: 3.0})
    assert by_batch == fit(classifier(), X, LABELS, sample_weight=weights, shuffle=False, batch_size=20)


def test_steps_per_epoch_continue_the_data() -> None:
    history = fit(classifier(), one_by_one(), epochs=2, steps_per_epoch=2)
    expected = fit(classifier(), X[:80], LABELS[:80], batch_size=20, shuffle=False, epochs=2, steps_per_epoch=2)
    assert history == expected
    with pytest.warns(UserWarning, match="ran out after 5 of the 9 steps"):
        fit(classifier(), one_by_one(), steps_per_epoch=9)


@pytest.mark.parametrize("steps", [None, 2])
def test_epochs_after_the_end_of_a_generator_are_empty(steps: int | None) -> None:
    """Keras warns too; its later epochs repeat the last metrics."""
    batches = islice(one_by_one(), steps)
    with pytest.warns(UserWarning, match="ran out after 0 of the"):
        history = fit(classifier(), batches, epochs=2, steps_per_epoch=steps)
    assert history == fit(classifier(), one_by_one(), steps_per_epoch=steps)


def test_initial_epoch() -> None:
    model = classifier()
    assert model.fit(X, LABELS, epochs=5, initial_epoch=3, verbose=0).epoch == [3, 4]


class Forked(keras.Model):
    """A model with outputs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.kind = layers.Dense(3, activation="softmax")
        self.size = layers.Dense(1)

    def call(self, inputs: Any) -> dict[str, tl.Tensor]:
        return {"kind": self.kind(inputs["x"]), "size": self.size(inputs["z"])}


def test_outputs_by_name() -> None:
    model = Forked()
    model.compile(
        "sgd",
        {"kind": "sparse_categorical_crossentropy", "size": "mse"},
        metrics={"kind": ["accuracy"]},
        loss_weights={"size": 0.5},
    )
    inputs, targets = {"x": X, "z": X[:, :2]}, {"kind": LABELS, "size": X[:, 0]}
    history = fit(model, inputs, targets)
    assert set(history) == {"loss", "kind_loss", "size_loss", "kind_accuracy"}
    assert history["loss"][0] == pytest.approx(history["kind_loss"][0] + 0.5 * history["size_loss"][0], rel=1e-6)
    assert {name: part.shape for name, part in model.predict(inputs, verbose=0).items()} == {
        "kind": (100, 3),
        "size": (100, 1),
    }
    with pytest.raises(ArgumentError, match="'colour', which is not an output of the model"):
        fit(model, inputs, targets | {"colour": LABELS})


def test_predict_and_evaluate_leave_the_model_as_it_is() -> None:
    model = keras.Sequential(
        [keras.Input(shape=(4,)), layers.Dropout(0.5), layers.BatchNormalization(), layers.Dense(3)]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = model.get_weights()
    first = model.predict(X, batch_size=7, verbose=0)
    np.testing.assert_array_equal(first, model.predict(X, batch_size=7, verbose=0))
    model.evaluate(X, LABELS, verbose=0)
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert isinstance(first, np.ndarray)
    np.testing.assert_allclose(model.predict_on_batch(X), first, rtol=1e-5, atol=1e-6)


def test_a_train_step_of_ones_own() -> None:
    class Own(Line):
        def __init__(self) -> None:
            super().__init__()
            self.seen = keras.metrics.Sum(name="seen")

        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            self.zero_grad()
            loss = ((self(x, training=True)[:, 0] - y) ** 2).mean()
            loss.backward()
            self.optimizer.step()
            self.seen.update_state(len(x))
            return {"mine": loss, "seen": self.seen.result()}

    model = Own()
    model.compile(keras.optimizers.SGD(0.1))
    history = fit(model, X[:, :1], 2 * X[:, 0], epochs=8)
    assert history["seen"] == [100.0] * 8
    assert history["mine"][-1] < 0.1 * history["mine"][0]


@pytest.mark.parametrize(("step_data", "parts"), [((X,), 0), ((X, LABELS), 2), ((X, LABELS, np.ones(100)), 3)])
def test_train_step_gets_the_given_parts(step_data: tuple[Any, ...], parts: int) -> None:
    seen = []

    class Own(Line):
        def test_step(self, data: Any) -> dict[str, Any]:
            seen.append(len(data) if isinstance(data, tuple) else 0)
            return {}

    model = Own()
    model.compile()
    x, y, sample_weight = (*step_data, None, None)[:3]
    model.evaluate(x, y, sample_weight=sample_weight, verbose=0)
    assert {*seen} == {parts}


def test_a_callback_of_predict_gets_the_outputs_as_they_are() -> None:
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(logs["outputs"].shape)

    Line().predict(X[:1, :1], verbose=0, callbacks=[Watch()])
    assert seen == [(1, 1)]


def test_losses_that_layers_add_count() -> None:
    def penalised(strength: float) -> float:
        tl.manual_seed(3)
        regularizer = keras.regularizers.L2(strength)
        model = keras.Sequential([keras.Input(shape=(4,)), layers.Dense(3, kernel_regularizer=regularizer)])
        model.compile("sgd", "mse")
        return model.evaluate(X, np.zeros((100, 3)), verbose=0)

    assert penalised(1.0) > penalised(0.0)


def test_a_batch_learned_leaves_the_model_ready_for_use() -> None:
    model = keras.Sequential([keras.Input((4,)), layers.Dropout(0.5), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.train_on_batch(X, LABELS)
    np.testing.assert_array_equal(model(X).detach().numpy(), model.predict(X, verbose=0))


def test_frozen_layers_stay() -> None:
    model = keras.Sequential([keras.Input(shape=(4,)), layers.Dense(5), layers.Dense(3, activation="softmax")])
    model.layers[0].trainable = False
    model.compile("adam", "sparse_categorical_crossentropy")
    before = model.get_weights()
    fit(model, X, LABELS)
    after = model.get_weights()
    np.testing.assert_array_equal(before[0], after[0])
    assert not np.array_equal(before[2], after[2])
    model.layers[0].trainable = True
    fit(model, X, LABELS)
    assert not np.array_equal(after[0], model.get_weights()[0])


def test_an_interrupt_leaves_a_working_model() -> None:
    class Interrupt(keras.callbacks.Callback):
        ended = False

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if len(self.model.history.epoch) == 2:
                raise KeyboardInterrupt

        def on_train_end(self, logs: Any = None) -> None:
            self.ended = True

    model, callback = classifier(), Interrupt()
    with pytest.raises(KeyboardInterrupt):
        fit(model, X, LABELS, epochs=9, callbacks=[callback])
    assert len(model.history.history["loss"]) == 2
    assert not callback.ended
    assert not model.training
    assert model.predict(X, verbose=0).shape == (100, 3)


# ---------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("error", "message", "data"),
    [
        pytest.param(ArgumentError, "x has 100, y has 90", (X, LABELS[:90]), id="lengths"),
        pytest.param(
            ArgumentError,
            "label [3-7] is out of range: the model has 3 outputs",
            (X, LABELS + 5),
            id="labels",
            marks=SEES_LABELS,
        ),
        pytest.param(ArgumentError, "label -1 is out of range", (X, LABELS - 1), id="negative", marks=SEES_LABELS),
        pytest.param(
            ShapeError, "for one-hot targets use categorical_crossentropy", (X, np.eye(3)[LABELS]), id="one-hot"
        ),
        pytest.param(ArgumentError, "data is empty", (X[:0], LABELS[:0]), id="empty"),
        pytest.param(ArgumentError, "has no batches", (iter([]),), id="empty loader"),
        pytest.param(ArgumentError, "no targets", (X,), id="no targets"),
        pytest.param(ArgumentTypeError, "x is None", (), id="nothing"),
        pytest.param(DtypeError, "not numeric: it has dtype <U1", ([["a", "b"]], [1]), id="text"),
        pytest.param(
            DtypeError, "x.'b'. is not numeric", ({"a": X, "b": ["text"] * 100}, LABELS), id="a column of text"
        ),
        pytest.param(DtypeError, "y is not numeric", (X, ["text"] * 100), id="labels of text"),
        pytest.param(ArgumentError, "x has 4, y has 100", (list(X), LABELS), id="rows as inputs"),
        pytest.param(DtypeError, "not numeric: it has dtype object", (np.array([[None, 1]]), [1]), id="objects"),
        pytest.param(ArgumentError, "cannot be converted to an array", ([[1, 2], [1]], [1, 2]), id="ragged"),
        pytest.param(ArgumentError, "a single number", (1, 2), id="numbers"),
        pytest.param(ArgumentError, "yields batches", (one_by_one(), LABELS), id="generator and targets"),
    ],
)
def test_invalid_data(error: type[Exception], message: str, data: tuple[Any, ...]) -> None:
    with pytest.raises(error, match=message):
        fit(classifier(), *data)


@pytest.mark.parametrize("loss", ["categorical_crossentropy", "mse"])
def test_integer_labels_get_a_hint(loss: str) -> None:
    with pytest.raises(
        ShapeError, match=r"\(32,\).*\(32, 3\)[\s\S]*integer labels use sparse_categorical_crossentropy"
    ):
        fit(classifier(loss), X, LABELS)


def test_invalid_options() -> None:
    for options in (
        {"batch_size": 0},
        {"batch_size": 2.5},
        {"validation_split": 1.5},
        {"validation_data": (X, LABELS), "validation_freq": 0},
        {"sample_weight": np.ones(100), "class_weight": {0: 1}},
    ):
        with pytest.raises(ArgumentError):
            fit(classifier(), X, LABELS, **options)
    with pytest.raises(ArgumentError, match="pass validation_data"):
        fit(classifier(), one_by_one(), validation_split=0.5)
    with pytest.raises(ShapeError, match="sample_weight of shape"):
        fit(classifier(), X, LABELS, sample_weight=np.ones((100, 7)))
    with pytest.raises(ArgumentTypeError, match="class_weight must be a dict, not 'balanced'"):
        fit(classifier(), X, LABELS, class_weight="balanced")
    for callback in (keras.callbacks.History, 1):
        with pytest.raises(ArgumentTypeError, match="is not a callback"):
            fit(classifier(), X, LABELS, callbacks=[callback])


def test_one_sample_is_not_a_batch() -> None:
    with pytest.raises(ShapeError, match=r"got 1: shape \(4,\)\n  hint: [\s\S]*x\[None\]"):
        classifier().predict(X[0], verbose=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": "adm"}, "'adm' is not the name of an optimizer[\\s\\S]*did you mean 'adam'"),
        ({"loss": "mean_square_error"}, "did you mean 'mean_squared_error'"),
        ({"metrics": ["acuracy"]}, "did you mean 'accuracy'"),
        ({"metrics": "accuracy"}, r"hint: metrics=\['accuracy'\]"),
        ({"optimizer": 3}, "not an optimizer"),
        ({"loss": 3}, "not a loss"),
    ],
)
def test_invalid_names(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        classifier().compile(**arguments)


def test_metrics_in_the_place_of_loss_weights_are_an_error() -> None:
    model = keras.Sequential([layers.Dense(1)])
    with pytest.raises(ArgumentTypeError, match="loss_weights contains 'accuracy', which is not a number"):
        model.compile("adam", "mse", ["accuracy"])
    model.compile("adam", "mse", loss_weights=np.float32(0.5))


def test_compile_comes_first() -> None:
    model = keras.Sequential([keras.Input(shape=(4,)), layers.Dense(3)])
    for call in (model.fit, model.evaluate, model.train_on_batch, model.test_on_batch):
        with pytest.raises(ArgumentError, match="before compile"):
            call(X, LABELS)
    assert model.predict(X, verbose=0).shape == (100, 3)  # this one needs none
    model.compile("sgd")
    with pytest.raises(ArgumentError, match="no loss to train with"):
        fit(model, X, LABELS)


def test_nan_does_not_stop_training() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(fit(classifier(), X * np.nan, LABELS, epochs=2)["loss"]).all()


def test_metrics_of_a_model_can_be_updated_one_by_one() -> None:
    """Loop over `self.metrics` in a custom train step."""

    class Own(Line):
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            self.zero_grad()
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
            loss.backward()
            self.optimizer.step()
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, y_pred)
            return {metric.name: metric.result() for metric in self.metrics}

    model = Own()
    model.compile("sgd", "mse", metrics=["mae", keras.metrics.MeanSquaredError])
    history = fit(model, X[:, :1], 2 * X[:, 0], batch_size=50)
    assert set(history) == {"loss", "mae", "mean_squared_error"}
    assert history["loss"] == pytest.approx(history["mean_squared_error"], rel=1e-6)
    assert model.metrics_names == ["loss", "compile_metrics"]


def test_a_model_without_a_loss_can_be_measured() -> None:
    model = Line()
    model.compile(metrics=["mae"])
    assert model.evaluate(X[:, :1], X[:, 0], verbose=0, return_dict=True).keys() == {"loss", "mae"}


def test_two_optimizers_as_in_a_gan() -> None:
    class Both(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = layers.Dense(1), layers.Dense(1)

        def compile(self, one: Any, other: Any) -> None:  # type: ignore[override]
            super().compile()
            self.optimizers = (one, other)

        def call(self, x: Any) -> Any:
            return self.one(x) + self.other(x)

        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            for optimizer, layer in zip(self.optimizers, (self.one, self.other), strict=True):
                self.zero_grad()
                loss = (self(x, training=True)[:, 0] - y).square().mean()
                loss.backward()
                optimizer.apply([weight.grad for weight in layer.trainable_weights], layer.trainable_weights)
            return {"loss": loss}

    model = Both()
    model.compile(keras.optimizers.SGD(0.1), keras.optimizers.Adam(0.05))
    history = fit(model, X, X @ np.ones(4), epochs=8)
    assert history["loss"][-1] < 0.1 * history["loss"][0]
