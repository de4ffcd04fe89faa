"""The metrics of every epoch as a table in a file."""

from __future__ import annotations

import csv
import os
from typing import Any, TextIO

from tallow.keras.callbacks.callback import Callback, Logs


class CSVLogger(Callback):
    """Writes a row for each epoch as it ends: "epoch", from 0, and the metrics, "NA" for one that is not there.

    Args:
        filename: a text file in UTF-8.
        separator: what stands between two values.
        append: go on behind what the file has, instead of starting it anew.
    """

    def __init__(self, filename: str | os.PathLike[str], separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.filename = filename
        self.sep = separator
        self.append = append
        self._file: TextIO | None = None
        self._writer: Any = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._close()
        self._file = open(self.filename, "a" if self.append else "w", encoding="utf-8", newline="")  # noqa: SIM115

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        logs = logs or {}
        if self._file is None:
            return
        if self._writer is None:
            self._writer = self._begin(self._file, logs)
        self._writer.writerow({"epoch": epoch} | logs)
        self._file.flush()

    def _begin(self, file: TextIO, logs: Logs) -> csv.DictWriter[str]:
        columns = sorted(logs)
        if not any(name.startswith("val_") for name in columns):  # validation may come with a later epoch
            columns += [f"val_{name}" for name in columns]
        writer = csv.DictWriter(file, ["epoch", *columns], restval="NA", extrasaction="ignore", delimiter=self.sep)
        if file.tell() == 0:
            writer.writeheader()
        return writer

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._writer = None
