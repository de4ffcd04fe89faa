"""A Python prompt in the tab: the Python behind app.js, which calls the methods of `Demo`."""

from __future__ import annotations

import ast
import asyncio
import codeop
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

# A flood of prints is sent in pieces: a few messages in the time of a frame of a 60 Hz screen, then one for the rest.
FRAME_S = 1 / 60
MESSAGES_PER_FRAME = 20
MAX_CHARACTERS = 100_000  # of one message; the page shows no more either
MAX_COMPLETIONS = 100

Emit = Callable[[dict[str, str]], None]


class Output:
    """What a cell writes, on its way to the page."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._stream = ""
        self._pieces: list[str] = []
        self._frame = 0.0
        self._messages = 0

    def write(self, stream: str, text: str) -> None:
        """Send it now, or with what comes next where much comes."""
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
        text = "".join(self._pieces)
        self._pieces.clear()
        if not text:
            return
        self._messages += 1
        if len(text) > MAX_CHARACTERS:
            left_out = len(text) - MAX_CHARACTERS
            text = f"… {left_out:,} characters are left out …\n{text[-MAX_CHARACTERS:]}"
        self._emit({"stream": self._stream, "text": text})


class Demo:
    """A session: names that stay, and one cell at a time. Pyodide's own Console would take one statement at a time."""

    def __init__(self) -> None:
        # The session is __main__, as at a terminal's prompt, so that its classes can be pickled.
        names = vars(__main__)
        names |= {"tl": tl, "nn": tl.nn, "F": tl.nn.functional, "optim": tl.optim, "np": np}
        self._console = Console(names, stdin_callback=_refuse_input)
        self._compile = codeop.CommandCompiler()
        self._compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._cells = 0
        self._task: asyncio.Task[Any] | None = None
        self._waits = Waits()

    def kernels(self) -> str:
        return kernels.info().library

    def is_complete(self, source: str) -> bool:
        """Whether nothing more belongs to it. A block of several lines ends with an empty one, as in a terminal."""
        try:
            if self._compile(source, symbol="exec") is None:
                return False
            statements = ast.parse(source).body
        except (SyntaxError, ValueError, OverflowError):
            return True  # running it will say what is wrong
        last = statements[-1] if statements else None
        is_block = hasattr(last, "body") and last.lineno != last.end_lineno
        return not is_block or not source.splitlines()[-1].strip()

    def complete(self, source: str) -> dict[str, Any]:
        """Names for the last word of `source`, and where that begins."""
        names, start = self._console.complete(source)
        return {"names": list(dict.fromkeys(names))[:MAX_COMPLETIONS], "start": start}

    async def run(self, source: str, emit: Emit) -> None:
        """Run a cell. What it prints, its last value and its errors are emitted as {"stream", "text"}."""
        output = Output(emit)
        console = self._console
        console.stdout_callback = lambda text: output.write("stdout", text)
        console.stderr_callback = lambda text: output.write("stderr", text)
        self._cells += 1
        console.filename = f"cell {self._cells}"  # no brackets around it: tracebacks show lines of files only
        self._task = asyncio.current_task()
        try:
            code = CodeRunner(source, filename=console.filename, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT).compile()
            value = await console.runcode(source, code)
            if value is not None:
                console.globals["_"] = value
                with console.redirect_streams():
                    output.write("result", f"{value!r}\n")
        except SyntaxError as error:
            output.write("error", console.formatsyntaxerror(error))
        except SystemExit:
            output.write("error", "SystemExit: Python goes on here; reload the page for a new session\n")
        except asyncio.CancelledError:
            output.write("error", "KeyboardInterrupt\n")
        except BaseException as error:  # whatever a cell raises belongs on its page, KeyboardInterrupt above all
            output.write("error", console.formattraceback(error))
        finally:
            self._task = None
            output.flush()

    def cancel(self) -> None:
        """Stop a cell that awaits, or waits. One that computes is interrupted, see Runtime.interrupt."""
        if not self._waits.interrupt() and self._task:
            self._task.cancel()


def _refuse_input(size: int) -> str:
    raise RuntimeError("input() has nobody to ask in a page: write the answer into the code, as in name = 'Ada'")
