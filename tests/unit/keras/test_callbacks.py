"""The callbacks of tallow.keras: when they are called and what each does."""

from __future__ import annotations

import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import keras
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, NumericError
from tallow.keras import callbacks, layers

X = np.linspace(-1, 1, 64, dtype="float32")[:, None]
Y = 2 * X[:, 0] + 1


def model(rate: float = 0.1, metrics: Any = None) -> Any:
    tl.manual_seed(1)
    network = keras.Sequential([keras.Input(shape=(1,)), layers.Dense(4, activation="tanh"), layers.Dense(1)])
    network.compile(keras.optimizers.SGD(rate, momentum=0.5), "mse", metrics=metrics)
    return network


def fit(network: Any, *more: Any, **options: Any) -> Any:
    return network.fit(X, Y, **({"verbose": 0, "callbacks": list(more)} | options))


class Scripted(callbacks.Callback):
    """Puts a value into the logs of each epoch, for the callbacks after it."""

    def __init__(self, *values: float, name: str = "val_loss") -> None:
        super().__init__()
        self.values = values
        self.name = name

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs[self.name] = self.values[min(epoch, len(self.values) - 1)]


def test_hooks_are_called_in_keras_order() -> None:
    calls: list[str] = []

    class Saying(callbacks.Callback):
        pass

    for name in dir(callbacks.Callback):
        if name.startswith("on_") and name not in ("on_batch_begin", "on_batch_end"):
            setattr(Saying, name, lambda self, *where, logs=None, name=name: calls.append(name.removeprefix("on_")))
    fit(model(), Saying(), batch_size=32, validation_data=(X, Y))
    batch, test = ["train_batch_begin", "train_batch_end"], ["test_batch_begin", "test_batch_end"]
    begin, end = ["train_begin", "epoch_begin"], ["epoch_end", "train_end"]
    assert calls == [*begin, *batch, *batch, "test_begin", *test, *test, "test_end", *end]
    calls.clear()
    model().predict(X, verbose=0, callbacks=[Saying()])
    assert calls == ["predict_begin", *["predict_batch_begin", "predict_batch_end"] * 2, "predict_end"]


def test_logs_are_numbers_and_the_older_names_work() -> None:
    kinds: list[Any] = []

    class Older(callbacks.Callback):
        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            kinds.append((batch, {name: type(value) for name, value in logs.items()}))

    network = model(metrics=["mae"])
    fit(network, Older())
    assert kinds == [(0, {"loss": float, "mae": float}), (1, {"loss": float, "mae": float})]


def test_logs_added_by_a_callback_are_in_the_history() -> None:
    history = fit(model(), Scripted(3.0, 2.0, name="extra"), epochs=2)
    assert history.history["extra"] == [3.0, 2.0]
    assert history.epoch == [0, 1]


def test_params() -> None:
    watching = callbacks.Callback()
    network = model()
    fit(network, watching, epochs=3)
    assert watching.params == {"verbose": 0, "epochs": 3, "steps": 2}
    assert watching.model is network


def test_lambda_callback() -> None:
    seen: list[Any] = []
    fit(
        model(),
        callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, metrics: seen.append((epoch, sorted(metrics))), on_train_end=seen.append
        ),
        callbacks.LambdaCallback(on_train_batch_begin=lambda step, _: seen.append(step)),
    )
    assert seen[:3] == [0, 1, (0, ["loss"])]
    assert list(seen[3]) == ["loss"]
    with pytest.raises(ArgumentTypeError, match="unknown hook 'on_epoch'"):
        callbacks.LambdaCallback(on_epoch=print)


# ------------------------------------------------------------------------------------------------------ early stopping


