"""Models of tallow.keras in files: round trips, and refused files."""

from __future__ import annotations

import io
import json
import re
import zipfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.memory_limit import limit_peak_memory

import tallow as tl
from tallow import keras
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, TallowError
from tallow.io import nested
from tallow.io.safetensors import encode
from tallow.keras import layers
from tallow.keras.saving.hdf5 import WeightsFile

MIB = 2**20


def normal(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def numbers(x: Any) -> np.ndarray[Any, Any]:
    return x.numpy(force=True)


X, Y = normal(32, 4), normal(32, 1, seed=1)


def sequential() -> Any:
    return keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(8, "relu", kernel_regularizer="l2"),
            layers.BatchNormalization(),
            layers.Dense(1),
        ]
    )


def functional() -> Any:
    x = keras.Input((4,))
    h = layers.Dense(8, activation="tanh")(x)
    return keras.Model(x, layers.Dense(1)(layers.concatenate([h, 2 * h[:, :3]])))


class Mine(keras.Model):  # type: ignore[misc]
    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden = [layers.Dense(units) for _ in range(2)]
        self.head = layers.Dense(1)

    def call(self, x: Any) -> Any:
        for layer in self.hidden:
            x = tl.relu(layer(x))
        return self.head(x)


def double(x: Any) -> Any:
    return 2 * x


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pytest.importorskip("h5py", reason="h5py, which reads and writes Keras' files, is not installed")
    return tmp_path / "model.keras"


@pytest.mark.parametrize("make", [sequential, functional, lambda: Mine(5)])
def test_training_resumes_exactly(make: Any, path: Path) -> None:
    keras.utils.set_random_seed(0)
    model = make()
    rate = keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.5)
    model.compile(keras.optimizers.Adam(rate), loss="mse", metrics=["mae"])
    model.fit(X, Y, epochs=2, batch_size=8, verbose=0)
    model.save(path)
    loaded = keras.models.load_model(path, custom_objects={"Mine": Mine})
    assert type(loaded) is type(model)
    assert loaded.name == model.name
    np.testing.assert_array_equal(numbers(loaded(X)), numbers(model(X)))
    assert loaded.optimizer.iterations == model.optimizer.iterations == 8
    histories = [m.fit(X, Y, epochs=2, batch_size=8, shuffle=False, verbose=0).history for m in (model, loaded)]
    assert histories[0] == histories[1]
    assert set(histories[0]) == {"loss", "mae"}


def test_without_compiling_there_is_no_optimizer(path: Path) -> None:
    model = sequential()
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    model.save(path)
    assert not keras.models.load_model(path, compile=False).compiled
    model.save(path, include_optimizer=False)
    assert keras.models.load_model(path).optimizer.iterations == 0


def test_the_file_is_a_zip_of_json_and_hdf5(path: Path) -> None:
    model = functional()
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["metadata.json", "config.json", "model.weights.h5"]
        config = json.loads(archive.read("config.json"))
        assert config["config"]["layers"][0]["class_name"] == "InputLayer"
        weights = archive.read("model.weights.h5")
    with closing(WeightsFile(np.frombuffer(weights, np.uint8), "weights")) as file:
        paths = file.paths()
    assert sorted(paths) == [f"layers/{name}/vars/{i}" for name in ("dense", "dense_1") for i in range(2)]
    first = path.read_bytes()
    model.save(path)
    assert path.read_bytes() == first


def test_frozen_layers_stay_frozen(path: Path) -> None:
    model = sequential()
    model.layers[0].trainable = False
    model.save(path)
    loaded = keras.models.load_model(path)
    assert [layer.trainable for layer in loaded.layers] == [False, True, True]
    assert len(loaded.trainable_weights) == len(model.trainable_weights)


def test_functions_and_classes_of_ones_own_come_back_by_name(path: Path) -> None:
    model = keras.Sequential([keras.Input((4,)), layers.Lambda(double), layers.Dense(2, activation=double)])
    model.save(path)
    with pytest.raises(ArgumentError, match=r"unknown function 'double'(?s:.)*custom_objects"):
        keras.models.load_model(path)
    loaded = keras.models.load_model(path, custom_objects={"double": double})
    np.testing.assert_array_equal(numbers(loaded(X)), numbers(model(X)))
    with keras.utils.custom_object_scope({"double": double}):
        keras.models.load_model(path)


