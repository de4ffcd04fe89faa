"""The kernel table: which function computes an op, for these arrays, on this device.

Every op that has a fast path is called as `run(name, x, ...)`. The plain array implementation, backend "array", works
with NumPy and CuPy alike, is always there, and is the reference; what else is filed under the same name goes before it
on the devices named in `PREFERENCE`, whenever it accepts the arguments. Built-in kernels and a user's own enter by the
same decorator:

    @kernel("softmax", "native", accepts=float32_rows)
    def softmax(x): ...

The state that `off` and `require` change belongs to the process, as the table does; it is not per thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeVar

from tallow.devices import SEVERAL, beside, device_type_of
from tallow.errors import ArgumentError, KernelUnavailable

ARRAY = "array"
# Device type -> backends, the preferred one first. A device type that is not named here has (itself, "array").
PREFERENCE: dict[str, tuple[str, ...]] = {"cpu": ("wasm", "native", ARRAY), "cuda": ("cuda", ARRAY)}

Function = Callable[..., Any]
Predicate = Callable[..., bool]
F = TypeVar("F", bound=Function)


class Entry(NamedTuple):
    """One row: `accepts` is a predicate over the arguments of `fn`, or None where `fn` takes whatever the op takes."""

    backend: str
    fn: Function
    accepts: Predicate | None


class Choice(NamedTuple):
    """What `pick` answers."""

    backend: str
    fn: Function


# A provider is called once, before the first choice on its device: it registers kernels, and returns for each backend
# that it could not provide the reason, in words. So loading a library costs nothing until a kernel is wanted.
Provider = Callable[[], dict[str, str]]

KERNELS: dict[tuple[str, str], Entry] = {}
_providers: dict[str, list[Provider]] = {}
_absent: dict[str, str] = {}  # backend -> why it is not there
_candidates: dict[type, dict[str, tuple[Entry, ...]]] = {}  # array type -> name -> what to try, in order
_required: str | None = None


def _kernels_are_off(value: str) -> bool:
    if value not in ("on", "off"):
        raise ArgumentError(f"TALLOW_KERNELS={value!r}", mend="set it to 'off' or 'on', or unset it")
    return value == "off"


_off = _kernels_are_off(os.environ.get("TALLOW_KERNELS", "on"))


def kernel(name: str, backend: str, accepts: Predicate | None = None) -> Callable[[F], F]:
    """Register the decorated function as the kernel of the op `name` for `backend`, replacing one that was there.

    Args:
        backend: one of the names in `PREFERENCE`, or the type of another device; "array" is the reference.
        accepts: called with the kernel's arguments before each use; the kernel is passed over where it returns False.
            The first line of its docstring says what it accepts, and `explain` prints it.
    """

    def register(fn: F) -> F:
        KERNELS[name, backend] = Entry(backend, fn, accepts)
        _candidates.clear()
        return fn

    return register


def register_provider(device_type: str, provider: Provider) -> None:
    """Call `provider` before the first choice on `device_type`; see `Provider`."""
    _providers.setdefault(device_type, []).append(provider)
    _candidates.clear()


def run(name: str, *args: Any) -> Any:
    """Call the first kernel of `name` that accepts `args`; the first of `args` is an array and decides the device.

    Raises:
        KernelUnavailable: no kernel accepts these arguments, or the one demanded by `require` does not.
    """
    if SEVERAL and (other := beside(args[:1])) is not None:
        with other:
            return run(name, *args)
    try:
        candidates = _candidates[type(args[0])][name]
    except KeyError:
        candidates = _find_candidates(name, args[0])
    for _, fn, accepts in candidates:
        if accepts is None or accepts(*args):
            return fn(*args)
    raise _unavailable(name, device_type_of(args[0]), args)


def pick(name: str, device_type: str, *args: Any) -> Choice:
    """The first kernel in `PREFERENCE[device_type]` that accepts `args`, and its backend's name.

    Raises:
        KernelUnavailable: as in `run`.
    """
    for backend, fn, accepts in _order(name, device_type):
        if accepts is None or accepts(*args):
            other = beside(args) if SEVERAL else None
            return Choice(backend, fn if other is None else _within(other, fn))
    raise _unavailable(name, device_type, args)


def _within(device: AbstractContextManager[Any], fn: Function) -> Function:
    def call(*args: Any) -> Any:
        with device:
            return fn(*args)

    return call


def explain(name: str, *args: Any) -> None:
    """Print which kernel of `name` would compute these arguments, and why not each of the others."""
    print(explanation(name, device_type_of(args[0]), args))


def explanation(name: str, device_type: str, args: tuple[Any, ...]) -> str:
    """What `explain` prints."""
    provide(device_type)
    lines = [f"{name} on {device_type}"]
    chosen = False
    for backend in _preference(device_type):
        refusal = _refusal(name, backend, args)
        lines.append(f"  {backend:<7} {refusal or ('comes after' if chosen else 'chosen')}")
        chosen = chosen or refusal is None
    return "\n".join(lines)


def enabled() -> bool:
    """Whether kernels other than the array code may be chosen."""
    return not _off


def names(backend: str) -> list[str]:
    """The names of the ops that have a kernel for `backend`, sorted."""
    return sorted(name for name, b in KERNELS if b == backend)


@contextmanager
def require(backend: str) -> Iterator[None]:
    """Inside the block, any choice that would fall to another backend raises KernelUnavailable.

    Example:
        >>> with require("array"):
        ...     pass
    """
    global _required
    before, _required = _required, backend
    _candidates.clear()
    try:
        yield
    finally:
        _required = before
        _candidates.clear()


@contextmanager
def off() -> Iterator[None]:
    """Inside the block, the plain array implementation computes everything, as under TALLOW_KERNELS=off."""
    global _off
    before, _off = _off, True
    _candidates.clear()
    try:
        yield
    finally:
        _off = before
        _candidates.clear()


def provide(device_type: str) -> None:
    """Let the providers of a device register their kernels, if they have not yet."""
    for provider in _providers.pop(device_type, ()):
        _absent.update(provider())


def _preference(device_type: str) -> tuple[str, ...]:
    return PREFERENCE.get(device_type) or (device_type, ARRAY)


def _find_candidates(name: str, array: Any) -> tuple[Entry, ...]:
    found = _order(name, device_type_of(array))
    _candidates.setdefault(type(array), {})[name] = found
    return found


def _order(name: str, device_type: str) -> tuple[Entry, ...]:
    """The kernels to try for `name`, in order, as `off` and `require` leave them."""
    if not _off:
        provide(device_type)
    return tuple(
        KERNELS[name, backend]
        for backend in _preference(device_type)
        if (name, backend) in KERNELS and _ruled_out(backend) is None
    )


def _ruled_out(backend: str) -> str | None:
    if _off and backend != ARRAY:
        return "no: kernels are switched off"
    if _required is not None and backend != _required:
        return f"no: {_required!r} is required here"
    return None


def _refusal(name: str, backend: str, args: tuple[Any, ...]) -> str | None:
    """Why `backend` does not compute `name`, or None if it could."""
    if (ruled_out := _ruled_out(backend)) is not None:
        return ruled_out
    if (name, backend) not in KERNELS:
        return f"no: {_absent.get(backend, 'has no such kernel')}"
    accepts = KERNELS[name, backend].accepts
    if accepts is None or accepts(*args):
        return None
    return f"no: takes {(accepts.__doc__ or accepts.__name__).strip().splitlines()[0].rstrip('.')}"


def _unavailable(name: str, device_type: str, args: tuple[Any, ...]) -> KernelUnavailable:
    if not any(filed == name for filed, _ in KERNELS):
        return KernelUnavailable(f"no kernel is called {name!r}", mend=f"register one: @kernel({name!r}, 'array')")
    arguments = ", ".join(_describe(a) for a in args)
    mend = f"pass what one of these kernels takes, or register one: @kernel({name!r}, ...)"
    if _required is not None:
        mend = f"pass what the {_required} kernel takes, or leave kernels.require({_required!r})"
    return KernelUnavailable(f"{explanation(name, device_type, args)}\n  arguments: {arguments}", mend=mend)


def _describe(argument: Any) -> str:
    if hasattr(argument, "shape") and hasattr(argument, "dtype"):
        return f"{argument.dtype}{list(argument.shape)}"
    return repr(argument)
