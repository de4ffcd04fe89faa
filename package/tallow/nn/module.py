"""Module: the base of all layers and models."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any, TypeVar

from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError, ArgumentTypeError, InvalidKeyError, MissingNameError
from tallow.nn.hooks import GLOBAL_HOOKS, STRUCTURE, Hooked
from tallow.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from tallow.nn.registered import names_of_class, provide
from tallow.nn.stateful import Stateful
from tallow.ops.memory_format import CHANNELS_LAST_NDIM, memory_format, preserve_format, strided

M = TypeVar("M", bound="Module")


class Module(Hooked, Stateful):
    """Base of layers and models: named parameters, buffers and submodules, and a `forward`.

    Assigning a parameter, buffer or module to an attribute registers it, so that `parameters`, `state_dict`, `to` and
    `train` reach it at any depth. A subclass calls `super().__init__()` before the first assignment.

    Args:    as torch.nn.Module
    Example:
        class Scale(Module):
            def __init__(self, size):
                super().__init__()
                self.weight = Parameter(tl.ones(size))

            def forward(self, x):
                return x * self.weight
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]

    def __init__(self) -> None:
        self.__dict__.update(  # bypasses __setattr__, which reads these
            training=True,
            _parameters={},
            _buffers={},
            _modules={},
            _non_persistent_buffers_set=set(),
            _forward_pre_hooks={},
            _forward_hooks={},
            _hooks_with_kwargs=set(),
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of a call; every subclass that is called defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward; define it, or call one of its children")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # What `has_hooks` returns, without the call: there is one for every layer.
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or GLOBAL_HOOKS
        ):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    # ---------------------------------------------------------------------------------------------------- attributes

    def __setattr__(self, name: str, value: Any) -> None:
        STRUCTURE.changes += 1
        if "_modules" not in self.__dict__:
            if isinstance(value, Parameter | Buffer | Module):
                where = f"{type(self).__name__}.{name}"
                raise ArgumentError(
                    f"{where} was assigned before Module.__init__", hint="call super().__init__() first"
                )
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._register(self._parameters, name, value)
            provide(type(self), name)
        elif isinstance(value, Module):
            self._register(self._modules, name, value)
            provide(type(self), name)
        elif isinstance(value, Buffer):
            self._register(self._buffers, name, value)  # in place of a parameter or module, which only this may replace
            self.register_buffer(name, value, persistent=value.persistent)
        elif name in self._parameters:
            self._reassign(self._parameters, name, value, "a Parameter")
        elif name in self._modules:
            self._reassign(self._modules, name, value, "a Module")
        elif name in self._buffers:
            if not isinstance(value, Tensor | None):
                raise ArgumentTypeError(f"cannot assign {type(value).__name__} as buffer {name!r}; expected a Tensor")
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _register(self, registry: dict[str, Any], name: str, value: Any) -> None:
        """Store a value in one of the registries, and remove whatever had the name in the others."""
        STRUCTURE.changes += 1
        for other in (self._parameters, self._buffers, self._modules, self.__dict__):
            if other is not registry:
                other.pop(name, None)
        registry[name] = value

    def _reassign(self, registry: dict[str, Any], name: str, value: Any, expected: str) -> None:
        if value is not None:
            what = f"cannot assign {type(value).__name__} as {name!r}; expected {expected} or None"
            raise ArgumentTypeError(what, hint=f"del self.{name} first")
        registry[name] = None

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in ("_parameters", "_modules", "_buffers"):
            if kind in own and name in (registry := own[kind]):
                return registry[name]
        raise MissingNameError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        STRUCTURE.changes += 1
        for registry in (self._parameters, self._modules, self._buffers):
            if name in registry:
                del registry[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        own = (self.__dict__, self._parameters, self._buffers, self._modules)
        return sorted(names_of_class(type(self)).union(*own))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name; None reserves the name.

        Raises:  InvalidKeyError for a name that is taken or has a dot; ArgumentTypeError for another type
        """
        self._check_name(name, self._buffers, self._modules)
        if not isinstance(param, Parameter | None):
            raise ArgumentTypeError(f"register_parameter {name!r}: {type(param).__name__} is not a Parameter or None")
        self._register(self._parameters, name, param)
        provide(type(self), name)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer under a name: a tensor that is part of the state but not trained. None reserves the name.

        Args:    persistent: include it in `state_dict`
        Raises:  InvalidKeyError for a name that is taken or has a dot; ArgumentTypeError for another type
        """
        self._check_name(name, self._parameters, self._modules)
        if not isinstance(tensor, Tensor | None):
            raise ArgumentTypeError(f"register_buffer {name!r}: {type(tensor).__name__} is not a Tensor or None")
        self._register(self._buffers, name, tensor)
        provide(type(self), name)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under a name; None reserves the name.

        Raises:  InvalidKeyError for a name that is taken or has a dot; ArgumentTypeError for another type
        """
        self._check_name(name, self._parameters, self._buffers)
        if not isinstance(module, Module | None):
            raise ArgumentTypeError(f"register_module {name!r}: {type(module).__name__} is not a Module or None")
        self._register(self._modules, name, module)

    add_module = register_module

    def _check_name(self, name: str, *others: Container[str]) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"the name of a part of a module must be a string, not {name!r}")
        if not name or "." in name:
            raise InvalidKeyError(f"invalid name {name!r} for a part of a module", hint="use a string without a dot")
        if hasattr(type(self), name) or any(name in names for names in (self.__dict__, *others)):
            raise InvalidKeyError(
                f"{type(self).__name__} already has an attribute {name!r}", hint="choose another name"
            )

    # ------------------------------------------------------------------------------------------------------ traversal

    def children(self) -> Iterator[Module]:
        """Iterate over the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over (name, module) of the direct submodules, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self) -> Iterator[Module]:
        """Iterate over this module and all modules below it, each once, parents first."""
        for _, module in self.named_modules():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over (path, module) of this module and all below it, parents first; each once by default."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _join(prefix, name), remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once; with recurse=False over this module's own."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over (dotted name, parameter); each parameter once by default."""
        yield from self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, each once; with recurse=False over this module's own."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over (dotted name, buffer); each buffer once by default."""
        yield from self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def _named_members(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            for name, member in getattr(module, kind).items():
                if member is not None and not (remove_duplicate and id(member) in seen):
                    seen.add(id(member))
                    yield _join(path, name), member

    def get_submodule(self, target: str) -> Module:
        """Return the module at a dotted path; "" is this module.

        Raises:  MissingNameError if a name on the path is missing or not a module
        """
        module = self
        for name in target.split(".") if target else ():
            child = module._modules.get(name)
            if child is None:
                raise MissingNameError(f"{type(module).__name__} has no submodule {name!r} (of path {target!r})")
            module = child
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set or replace the module at a dotted path; with `strict`, only replace.

        Raises:  ArgumentError for ""; MissingNameError if the parent, or with `strict` the module, does not exist
        """
        path, _, name = target.rpartition(".")
        if not name:
            raise ArgumentError("set_submodule: the path is empty", hint="name a child, such as 'encoder.layers.0'")
        if strict:
            self.get_submodule(target)
        setattr(self.get_submodule(path), name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path.  Raises: MissingNameError"""
        return self._get_member("_parameters", target)

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path.  Raises: MissingNameError"""
        return self._get_member("_buffers", target)

    def _get_member(self, kind: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if getattr(owner, kind).get(name) is None:
            raise MissingNameError(f"{type(owner).__name__} has no {name!r} among its {kind[1:]} (path {target!r})")
        return getattr(owner, kind)[name]

    # ---------------------------------------------------------------------------------------------------------- modes

    def train(self: M, mode: bool = True) -> M:
        """Set training mode on this module and all below it, and return it."""
        if not isinstance(mode, bool):
            raise ArgumentError(f"train: mode must be a bool, not {type(mode).__name__}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """Set evaluation mode on this module and all below it, and return it."""
        return self.train(False)

    def forward_t(self, input: Any, train: bool) -> Any:
        """Call this module in training or evaluation mode, then restore the mode of every submodule.

        Source: candle's `ModuleT::forward_t`, which replaces the mode there.
        """
        modes = [(module, module.training) for module in self.modules()]
        self.train(train)
        try:
            return self(input)
        finally:
            for module, mode in modes:
                module.training = mode

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set `requires_grad` of every parameter, and return the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    @recorded_whole
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.array[...] = 0

    # ----------------------------------------------------------------------------------------------------- conversion

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call `fn` on every module below this one, children first, then on this one, and return it."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self: M, fn: Callable[[Tensor], Tensor]) -> M:
        """Replace the arrays of all parameters, gradients and buffers; the tensor objects stay the same."""
        for tensor in (*self.parameters(), *self.buffers()):
            if isinstance(tensor, UninitializedParameter | UninitializedBuffer):
                continue
            tensor.array = fn(tensor).array
            if tensor.grad is not None:
                tensor.grad.array = fn(tensor.grad).array
        return self

    def to(
        self: M,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        non_blocking: bool = False,
        memory_format: memory_format | None = None,
    ) -> M:
        """Move to a device and convert to a floating dtype, in place: `to("cuda")`, `to(tl.float16)`, `to(tensor)`.

        Integer and boolean tensors move but keep their dtype. `memory_format` applies to tensors of the number of
        dimensions that it is defined for.
        """
        for arg in args:
            if isinstance(arg, Tensor):
                device, dtype = arg.device, arg.dtype
            elif isinstance(arg, dtypes.dtype):
                dtype = arg
            elif not isinstance(arg, bool):  # a bool is non_blocking, which does not affect the result
                device = device if arg is None else arg
        if dtype is not None and not dtype.is_floating_point:
            raise ArgumentTypeError(
                f"Module.to: {dtype} is not a floating-point dtype", hint="convert single tensors instead"
            )
        target = None if device is None else devices.device(device)

        def convert(tensor: Tensor) -> Tensor:
            if tensor.layout is not strided:
                return tensor.to(target or tensor.device, dtype if tensor.is_floating_point() else None)
            array = tensor.array if target is None else devices.move(tensor.array, target)
            result = wrap(dtypes.cast(array, dtype) if dtype is not None and tensor.is_floating_point() else array)
            if memory_format in (None, preserve_format):
                return result
            applies = CHANNELS_LAST_NDIM.get(memory_format, result.ndim) == result.ndim
            return result.contiguous(memory_format) if applies else result

        for tensor in (*self.parameters(), *self.buffers()):
            if isinstance(tensor, UninitializedParameter | UninitializedBuffer):
                tensor.set_target(target, dtype)
        return self._apply(convert)

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Move to a device without copying values: the tensors are uninitialized there."""
        target = devices.device(device)
        tensors = (*self.parameters(recurse), *self.buffers(recurse))
        for tensor in tensors:
            tensor.array = devices.get_backend(target.type).module.empty(tensor.array.shape, tensor.dtype.storage)
        return self

    def share_memory(self: M) -> M:
        """Move parameters and buffers to memory that processes share, see `Tensor.share_memory_`."""
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing; call `tl.compile(module)` instead. Accepts the arguments of torch.nn.Module.compile."""

    def type(self: M, dst_type: dtypes.dtype) -> M:
        """Convert parameters and buffers to a floating dtype, in place."""
        return self.to(dst_type)

    def float(self: M) -> M:
        """Convert to float32, in place."""
        return self.to(dtypes.float32)

    def double(self: M) -> M:
        """Convert to float64, in place."""
        return self.to(dtypes.float64)

    def half(self: M) -> M:
        """Convert to float16, in place."""
        return self.to(dtypes.float16)

    def bfloat16(self: M) -> M:
        """Convert to bfloat16, in place."""
        return self.to(dtypes.bfloat16)

    def cpu(self: M) -> M:
        """Move to the CPU, in place."""
        return self.to("cpu")

    def cuda(self: M, device: int | None = None) -> M:
        """Move to a GPU, in place."""
        return self.to(devices.device("cuda", device))

    def _summary(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"

    def _read_in_backward(self) -> list[Any]:
        """Return what a recomputed forward reads: not buffers, which forward itself may write, as BatchNorm does."""
        unread = {"_buffers", "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"}
        return [value for name, value in vars(self).items() if name not in unread]

    # ------------------------------------------------------------------------------------------------------- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of `repr`."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr().splitlines()
        lines = [f"({name}): {text}".replace("\n", "\n  ") for name, text in self._children_to_show()]
        if not lines and len(extra) <= 1:
            return f"{type(self).__name__}({''.join(extra)})"
        return f"{type(self).__name__}(\n  " + "\n  ".join([*extra, *lines]) + "\n)"

    def _children_to_show(self) -> list[tuple[str, str]]:
        return [(name, repr(module)) for name, module in self._modules.items()]


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
