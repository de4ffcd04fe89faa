"""Write the metrics of every epoch to a CSV file."""

from __future__ import annotations

import csv
import os
from typing import TextIO, cast

from tallow.io.atomic import naming
from tallow.keras.callbacks.callback import Callback, Logs


class CSVLogger(Callback):
    """Write a row at the end of each epoch: "epoch", from 0, and the metrics, with "NA" for missing ones.

    Args:
        filename: a text file in UTF-8.
        separator: the string between values.
        append: append to the file instead of overwriting it.
    """

    def __init__(self, filename: str | os.PathLike[str], separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.filename = filename
        self.sep = separator
        self.append = append
        self._columns: list[str] = []

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._columns = []
        with self._open("a" if self.append else "w"):  # report a file that cannot be written before the first epoch
            pass

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        logs = logs or {}
        if not self._columns:
            self._columns = sorted(logs)
            if not any(name.startswith("val_") for name in logs):  # validation may start in a later epoch
                self._columns += [f"val_{name}" for name in self._columns]
        with naming(self.filename), self._open("a") as file:
            writer = csv.DictWriter(
                file, ["epoch", *self._columns], restval="NA", extrasaction="ignore", delimiter=self.sep
            )
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow({"epoch": epoch} | logs)

    def _open(self, mode: str) -> TextIO:
        """Open the file for one row: if training ends in an error, nothing would close an open file."""
        return cast(TextIO, open(self.filename, mode, encoding="utf-8", newline=""))
