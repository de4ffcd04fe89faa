"""Subclasses of Tensor that compute ops by `__torch_dispatch__`: tensors that log, are quantised, or wrap others.

The functions of all ops are exchanged when the first tensor of such a class is made, see `tallow.core.watching`: a
program without one pays nothing. From then on an op, also one that a function is composed of, goes to
`__torch_dispatch__` of a class among its operands, and `func(*args, **kwargs)` there computes it. Nothing is recorded
for backward meanwhile, as in PyTorch. The gradient of what such a method returns is not computed: `backward` raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from tallow import dtypes
from tallow.core import meta, watching
from tallow.core.apply import needs_gradient, record
from tallow.core.overloads import call_of, call_of_method
from tallow.core.overrides import answers, ask, subclasses
from tallow.core.tensor import Tensor
from tallow.core.trees import leaves
from tallow.devices import device as device_named
from tallow.errors import GraphError, UnsupportedError
from tallow.ops.memory_format import strided
from tallow.ops.table import Op
from tallow.tape.modes import mode, no_grad

METHOD = "__torch_dispatch__"
T = TypeVar("T", bound=Tensor)


def watch() -> None:
    """Let ops go to the classes of their operands from now on."""
    watching.watch_once(answer)


def answer(op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the class of an operand makes of an op; without such an operand the op's own result."""
    operands = [x for x in leaves((args, kwargs)) if isinstance(x, Tensor)]
    asked = [x for x in operands if type(x)._watch is not None]
    with watching.rewatched():
        # Their __torch_function__ comes first.
        if not asked or (not subclasses.are_off and any(answers(type(x)) for x in asked)):
            return function(*args, **kwargs)
        with no_grad():
            result = ask(call_of(op, function), asked, args, kwargs, METHOD)
    if mode.recording and needs_gradient(operands):
        _refuse_gradients(op, operands, result)
    return result


def _refuse_gradients(op: Op, operands: Sequence[Tensor], result: Any) -> None:
    """Record that the results of an op have no gradient, so that `backward` says so."""

    def refuse(*gradients: Any) -> NoReturn:
        raise GraphError(
            f"{op.name}: the gradient of what __torch_dispatch__ returns is not computed",
            hint="compute with the wrapped tensors where a gradient is needed, by __torch_function__ of the class",
        )

    for output in leaves(result):
        is_new = isinstance(output, Tensor) and all(output is not x for x in operands)
        if is_new and output.dtype.is_floating_point and not output.requires_grad:
            record(op, refuse, operands, output)


def make_wrapper(
    cls: type[T],
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **policies: Any,
) -> T:
    """Return a tensor of a subclass that has a size, a dtype and a device, and no memory: its ops are dispatched.

    Raises: UnsupportedError for another layout or memory format, pinned memory, and policies by which PyTorch asks the
        class for sizes, strides or the device.
    """
    options = policies | {"memory_format": memory_format, "pin_memory": pin_memory}
    given = [name for name, value in options.items() if value] + (["layout"] if layout is not strided else [])
    if given:
        raise UnsupportedError(f"_make_wrapper_subclass: {', '.join(given)}", hint="define a property of the class")
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    wrapper = cls._rebuild(meta.empty(tuple(size), kind.storage), requires_grad)
    own = wrapper.__dict__
    own["_device"] = device_named("cpu" if device is None else device)
    own["_strides"] = None if strides is None else tuple(strides)
    own["_offset"] = storage_offset or 0
    return wrapper


def device_of_wrapper(tensor: Tensor) -> device_named:
    """Return the device that a wrapper was given; that of its memory for other tensors."""
    given: device_named | None = tensor.__dict__.get("_device")
    return Tensor.device.fget(tensor) if given is None else given  # type: ignore[attr-defined]


def stride_of_wrapper(tensor: Tensor, dim: int | None = None) -> Any:
    """Return the strides that a wrapper was given; those of its memory for other tensors."""
    given: tuple[int, ...] | None = tensor.__dict__.get("_strides")
    if given is None:
        return Tensor.stride(tensor, dim)
    return given if dim is None else given[dim]


def detached(tensor: Tensor) -> Any:
    """Return what the class of a tensor makes of `detach`."""
    with watching.rewatched(), no_grad():
        return ask(call_of_method(Tensor.detach), (tensor,), (tensor,), {}, METHOD)


def prepare(cls: type[Tensor]) -> None:
    """Let the tensors of a class that defines `__torch_dispatch__` dispatch. What the class defines itself stays."""
    cls._watch = staticmethod(watch)
    cls._make_wrapper = classmethod(make_wrapper)  # type: ignore[assignment,arg-type]
    for name, value in _OF_WRAPPERS.items():
        if getattr(cls, name) is getattr(Tensor, name):
            setattr(cls, name, value)


_OF_WRAPPERS: dict[str, Any] = {
    "detach": detached,
    "device": property(device_of_wrapper),
    "is_cpu": property(lambda self: self.device.type == "cpu"),
    "is_cuda": property(lambda self: self.device.type == "cuda"),
    "is_meta": property(lambda self: self.device.type == "meta"),
    "storage_offset": lambda self: self.__dict__.get("_offset", 0),
    "stride": stride_of_wrapper,
}