@pytest.mark.parametrize(
    ("options", "values", "epochs"),
    [
        ({}, (3, 2, 2, 1), 3),
        ({"patience": 2}, (3, 2, 2, 1.9, 1.9, 1.9, 0), 6),
        ({"patience": 1, "min_delta": 0.5}, (3, 2.9, 2.8), 2),
        ({"patience": 2, "mode": "max"}, (1, 2, 1.5, 1.5, 3), 4),
        ({"patience": 1, "start_from_epoch": 3}, (1, 2, 3, 2, 1, 1), 6),
        ({"patience": 2, "baseline": 1.0}, (3, 2, 1.5, 1.2), 5),
    ],
)
def test_early_stopping(options: dict[str, Any], values: tuple[float, ...], epochs: int) -> None:
    history = fit(model(), Scripted(*values), callbacks.EarlyStopping(**options), epochs=20)
    assert len(history.epoch) == epochs


def test_early_stopping_restores_the_best_weights(capsys: pytest.CaptureFixture[str]) -> None:
    network = model()
    weights = []
    keep = callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: weights.append(network.get_weights()))
    stopping = callbacks.EarlyStopping(patience=2, restore_best_weights=True, verbose=1)
    fit(network, Scripted(3, 1, 2, 2, 0), stopping, keep, epochs=20)
    for one, other in zip(network.get_weights(), weights[1], strict=True):
        np.testing.assert_array_equal(one, other)
    assert capsys.readouterr().out == (
        "Epoch 4: early stopping\nRestoring model weights from the end of the best epoch: 2.\n"
    )


def test_a_metric_defines_its_direction() -> None:
    network = model(metrics=[keras.metrics.CosineSimilarity(name="angle"), "mae"])
    for name, values, epochs in (("angle", (1, 2, 3, 3), 4), ("mae", (3, 2, 1, 1), 4), ("val_loss", (2, 1, 1), 3)):
        assert len(fit(network, Scripted(*values, name=name), callbacks.EarlyStopping(name), epochs=9).epoch) == epochs


def test_a_metric_without_a_direction_is_an_error() -> None:
    with pytest.raises(ArgumentError, match='pass mode="max"'):
        fit(model(), Scripted(1, 2, name="own"), callbacks.EarlyStopping("own"), epochs=2)
    with pytest.raises(ArgumentError, match="mode='best'"):
        callbacks.EarlyStopping(mode="best")


def test_a_missing_metric_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="EarlyStopping: metric 'val_loss' is not available; available metrics: loss"):
        fit(model(), callbacks.EarlyStopping())


# ------------------------------------------------------------------------------------------------------ learning rates


def test_learning_rate_scheduler() -> None:
    network = model(0.4)
    history = fit(network, callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2), epochs=3).history
    assert history["learning_rate"] == pytest.approx([0.2, 0.1, 0.05])
    fit(network, callbacks.LearningRateScheduler(lambda epoch: 0.7))
    assert network.optimizer.learning_rate == 0.7
    with pytest.raises(ArgumentTypeError, match="returned None"):
        fit(network, callbacks.LearningRateScheduler(lambda epoch: None))
    followed = keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 10))
    network.compile(followed, "mse")
    with pytest.raises(ArgumentTypeError, match="follows a CosineDecay"):
        fit(network, callbacks.LearningRateScheduler(lambda epoch: 0.7))


def test_reduce_on_plateau() -> None:
    plateau = callbacks.ReduceLROnPlateau(factor=0.5, patience=2, cooldown=2, min_lr=0.3)
    values = (3, 2, 2, 2, 2, 2, 2, 2, 2)
    history = fit(model(0.8), Scripted(*values), plateau, epochs=9).history
    # Two epochs without progress halve the rate; the next is skipped (cooldown), and the one after it counts again. At
    # 0.3 it stays.
    assert history["learning_rate"] == pytest.approx([0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.3, 0.3])
    with pytest.raises(ArgumentError, match="factor must be below 1"):
        callbacks.ReduceLROnPlateau(factor=1.0)


# ------------------------------------------------------------------------------------------------------------- NaN