def test_configurations_hold_no_values(path: Path) -> None:
    inputs = normal(50, 4)
    lstm = layers.Bidirectional(layers.LSTM(3))
    embedding = layers.Embedding(50, 4, weights=[inputs])
    model = keras.Sequential([keras.Input((5,)), embedding, lstm, layers.Lambda(keras.activations.relu)])
    assert len(model.to_json()) < 5000
    model.save(path)
    indices = np.arange(10).reshape(2, 5)
    np.testing.assert_array_equal(numbers(keras.models.load_model(path)(indices)), numbers(model(indices)))


def test_registered_classes_need_not_be_named(path: Path) -> None:
    @keras.saving.register_keras_serializable(package="test")
    class Twice(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return 2 * x

    try:
        keras.Sequential([keras.Input((4,)), Twice()]).save(path)
        assert numbers(keras.models.load_model(path)(np.ones((1, 4)))).tolist() == [[2.0] * 4]
        assert keras.saving.get_registered_name(Twice) == "test>Twice"
    finally:
        del keras.saving.get_custom_objects()["test>Twice"]
    with pytest.raises(ArgumentError, match="unknown class 'Twice'"):
        keras.models.load_model(path)


def test_a_lambda_is_neither_saved_nor_loaded(path: Path) -> None:
    model = keras.Sequential([keras.Input((4,)), layers.Lambda(lambda x: x)])
    with pytest.raises(ArgumentTypeError, match="a lambda cannot be saved"):
        model.save(path)
    assert not path.exists()
    code = {"class_name": "__lambda__", "config": {"code": "4wEAAAAAAAAA", "defaults": None, "closure": None}}
    config = layers.Lambda(double).get_config() | {"function": code}
    with pytest.raises(CheckpointError, match="code in files is never executed"):
        keras.saving.deserialize_keras_object({"class_name": "Lambda", "config": config})
    with pytest.raises(CheckpointError, match="code in files is never executed"):
        layers.Lambda.from_config(config)
    keras.Sequential([keras.Input((4,))]).save(path)
    with pytest.raises(ArgumentError, match="never run"):
        keras.models.load_model(path, safe_mode=False)


# ------------------------------------------------------------------------------------------------------ malicious files


def rewrite(path: Path, **entries: bytes | None) -> Path:
    """Write a copy of a saved model with entries replaced, added, or omitted (None)."""
    with zipfile.ZipFile(path) as archive:
        content: dict[str, bytes | None] = {name: archive.read(name) for name in archive.namelist()}
    content |= {name.replace("__", "."): value for name, value in entries.items()}
    target = path.with_name("other.keras")
    with zipfile.ZipFile(target, "w") as archive:
        for name, value in content.items():
            if value is not None:
                archive.writestr(name, value)
    return target


@pytest.fixture
def saved(path: Path) -> Path:
    sequential().save(path)
    return path


@pytest.mark.parametrize(("entries", "message"), [
    ({"config__json": None}, "config.json is missing"),
    ({"model.weights.h5": None}, "model.weights.h5 is missing"),
    ({"metadata__json": b"[]"}, "not a JSON object"),
    ({"metadata__json": b'{"format": "tallow.keras", "version": 9}'}, "version 9"),
    ({"config__json": b"{"}, "not valid JSON"),
    ({"config__json": b"{}"}, "does not describe a valid model"),
    ({"config__json": b'{"class_name": "Sequential", "config": {}, "registered_name": null}'}, "a valid model"),
    (
        {"config__json": b'{"class_name": "Dense", "config": {"units": 2}, "registered_name": null}'},
        "a Dense, which is not a model",
    ),
    ({"config__json": b'{"class_name": "load_model", "config": {}, "registered_name": null}'}, "unknown class"),
    ({"config__json": b'{"class_name": "os.system", "config": "ls", "registered_name": null}'}, "unknown class"),
    ({"config__json": b'{"class_name": ["a"], "config": {}, "registered_name": null}'}, "unknown class"),
    ({"config__json": b'{"a":' * 300 + b"1" + b"}" * 300}, "levels deep"),
    ({"model.weights.h5": b"\x89HDF"}, "or not an HDF5 file"),
    ({"../evil.txt": b"x"}, "leads out of the archive"),
])  # fmt: skip
def test_broken_files_are_refused(saved: Path, entries: dict[str, bytes | None], message: str) -> None:
    with pytest.raises(TallowError, match=message):
        keras.models.load_model(rewrite(saved, **entries))


def test_weights_that_do_not_match_the_config(saved: Path, tmp_path: Path) -> None:
    other = keras.Sequential([keras.Input((4,)), layers.Dense(9, "relu"), layers.Dense(1), layers.Dense(1)])
    file = tmp_path / "other.weights.h5"
    other.save_weights(file)
    with pytest.raises(CheckpointError) as caught:
        keras.models.load_model(rewrite(saved, **{"model.weights.h5": file.read_bytes()}))
    assert re.search(r"wrong shape  layers/dense/vars/0 \(.*kernel\): file \(4, 9\), model \(4, 8\)", str(caught.value))
    assert "missing      layers/batch_normalization/vars/0" in str(caught.value)
    assert "unexpected   layers/dense_2/vars/0" in str(caught.value)


# What an HDF5 file can hold in place of a kernel, besides a plain array.
TRICKS: dict[str, Any] = {
    "is a link": lambda h5py, group, path: group.__setitem__("0", h5py.SoftLink("/layers/dense_1/vars/0")),
    "another file": lambda h5py, group, path: group.__setitem__("0", h5py.ExternalLink(path, "/layers/dense/vars/1")),
    "is not an array": lambda h5py, group, path: group.create_group("0"),
    "which is not numeric": lambda h5py, group, path: group.create_dataset("0", data=["a", "b"]),
    "would expand": lambda h5py, group, path: group.create_dataset("0", (1 << 20, 1 << 20), "f4", chunks=True),
    "is stored in another file": lambda h5py, group, path: group.create_dataset(
        "0", (4, 8), "f4", external=[(path, 0, 128)]
    ),
}


@pytest.mark.parametrize("message", TRICKS)
def test_weights_must_be_stored_in_the_file(saved: Path, message: str) -> None:
    import h5py

    with zipfile.ZipFile(saved) as archive:
        buffer = io.BytesIO(archive.read("model.weights.h5"))
    with h5py.File(buffer, "r+") as file:
        group = file["layers/dense/vars"]
        del group["0"]
        TRICKS[message](h5py, group, str(saved.with_name("secret.bin")))
    expected = "is a link" if message == "another file" else message
    with limit_peak_memory(4 * MIB), pytest.raises(CheckpointError, match=expected):
        keras.models.load_model(rewrite(saved, **{"model.weights.h5": buffer.getvalue()}))


def test_files_of_earlier_versions_are_read(path: Path) -> None:
    model = sequential()
    model.compile(keras.optimizers.Adam(0.1), "mse")
    model.fit(X, Y, epochs=1, batch_size=8, verbose=0)
    model.save(path)
    state, tensors = nested.pack({"optimizer": model.optimizer.state_dict()})
    metadata = {"format": "tallow.keras", "version": 1, "tallow_version": "0.1.0"}
    earlier = rewrite(
        path,
        metadata__json=json.dumps(metadata).encode(),
        **{
            "model.weights.h5": None,
            "model.weights.safetensors": b"".join(map(bytes, encode(model.state_dict()))),
            "optimizer.safetensors": b"".join(map(bytes, encode(tensors, {"state": state}))),
        },
    )
    loaded = keras.models.load_model(earlier)
    np.testing.assert_array_equal(numbers(loaded(X)), numbers(model(X)))
    losses = [m.fit(X, Y, batch_size=8, shuffle=False, verbose=0).history["loss"] for m in (model, loaded)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("make", [sequential, functional])
def test_an_optimizer_of_tallow_is_kept_too(path: Path, make: Any) -> None:
    model = make()
    model.compile(tl.optim.RAdam(model.parameters(), 0.05), "mse")
    model.fit(X, Y, batch_size=8, verbose=0)
    model.save(path)
    loaded = keras.models.load_model(path)
    losses = [m.fit(X, Y, batch_size=8, shuffle=False, verbose=0).history["loss"] for m in (model, loaded)]
    assert losses[0] == losses[1]


def test_a_config_cannot_allocate_more_memory_than_the_file_has(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        config = json.loads(archive.read("config.json"))
    config["config"]["layers"][1]["config"]["units"] = 10**7
    with limit_peak_memory(4 * MIB), pytest.raises(CheckpointError, match="larger than the rest of the file"):
        keras.models.load_model(rewrite(saved, config__json=json.dumps(config).encode()))


def test_a_config_that_is_not_a_model_is_refused(saved: Path) -> None:
    config = {"class_name": "Sequential", "config": {"name": "x", "layers": [[]]}, "registered_name": None}
    with pytest.raises(TallowError):
        keras.models.load_model(rewrite(saved, config__json=json.dumps(config).encode()))


def test_damaged_weights_raise_only_tallow_errors(path: Path, tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((2,)), layers.Dense(1)])
    path_of_weights = tmp_path / "whole.weights.h5"
    model.save_weights(path_of_weights)
    raw = path_of_weights.read_bytes()
    name = raw.index(b"layers\0")
    model_again = keras.Sequential([keras.Input((2,)), layers.Dense(1)])
    for place in (name, name - 8, 0, 9, len(raw) // 2, len(raw) - 40):
        for value in (0, 0x80, 0xFF):
            path_of_weights.write_bytes(raw[:place] + bytes([value]) + raw[place + 1 :])
            with suppress(TallowError):
                model_again.load_weights(path_of_weights)
    for length in (0, 7, 100, len(raw) // 2, len(raw) - 1):
        path_of_weights.write_bytes(raw[:length])
        with pytest.raises(CheckpointError, match="not an HDF5 file"):
            model_again.load_weights(path_of_weights)


# -------------------------------------------------------------------------------------------------------- weights files


@pytest.mark.parametrize("extension", ["safetensors", "h5"])
def test_weights_alone(tmp_path: Path, extension: str) -> None:
    if extension == "h5":
        pytest.importorskip("h5py", reason="h5py is not installed")
    path = tmp_path / f"model.weights.{extension}"
    model = sequential()
    model.save_weights(path)
    other = sequential()
    other.load_weights(path)
    np.testing.assert_array_equal(numbers(other(X)), numbers(model(X)))


def test_all_mismatched_weights_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.weights.safetensors"
    sequential().save_weights(path)
    wider = keras.Sequential([keras.Input((4,)), layers.Dense(9), layers.BatchNormalization(), layers.Dense(1)])
    before = wider.get_weights()
    with pytest.raises(CheckpointError) as caught:
        wider.load_weights(path)
    named = [line.split()[2] for line in str(caught.value).splitlines() if "wrong shape" in line]
    assert len(named) == 7
    assert "dense.kernel: file (4, 8), model (4, 9)" in str(caught.value)
    wider.load_weights(path, skip_mismatch=True)
    changed = [(a != b).any() for a, b in zip(wider.get_weights(), before, strict=True)]
    assert changed == [False] * 7 + [False]  # the one that fits, the last bias, is 0 in both
    with pytest.raises(ArgumentError, match="is not built, so weights cannot be loaded"):
        keras.Sequential([layers.Dense(8)]).load_weights(path)


def test_other_formats_are_refused(tmp_path: Path) -> None:
    model = sequential()
    with pytest.raises(ArgumentError, match=r"ends in \.keras"):
        model.save(tmp_path / "model")
    for name in ("model.h5", "model"):
        with pytest.raises(ArgumentError, match=r"ends in \.weights\.h5 or \.safetensors"):
            model.save_weights(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_files_are_not_overwritten_unless_asked_for(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(ArgumentError, match="exists"):
        sequential().save(saved, overwrite=False)
    with pytest.raises(FileNotFoundError):
        sequential().save(saved.parent / "no such folder" / "model.keras")
    assert saved.read_bytes() == before
