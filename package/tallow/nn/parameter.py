"""Parameters and buffers: tensors that a Module files when they are assigned to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tallow import devices, dtypes
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.tensor import Tensor


class Parameter(Tensor):
    """A tensor to be learned. Assigned to a Module it appears in `parameters()`; it requires grad unless told not to.

    Args:    as torch.nn.Parameter
    """

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(f"Parameter of {type(data).__name__}", mend="pass a Tensor: tl.tensor(...)")
        super().__init__(data.array, requires_grad=requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that belongs to a Module's state but is not learned, such as a running mean.

    Args:    as torch.nn.Buffer; persistent: whether it is part of `state_dict`
    """

    def __init__(self, data: Tensor, *, persistent: bool = True) -> None:
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(f"Buffer of {type(data).__name__}", mend="pass a Tensor: tl.tensor(...)")
        super().__init__(data.array)
        self.persistent = persistent


class _Uninitialized(Tensor):
    """A tensor whose shape is not known yet: all it can do is `materialize`, which gives it memory.

    Raises:  ArgumentError when it is used before that
    """

    _becomes_class: ClassVar[type[Tensor]]
    _becomes: dict[str, Any]

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Take memory for this shape, to be filled; device and dtype are those it was made with unless given."""
        wanted = {"device": device, "dtype": dtype}
        kept = self.__dict__.pop("_becomes")
        made = empty_parameter(*shape, **{key: kept[key] if wanted[key] is None else wanted[key] for key in kept})
        self.__class__ = self._becomes_class  # type: ignore[assignment]  # the same object, as its module has it
        self.array = made.array

    def becomes(self, device: Any, dtype: Any) -> None:
        """What it will be made as, where that is not None."""
        self._becomes |= {key: value for key, value in (("device", device), ("dtype", dtype)) if value is not None}

    def __getattr__(self, name: str) -> Any:
        if name == "array":  # there is none yet, and every use of a tensor comes by here
            raise ArgumentError(
                f"an {type(self).__name__} has neither shape nor values", mend="call its materialize(shape) first"
            )
        return super().__getattr__(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape is not known yet: all it can do is `materialize`, which makes a Parameter of it.

    Args:    as torch.nn.UninitializedParameter
    Raises:  ArgumentError when it is used before that
    """

    _becomes_class = Parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        self._requires_grad = requires_grad
        self._becomes = {"device": device, "dtype": dtype}


class UninitializedBuffer(_Uninitialized):
    """A buffer whose shape is not known yet.

    Args:    as torch.nn.UninitializedBuffer
    """

    _becomes_class = Tensor

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None) -> None:
        self._requires_grad = requires_grad
        self._becomes = {"device": device, "dtype": dtype}


def empty_parameter(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """A parameter to be filled by its layer. On device "meta" it takes no memory, and has none to be filled."""
    storage = (dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)).storage
    target = devices.chosen(device)
    array = devices.get_backend(target.type).module.empty(shape, storage)
    return Parameter(Tensor(devices.move(array, target)))
