"""The Python behind app.js: a Python session, run by the methods of `Demo`."""

from __future__ import annotations

import ast
import asyncio
import codeop
import importlib.util
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any, ClassVar

import magics
import numpy as np
from packages import OWN, Packages
from pyodide.code import CodeRunner
from pyodide.console import Console
from waits import Waits
from working_folder import FOLDER, WorkingFolder

import __main__
import tallow as tl
from tallow import kernels

# Output is sent in at most this many messages per frame of a 60 Hz screen; the rest follows in one message.
FRAME_S = 1 / 60
MESSAGES_PER_FRAME = 20
MAX_CHARACTERS = 100_000  # of one message; the page does not show more either
MAX_COMPLETIONS = 100
MAX_DISPLAYS = 100  # of one cell

Emit = Callable[[dict[str, Any]], None]


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

    def send(self, piece: dict[str, Any]) -> None:
        """Send what is no text, after the text before it."""
        self.flush()
        self._emit(piece)


class TorchOnImport(MetaPathFinder):
    """Makes `import torch` give tallow, for packages too; loads what that needs at the first such import."""

    # tallow.compat.packages has the second and third; tallow.compat.own_models the others, if they are not installed.
    NAMES = ("torch", "tokenizers", "safetensors", *OWN)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in self.NAMES:
            return None
        self._install()
        return importlib.util.find_spec(fullname)

    def find_distributions(self, context: Any) -> Iterator[Any]:
        """Yield the metadata of `torch`, for micropip, which then does not look for it."""
        if context.name in self.NAMES:
            import importlib.metadata  # not at the top: the console starts without it

            self._install()
            yield from importlib.metadata.distributions(name=context.name)

    def _install(self) -> None:
        from tallow.compat import install_torch

        if self in sys.meta_path:
            sys.meta_path.remove(self)
        install_torch()


