"""Resume training after an interruption."""

from __future__ import annotations

import contextlib
import os

from tallow.errors import ArgumentError, CheckpointError
from tallow.io.atomic import atomic_copy, made_folder
from tallow.io.checkpoint import load_checkpoint, save_checkpoint
from tallow.keras.callbacks.callback import Callback, Logs


class BackupAndRestore(Callback):
    """Save the whole state of training after each epoch; the next `fit` with the same folder resumes from it.

    The file holds the model, the optimizer and the random number generators, so that a resumed run matches an
    uninterrupted one. After an interruption within an epoch, training restarts that epoch with the last saved weights.

    Args:
        backup_dir: the folder of the file, "training.safetensors".
        save_freq: "epoch", or a number of batches.
        double_checkpoint: keep the previous file too, and use it if the last one is damaged.
        delete_checkpoint: delete the files when training ends.

    Raises:  ArgumentError for an invalid `save_freq`; CheckpointError if the file belongs to another model
    """

    def __init__(
        self,
        backup_dir: str | os.PathLike[str],
        save_freq: str | int = "epoch",
        double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
    ) -> None:
        super().__init__()
        if not os.fspath(backup_dir):
            raise ArgumentError("BackupAndRestore: backup_dir is empty")
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ArgumentError(f"BackupAndRestore: save_freq={save_freq!r}", hint='use "epoch" or a number of batches')
        self.backup_dir = os.fspath(backup_dir)
        self.save_freq = save_freq
        self.double_checkpoint = double_checkpoint
        self.delete_checkpoint = delete_checkpoint
        self._file = os.path.join(self.backup_dir, "training.safetensors")
        self._earlier = f"{self._file}.earlier"
        self._batches = 0
        self._epoch = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        if not os.path.exists(self._file):
            return
        try:
            self._restore(self._file)
        except CheckpointError:
            if not (self.double_checkpoint and os.path.exists(self._earlier)):
                raise
            self._restore(self._earlier)

    def _restore(self, path: str) -> None:
        progress = load_checkpoint(path, model=self.model, optimizer=self.model.optimizer)
        self._epoch = int(progress["epoch"])
        self.model.resume_epoch = self._epoch

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._batches += 1
        if self.save_freq != "epoch" and self._batches % int(self.save_freq) == 0:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch = epoch + 1
        if self.save_freq == "epoch":
            self._save()

    def _save(self) -> None:
        with made_folder(self.backup_dir):
            if self.double_checkpoint and os.path.exists(self._file):
                atomic_copy(self._file, self._earlier)
            save_checkpoint(self._file, model=self.model, optimizer=self.model.optimizer, epoch=self._epoch)

    def on_train_end(self, logs: Logs | None = None) -> None:
        if not self.delete_checkpoint:
            return
        for path in (self._file, self._earlier):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        with contextlib.suppress(OSError):  # the folder contains other files
            os.rmdir(self.backup_dir)
