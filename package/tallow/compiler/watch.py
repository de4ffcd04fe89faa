"""Watch the Python that a recorded run executes: what it reads, and what a plan could not repeat.

The recorder sees ops. It does not see a program that asks a tensor for its value, prints, or draws random numbers. So
Python's profiler reports every call while a run is recorded, and each call belongs to one of these:

- A function of tallow that reads values of tensors (`Tensor.item`), or that a plan cannot repeat, ends the recording.
- A function that stands for itself, such as `tl.arange` or a scheduler's step: the plan calls it again.
- Any other function of tallow may read an array's shape and dtype, but not the array; `AUDITED` lists the exceptions.
- A function of the program: the variables that it names become guards, see `tallow.compiler.guards`.
- A builtin function that the program calls must be in `HARMLESS`.
"""

from __future__ import annotations

import dis
import gc
import inspect
import sys
import sysconfig
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from tallow import random
from tallow.autograd import api, function
from tallow.compiler.backward import RecordedSweep
from tallow.compiler.guards import Guards, TooMany
from tallow.compiler.recording import Recorder, Unknown
from tallow.compiler.replayed import Replayed, replayed_functions
from tallow.core import creation
from tallow.core.apply import compute
from tallow.core.tensor import Tensor
from tallow.functions import indexing
from tallow.optim.lr_scheduler import LRScheduler
from tallow.optim.optimizer import Optimizer
from tallow.tape.modes import mode