class Demo:
    """A session that runs one cell at a time in one namespace. Pyodide's Console runs one statement at a time.

    The page's functions `display`, `show` and `download` are in the namespace too.
    """

    session: ClassVar[Demo]

    def __init__(self) -> None:
        Demo.session = self
        # The session is __main__, as in a terminal, so that its classes can be pickled.
        namespace = vars(__main__)
        namespace |= {"tl": tl, "nn": tl.nn, "F": tl.nn.functional, "optim": tl.optim, "np": np}
        namespace |= {"display": self.display, "show": self.show, "download": self.download}
        sys.meta_path.insert(0, TorchOnImport())
        os.environ["MPLBACKEND"] = "module://figures"
        self._files = WorkingFolder()
        self._packages = Packages()
        self._console = Console(namespace, stdin_callback=_refuse_input)
        self._compile = codeop.CommandCompiler()
        self._compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._cells = 0
        self._task: asyncio.Task[Any] | None = None
        self._is_computing = False
        self._is_interrupted = False  # before the cell's first statement
        self._output = Output(lambda piece: None)
        self._displays = 0
        self._shows_tensors = True
        self._waits = Waits()
        signal.signal(signal.SIGINT, self._on_signal)

    def kernels(self) -> str:
        """Return the name of the kernel library."""
        return kernels.info().library

    def is_complete(self, source: str) -> bool:
        """Return whether the code is complete. A block of several lines ends with an empty line, as in a terminal."""
        if source.startswith("%%"):  # a magic of the cell: an empty line ends it
            return not source.splitlines()[-1].strip()
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

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        return self._files.check(name, head, size)

    def load(self, files: dict[str, Any]) -> dict[str, Any]:
        return self._files.load(files)

    def files(self) -> list[dict[str, Any]]:
        """Return the names and sizes of the files in the working folder."""
        return self._files.list()

    def remove_file(self, *, name: str) -> None:
        """Delete a file of the working folder."""
        self._files.remove(name)

    def read_file(self, *, name: str) -> bytes:
        """Return the content of a file of the working folder."""
        return (FOLDER / name).read_bytes()

    def run(
        self, source: str, emit: Emit, *, closes_figures: bool = False, shows_tensors: bool = True
    ) -> asyncio.Task[None]:
        """Run a cell. What it prints, its last value and its errors are emitted as {"stream", "text"}.

        Values with pictures are emitted as {"stream": "display" or "value", "data": by media type}, files to save as
        {"stream": "download", "name", "bytes"}. The task exists before its first step, so that an interrupt that comes
        in between cancels it.

        Args:
            closes_figures: close pyplot's figures at the end; otherwise the next cell can go on with them.
            shows_tensors: show the last value as a picture if it is a tensor that is one.
        """
        self._shows_tensors = shows_tensors
        self._task = asyncio.ensure_future(self._run(source, emit, closes_figures))
        return self._task

    async def _run(self, source: str, emit: Emit, closes_figures: bool) -> None:
        output = self._output = Output(emit)
        self._displays = 0
        console = self._console
        console.stdout_callback = lambda text: output.write("stdout", text)
        console.stderr_callback = lambda text: output.write("stderr", text)
        self._cells += 1
        console.filename = f"cell {self._cells}"  # without angle brackets, so that tracebacks show its lines
        try:
            source, installs, notes, is_timed = magics.translated(source, console.filename)
            code = CodeRunner(source, filename=console.filename, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT).compile()
            say = lambda text: output.write("note", text)  # noqa: E731
            for note in notes:
                say(note)
            for command in installs:
                await self._packages.install(command, say)
            await self._packages.load_for(source, say)
            self._is_computing = True
            if self._is_interrupted:
                raise KeyboardInterrupt
            with magics.timing(say) if is_timed else nullcontext():
                value = await console.runcode(source, code)
            with console.redirect_streams():
                self._finish(value, closes_figures)
        except SyntaxError as error:
            self._fail(error, console.formatsyntaxerror(error))
        except SystemExit as error:
            self._fail(error, "SystemExit: Python keeps running in a page; reload the page for a new session\n")
        except asyncio.CancelledError:
            self._fail(KeyboardInterrupt(), "KeyboardInterrupt\n")
        except BaseException as error:  # the page shows everything that a cell raises, KeyboardInterrupt included
            _end_traceback_before(error, self._on_signal.__code__)
            self._fail(error, console.formattraceback(error))
        finally:
            self._is_computing = False
            self._task = None
            output.flush()

    def _finish(self, value: Any, closes_figures: bool) -> None:
        """Show the cell's last value, and the figures that it has drawn."""
        if value is not None:
            self._console.globals["_"] = value
            self._send(value, "value")
        if "figures" in sys.modules:
            import figures

            figures.show_open(close=closes_figures)

    def _fail(self, error: BaseException, text: str) -> None:
        (message,) = traceback.format_exception_only(error)[-1:]
        name, _, value = message.strip().partition(": ")
        self._output.send({"stream": "error", "text": text, "name": name, "value": value})

    # ------------------------------------------------------------------------------- the functions of the session

    def _send(self, value: Any, stream: str) -> None:
        """Send a value: as text, or with its data if it has more than text."""
        output = self._output
        if type(value).__module__ == "builtins":
            output.write("result", f"{value!r}\n")
            return
        import displays  # not at the top: the console starts without it

        complain = lambda text: output.write("stderr", text)  # noqa: E731
        data = displays.data_of(value, tensors=self._shows_tensors, complain=complain)
        if len(data) == 1:
            output.write("result", f"{data[displays.TEXT]}\n")
            return
        self._displays += 1
        if self._displays <= MAX_DISPLAYS:
            output.send({"stream": stream, "data": data})
        elif self._displays == MAX_DISPLAYS + 1:
            output.write("note", f"The page shows {MAX_DISPLAYS} pictures of a cell.\n")

    def display(self, *values: Any) -> None:
        """Show values below the cell, with their pictures."""
        for value in values:
            self._send(value, "display")

    def show(self, value: Any) -> None:
        """Show a tensor or an array as a picture: (N, M), or (C, N, M) or (N, M, C) with 1, 3 or 4 channels."""
        import heat_maps

        picture = heat_maps.picture(value)
        if picture is None:
            self.display(value)
        else:
            self.display(Picture(picture, f"picture of shape {tuple(value.shape)}"))

    def download(self, path: str | os.PathLike[str]) -> None:
        """Save a file of Python's file system to the browser's downloads."""
        with open(path, "rb") as file:
            self._output.send({"stream": "download", "name": os.path.basename(path), "bytes": file.read()})

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


def _end_traceback_before(error: BaseException, code: CodeType) -> None:
    """Drop the frame of a function at the end of a traceback: Python's own handler of Ctrl-C has none."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        if trace.tb_next.tb_frame.f_code is code:
            trace.tb_next = None
        trace = trace.tb_next


class Picture:
    """A PNG with a description."""

    def __init__(self, png: bytes, description: str) -> None:
        self._png, self._description = png, description

    def __repr__(self) -> str:
        return f"<{self._description}>"

    def _repr_png_(self) -> bytes:
        return self._png


def _refuse_input(size: int) -> str:
    raise RuntimeError("input() is not available in a page: write the answer into the code, as in name = 'Ada'")
