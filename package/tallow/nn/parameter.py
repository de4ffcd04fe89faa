"""Parameters and buffers: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from tallow import devices, dtypes
from tallow.core.creation import as_size
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, ArgumentTypeError


class _ParameterMeta(type):
    """The class of Parameter, whose instances are also tensors of other subclasses that were made parameters."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (
            cls is Parameter and isinstance(instance, Tensor) and instance._is_param
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A trainable tensor. A module that it is assigned to yields it from `parameters()`. It requires grad by default.

    A tensor of a subclass keeps its class, and is a Parameter all the same.

    Args:    as torch.nn.Parameter; `attributes` may have what `vars` of a parameter has, of which nothing is used
    Raises:  ArgumentTypeError for anything but a Tensor, for other arguments, and for a subclass whose `detach` returns
             another class
    """

    _is_param = True

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True, **attributes: Any) -> Self:
        if data is not None and not isinstance(data, Tensor):
            raise ArgumentTypeError(f"Parameter of {type(data).__name__}", hint="pass a Tensor: tl.tensor(...)")
        unknown = [name for name in attributes if name != "array" and not hasattr(Tensor, name)]
        if unknown:
            raise ArgumentTypeError(f"Parameter: unexpected keyword arguments {', '.join(unknown)}")
        if cls is Parameter and data is not None and type(data).__module__.partition(".")[0] != "tallow":
            return _as_parameter(data, requires_grad)
        return super().__new__(cls, *([] if data is None else [data]), requires_grad=requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        """Return a copy without the gradient, as in PyTorch."""
        result: Any = super().__deepcopy__(memo)
        result._grad = None
        return result

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


def _as_parameter(data: Tensor, requires_grad: bool) -> Any:
    """Return a tensor of a subclass as a leaf of its class."""
    own: Any = data.detach()
    if type(own) is not type(data):
        raise ArgumentTypeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
            f"instance of the same type, but return type {type(own).__name__} was found instead",
            hint="let __torch_function__ of the class wrap the result of detach",
        )
    own._is_param = True
    return own.requires_grad_(requires_grad)


class Buffer(Tensor):
    """A tensor of a module's state that is not trained, such as a running mean.

    Args:    as torch.nn.Buffer; persistent: include it in `state_dict`
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        if data is not None and not isinstance(data, Tensor):
            raise ArgumentTypeError(f"Buffer of {type(data).__name__}", hint="pass a Tensor: tl.tensor(...)")
        self = super().__new__(cls, *([] if data is None else [data]))
        self.persistent = persistent
        return self


class _Uninitialized(Tensor):
    """A tensor whose shape is unknown until `materialize` allocates it.

    Raises:  ArgumentError if it is used before that
    """

    _materialized_class: ClassVar[type[Tensor]]
    _target: dict[str, Any]  # the device and dtype to materialize with

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None) -> Self:
        self: Self = object.__new__(cls)
        self._requires_grad = requires_grad
        self._target = {"device": device, "dtype": dtype}
        return self

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Allocate memory for this shape, uninitialized. None keeps the device or dtype of the constructor."""
        given = {"device": device, "dtype": dtype}
        target = self.__dict__.pop("_target")
        options = {key: target[key] if given[key] is None else given[key] for key in target}
        # The object stays the same, because its module refers to it.
        self.__class__ = self._materialized_class  # type: ignore[assignment]
        self.array = empty_parameter(*shape, **options).array

    def set_target(self, device: Any, dtype: Any) -> None:
        """Set the device and dtype to materialize with; None keeps what is set."""
        self._target |= {key: value for key, value in (("device", device), ("dtype", dtype)) if value is not None}

    def __getattr__(self, name: str) -> Any:
        if name == "array":  # every use of a tensor reads its array
            raise ArgumentError(
                f"an {type(self).__name__} has neither shape nor values", hint="call its materialize(shape) first"
            )
        return super().__getattr__(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape is unknown until `materialize` turns it into a Parameter.

    Args:    as torch.nn.UninitializedParameter
    Raises:  ArgumentError if it is used before that
    """

    _materialized_class = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Self:
        return super().__new__(cls, requires_grad, device, dtype)


class UninitializedBuffer(_Uninitialized):
    """A buffer whose shape is unknown until `materialize` turns it into a Tensor.

    Args:    as torch.nn.UninitializedBuffer
    """

    _materialized_class = Tensor


def empty_parameter(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """Return an uninitialized parameter, which its layer fills. On device "meta" it takes no memory."""
    storage = (dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)).storage
    target = devices.chosen(device)
    array = devices.get_backend(target.type).module.empty(as_size((shape,), "parameter"), storage)
    return Parameter(wrap(devices.move(array, target)))
