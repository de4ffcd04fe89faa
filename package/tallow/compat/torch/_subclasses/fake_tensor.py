"""torch._subclasses.fake_tensor: tensors without values that say they are on another device than meta."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import tallow
from tallow.compat.torch.overrides import TorchFunctionMode
from tallow.core import watching
from tallow.core.overrides import subclasses, without_subclasses
from tallow.core.tensor import Tensor
from tallow.core.trees import leaves, map_leaves
from tallow.devices import device
from tallow.errors import ArgumentError, DeviceError

__all__ = ["DataDependentOutputException", "FakeTensor", "FakeTensorMode", "is_fake"]

DataDependentOutputException = DeviceError  # what reading a value of a tensor without values raises
META = device("meta")


class _Answering(Tensor):
    """A tensor whose functions go to the mode that made it. Its own module is tallow's: classes of torch answer not."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        fake = next(x for x in leaves((args, kwargs or {})) if isinstance(x, FakeTensor))
        return fake.__dict__["fake_mode"].run(func, args, kwargs or {})


class FakeTensor(_Answering):
    """A tensor with a shape, a dtype and a device, and no memory; `FakeTensorMode` makes it.

    Attributes:
        fake_mode: the mode that made it, to which functions of it go, also outside of the mode's block.
        fake_device: the device that it says it is on.
    """

    __module__ = "torch._subclasses.fake_tensor"
    fake_mode: FakeTensorMode
    fake_device: device

    @property
    def device(self) -> Any:
        """The device that a real tensor would be on."""
        return META if subclasses.are_off else self.__dict__["fake_device"]

    is_cpu = property(lambda self: self.device.type == "cpu")
    is_cuda = property(lambda self: self.device.type == "cuda")
    is_meta = property(lambda self: self.device.type == "meta")

    def __repr__(self) -> str:
        parts = [f"size={tuple(self.shape)}"]
        if self.__dict__["fake_device"].type != "cpu":
            parts.insert(0, f"device='{self.__dict__['fake_device']}'")
        if self.dtype is not tallow.get_default_dtype():
            parts.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            parts.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        return f"FakeTensor(..., {', '.join(parts)})"


class FakeTensorMode(TorchFunctionMode):
    """A block in which functions make and compute FakeTensors: shapes and dtypes, by the device meta.

    The parameters of layers that are made in the block are tensors on the device meta, and say so.

    Args:
        allow_non_fake_inputs: let tensors with values stand for their shapes in functions of FakeTensors.
        allow_fallback_kernels, shape_env, static_shapes, export: have no effect: every function knows its shapes, and
            no size is unknown.
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env, self.static_shapes = shape_env, static_shapes
        self._made: dict[int, tuple[weakref.ref[Tensor], FakeTensor]] = {}  # by the number of the object

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return self.run(func, args, kwargs or {})

    def __enter__(self) -> Any:
        META.__enter__()  # for the parameters of layers
        return super().__enter__()

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        META.__exit__(*exc_info)

    def from_tensor(self, tensor: Tensor, **options: Any) -> FakeTensor:
        """Return a FakeTensor of the shape, strides, dtype and device of a tensor: the same one each time.

        Args:   options: PyTorch's, about sizes that are unknown; without effect
        Raises: ArgumentError for a FakeTensor of another mode
        """
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise ArgumentError("Mixing fake modes NYI", hint="make the tensor in one mode")
            return tensor
        known, fake = self._made.get(id(tensor), (None, None))
        if fake is None or known is None or known() is not tensor:
            with without_subclasses():
                made = tallow.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=META)
            fake = self._fake(made, tensor.device).requires_grad_(tensor.requires_grad)
            if getattr(tensor, "_is_param", False):
                fake._is_param = True
            key, made_here = id(tensor), self._made
            self._made[key] = weakref.ref(tensor, lambda _: made_here.pop(key, None)), fake
        return fake

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a function makes of its arguments, with FakeTensors for tensors.

        Raises: ArgumentError for tensors with values among FakeTensors, unless they are allowed; DeviceError for two
            devices.
        """
        operands = [x for x in leaves((args, kwargs)) if isinstance(x, Tensor)]
        if any(isinstance(x, FakeTensor) for x in operands):
            args, kwargs = map_leaves(lambda x: self._operand(x, function), (args, kwargs))
        elif operands and not any(x.is_meta for x in operands):
            args, kwargs = map_leaves(lambda x: self.from_tensor(x) if isinstance(x, Tensor) else x, (args, kwargs))
        target = self._target(function, args, kwargs)
        args, kwargs = map_leaves(lambda x: META if isinstance(x, device) else x, (args, kwargs))
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": META}
        name = getattr(function, "__name__", "")
        if name == "to" and len(args) > 1 and isinstance(args[1], str):
            args = (args[0], META, *args[2:])
        if name in ("cpu", "cuda"):
            function, args, kwargs = Tensor.to, (args[0], META), {}
            if args[0].__dict__["fake_device"] != target:
                kwargs = {"copy": True}
        elif name == "to" and args[0].__dict__["fake_device"] != target:
            kwargs = {**kwargs, "copy": True}
        with without_subclasses(), watching.without_modes(), META:
            result = function(*args, **kwargs)
        return map_leaves(lambda x: self._fake(x, target) if isinstance(x, Tensor) else x, result)

    def _operand(self, x: Any, function: Any) -> Any:
        if not isinstance(x, Tensor) or isinstance(x, FakeTensor) or x.is_meta:
            return x
        if not self.allow_non_fake_inputs and x.ndim:
            raise ArgumentError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                f"'allow_non_fake_inputs'. Found in {getattr(function, '__name__', function)}",
                hint="fake_mode.from_tensor(tensor)",
            )
        return self.from_tensor(x)

    def _target(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> device:
        """Return the device of the result: the one that is asked for, or that of the operands."""
        name = getattr(function, "__name__", "")
        named = kwargs.get("device")
        if named is None:
            named = next((x for x in leaves(args) if isinstance(x, device)), None)
        if named is None and name == "to" and len(args) > 1 and isinstance(args[1], str):
            named = args[1]
        if named is None and name in ("cpu", "cuda"):
            named = name if len(args) < 2 or args[1] is None else args[1]
        if named is not None:
            found = device(named) if isinstance(named, str) else named
            return device("cuda", 0) if found.type == "cuda" and found.index is None else found
        fakes = [x for x in leaves((args, kwargs)) if isinstance(x, FakeTensor)]
        devices = {x.__dict__["fake_device"] for x in fakes if x.__dict__["array"].ndim}
        if len(devices) > 1 and name not in ("copy_", "to", "type_as", "__setitem__", "backward"):
            raise DeviceError(f"Unhandled FakeTensor Device Propagation for {name}, found two different devices")
        if devices:
            return fakes[0].__dict__["fake_device"] if len(devices) > 1 else devices.pop()
        return fakes[0].__dict__["fake_device"] if fakes else device("cpu")

    def _fake(self, x: Tensor, target: device) -> Any:
        """Return a tensor that a function has returned as a FakeTensor: itself, since nobody else has it."""
        if isinstance(x, FakeTensor):
            return x
        if not x.is_meta:
            return self.from_tensor(x)
        x.__class__ = FakeTensor
        x.__dict__.update(fake_mode=self, fake_device=target)
        return x


def is_fake(x: object) -> bool:
    """Return whether an object is a FakeTensor."""
    return isinstance(x, FakeTensor)


def unset_fake_temporarily() -> Any:
    """Return a block in which no mode sees functions."""
    return watching.without_modes()
