"""torch.multiprocessing.spawn: run a function in several processes, and end all of them if one fails."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["ProcessContext", "ProcessExitedException", "ProcessRaisedException", "spawn", "start_processes"]


class ProcessException(Exception):
    """A process that failed.

    Attributes:
        error_index: the number of the process.
        error_pid: the number that the system gave it.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, pid
        self.pid = pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process whose function raised."""


class ProcessExitedException(ProcessException):
    """A process that ended by a signal, or with an exit code.

    Attributes:
        exit_code: the code, negative for a signal.
        signal_name: the name of the signal.
    """

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], i: int, args: Sequence[Any], errors: Any) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent got it as well
    except Exception:
        errors.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that run.

    Attributes:
        processes: as in Python's multiprocessing.
    """

    def __init__(self, processes: Sequence[Any], error_pipes: Sequence[Any]) -> None:
        self.processes = list(processes)
        self._errors = list(error_pipes)
        self._waiting = {process.sentinel: i for i, process in enumerate(self.processes)}

    def pids(self) -> list[int | None]:
        """Return the numbers that the system gave them."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one more process has ended. Return whether all have.

        Raises: ProcessRaisedException or ProcessExitedException for a process that failed, after all others were ended;
            they have `grace_period` seconds to end by themselves.
        """
        if not self._waiting:
            return True
        ended = multiprocessing.connection.wait(self._waiting.keys(), timeout)
        failed = None
        for sentinel in ended:
            index = self._waiting.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
        if failed is None:
            return not self._waiting
        for process in self.processes:
            if process.is_alive():
                process.join(grace_period or 0)
                if process.is_alive():
                    process.terminate()
            process.join()
        raise self._error(failed)

    def _error(self, index: int) -> ProcessException:
        process = self.processes[index]
        if self._errors[index].poll():
            text = f"\n\n-- Process {index} terminated with the following error:\n{self._errors[index].recv()}"
            return ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            return ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(i, *args)` in `nprocs` processes.

    Args:
        join: wait for all of them; else a ProcessContext is returned.

    Raises: as `ProcessContext.join`.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, pipes = [], []
    for i in range(nprocs):
        receiving, sending = context.Pipe(False)
        process = context.Process(target=_run, args=(fn, i, args, sending), daemon=daemon)
        process.start()
        processes.append(process)
        pipes.append(receiving)
    running = ProcessContext(processes, pipes)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call a function in several processes that start by spawn; see `start_processes`."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
