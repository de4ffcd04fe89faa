"""The compiled form of a function: its plans, and the choice between them, a new recording, and eager calls."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from tallow import devices
from tallow.compiler.guards import Guards, TooMany
from tallow.compiler.plan import NO, Plan, Shape
from tallow.compiler.recording import Name, Recorder, Unknown
from tallow.compiler.watch import Watch
from tallow.core.size import Size
from tallow.core.tensor import Tensor
from tallow.errors import TallowError, warn
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
        self._lock = threading.Lock()
        if not isinstance(function, Module):
            functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the method of an instance, for a decorated method."""
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what is compiled, without the plans."""
        return type(self), (self.function, self.fullgraph, self.warns)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if mode.tracer is not None or devices.MULTI_DEVICE:
            return self.function(*args, **kwargs)
        for plan in self.plans:
            try:
                result = plan.run(args, kwargs)
            except Exception as error:
                if not _can_be_repeated(plan, error):
                    raise
                return self.function(*args, **kwargs)  # fails again, with an error that names the operands
            if result is not NO:
                return result
        if self.reason is not None:
            if self.fullgraph:
                raise self._graph_break()
            return self.function(*args, **kwargs)
        if not self._lock.acquire(blocking=False):  # another thread records
            return self.function(*args, **kwargs)
        try:
            return self._record(args, kwargs)
        finally:
            self._lock.release()

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function once, and make a plan of the run."""
        recorder = Recorder()
        guards = Guards(recorder.reachable)
        arguments = list(_flattened(args, kwargs))
        try:
            for i, (text, value) in enumerate(arguments):
                if isinstance(value, Tensor):
                    if id(value) in recorder.sources or id(value.array) in recorder.names:
                        raise Unknown("gets one tensor twice")
                    if type(value.array) is not np.ndarray:
                        raise Unknown("gets tensors on a device that plans do not support")
                    recorder.add_argument(value, Name(f"x{i}"))
                elif not isinstance(value, Shape):
                    guards.walk(value, text)
            guards.walk(self.function, getattr(self.function, "__name__", "the function"))
        except (Unknown, TooMany) as error:
            self._give_up(str(error))
            return self.function(*args, **kwargs)
        before = mode.recording, mode.inference, mode.autocast
        with Watch(recorder, guards):
            result = self.function(*args, **kwargs)
            if recorder.reason is None:
                recorder.check_writes()
        reason = recorder.reason
        if reason is None and before != (mode.recording, mode.inference, mode.autocast):
            reason = "changes whether gradients are recorded"
        if reason is None and (unseen := guards.unseen()) is not None:
            reason = f"uses {unseen}, whose changes a plan does not see"
        if reason is not None:
            self._give_up(reason)
        elif (changed := guards.changed()) is not None:
            self._fruitless += 1
            if self._fruitless >= MOST_RECORDINGS:
                self._give_up(f"changes {changed} in every call")
        else:
            self._add_plan(recorder, guards, arguments, result)
        return result

    def _add_plan(self, recorder: Recorder, guards: Guards, arguments: list[tuple[str, Any]], result: Any) -> None:
        try:
            plan = Plan(recorder, guards, arguments, result)
        except Unknown as error:
            return self._give_up(str(error))
        self._fruitless = 0
        if len(self.plans) == MOST_PLANS:
            failed = self.plans[-1].guards.failed
            return self._give_up(f"has {MOST_PLANS} plans for different arguments or settings {failed}".rstrip())
        self.plans.append(plan)

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
            lines += ["", f"plan {i}: {plan.calls} ops, {plan.nbytes:,} bytes of values", plan.source.rstrip()]
        text = "\n".join(lines)
        print(text)
        return text


def _can_be_repeated(plan: Plan, error: BaseException) -> bool:
    """Return whether a run has failed before it changed anything."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == plan.filename:
            return trace.tb_lineno < plan.first_effect
        trace = trace.tb_next
    return False


def _flattened(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments with their sources: containers first, as a `Shape`, and then what they hold."""
    stack: list[tuple[str, Any]] = [("kwargs", kwargs), ("args", args)]
    while stack:
        text, value = stack.pop()
        if type(value) is dict:
            yield text, Shape(dict, tuple(value))
            stack += [(f"{text}[{key!r}]", part) for key, part in reversed(value.items())]
        elif type(value) in (list, tuple, Size):
            yield text, Shape(type(value), len(value))
            stack += [(f"{text}[{i}]", part) for i, part in reversed(list(enumerate(value)))]
        else:
            yield text, value


class OptimizedModule(Module):
    """A module whose calls are compiled. It has the parameters, buffers, submodules and attributes of `_orig_mod`, the
    original, and sets attributes there.
    """

    _orig_mod: Any

    def __init__(self, module: Module, fullgraph: bool = False, warns: bool = True) -> None:
        super().__init__()
        self._orig_mod = module
        del self.__dict__["training"]  # it is the original's
        self.__dict__["_compiled"] = Compiled(module, fullgraph, warns)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def explain(self) -> str:
        """As `Compiled.explain`."""
        text: str = self._compiled.explain()
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._orig_mod, self._compiled.fullgraph, self._compiled.warns)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(copy.deepcopy(self._orig_mod, memo), self._compiled.fullgraph, self._compiled.warns)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]

    def __len__(self) -> int:
        length: int = len(self._orig_mod)
        return length

    def __bool__(self) -> bool:
        return True

    def __setattr__(self, name: str, value: Any) -> None:
        if "_compiled" in self.__dict__:
            setattr(self._orig_mod, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)
