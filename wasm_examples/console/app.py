"""The Python behind app.js: a Python session, run by the methods of `Demo`."""

from __future__ import annotations

import ast
import asyncio
import codeop
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pyodide.code import CodeRunner
from pyodide.console import Console
from waits import Waits

import __main__
import tallow as tl
from tallow import kernels

# Output is sent in at most this many messages per frame of a 60 Hz screen; the rest follows in one message.
FRAME_S = 1 / 60
MESSAGES_PER_FRAME = 20
MAX_CHARACTERS = 100_000  # of one message; the page does not show more either
MAX_COMPLETIONS = 100

Emit = Callable[[dict[str, str]], None]


class Output:
    """Buffers what a cell writes, and sends it to the page."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._stream = ""
        self._pieces: list[str] = []
        self._frame = 0.0
        self._messages = 0

    def write(self, stream: str, text: str) -> None:
        """Send the text now, or later with more text if there were many messages."""
        if stream != self._stream:
            self.flush()
            self._stream = stream
        self._pieces.append(text)
        now = time.perf_counter()
        if now - self._frame > FRAME_S:
            self._frame, self._messages = now, 0
        if self._messages < MESSAGES_PER_FRAME:
            self.flush()

    def flush(self) -> None:
        """Send the buffered text."""
        text = "".join(self._pieces)
        self._pieces.clear()
        if not text:
            return
        self._messages += 1
        if len(text) > MAX_CHARACTERS:
            omitted = len(text) - MAX_CHARACTERS
            text = f"… {omitted:,} characters omitted …\n{text[-MAX_CHARACTERS:]}"
        self._emit({"stream": self._stream, "text": text})


class Demo:
    """A session that runs one cell at a time in one namespace. Pyodide's Console runs one statement at a time."""

    def __init__(self) -> None:
        # The session is __main__, as in a terminal, so that its classes can be pickled.
        namespace = vars(__main__)
        namespace |= {"tl": tl, "nn": tl.nn, "F": tl.nn.functional, "optim": tl.optim, "np": np}
        self._console = Console(namespace, stdin_callback=_refuse_input)
        self._compile = codeop.CommandCompiler()
        self._compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._cells = 0
        self._task: asyncio.Task[Any] | None = None
        self._is_computing = False
        self._is_interrupted = False  # before the cell's first statement
        self._waits = Waits()
        signal.signal(signal.SIGINT, self._on_signal)

    def kernels(self) -> str:
        """Return the name of the kernel library."""
        return kernels.info().library

    def is_complete(self, source: str) -> bool:
        """Return whether the code is complete. A block of several lines ends with an empty line, as in a terminal."""
        try:
            if self._compile(source, symbol="exec") is None:
                return False
            statements = ast.parse(source).body
        except (SyntaxError, ValueError, OverflowError):
            return True  # running it reports the error
        last = statements[-1] if statements else None
        is_block = hasattr(last, "body") and last.lineno != last.end_lineno
        return not is_block or not source.splitlines()[-1].strip()

    def complete(self, source: str) -> dict[str, Any]:
        """Return completions of the last word of `source`, and the index where that word starts."""
        names, start = self._console.complete(source)
        return {"names": list(dict.fromkeys(names))[:MAX_COMPLETIONS], "start": start}

    def run(self, source: str, emit: Emit) -> asyncio.Task[None]:
        """Run a cell. What it prints, its last value and its errors are emitted as {"stream", "text"}.

        The task exists before its first step, so that an interrupt that comes in between cancels it.
        """
        self._task = asyncio.ensure_future(self._run(source, emit))
        return self._task

    async def _run(self, source: str, emit: Emit) -> None:
        output = Output(emit)
        console = self._console
        console.stdout_callback = lambda text: output.write("stdout", text)
        console.stderr_callback = lambda text: output.write("stderr", text)
        self._cells += 1
        console.filename = f"cell {self._cells}"  # without angle brackets, so that tracebacks show its lines
        try:
            code = CodeRunner(source, filename=console.filename, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT).compile()
            self._is_computing = True
            if self._is_interrupted:
                raise KeyboardInterrupt
            value = await console.runcode(source, code)
            if value is not None:
                console.globals["_"] = value
                with console.redirect_streams():
                    output.write("result", f"{value!r}\n")
        except SyntaxError as error:
            output.write("error", console.formatsyntaxerror(error))
        except SystemExit:
            output.write("error", "SystemExit: Python keeps running in a page; reload the page for a new session\n")
        except asyncio.CancelledError:
            output.write("error", "KeyboardInterrupt\n")
        except BaseException as error:  # the page shows everything that a cell raises, KeyboardInterrupt included
            output.write("error", console.formattraceback(error))
        finally:
            self._is_computing = False
            self._task = None
            output.flush()

    def interrupt(self) -> None:
        """Stop a cell that awaits or waits, or has not begun."""
        self._is_interrupted = False
        if not self._waits.interrupt() and self._task:
            self._task.cancel()

    def _on_signal(self, number: int, frame: object) -> None:
        """Interrupt the cell's code, and not the code that starts it; the page's message to `interrupt` comes later."""
        if self._is_computing:
            raise KeyboardInterrupt
        self._is_interrupted = True


def _refuse_input(size: int) -> str:
    raise RuntimeError("input() is not available in a page: write the answer into the code, as in name = 'Ada'")
