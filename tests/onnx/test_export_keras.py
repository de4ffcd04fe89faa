"""Keras layers and the models of the package, exported to ONNX, run by onnxruntime, and loaded."""

from __future__ import annotations

from typing import Any

import pytest
from support.keras_cases import CASES

import tallow as tl
from tallow import keras
from tallow.errors import ArgumentError, UnsupportedError
from tallow.export import Dim
from tallow.models.built_in import glosses, spoken, stories

pytest.importorskip("onnx", reason="onnx, which checks the files, is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime, the reference of these tests, is not installed")
pytestmark = [pytest.mark.native, pytest.mark.cpu("onnxruntime computes on the CPU")]

LAST = {name: (name, arguments, shapes) for name, arguments, shapes in CASES}  # one line of each layer


@pytest.mark.parametrize(("name", "arguments", "shapes"), LAST.values(), ids=LAST)
def test_a_layer_is_exported(name: str, arguments: dict[str, Any], shapes: list[tuple[int, ...]]) -> None:
    from support import onnx_runs as runs

    tl.manual_seed(0)
    inputs = [keras.Input(shape[1:]) for shape in shapes]
    layer = getattr(keras.layers, name)(**arguments)
    model: Any = keras.Model(inputs, layer(inputs[0] if len(inputs) == 1 else inputs))
    tensors = [tl.randn(*shape) for shape in shapes]
    args = tuple(tensors) if len(tensors) == 1 else (tensors,)
    program, file = runs.exported(model, args)
    runs.assert_runtime_agrees(program, runs.session(file), model, args, {})
    runs.assert_loaded_agrees(file, model, args, {}, 2e-6)


def test_a_model_takes_batches_of_any_size() -> None:
    from support import onnx_runs as runs

    layers = keras.layers
    model: Any = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 3, activation="relu", padding="same"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(5, activation="softmax"),
        ]
    )
    program, file = runs.exported(model, (tl.randn(1, 8, 8, 3),), dynamic_shapes=({0: "batch"},))
    runs.assert_runtime_agrees(program, runs.session(file), model, (tl.randn(3, 8, 8, 3),), {})


def test_the_models_of_the_package_are_exported() -> None:
    from support import onnx_runs as runs

    tokens = Dim("tokens", max=100)
    model: Any = stories.load()[0].eval()
    texts, longer = (tl.tensor([[1, 5, 7, 9, 20]]),), (tl.tensor([[1, 5, 7, 9, 20, 3, 4]]),)
    program, file = runs.exported(model, texts, dynamic_shapes=({1: tokens},))
    runs.assert_runtime_agrees(program, runs.session(file), model, longer, {}, 1e-4)
    whisper = spoken.load().eval()
    sound = tl.randn(1, whisper.config.num_mel_bins, 2 * whisper.config.max_source_positions)
    heard = (sound, tl.tensor([[1, 2, 3]]))
    program, file = runs.exported(whisper, heard)
    runs.assert_runtime_agrees(program, runs.session(file), whisper, heard, {}, 1e-4)
    encoder: Any = glosses.load().model.eval()
    program, file = runs.exported(encoder, texts, dynamic_shapes=({1: tokens},))
    runs.assert_runtime_agrees(program, runs.session(file), encoder, longer, {}, 1e-4)


def test_keras_export_writes_a_file_for_any_batch(tmp_path: Any) -> None:
    from support import onnx_runs as runs

    first, second = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    output = keras.layers.Dense(3)(keras.layers.Concatenate()([first, second]))
    model: Any = keras.Model([first, second], output)
    model.export(tmp_path / "model.onnx", format="onnx")
    run = runs.session((tmp_path / "model.onnx").read_bytes())
    x, y = tl.randn(5, 4), tl.randn(5, 4)
    (got,) = run.run(None, {"left": x.numpy(), "right": y.numpy()})
    tl.testing.assert_close(tl.from_numpy(got), model([x, y]).detach())
    with pytest.raises(UnsupportedError, match="tf_saved_model"):
        model.export(tmp_path / "model")


def test_keras_export_takes_a_signature(tmp_path: Any) -> None:
    from support import onnx_runs as runs

    class Doubled(keras.Model):
        def call(self, x: tl.Tensor) -> tl.Tensor:
            return x * 2

    model: Any = Doubled()
    with pytest.raises(ArgumentError, match="not known"):
        model.export(tmp_path / "model.onnx", format="onnx")
    model.export(tmp_path / "model.onnx", "onnx", input_signature=[keras.InputSpec(shape=(None, 3), dtype="float32")])
    run = runs.session((tmp_path / "model.onnx").read_bytes())
    assert run.run(None, {"input_0": tl.ones(5, 3).numpy()})[0].tolist() == [[2.0] * 3] * 5