def test_terminate_on_nan(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow on the way to infinity
        history = fit(model(1e30), callbacks.TerminateOnNaN(), epochs=5, batch_size=8)
        assert len(history.epoch) == 1
        assert "Invalid loss, terminating training" in capsys.readouterr().out
        with pytest.raises(NumericError, match="the loss is"):
            fit(model(1e30), callbacks.TerminateOnNaN(raise_error=True), batch_size=8)


# ------------------------------------------------------------------------------------------------------------- files


def needs_h5py() -> None:
    pytest.importorskip("h5py", reason="h5py, which writes Keras' files, is not installed")


def test_model_checkpoint_names_its_files(tmp_path: Path) -> None:
    needs_h5py()
    saving = callbacks.ModelCheckpoint(tmp_path / "made" / "{epoch:02d}-{val_loss:.2f}.keras")
    network = model()
    fit(network, Scripted(0.5, 0.25), saving, epochs=2)
    assert sorted(file.name for file in (tmp_path / "made").iterdir()) == ["01-0.50.keras", "02-0.25.keras"]
    again = keras.models.load_model(tmp_path / "made" / "02-0.25.keras")
    np.testing.assert_array_equal(again.predict(X, verbose=0), network.predict(X, verbose=0))
    with pytest.raises(ArgumentError, match="contains 'val_los', which is not a known value"):
        fit(network, callbacks.ModelCheckpoint(tmp_path / "{val_los}.keras"))


def test_model_checkpoint_keeps_the_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "best.weights.safetensors"
    saving = callbacks.ModelCheckpoint(file, save_best_only=True, save_weights_only=True, verbose=1)
    network = model()
    weights = []
    keep = callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: weights.append(network.get_weights()))
    fit(network, Scripted(3, 1, 2), saving, keep, epochs=3)
    network.load_weights(file)
    for one, other in zip(network.get_weights(), weights[1], strict=True):
        np.testing.assert_array_equal(one, other)
    output = capsys.readouterr().out
    assert f"Epoch 2: val_loss improved from 3.00000 to 1.00000, saving model to {file}" in output
    assert "Epoch 3: val_loss did not improve from 1.00000" in output


def test_model_checkpoint_after_a_number_of_batches(tmp_path: Path) -> None:
    needs_h5py()
    saving = callbacks.ModelCheckpoint(tmp_path / "{epoch}-{batch}.keras", save_freq=3)
    fit(model(), saving, epochs=2, batch_size=16)  # four batches per epoch
    assert sorted(file.name for file in tmp_path.iterdir()) == ["1-3.keras", "2-2.keras"]
    with pytest.raises(ArgumentError, match="save_freq='batch'"):
        callbacks.ModelCheckpoint(tmp_path / "x.keras", save_freq="batch")
    with pytest.raises(ArgumentError, match=r"a path that ends in \.keras"):
        callbacks.ModelCheckpoint(tmp_path / "x")
    with pytest.raises(ArgumentError, match=r"a path that ends in \.weights\.h5"):
        callbacks.ModelCheckpoint(tmp_path / "x.keras", save_weights_only=True)


class Recorder:
    """Stub for tensorboardX.SummaryWriter."""

    written: dict[str, dict[str, list[Any]]]

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder).name
        self.written.setdefault(self.folder, {})

    def add_scalar(self, tag: str, value: Any, step: int) -> None:
        self.written[self.folder].setdefault(tag, []).append((step, float(value)))

    def add_histogram(self, tag: str, values: Any, step: int) -> None:
        self.written[self.folder].setdefault(tag, []).append((step, values.shape))

    def add_text(self, tag: str, text: str, step: int) -> None:
        self.written[self.folder][tag] = [text]

    def close(self) -> None:
        self.written[self.folder]["closed"] = []


