"""The compiled form of a function: its plans, and the choice between them, a new recording, and eager calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.errors import TallowError, warn
from tallow.export.capture import RUNS
from tallow.fx.compile.guards import OF_TENSORS, Guards, Unfit, is_stateful
from tallow.fx.compile.plan import NO, Plan, Shape, are_same, flattened
from tallow.fx.compile.recorder import CallRecorder
from tallow.nn.hooks import GLOBAL_HOOKS
from tallow.nn.module import Module
from tallow.tape.modes import mode

MOST_PLANS = 8  # as torch._dynamo.config.cache_size_limit
MOST_RECORDINGS = 4  # in succession that give no plan, because each run has changed what the next one reads


class GraphBreak(TallowError):
    """A function compiled with `fullgraph=True` does something that a plan cannot repeat."""


class Compiled:
    """A function that records its calls and repeats them from plans; see `tallow.compile`.

    Args:
        warns: warn once if calls run eagerly.

    Attributes:
        plans: the plans so far; each has its own conditions.
        reason: why calls for which there is no plan run eagerly; None while they are recorded.
    """

    def __init__(self, function: Callable[..., Any], fullgraph: bool = False, warns: bool = True) -> None:
        self.function = function
        self.fullgraph, self.warns = fullgraph, warns
        self.plans: list[Plan] = []
        self.reason: str | None = None
        self._fruitless = 0
        if not isinstance(function, Module):
            functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the method of an instance, for a decorated method."""
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what is compiled, without the plans."""
        return type(self), (self.function, self.fullgraph, self.warns)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if mode.tracer is not None or mode.batching is not None or devices.MULTI_DEVICE:
            return self.function(*args, **kwargs)
        for plan in self.plans:
            try:
                if (result := plan.run(args, kwargs)) is not NO:
                    return result
            except Exception:
                if plan.has_effects:
                    raise
                return self.function(*args, **kwargs)  # fails again, unless the program catches the error
        if self.reason is not None:
            if self.fullgraph:
                raise self._graph_break()
            return self.function(*args, **kwargs)
        if not RUNS.acquire(blocking=False):  # another thread records
            return self.function(*args, **kwargs)
        try:
            return self._record(args, kwargs)
        finally:
            RUNS.release()

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function once, and make a plan of the run."""
        guards = Guards()
        arguments = list(flattened(args, kwargs))
        try:
            guards.walk(self.function, self._name)
            guards.walk(GLOBAL_HOOKS, "the hooks of all modules")
            for text, value in arguments:
                if not isinstance(value, Tensor | Shape):
                    if is_stateful(value):
                        raise Unfit(f"gets a {type(value).__name__}, whose changes no guard sees")
                    guards.walk(value, text)
                elif isinstance(value, Shape):
                    continue
                elif type(value.array) is not np.ndarray:
                    raise Unfit("gets tensors on a device that plans do not support")
                elif id(value) not in guards.seen and any(map(guards.reads, vars(value).keys() - OF_TENSORS)):
                    raise Unfit("reads an attribute of an argument, whose changes no guard sees")
            checks = guards.relevant()
        except Unfit as error:
            self._give_up(str(error))
            return self.function(*args, **kwargs)
        recorder = CallRecorder(guards)
        for _, value in arguments:
            if isinstance(value, Tensor) and id(value) not in recorder.known:
                recorder.add_input("a", value)
        with recorder.recording():
            result = self.function(*args, **kwargs)
            recorder.finish(result)
        changed = next((check.where for check in checks if not check.holds()), None)
        if recorder.reason is not None:
            self._give_up(recorder.reason)
        elif not are_same(arguments, list(flattened(args, kwargs))):
            self._give_up("changes the containers that it gets")
        elif recorder.has_effects and guards.catches:
            self._give_up("may catch an error, and changes what outlives the call")
        elif changed is not None:
            self._fruitless += 1
            if self._fruitless >= MOST_RECORDINGS:
                self._give_up(f"changes {changed} in every call")
        elif len(self.plans) == MOST_PLANS:
            failed = self.plans[-1].guards.failed
            self._give_up(f"has {MOST_PLANS} plans for different arguments or settings {failed}".rstrip())
        else:
            self._fruitless = 0
            self.plans.append(Plan(recorder, checks, arguments))
        return result

    def _give_up(self, reason: str) -> None:
        """Run what has no plan eagerly from now on, and say why."""
        self.reason = reason
        if self.fullgraph:
            raise self._graph_break()
        if self.warns:
            warn(f"tl.compile: {self._name} {self._how()}")

    def _how(self) -> str:
        return f"runs {'calls without a plan ' if self.plans else ''}eagerly: it {self.reason}"

    def _graph_break(self) -> GraphBreak:
        return GraphBreak(
            f"{self._name}: {self.reason}", hint="compile with fullgraph=False, or a part of the function"
        )

    @property
    def _name(self) -> str:
        name: str = getattr(self.function, "__name__", type(self.function).__name__)
        return name

    def reset(self) -> None:
        """Forget all plans."""
        self.plans.clear()
        self.reason, self._fruitless = None, 0

    def explain(self) -> str:
        """Print and return what the plans do, and why calls run eagerly if they do."""
        lines = [f"{self._name}: {len(self.plans)} plan{'s' if len(self.plans) != 1 else ''}"]
        if self.reason is not None:
            lines.append(self._how())
        for i, plan in enumerate(self.plans):
            lines += ["", f"plan {i}: {plan.calls} calls", plan.source.rstrip()]
        text = "\n".join(lines)
        print(text)
        return text