READS = (
    "__array__ __bool__ __dlpack__ __float__ __format__ __index__ __int__ __repr__ _host __deepcopy__ __reduce_ex__ "
    "data_ptr storage_offset item numpy tolist"
)
CHANGES = "__copy__ detach_ register_hook register_post_accumulate_grad_hook requires_grad_ retain_grad __array_wrap__"
# Attributes of an array that do not depend on its elements.
ABOUT = frozenset(("shape", "dtype", "ndim", "size", "itemsize", "strides", "nbytes", "flags"))
# Functions that read an array in a way that a plan repeats or guards, each of them checked by hand.
_AUDITED = (
    "_accumulate _array _differences _drop _getitem_parsed _group_by_device _items_of _weighted _written_at_once "
    "__getitem__ __setitem__ batch_norm check_same_size convert draw_keep dropout index_put_ instance_norm positive "
    "scaled_dot_product_attention view zero_grad"
)
AUDITED = frozenset(_AUDITED.split())
TRUSTED = (
    "tallow.core.", "tallow.tape.", "tallow.autograd.", "tallow.ops.", "tallow.kernels.", "tallow.dtypes",
    "tallow.devices", "tallow.errors", "tallow.lazy_names", "tallow.compiler",
)  # fmt: skip
LIBRARY = tuple({sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")})
_QUIET = (
    "functools contextlib collections collections.abc typing types abc enum itertools operator dataclasses inspect "
    "weakref warnings importlib._bootstrap re reprlib copyreg numbers contextvars"
)
QUIET = frozenset(_QUIET.split())
_HARMLESS = (
    "abs all any callable chr divmod enumerate filter format getattr hasattr hash id isinstance issubclass iter len "
    "list map max min next ord pow range repr reversed round setattr sorted sum super tuple type zip vars delattr "
    "__build_class__ __import__"
)
HARMLESS = frozenset(_HARMLESS.split())
HARMLESS_TYPES = (list, dict, tuple, str, set, frozenset, int, float, bool, bytes, type, slice)
HARMLESS_MODULES = frozenset(("math", "_operator", "_functools", "itertools", "_collections", "_abc", "_typing"))


def _code(x: Any) -> CodeType:
    x = getattr(x, "fget", None) or getattr(x, "__func__", x)
    code: CodeType = inspect.unwrap(x).__code__
    return code


def _forbidden() -> dict[CodeType, str]:
    """Return the functions that end a recording, with the reasons."""
    reasons = {_code(getattr(Tensor, name)): f"reads a value with {name}" for name in READS.split()}
    reasons |= {_code(getattr(Tensor, name)): f"calls {name}" for name in CHANGES.split()}
    reasons[Tensor.data.fget.__code__] = "uses .data"  # type: ignore[attr-defined]
    reasons[Tensor.data.fset.__code__] = "assigns .data"  # type: ignore[attr-defined]
    reasons[_code(function.Function.apply)] = "applies an autograd.Function"
    reasons[_code(indexing._value_of)] = "uses a tensor as an index of one place"
    reasons[_code(api.grad)] = "calls autograd.grad"
    reasons[_code(LRScheduler.get_last_lr)] = "reads a learning rate"
    reasons[_code(random.Generator.numpy)] = "draws random numbers"
    reasons |= {
        _code(x): f"calls {x.__name__}"
        for x in (random.Generator.set_state, random.Generator.manual_seed, random.Generator.seed, creation.from_numpy)
    }
    return reasons


class Watch:
    """The profiler of one recorded run: `with watch: function()`."""

    def __init__(self, recorder: Recorder, guards: Guards) -> None:
        self.recorder = recorder
        self.guards = guards
        self._actions: dict[CodeType, Callable[[FrameType], None] | None] = {}
        self._pending: tuple[FrameType, Callable[[FrameType, Any], None]] | None = None
        self._is_paused = False
        self._before: Any = None
        self._collects = False
        # CPython 3.11 calls the profiler without a reference of its own.
        self._profiler = self._on_event
        recorder.on_stop = self._end
        for code, reason in _forbidden().items():
            self._actions[code] = lambda _, reason=reason: recorder.stop(reason)  # type: ignore[misc]
        for code, replayed in replayed_functions().items():
            self._actions[code] = lambda frame, replayed=replayed: self._replay(frame, replayed)  # type: ignore[misc]
        self._actions[_code(compute)] = self._actions[_code(RecordedSweep.send)] = self._ignore_until_return
        self._actions[_code(api.backward)] = self._on_backward
        self._actions[_code(Tensor._accumulate)] = self._on_accumulate
        self._actions[Tensor.grad.fget.__code__] = self._on_read_grad  # type: ignore[attr-defined]
        self._actions[Tensor.grad.fset.__code__] = self._on_set_grad  # type: ignore[attr-defined]
        self._actions[_code(Optimizer._update_all)] = self._on_update
        self._actions[_code(LRScheduler.step)] = self._on_schedule

    def __enter__(self) -> None:
        self._before = sys.getprofile()
        self._collects = gc.isenabled()
        gc.disable()  # callbacks and finalizers of a collection would count as what the program does
        self.recorder.saw_writes()
        mode.tracer = self.recorder
        sys.setprofile(self._profiler)

    def __exit__(self, *exc_info: object) -> None:
        self._end()
        # Reference cycles through this object would keep all values of the run until the next garbage collection.
        self._actions.clear()
        del self._profiler
        self.recorder.on_stop = self._pending = None

    def _end(self) -> None:
        mode.tracer = None
        sys.setprofile(self._before)
        if self._collects:
            gc.enable()

    # ------------------------------------------------------------------------------------------------------- events

    def _on_event(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "return":
            if self._pending is not None and frame is self._pending[0]:
                finish, self._pending = self._pending[1], None
                finish(frame, arg)
        elif self._is_paused:
            return
        elif event == "call":
            code = frame.f_code
            if code not in self._actions:
                self._actions[code] = self._action_for(frame)
            if (action := self._actions[code]) is not None:
                action(frame)
        elif event == "c_call" and _is_of_program(frame):
            self._check_builtin(arg)

    def _action_for(self, frame: FrameType) -> Callable[[FrameType], None] | None:
        """Return what to do at each call of a function that is not listed."""
        recorder, code = self.recorder, frame.f_code
        module = frame.f_globals.get("__name__", "")
        if module.startswith(TRUSTED) or module in QUIET:
            return None
        if module.startswith("tallow."):
            if reads_arrays(code) and code.co_qualname.partition(".<locals>")[0].rpartition(".")[2] not in AUDITED:
                reason = f"{module}.{code.co_name} reads arrays"
                return lambda _: recorder.stop(reason)
            return lambda _: self.guards.names.update(code.co_names)
        if code.co_filename.startswith(LIBRARY) and "site-packages" not in code.co_filename:
            caller = frame.f_back
            if caller is not None and _is_of_program(caller):
                reason = f"calls {module}.{code.co_name}"
                return lambda _: recorder.stop(reason)
            return None
        if module.partition(".")[0] == "numpy":
            return None
        if _code_is_disabled(code):
            return lambda _: recorder.stop(f"{code.co_name} is not to be compiled")
        if "array" in code.co_names or "random" in code.co_names:
            reason = f"{code.co_name} uses .{'array' if 'array' in code.co_names else 'random'}"
            return lambda _: recorder.stop(reason)
        if any(i.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") for i in dis.get_instructions(code)):
            return lambda _: recorder.stop(f"{code.co_name} assigns a global variable")
        return self._on_program

    def _on_program(self, frame: FrameType) -> None:
        try:
            self.guards.add_frame(frame)
        except TooMany as error:
            self.recorder.stop(str(error))

    def _check_builtin(self, builtin: Any) -> None:
        owner = getattr(builtin, "__self__", None)
        name, module = getattr(builtin, "__name__", "?"), getattr(builtin, "__module__", None)
        if owner is None or inspect.ismodule(owner):
            if name in HARMLESS or (module or "") in HARMLESS_MODULES or name == "setprofile":
                return
        elif isinstance(owner, HARMLESS_TYPES) or module in HARMLESS_MODULES or type(owner).__module__ == "builtins":
            return
        self.recorder.stop(f"calls {name}")

    # -------------------------------------------------------------------------------------------- functions of tallow

    def _ignore_until_return(self, frame: FrameType) -> None:
        """Watch nothing until a function returns: the array functions and closures that it calls are recorded."""
        self._is_paused = True

        def resume(*_: Any) -> None:
            self._is_paused = False

        self._pending = frame, resume

    def _pause_until_return(self, frame: FrameType, finish: Callable[[Any], None]) -> None:
        """Record nothing until a function returns; then call `finish` with its result."""
        mode.tracer, self._is_paused = None, True

        def resume(_: FrameType, result: Any) -> None:
            mode.tracer, self._is_paused = self.recorder, False
            self.recorder.saw_writes()
            finish(result)

        self._pending = frame, resume

    def _replay(self, frame: FrameType, replayed: Replayed) -> None:
        """Record a call that the plan repeats."""
        recorder = self.recorder
        try:
            args, kwargs = replayed.arguments(frame)
            known = {name: recorder.value(x) for name, x in kwargs.items()}
            text = recorder.arguments([recorder.value(x) for x in args], known)
        except Unknown as error:
            return recorder.stop(f"{frame.f_code.co_name} takes {error}")

        def finish(result: Any) -> None:
            call = f"{recorder.call(replayed.function)}({text})"
            if result is None:
                return recorder.add(call, has_effect=True)
            is_tensor = isinstance(result, Tensor)
            if is_tensor and result._requires_grad:
                return recorder.stop("makes a tensor that requires grad")
            name = recorder.bind(result.array if is_tensor else result, recorder.fresh("v"))
            recorder.add(f"{name} = {call}{'.array' if is_tensor else ''}", (), (name,), replayed.has_effect)

        self._pause_until_return(frame, finish)

    def _on_backward(self, frame: FrameType) -> None:
        self.recorder.starts_from_one = frame.f_locals["grad_tensors"] is None

    def _on_accumulate(self, frame: FrameType) -> None:
        tensor = frame.f_locals["self"]
        self.recorder.accumulate(tensor, frame.f_locals["g"], frame.f_locals["owned"])
        self._pending = frame, lambda *_: self.recorder.accumulated(tensor)

    def _on_read_grad(self, frame: FrameType) -> None:
        self.recorder.read_grad(frame.f_locals["self"])

    def _on_set_grad(self, frame: FrameType) -> None:
        self.recorder.set_grad(frame.f_locals["self"], frame.f_locals["value"])

    def _on_update(self, frame: FrameType) -> None:
        """Record the update of some parameters of an optimizer."""
        recorder = self.recorder
        optimizer, params, group = (frame.f_locals[name] for name in ("self", "params", "group"))
        if optimizer._step_pre_hooks or optimizer._step_post_hooks:
            return recorder.stop("runs hooks of an optimizer")
        leaves = [recorder.source_of(p) for p in params]
        if any(source is None for source in leaves):
            return recorder.stop("updates a tensor that it has made")
        grads = [recorder.read_grad(p) for p in params]
        arrays = [source.name for source in leaves if source is not None]

        def finish(_: Any) -> None:
            update = recorder.call(optimizer.update_arrays)
            text = f"{update}({recorder.constant(list(params), 'q')}, [{', '.join(arrays)}], [{', '.join(grads)}], "
            recorder.add(f"{text}{recorder.constant(group)})", [*arrays, *grads], has_effect=True)

        self._pause_until_return(frame, finish)

    def _on_schedule(self, frame: FrameType) -> None:
        """Record the step of a scheduler."""
        recorder = self.recorder
        scheduler, epoch = frame.f_locals["self"], frame.f_locals.get("epoch")
        if epoch is not None or type(scheduler).step is not LRScheduler.step:
            return recorder.stop("a scheduler's step depends on an argument")
        step = recorder.call(scheduler.step)
        self._pause_until_return(frame, lambda _: recorder.add(f"{step}()", has_effect=True))


def reads_arrays(code: CodeType) -> bool:
    """Return whether a function reads more of `x.array` than its shape and dtype."""
    instructions = list(dis.get_instructions(code))
    for here, after in zip(instructions, [*instructions[1:], None], strict=True):
        if here.opname in ("LOAD_ATTR", "STORE_ATTR") and here.argval == "array":
            is_about = after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD") and after.argval in ABOUT
            if here.opname == "STORE_ATTR" or not is_about:
                return True
    return any(reads_arrays(inner) for inner in code.co_consts if isinstance(inner, CodeType))


_disabled: set[CodeType] = set()


def disable(fn: Callable[..., Any]) -> None:
    """End every recording that comes to a function."""
    _disabled.add(inspect.unwrap(fn).__code__)


def _code_is_disabled(code: CodeType) -> bool:
    return code in _disabled


def _is_of_program(frame: FrameType) -> bool:
    """Return whether a frame is neither tallow's nor a library's."""
    module, filename = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
    is_library = filename.startswith(LIBRARY) and "site-packages" not in filename
    return not (module.partition(".")[0] in ("tallow", "numpy") or is_library)