def test_tensorboard_has_keras_tags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records: dict[str, dict[str, list[Any]]] = {}
    monkeypatch.setattr(Recorder, "written", records, raising=False)
    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=Recorder))
    network = model()
    board = callbacks.TensorBoard(tmp_path, histogram_freq=2, update_freq=2, write_steps_per_second=True)
    history = fit(network, board, epochs=2, batch_size=16, validation_data=(X, Y)).history
    train, validation = records["train"], records["validation"]
    assert train["epoch_loss"] == list(enumerate(history["loss"]))
    assert validation["epoch_loss"] == list(enumerate(history["val_loss"]))
    assert validation["evaluation_loss_vs_iterations"] == [(4, history["val_loss"][0]), (8, history["val_loss"][1])]
    assert train["epoch_learning_rate"] == [(0, 0.1), (1, 0.1)]
    assert [step for step, _ in train["batch_loss"]] == [1, 3, 5, 7]
    assert train[f"{network.layers[0].name}/kernel/histogram"] == [(0, (1, 4))]
    assert train["keras"] == [network.to_json()]
    assert {"closed", "epoch_steps_per_second"} <= train.keys()
    with pytest.raises(ArgumentError, match="profile_batch"):
        callbacks.TensorBoard(tmp_path, profile_batch=2)
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"(?i)install it: .*tensorboardX"):
        fit(network, callbacks.TensorBoard(tmp_path))


def test_csv_logger(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    fit(model(metrics=["mae"]), callbacks.CSVLogger(file, separator=";"), epochs=2)
    head, *rows = file.read_text().splitlines()
    assert head == "epoch;loss;mae;val_loss;val_mae"
    assert [row.split(";")[0] for row in rows] == ["0", "1"]
    assert rows[0].split(";")[3:] == ["NA", "NA"]
    fit(model(metrics=["mae"]), callbacks.CSVLogger(file, separator=";", append=True))
    assert len(file.read_text().splitlines()) == 4
    fit(model(), callbacks.CSVLogger(file))
    assert len(file.read_text().splitlines()) == 2


class Fault(callbacks.Callback):
    """Simulates a crash within an epoch."""

    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == self.epoch:
            raise OSError("no power")


def test_backup_and_restore_resumes_exactly(tmp_path: Path) -> None:
    uninterrupted = model()
    expected = fit(uninterrupted, epochs=6).history[
        "loss"
    ]  # shuffled: the state of the random generator is restored too
    cut = model()
    with pytest.raises(OSError, match="no power"):
        fit(cut, callbacks.BackupAndRestore(tmp_path / "backup"), Fault(3), epochs=6)
    again = model()
    tl.manual_seed(99)
    history = fit(again, callbacks.BackupAndRestore(tmp_path / "backup"), epochs=6)
    assert history.epoch == [3, 4, 5]
    assert history.history["loss"] == expected[3:]
    for one, other in zip(again.get_weights(), uninterrupted.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not (tmp_path / "backup").exists()


def test_backup_and_restore_has_a_second_file(tmp_path: Path) -> None:
    def backup() -> callbacks.BackupAndRestore:
        return callbacks.BackupAndRestore(tmp_path / "backup", double_checkpoint=True, delete_checkpoint=False)

    fit(model(), backup(), epochs=3)
    file = tmp_path / "backup" / "training.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    assert fit(model(), backup(), epochs=4).epoch == [2, 3]
    other = keras.Sequential([keras.Input(shape=(1,)), layers.Dense(1)])
    other.compile("sgd", "mse")
    with pytest.raises(CheckpointError):
        fit(other, backup())


# ---------------------------------------------------------------------------------------------------------------- plot


def test_plot_shows_a_chart_for_each_metric() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, an extra, is not installed")
    history = fit(model(metrics=["mae"]), epochs=4, validation_data=(X, Y), validation_freq=2)
    figure = history.plot()
    assert [axes.get_title() for axes in figure.axes] == ["loss", "mae"]
    training, validation = figure.axes[0].lines
    assert list(training.get_xdata()) == [1, 2, 3, 4]
    assert list(training.get_ydata()) == history.history["loss"]
    assert (training.get_label(), validation.get_label()) == ("training", "validation")
    assert list(validation.get_xdata()) == [2, 4]
    assert len(history.plot("mae").axes) == 1
    assert figure._repr_png_().startswith(b"\x89PNG")  # notebooks call this
    with pytest.raises(ArgumentError, match="no metric 'auc'"):
        history.plot(["auc"])
    with pytest.raises(ArgumentError, match="no epochs to plot"):
        callbacks.History().plot()


def test_plot_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    history = fit(model())
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"install.*matplotlib>=3.8"):
        history.plot()
