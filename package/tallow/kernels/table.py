"""The kernel table: chooses the function that computes an op, by arguments and device.

An op with a fast path calls `run(name, x, ...)`. The array implementation, backend "array", works with NumPy and CuPy
alike, always exists, and is the reference. Other backends are tried first, in the device's order in `PREFERENCE`; a
kernel is used if it accepts the arguments. Built-in and user-defined kernels are registered by one decorator:

    @kernel("softmax", "native", accepts=float32_rows)
    def softmax(x): ...

The search takes a noticeable part of a small call. So the table knows of some ops, by a `Limit`, up to which size its
choice is the array implementation, whatever else the arguments are: an op calls NumPy directly below it. That size
follows from what the kernels' own `accepts` declare by `minimum`, and changes with every kernel, `require` and `off`.

The state that `off` and `require` change belongs to the process, as the table does, not to a thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tallow.devices import MULTI_DEVICE, device_type_of, guard_for
from tallow.errors import ArgumentError, KernelUnavailable
from tallow.kernels.halves import widening

ARRAY = "array"
# Device type -> backends, in order of preference. The default for other device types is (device type, "array").
PREFERENCE: dict[str, tuple[str, ...]] = {"cpu": ("wasm", "native", ARRAY), "cuda": ("cuda", ARRAY)}

# A `Limit` is never larger: the search takes no noticeable part of a call of more elements or multiplications.
LARGEST_LIMIT = 1 << 17
# A `Limit` before the providers are called, so that small ops do not load a library: none of its kernels takes fewer.
LIMIT_BEFORE_LOADING = 1 << 12

PLANS = 256  # sizes of earlier calls that a convolution or a pooling keeps, with what it derives from them

Function = Callable[..., Any]
Predicate = Callable[..., bool]
F = TypeVar("F", bound=Function)


class Entry(NamedTuple):
    """One row of the table.

    Attributes:
        accepts: a predicate over the arguments of `fn`, or None if `fn` accepts all arguments of the op.
        into: takes the arguments of `fn` and an array, to which it writes the value, or None.
        describe: takes the arguments of `fn` and returns how it computes them, for `explain`, or None.
    """

    backend: str
    fn: Function
    accepts: Predicate | None
    into: Function | None = None
    describe: Callable[..., str] | None = None


Candidates = tuple[tuple[str, Function, Predicate | None], ...]


class Choice(NamedTuple):
    """The result of `pick`: a backend and its function."""

    backend: str
    fn: Function


# A provider is called once, before the first choice on its device. It registers kernels, and returns a message for each
# backend that it could not provide. So a library is loaded only when a kernel is needed.
Provider = Callable[[], dict[str, str]]

KERNELS: dict[tuple[str, str], Entry] = {}
_providers: dict[str, list[Provider]] = {}
_absent: dict[str, str] = {}  # backend -> why it is unavailable
# Array type, or device type -> name -> entries in the order to try.
_candidates: dict[type | str, dict[str, Candidates]] = {}
_limits: dict[str, list[Limit]] = {}  # name of op -> the limits that depend on it
_required: str | None = None


def _kernels_are_off(value: str) -> bool:
    if value not in ("on", "off"):
        raise ArgumentError(f"TALLOW_KERNELS={value!r}", hint="set it to 'off' or 'on', or unset it")
    return value == "off"


_off = _kernels_are_off(os.environ.get("TALLOW_KERNELS", "on"))


def kernel(
    name: str,
    backend: str,
    accepts: Predicate | None = None,
    *,
    round_like: int | None = None,
    into: Function | None = None,
    describe: Callable[..., str] | None = None,
) -> Callable[[F], F]:
    """Register the decorated function as the kernel of the op `name` for `backend`, replacing an earlier one.

    Args:
        backend: one of the names in `PREFERENCE`, or the type of another device; "array" is the reference.
        accepts: called with the kernel's arguments before each use; the kernel is skipped if it returns False.
            The first line of its docstring describes accepted arguments as a noun phrase, which `explain` prints.
        round_like: for array implementations that compute in float32 or float64 only. If any argument is float16 or
            bfloat16, all such arguments are widened, the best kernel for float32 is called, and its first result is
            rounded to the dtype of the argument at this position.
        into: does the same, and writes the value to an array, its last argument, which may be the first one. Without
            it, `run_into` copies the value.
        describe: returns how it computes the arguments, in a few words that `explain` prints; "" says no more.
    """

    def register(fn: F) -> F:
        called = fn if round_like is None else widening(fn, partial(run, name), round_like)
        KERNELS[name, backend] = Entry(backend, called, accepts, into, describe)
        _candidates.clear()
        for limit in _limits.get(name, ()):
            limit.renew()
        return fn

    return register


def minimum(size: int) -> Callable[[Predicate], Predicate]:
    """Declare that the decorated `accepts` refuses a first operand of fewer elements.

    A product counts multiplications, and what takes elements by an index those that it takes. This is about operands
    of one dtype of NumPy's: a predicate may take fewer halves. Without this declaration, it may accept any size.
    `{minimum}` in its docstring becomes the number.
    """

    def declare(predicate: Predicate) -> Predicate:
        predicate.__doc__ = (predicate.__doc__ or "").replace("{minimum}", f"{size:,}")
        predicate.minimum = size  # type: ignore[attr-defined]
        return predicate

    return declare


class Limit:
    """The size below which the array implementations of ops compute NumPy's floats, as the table is at present.

    Make it beside those implementations. If another one replaces them, the limit is 0, as it is if another backend is
    required: then each call goes through `run`.

    Attributes:
        size: of what the kernels' `minimum` counts, elements or multiplications.
    """

    __slots__ = ("_implementations", "size")

    def __init__(self, *names: str) -> None:
        self._implementations = {name: KERNELS[name, ARRAY] for name in names}
        for name in names:
            _limits.setdefault(name, []).append(self)
        self.renew()

    def renew(self) -> None:
        """Compute the size again, from the present state of the table."""
        own = self._implementations
        if _exclusion(ARRAY) or any(KERNELS.get((name, ARRAY)) is not entry for name, entry in own.items()):
            self.size = 0
            return
        others = [b for b in _preference("cpu") if b != ARRAY and _exclusion(b) is None]
        rivals = [KERNELS[name, b] for b in others for name in own if (name, b) in KERNELS]
        unloaded = LIMIT_BEFORE_LOADING if others and "cpu" in _providers else LARGEST_LIMIT
        self.size = min(unloaded, LARGEST_LIMIT, *(getattr(entry.accepts, "minimum", 0) for entry in rivals))


def register_provider(device_type: str, provider: Provider) -> None:
    """Call `provider` before the first choice on `device_type`; see `Provider`."""
    _providers.setdefault(device_type, []).append(provider)
    forget_choices()


def run(name: str, *args: Any) -> Any:
    """Call the first kernel of `name` that accepts `args`; the first argument is an array and determines the device.

    Raises:
        KernelUnavailable: no kernel accepts these arguments, or the one demanded by `require` does not.
    """
    if MULTI_DEVICE and (guard := guard_for(args[:1])) is not None:
        with guard:
            return run(name, *args)
    try:
        candidates = _candidates[type(args[0])][name]
    except KeyError:
        candidates = _find_candidates(name, args[0])
    for _, fn, accepts in candidates:
        if accepts is None or accepts(*args):
            return fn(*args)
    raise _unavailable(name, _device_type(args[0]), args)


def run_into(name: str, out: np.ndarray[Any, Any], *args: Any) -> None:
    """Write what `run` returns to an array of the CPU, which may be the first argument.

    Raises:
        KernelUnavailable: as in `run`.
        ValueError: the value does not fit the shape of the array.
    """
    backend, fn = pick(name, "cpu", *args)
    into = KERNELS[name, backend].into
    if into is None:
        out[...] = fn(*args)
    else:
        into(*args, out)


def of_array(name: str) -> Callable[[Any], Any]:
    """Return a function of one NumPy array that does what `run` does, and does not unpack arguments for it."""

    def call(x: Any) -> Any:
        try:
            candidates = _candidates[type(x)][name]
        except KeyError:
            candidates = _find_candidates(name, x)
        for _, fn, accepts in candidates:
            if accepts is None or accepts(x):
                return fn(x)
        raise _unavailable(name, _device_type(x), (x,))

    return call


def pick(name: str, device_type: str, *args: Any) -> Choice:
    """Return the first kernel in `PREFERENCE[device_type]` that accepts `args`, with its backend.

    Raises:
        KernelUnavailable: as in `run`.
    """
    try:
        candidates = _candidates[device_type][name]
    except KeyError:
        candidates = _candidates.setdefault(device_type, {})[name] = _order(name, device_type)
    for backend, fn, accepts in candidates:
        if accepts is None or accepts(*args):
            guard = guard_for(args) if MULTI_DEVICE else None
            return Choice(backend, fn if guard is None else _within(guard, fn))
    raise _unavailable(name, device_type, args)


def _within(device: AbstractContextManager[Any], fn: Function) -> Function:
    def call(*args: Any) -> Any:
        with device:
            return fn(*args)

    return call


def explain(name: str, *args: Any) -> None:
    """Print which kernel of `name` would be called with these arguments, and why not each of the others.

    Raises:
        KernelUnavailable: no kernel has this name.
        ArgumentError: there is no argument, so that the device is unknown.
    """
    if not args:
        raise ArgumentError(f"explain({name!r}) without arguments", hint="pass arrays as to kernels.run")
    device_type = _device_type(args[0])
    provide(device_type)
    if not _exists(name):
        raise _unknown(name)
    print(explanation(name, device_type, args))


def explanation(name: str, device_type: str, args: tuple[Any, ...]) -> str:
    """Return the text that `explain` prints."""
    provide(device_type)
    lines = [f"{name} on {device_type}"]
    has_choice = False
    for backend in _preference(device_type):
        refusal = _refusal(name, backend, args)
        lines.append(f"  {backend:<7} {refusal or ('not needed' if has_choice else _chosen(name, backend, args))}")
        has_choice = has_choice or refusal is None
    return "\n".join(lines)


def _chosen(name: str, backend: str, args: tuple[Any, ...]) -> str:
    describe = KERNELS[name, backend].describe
    how = describe(*args) if describe else ""
    return f"chosen: {how}" if how else "chosen"


def enabled() -> bool:
    """Return whether kernels other than the array code may be chosen."""
    return not _off


def names(backend: str) -> list[str]:
    """Return the sorted names of the ops that have a kernel for `backend`."""
    return sorted(name for name, b in KERNELS if b == backend)


@contextmanager
def require(backend: str) -> Iterator[None]:
    """Raise KernelUnavailable inside the block if any other backend would be chosen, for arrays of any size.

    Ops without a kernel, which `names` does not list, compute as always.

    Example:
        >>> with require("array"):
        ...     pass
    """
    global _required
    before, _required = _required, backend
    forget_choices()
    try:
        yield
    finally:
        _required = before
        forget_choices()


@contextmanager
def off() -> Iterator[None]:
    """Use only the array implementations inside the block, as under TALLOW_KERNELS=off."""
    global _off
    before, _off = _off, True
    forget_choices()
    try:
        yield
    finally:
        _off = before
        forget_choices()


def forget_choices() -> None:
    """Choose again at the next calls, because the table has changed."""
    _candidates.clear()
    for limits in _limits.values():
        for limit in limits:
            limit.renew()


def provide(device_type: str) -> None:
    """Call the providers of a device, if they have not been called yet."""
    if device_type not in _providers:
        return
    for provider in _providers.pop(device_type):
        _absent.update(provider())
    forget_choices()


def _preference(device_type: str) -> tuple[str, ...]:
    return PREFERENCE.get(device_type) or (device_type, ARRAY)


def _device_type(array: Any) -> str:
    return "cpu" if isinstance(array, np.generic) else device_type_of(array)


def _find_candidates(name: str, array: Any) -> Candidates:
    candidates = _order(name, _device_type(array))
    if isinstance(array, np.generic):  # a result of zero-dim arrays: it has no address, so it takes the array code
        candidates = tuple(row for row in candidates if row[0] == ARRAY)
    _candidates.setdefault(type(array), {})[name] = candidates
    return candidates


def _order(name: str, device_type: str) -> Candidates:
    """Return the kernels to try for `name`, in order, subject to `off` and `require`."""
    if not _off:
        provide(device_type)
    return tuple(
        (backend, *KERNELS[name, backend][1:3])  # Python unpacks a plain tuple quicker than a named one
        for backend in _preference(device_type)
        if (name, backend) in KERNELS and _exclusion(backend) is None
    )


def _exclusion(backend: str) -> str | None:
    if _off and backend != ARRAY:
        return "no: kernels are switched off"
    if _required is not None and backend != _required:
        return f"no: {_required!r} is required here"
    return None


def _refusal(name: str, backend: str, args: tuple[Any, ...]) -> str | None:
    """Return why `backend` does not compute `name`, or None if it could."""
    if (exclusion := _exclusion(backend)) is not None:
        return exclusion
    if (name, backend) not in KERNELS:
        return f"no: {_absent.get(backend, 'has no such kernel')}"
    accepts = KERNELS[name, backend].accepts
    if accepts is None or accepts(*args):
        return None
    required = (accepts.__doc__ or accepts.__name__).strip().splitlines()[0].rstrip(".")
    return f"no: takes {required[0].lower()}{required[1:]}"


def _unavailable(name: str, device_type: str, args: tuple[Any, ...]) -> KernelUnavailable:
    if not _exists(name):
        return _unknown(name)
    arguments = ", ".join(_describe(a) for a in args)
    hint = f"pass arguments that one of these kernels takes, or register one: @kernel({name!r}, ...)"
    if _required is not None:
        hint = f"pass arguments that the {_required} kernel takes, or leave kernels.require({_required!r})"
    return KernelUnavailable(f"{explanation(name, device_type, args)}\n  arguments: {arguments}", hint=hint)


def _exists(name: str) -> bool:
    return any(filed == name for filed, _ in KERNELS)


def _unknown(name: str) -> KernelUnavailable:
    return KernelUnavailable(f"no kernel is called {name!r}", hint=f"register one: @kernel({name!r}, 'array')")


def _describe(argument: Any) -> str:
    if hasattr(argument, "shape") and hasattr(argument, "dtype"):
        return f"{argument.dtype}{list(argument.shape)}"
    return repr(argument)
