"""Images as arrays, and training settings, compared with Keras."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.keras_reference import keras

import tallow as tl
from tallow import keras as ours
from tallow.errors import ArgumentError, ArgumentTypeError, MissingPackageError, ShapeError

image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
PICTURE = np.random.default_rng(0).integers(0, 256, (7, 10, 4)).astype(np.float32)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("layout", ["channels_last", "channels_first"])
@pytest.mark.parametrize("scale", [True, False])
def test_arrays_to_images_and_back(channels: int, layout: str, scale: bool) -> None:
    x = PICTURE[:, :, :channels] / (1 if channels > 1 else 0.5)  # a single channel may have larger values
    x = x if layout == "channels_last" else x.transpose(2, 0, 1)
    mine, theirs = (k.utils.array_to_img(x, data_format=layout, scale=scale) for k in (ours, keras))
    assert mine.mode == theirs.mode
    np.testing.assert_allclose(np.asarray(mine, int), np.asarray(theirs, int), atol=1)  # 254.999 or 255
    for image in (mine, mine.convert("L")):
        back = [k.utils.img_to_array(image, data_format=layout, dtype="float64") for k in (ours, keras)]
        assert back[0].dtype == back[1].dtype
        np.testing.assert_array_equal(*back)


@pytest.mark.parametrize("mode", ["rgb", "rgba", "grayscale"])
@pytest.mark.parametrize("name", ["a.png", "a.jpg"])
def test_files(mode: str, name: str, tmp_path: Path) -> None:
    ours.utils.save_img(tmp_path / name, PICTURE[:, :, :3])
    with image.open(tmp_path / name) as saved:
        assert saved.format == {"a.png": "PNG", "a.jpg": "JPEG"}[name]
    for options in (
        {},
        {"target_size": (4, 4), "interpolation": "bilinear"},
        {"target_size": (4, 4), "keep_aspect_ratio": True},
    ):
        sources: list[Any] = [tmp_path / name, str(tmp_path / name), io.BytesIO((tmp_path / name).read_bytes())]
        for source in sources:
            mine = ours.utils.load_img(source, color_mode=mode, **options)
            theirs = keras.utils.load_img(tmp_path / name, color_mode=mode, **options)
            assert mine.mode == theirs.mode
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))
    with pytest.warns(UserWarning, match="alpha"):
        ours.utils.save_img(tmp_path / "b.jpg", PICTURE)


@pytest.mark.parametrize("size", [(4, 4), (3, 9), (14, 5)])
@pytest.mark.parametrize("shape", [(7, 10, 3), (2, 7, 10, 3)])
def test_smart_resize(size: tuple[int, int], shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    mine = ours.preprocessing.image.smart_resize(x, size)
    assert isinstance(mine, np.ndarray)
    theirs = keras.preprocessing.image.smart_resize(keras.ops.convert_to_tensor(x), size)
    np.testing.assert_allclose(mine, theirs.numpy(), atol=1e-5)
    assert isinstance(ours.preprocessing.image.smart_resize(tl.tensor(x), size), tl.Tensor)


def test_invalid_images() -> None:
    with pytest.raises(ShapeError, match="expected an image of 2 or 3 dims"):
        ours.utils.img_to_array(np.zeros(3))
    with pytest.raises(ShapeError, match="2 channels"):
        ours.utils.array_to_img(np.zeros((2, 2, 2)))
    with pytest.raises(ArgumentError, match="color_mode"):
        ours.utils.load_img("a.png", color_mode="cmyk")
    with pytest.raises(ArgumentTypeError, match="path"):
        ours.utils.load_img(3)
    with pytest.raises(ArgumentError, match="height, width"):
        ours.preprocessing.image.smart_resize(np.zeros((2, 2, 2)), (3,))


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(MissingPackageError, match=r"(?i)install it: .*pillow"):
        ours.utils.array_to_img(PICTURE)


class Count(ours.callbacks.Callback):  # type: ignore[misc]
    """Counts epochs and batches."""

    def __init__(self) -> None:
        super().__init__()
        self.epochs = self.batches = 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epochs += 1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches += 1


def compile_model() -> Any:
    model = ours.Sequential([ours.Input((2,)), ours.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def test_limits_of_epochs_and_steps() -> None:
    count = Count()
    ours.config.set_max_epochs(2)
    ours.config.set_max_steps_per_epoch(3)
    try:
        assert (ours.config.max_epochs(), ours.config.max_steps_per_epoch()) == (2, 3)
        with pytest.warns(UserWarning, match="max_epochs|max_steps_per_epoch"):
            compile_model().fit(
                np.ones((40, 2)), np.ones((40, 1)), batch_size=4, epochs=5, verbose=0, callbacks=[count]
            )
        assert (count.epochs, count.batches) == (2, 6)
        short = Count()
        compile_model().fit(np.ones((8, 2)), np.ones((8, 1)), batch_size=4, epochs=1, verbose=0, callbacks=[short])
        assert (short.epochs, short.batches) == (1, 2)
        with pytest.raises(ArgumentError, match="max_epochs"):
            ours.config.set_max_epochs(0)
    finally:
        ours.config.set_max_epochs(None)
        ours.config.set_max_steps_per_epoch(None)


def test_messages_go_to_a_logger(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    ours.utils.disable_interactive_logging()
    try:
        assert not ours.config.is_interactive_logging_enabled()
        with caplog.at_level(logging.INFO, logger="tallow.keras"):
            compile_model().fit(np.ones((8, 2)), np.ones((8, 1)), epochs=2, verbose=1)
        assert capsys.readouterr().out == ""
        assert "Epoch 2/2" in caplog.text
        assert "loss: " in caplog.text
    finally:
        ours.utils.enable_interactive_logging()
    compile_model().fit(np.ones((8, 2)), np.ones((8, 1)), verbose=2)
    assert "loss: " in capsys.readouterr().out


def test_remat_recomputes_and_has_the_same_gradients() -> None:
    calls = []

    def cube(x: Any) -> Any:
        calls.append(1)
        return x * x * x

    x = tl.tensor([2.0], requires_grad=True)
    ours.remat(cube)(x).sum().backward()
    assert len(calls) == 2
    assert x.grad.tolist() == [12.0]
