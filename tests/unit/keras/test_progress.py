"""The progress bar in a terminal, a notebook, a file and a narrow window."""

from __future__ import annotations

import io
import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tallow import keras
from tallow.keras import layers, progress
from tallow.keras.progress import Progbar


class Stream(io.StringIO):
    """A stdout that counts writes."""

    def __init__(self, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self.terminal = terminal
        self.named = encoding
        self.writes = 0

    def isatty(self) -> bool:
        return self.terminal

    @property
    def encoding(self) -> str:
        return self.named

    def write(self, text: str) -> int:
        text.encode(self.named)
        self.writes += 1
        return super().write(text)

    def screen(self) -> list[str]:
        """Return the lines visible at the end, without colours."""
        lines = []
        for line in re.sub("\x1b\\[[0-9]*m", "", self.getvalue()).split("\n"):
            seen = ""
            for part in line.split("\r"):
                seen = part + seen[len(part) :]
            lines.append(seen.rstrip())
        return lines


class Notebook(Stream):
    __module__ = "ipykernel.iostream"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A clock that the test advances."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: Clock.now))
    return Clock


def set_stdout(monkeypatch: pytest.MonkeyPatch, stream: Stream, columns: int = 100) -> Stream:
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return stream


def run(clock: Any, steps: int = 10, seconds: float = 0.2, **options: Any) -> None:
    bar = Progbar(steps, **options)
    for step in range(1, steps + 1):
        clock.now += seconds
        bar.update(step, [("loss", 1 / step)])


def test_a_terminal_shows_one_changing_line(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True))
    run(clock, stateless_metrics=())
    assert stream.screen() == ["10/10 ━━━━━━━━━━━━━━━━━━━━ 2s 200ms/step - loss: 0.1000", ""]
    frames = stream.getvalue().split("\r")
    assert len(frames) == 10
    assert "\x1b[32m" + "━" * 10 + "\x1b[0m\x1b[37m" + "━" * 10 in frames[4]  # half of it green
    assert " 5/10" in frames[4]
    assert "\x1b[1m 1s\x1b[0m" in frames[4]  # five steps of 0.2 s remain


def test_values_are_averaged_unless_they_are_stateful(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True))
    bar = Progbar(4, stateful_metrics=["kept"])
    for step, value in ((1, 1.0), (2, 3.0)):
        clock.now += 1
        bar.update(step, [("mean", value), ("kept", value)])
    assert stream.screen()[0].endswith("mean: 2.0000 - kept: 3.0000")
    clock.now += 1
    bar.add(1)
    assert "3/4" in stream.getvalue()


def test_it_is_redrawn_ten_times_a_second_at_most(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True))
    run(clock, steps=1000, seconds=0.001)
    assert stream.writes <= 12
    assert "1000/1000" in stream.screen()[0]


def test_a_narrow_window_gets_a_line_that_fits(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True), columns=30)
    bar = Progbar(10)
    for step in (1, 2, 3):
        clock.now += 1
        bar.update(step, [("a_metric_with_a_long_name", 1.0)])
    assert len(stream.screen()) == 1
    assert len(stream.screen()[0]) <= 29


def test_shorter_lines_overwrite_longer_ones(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True))
    bar = Progbar(3, stateless_metrics=())
    for step, value in ((1, -1234567.0), (2, 1.0)):
        clock.now += 1
        bar.update(step, [("x", value)])
    assert stream.screen()[0].endswith("x: 1.0000")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_ascii_without_unicode(monkeypatch: pytest.MonkeyPatch, clock: Any, encoding: str) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True, encoding=encoding))
    bar = Progbar(10)
    clock.now += 1
    bar.update(5)
    assert "==========.........." in stream.screen()[0]


def test_no_colours_if_disabled(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True))
    monkeypatch.setenv("NO_COLOR", "1")
    bar = Progbar(10)
    clock.now += 1
    bar.update(5)
    assert stream.getvalue().startswith(" 5/10 ━━━━━━━━━━──────────")
    assert "\x1b" not in stream.getvalue()


