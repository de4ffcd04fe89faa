"""Pytest plugin: `--compiled` runs each op that a test calls from a plan of `tl.compile`.

The op is recorded with the arguments of the call, and the test gets what the plan makes of the same arguments: the
values, and the history with its closures. An op in place is recorded with a copy of its first operand. What a plan
cannot hold runs eagerly, and so does a write that autograd records. The summary counts the calls from plans, and those
that ran eagerly by reason. A run without a plan fails.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.compiler import Compiled, GraphBreak
from tallow.core.short_source import Form
from tallow.core.short_way import replace_functions

PLANNED = "from plans"
PLACE = re.compile(r" \(\S+:\d+, in .*\)$")  # of the program's line, at the end of a reason


class CompiledPlugin:
    """The plugin, active with `--compiled`.

    Attributes:
        counts: the number of calls that came from plans, and of the others by reason.
    """

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self._runs: ContextVar[bool] = ContextVar("runs", default=False)

    def pytest_sessionstart(self) -> None:
        replace_functions(self.through_plan)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.counts and not self.counts[PLANNED]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for reason, count in self.counts.most_common():
            terminalreporter.write_line(f"ops {reason}: {count}")

    def pytest_report_header(self) -> str:
        return "ops: from plans of tl.compile"

    def through_plan(self, form: Form, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return what a plan of one call makes of the arguments."""
        if self._runs.get():  # the plan calls the op
            return function(*args, **kwargs)
        token = self._runs.set(True)
        try:
            return self._through_plan(form, function, *args, **kwargs)
        finally:
            self._runs.reset(token)

    def _through_plan(self, form: Form, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        is_write = form is Form.inplace or (form is Form.optional_inplace and any(x is True for x in given))
        if kwargs.get("out") is not None or (is_write and not (args and _is_plain(args[0]))):
            return self._eagerly("writes to given memory or history", function, args, kwargs)
        if is_write and any(isinstance(each, tl.Tensor) and each.array is args[0].array for each in given[1:]):
            return self._eagerly("gets one tensor twice", function, args, kwargs)  # but not with the copy
        compiled = Compiled(function, fullgraph=True)
        try:
            compiled(*([args[0].clone(), *args[1:]] if is_write else args), **kwargs)
        except GraphBreak as broken:
            reason = PLACE.sub("", str(broken).partition("\n")[0].partition(": ")[2])
            return self._eagerly(reason, function, args, kwargs)
        self.counts[PLANNED] += 1
        result = compiled(*args, **kwargs)
        assert len(compiled.plans) == 1, f"{function.__name__}: recorded again, or not at all"
        return result

    def _eagerly(self, reason: str, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        self.counts[f"eagerly: {reason}"] += 1
        return function(*args, **kwargs)


def _is_plain(target: Any) -> bool:
    """Return whether a write to a copy does all that a write to the target does, apart from the memory."""
    if type(target) is not tl.Tensor or target.requires_grad or target._base is not None:
        return False
    array = target.array  # a dim of length 1 may have any stride, which its copy has not
    is_compact = array.flags.c_contiguous and array.strides == np.empty(array.shape, array.dtype).strides
    return is_compact and not (target.is_inference() or tl.is_inference_mode_enabled())
