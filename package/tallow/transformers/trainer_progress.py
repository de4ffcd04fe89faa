"""Callbacks that show the progress of a Trainer: a bar, lines, a table in a notebook, or TensorBoard's files."""

from __future__ import annotations

import html
import sys
from typing import Any

from tallow.errors import MissingPackageError
from tallow.training.progress import progress_bar
from tallow.transformers.trainer_callback import TrainerCallback, TrainerControl, TrainerState
from tallow.transformers.trainer_utils import has_length
from tallow.transformers.training_args import TrainingArguments


class ProgressCallback(TrainerCallback):
    """Shows a bar of the steps, with tqdm.

    Args:  max_str_len: longer texts in the logs are cut.
    """

    def __init__(self, max_str_len: int = 100) -> None:
        self.max_str_len = max_str_len
        self.training_bar: Any = None
        self.prediction_bar: Any = None
        self.current_step = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.training_bar = progress_bar()(total=state.max_steps, dynamic_ncols=True)
        self.current_step = 0

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self.training_bar.update(state.global_step - self.current_step)
        self.current_step = state.global_step

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        loader: Any = kwargs.get("eval_dataloader")
        if has_length(loader):
            if self.prediction_bar is None:
                leave = self.training_bar is None
                self.prediction_bar = progress_bar()(total=len(loader), leave=leave, dynamic_ncols=True)
            self.prediction_bar.update(1)

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.prediction_bar is not None:
            self.prediction_bar.close()
        self.prediction_bar = None

    on_predict = on_evaluate

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.training_bar is not None:
            shown = {name: self._short(value) for name, value in kwargs["logs"].items() if name != "total_flos"}
            self.training_bar.write(str(shown))

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.training_bar.close()
        self.training_bar = None

    def _short(self, value: Any) -> Any:
        if isinstance(value, str) and len(value) > self.max_str_len:
            return f"{value[: self.max_str_len]}… ({len(value)} characters)"
        return shown_number(value)


def shown_number(value: Any) -> Any:
    """Return a float as a short text, and anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else value


class PrinterCallback(TrainerCallback):
    """Prints the logs as lines."""

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        logs = kwargs["logs"]
        logs.pop("total_flos", None)
        print({name: shown_number(value) for name, value in logs.items()}, flush=True)


class NotebookProgressCallback(TrainerCallback):
    """Shows the step and a table of the losses and metrics below a cell of a notebook."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._shown: Any = None
        self._loss: Any = "No log"

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.rows, self._loss = [], "No log"
        self._show(state)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if state.global_step % max(1, state.max_steps // 100) == 0:
            self._show(state)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        logs = kwargs["logs"]
        if "loss" in logs:
            self._loss = logs["loss"]
            if args.eval_strategy == "no":
                self._add(state, {"Training Loss": self._loss})

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        metrics = {
            name.removeprefix("eval_").replace("_", " ").title().replace("Loss", "Validation Loss"): value
            for name, value in kwargs["metrics"].items()
            if name != "epoch" and not name.endswith(("_runtime", "_per_second"))
        }
        self._add(state, {"Training Loss": self._loss} | metrics)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._show(state)

    def _add(self, state: TrainerState, row: dict[str, Any]) -> None:
        self.rows.append({"Step": state.global_step} | row)
        self._show(state)

    def _show(self, state: TrainerState) -> None:
        from IPython.display import HTML, display

        page = HTML(self.table(state))
        if self._shown is None:
            self._shown = display(page, display_id=True)
        else:
            self._shown.update(page)

    def table(self, state: TrainerState) -> str:
        """Return the page: a bar and the rows."""
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(row.get(name, '')))}</td>" for name in names) + "</tr>"
            for row in self.rows
        )
        done = f"[{state.global_step}/{state.max_steps}, Epoch {state.epoch or 0:.2f}/{state.num_train_epochs}]"
        bar = f'<progress value="{state.global_step}" max="{state.max_steps}"></progress> {done}'
        return f"<div>{bar}</div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


class TensorBoardCallback(TrainerCallback):
    """Writes the logs for TensorBoard, with tensorboardX.

    Args:  tb_writer: a SummaryWriter; None makes one in `logging_dir`, or in `runs` of the output folder

    Raises:  MissingPackageError without tensorboardX, when training begins
    """

    def __init__(self, tb_writer: Any = None) -> None:
        self.tb_writer = tb_writer

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self.tb_writer is None:
            try:
                from tensorboardX import SummaryWriter
            except ImportError as error:
                raise MissingPackageError("tensorboardX", 'report_to="tensorboard"', "train") from error
            self.tb_writer = SummaryWriter(args.logging_dir or f"{args.output_dir}/runs")
        self.tb_writer.add_text("args", args.to_json_string())

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.tb_writer is not None:
            for name, value in kwargs["logs"].items():
                if isinstance(value, int | float):
                    self.tb_writer.add_scalar(rewritten(name), value, state.global_step)
            self.tb_writer.flush()

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self.tb_writer is not None:
            self.tb_writer.close()
            self.tb_writer = None


def rewritten(name: str) -> str:
    """Return the name of a value in TensorBoard: "eval/loss" for "eval_loss", "train/loss" for "loss"."""
    split, _, rest = name.partition("_")
    return f"{split}/{rest}" if split in ("eval", "test") and rest else f"train/{name}"


def progress_callback(args: TrainingArguments) -> type[TrainerCallback]:
    """Return the class that shows progress here."""
    if args.disable_tqdm:
        return PrinterCallback
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return NotebookProgressCallback if hasattr(shell, "kernel") else ProgressCallback