def test_a_notebook_shows_one_line_of_any_length(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    stream = set_stdout(monkeypatch, Notebook(terminal=False), columns=20)
    run(clock, stateless_metrics=())
    assert stream.screen() == ["10/10 ━━━━━━━━━━━━━━━━━━━━ 2s 200ms/step - loss: 0.1000", ""]
    assert stream.getvalue().count("\r") == 9


@pytest.mark.parametrize("verbose", [1, 2])
def test_a_file_gets_only_the_last_line(monkeypatch: pytest.MonkeyPatch, clock: Any, verbose: int) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=False))
    run(clock, verbose=verbose, stateless_metrics=())
    expected = {
        1: "10/10 ━━━━━━━━━━━━━━━━━━━━ 2s 200ms/step - loss: 0.1000",
        2: "10/10 - 2s - 200ms/step - loss: 0.1000",
    }
    assert stream.getvalue() == expected[verbose] + "\n"


def test_silence(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True))
    run(clock, verbose=0)
    assert stream.getvalue() == ""


def test_unknown_number_of_steps(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True))
    bar = Progbar(None, stateless_metrics=())
    clock.now += 2
    bar.update(2, [("loss", 0.5)])
    assert stream.screen() == ["      2/Unknown 2s 1s/step - loss: 0.5000"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(5e-6, "5us/step"), (0.0123, "12ms/step"), (3.0, "3s/step")], ids=["us", "ms", "s"]
)
def test_durations(monkeypatch: pytest.MonkeyPatch, clock: Any, seconds: float, text: str) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=False))
    run(clock, seconds=seconds, verbose=2)
    assert text in stream.getvalue()


def test_time_left_in_hours(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True))
    bar = Progbar(100)
    clock.now += 200
    bar.update(2)
    assert " 2:43:20 " in stream.screen()[0]  # 98 steps of 100 s


# ------------------------------------------------------------------------------------------------------------- in fit


def model() -> Any:
    network = keras.Sequential([keras.Input(shape=(2,)), layers.Dense(1)])
    network.compile("sgd", "mse", metrics=["mae"])
    return network


X, Y = np.ones((64, 2), "float32"), np.zeros(64, "float32")


def test_fit_writes_two_lines_an_epoch_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=False))
    model().fit(X, Y, epochs=2, validation_data=(X, Y))
    first, result, second, *_ = stream.getvalue().splitlines()
    assert (first, second) == ("Epoch 1/2", "Epoch 2/2")
    assert re.fullmatch(r"2/2 - \d+s - \d+[mu]?s/step - loss: \S+ - mae: \S+ - val_loss: \S+ - val_mae: \S+", result)
    assert len(stream.getvalue().splitlines()) == 4


def test_fit_shows_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True), columns=200)
    model().fit(X, Y, validation_data=(X, Y))
    assert re.match(
        r"2/2 ━{20} \d+s \S+/step - loss: \S+ - mae: \S+ - val_loss: \S+ - val_mae: \S+", stream.screen()[0]
    )


def test_evaluate_and_predict_show_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = set_stdout(monkeypatch, Stream(terminal=True), columns=200)
    network = model()
    network.evaluate(X, Y)
    network.predict(X)
    first, second = stream.screen()[:2]
    assert re.match(r"2/2 ━{20} \d+s \S+/step - loss: \S+ - mae: \S+", first)
    assert re.fullmatch(r"2/2 ━{20} \d+s \S+/step", second)


def test_an_interrupt_ends_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                raise KeyboardInterrupt

    stream = set_stdout(monkeypatch, Stream(terminal=True), columns=200)
    with pytest.raises(KeyboardInterrupt):
        model().fit(X, Y, epochs=3, callbacks=[Interrupt()])
    assert stream.getvalue().endswith("\n")
    assert stream.screen()[1].startswith("1/2 ")
