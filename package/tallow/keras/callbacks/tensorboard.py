"""Write metrics and weights for TensorBoard, with tensorboardX, an optional dependency."""

from __future__ import annotations

import os
import time
from typing import Any

from tallow.errors import ArgumentError, MissingPackageError
from tallow.keras.callbacks.callback import Callback, Logs


class TensorBoard(Callback):
    """Write log files for `tensorboard --logdir logs`.

    Epoch metrics go to the folders `train` and `validation` as epoch_loss etc., the learning rate as
    epoch_learning_rate, and metrics of an evaluation, by step, as evaluation_loss_vs_iterations.

    Args:
        log_dir: the folder.
        histogram_freq: write histograms of the weights every this many epochs; 0 writes none.
        write_graph: write the model's configuration, as text.
        write_steps_per_second: write the training speed per epoch.
        update_freq: "epoch", or the number of batches after which metrics are written as batch_loss etc.; "batch" is 1.
        write_images, profile_batch, embeddings_freq, embeddings_metadata: not supported.

    Raises:  MissingPackageError without tensorboardX, when training begins; ArgumentError for unsupported options
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] = "logs",
        histogram_freq: int = 0,
        write_graph: bool = True,
        write_images: bool = False,
        write_steps_per_second: bool = False,
        update_freq: str | int = "epoch",
        profile_batch: Any = 0,
        embeddings_freq: int = 0,
        embeddings_metadata: Any = None,
    ) -> None:
        super().__init__()
        unsupported = {
            "write_images": write_images,
            "profile_batch": profile_batch,
            "embeddings_freq": embeddings_freq,
            "embeddings_metadata": embeddings_metadata,
        }
        if used := [name for name, value in unsupported.items() if value]:
            raise ArgumentError(f"TensorBoard: {used[0]} is not supported", hint=f"remove {used[0]}")
        if update_freq not in ("epoch", "batch") and not (isinstance(update_freq, int) and update_freq > 0):
            raise ArgumentError(f"TensorBoard: update_freq={update_freq!r}", hint='use "epoch", "batch" or a number')
        self.log_dir = os.fspath(log_dir)
        self.histogram_freq = histogram_freq
        self.write_graph = write_graph
        self.write_steps_per_second = write_steps_per_second
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self._writers: dict[str, Any] = {}
        self._batches = 0  # training batches so far
        self._epoch_began = (0.0, 0)  # time and number of batches at the start of the epoch

    def _writer(self, name: str) -> Any:
        """Return the writer of a folder, and create it at the first use."""
        if name not in self._writers:
            try:
                from tensorboardX import SummaryWriter  # optional: the extra "tensorboard"
            except ImportError as error:
                raise MissingPackageError("tensorboardX", "the TensorBoard callback", "tensorboard") from error
            self._writers[name] = SummaryWriter(os.path.join(self.log_dir, name))
        return self._writers[name]

    def on_train_begin(self, logs: Logs | None = None) -> None:
        writer = self._writer("train")
        if self.write_graph:
            writer.add_text("keras", self.model.to_json(), 0)

    def on_train_end(self, logs: Logs | None = None) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._batches += 1
        if self.update_freq != "epoch" and self._batches % int(self.update_freq) == 0:
            for name, value in (logs or {}).items():
                self._writer("train").add_scalar(f"batch_{name}", value, self._batches - 1)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch_began = (time.monotonic(), self._batches)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        for name, value in (logs or {}).items():
            part = "validation" if name.startswith("val_") else "train"
            self._writer(part).add_scalar(f"epoch_{name.removeprefix('val_')}", value, epoch)
        train = self._writer("train")
        if self.model.optimizer is not None:
            train.add_scalar("epoch_learning_rate", self.model.optimizer.learning_rate, epoch)
        if self.write_steps_per_second:
            start, batches = self._epoch_began
            rate = (self._batches - batches) / max(time.monotonic() - start, 1e-9)
            train.add_scalar("epoch_steps_per_second", rate, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            for layer in self.model.layers:
                for weight in layer.weights:
                    name = getattr(weight, "name", "weight")
                    train.add_histogram(f"{layer.name}/{name}/histogram", weight.numpy(force=True), epoch)

    def on_test_end(self, logs: Logs | None = None) -> None:
        if self.model.optimizer is not None and self._writers:
            for name, value in (logs or {}).items():
                tag = f"evaluation_{name}_vs_iterations"
                self._writer("validation").add_scalar(tag, value, self.model.optimizer.iterations)
