"""Module: the base of all layers and models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tallow import devices, dtypes
from tallow.errors import ArgumentError, ArgumentTypeError, MissingNameError
from tallow.layout import CHANNELS_LAST_NDIM, memory_format, preserve_format
from tallow.nn.backward_hooks import BackwardHooks
from tallow.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from tallow.nn.stateful import Hooks, Stateful
from tallow.tensor import RemovableHandle, Tensor, wrap

M = TypeVar("M", bound="Module")


class Module(Stateful):
    """A layer or a model: parameters, buffers and other modules under names, and a `forward`.

    What is assigned to an attribute is filed by its kind, so that `parameters`, `state_dict`, `to` and `train` reach it
    at any depth. A subclass calls `super().__init__()` before it assigns.

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
    _forward_pre_hooks: Hooks
    _forward_hooks: Hooks
    _hooks_with_kwargs: set[int]
    _backward_pre_hooks: Hooks = {}  # noqa: RUF012 - replaced, never changed
    _backward_hooks: Hooks = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.__dict__.update(  # __setattr__ needs these to be there
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
        raise NotImplementedError(f"{type(self).__name__} has no forward; define it, or call one of its children")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_hooks():
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for key, hook in list(self._forward_pre_hooks.items()):
            if key in self._hooks_with_kwargs:
                args, kwargs = hook(self, args, kwargs) or (args, kwargs)
            elif (changed := hook(self, args)) is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        gates = BackwardHooks(self) if self._backward_pre_hooks or self._backward_hooks else None
        if gates is not None:
            args = gates.before(args)
        result = self.forward(*args, **kwargs)
        for key, hook in list(self._forward_hooks.items()):
            seen = (args, kwargs) if key in self._hooks_with_kwargs else (args,)
            changed = hook(self, *seen, result)
            result = result if changed is None else changed
        return result if gates is None else gates.after(result)

    # ---------------------------------------------------------------------------------------------------- attributes

    def __setattr__(self, name: str, value: Any) -> None:
        if "_modules" not in self.__dict__:
            if isinstance(value, Parameter | Buffer | Module):
                where = f"{type(self).__name__}.{name}"
                raise ArgumentError(
                    f"{where} was assigned before Module.__init__", mend="call super().__init__() first"
                )
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._file(self._parameters, name, value)
        elif isinstance(value, Module):
            self._file(self._modules, name, value)
        elif isinstance(value, Buffer):
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

    def _file(self, kind: dict[str, Any], name: str, value: Any) -> None:
        for other in (self._parameters, self._buffers, self._modules, self.__dict__):
            if other is not kind:
                other.pop(name, None)
        kind[name] = value

    def _reassign(self, kind: dict[str, Any], name: str, value: Any, expected: str) -> None:
        if value is not None:
            what = f"cannot assign {type(value).__name__} as {name!r}; expected {expected} or None"
            raise ArgumentTypeError(what, mend=f"del self.{name} first")
        kind[name] = None

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_modules", "_buffers"):
            found = self.__dict__.get(kind, ())
            if name in found:
                return found[name]
        raise MissingNameError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for kind in (self._parameters, self._modules, self._buffers):
            if name in kind:
                del kind[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        self._check_name(name)
        if not isinstance(param, Parameter | None):
            raise ArgumentTypeError(f"register_parameter {name!r}: {type(param).__name__} is not a Parameter or None")
        self._file(self._parameters, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        self._check_name(name)
        if not isinstance(tensor, Tensor | None):
            raise ArgumentTypeError(f"register_buffer {name!r}: {type(tensor).__name__} is not a Tensor or None")
        self._file(self._buffers, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        self._check_name(name)
        if not isinstance(module, Module | None):
            raise ArgumentTypeError(f"register_module {name!r}: {type(module).__name__} is not a Module or None")
        self._file(self._modules, name, module)

    add_module = register_module

    def _check_name(self, name: str) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise ArgumentError(f"{name!r} cannot name a part of a module", mend="use a string without a dot")
        if hasattr(type(self), name) or (name in self.__dict__):
            raise ArgumentError(f"{type(self).__name__} has an attribute {name!r} already", mend="choose another name")

    # ------------------------------------------------------------------------------------------------------ traversal

    def children(self) -> Iterator[Module]:
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self) -> Iterator[Module]:
        for _, module in self.named_modules():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, each once, parents first."""
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
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        yield from self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
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
        """The module at a dotted path; "" is this one.

        Raises:  MissingNameError when a name on the way is absent, or no module
        """
        module = self
        for name in target.split(".") if target else ():
            found = module._modules.get(name)
            if found is None:
                raise MissingNameError(f"{type(module).__name__} has no submodule {name!r}, asked for as {target!r}")
            module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path, in the place of the one there; with `strict` there has to be one.

        Raises:  ArgumentError for "", MissingNameError when the path leads nowhere
        """
        path, _, name = target.rpartition(".")
        if not name:
            raise ArgumentError("set_submodule: the path is empty", mend="name a child, such as 'encoder.layers.0'")
        if strict:
            self.get_submodule(target)
        setattr(self.get_submodule(path), name, module)

    def get_parameter(self, target: str) -> Parameter:
        return self._get_member("_parameters", target)

    def get_buffer(self, target: str) -> Tensor:
        return self._get_member("_buffers", target)

    def _get_member(self, kind: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if getattr(owner, kind).get(name) is None:
            where = f"{type(owner).__name__} has no {name!r} among its {kind[1:]}"
            raise MissingNameError(f"{where}, asked for as {target!r}")
        return getattr(owner, kind)[name]

    # ---------------------------------------------------------------------------------------------------------- modes

    def train(self: M, mode: bool = True) -> M:
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        return self.train(False)

    def forward_t(self, input: Any, train: bool) -> Any:
        """Call this module in training or evaluation mode, whatever mode each part is in; they have that again after.

        Source: candle's `ModuleT::forward_t`, which modules have there in place of a mode.
        """
        modes = [(module, module.training) for module in self.modules()]
        self.train(train)
        try:
            return self(input)
        finally:
            for module, mode in modes:
                module.training = mode

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.array[...] = 0

    # ----------------------------------------------------------------------------------------------------- conversion

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call `fn` with every module below, children first, and at last with this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self: M, fn: Callable[[Tensor], Tensor]) -> M:
        """Replace the array of every parameter, its gradient, and every buffer; the objects stay the same."""
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

        Integer and boolean tensors move, but keep their dtype. With `memory_format` the tensors with as many dims as it
        is for are laid out so.
        """
        for arg in args:
            if isinstance(arg, Tensor):
                device, dtype = arg.device, arg.dtype
            elif isinstance(arg, dtypes.dtype):
                dtype = arg
            elif not isinstance(arg, bool):  # non_blocking, which changes no result
                device = device if arg is None else arg
        if dtype is not None and not dtype.is_floating_point:
            raise ArgumentTypeError(f"Module.to: {dtype} is no floating-point dtype", mend="convert single tensors")
        target = None if device is None else devices.device(device)

        def convert(tensor: Tensor) -> Tensor:
            array = tensor.array if target is None else devices.move(tensor.array, target)
            made = wrap(dtypes.cast(array, dtype) if dtype is not None and tensor.is_floating_point() else array)
            if memory_format in (None, preserve_format):
                return made
            ordered = CHANNELS_LAST_NDIM.get(memory_format, made.ndim) == made.ndim
            return made.contiguous(memory_format) if ordered else made

        for tensor in (*self.parameters(), *self.buffers()):
            if isinstance(tensor, UninitializedParameter | UninitializedBuffer):
                tensor.becomes(target, dtype)
        return self._apply(convert)

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Move to a device without the values: what the tensors hold there is undefined."""
        target = devices.device(device)
        tensors = (*self.parameters(recurse), *self.buffers(recurse))
        for tensor in tensors:
            tensor.array = devices.get_backend(target.type).module.empty(tensor.array.shape, tensor.dtype.storage)
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: operations are computed as they come."""

    def type(self: M, dst_type: dtypes.dtype) -> M:
        return self.to(dst_type)

    def float(self: M) -> M:
        return self.to(dtypes.float32)

    def double(self: M) -> M:
        return self.to(dtypes.float64)

    def half(self: M) -> M:
        return self.to(dtypes.float16)

    def bfloat16(self: M) -> M:
        return self.to(dtypes.bfloat16)

    def cpu(self: M) -> M:
        return self.to("cpu")

    def cuda(self: M, device: int | None = None) -> M:
        return self.to(devices.device("cuda", device))

    def _summary(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"

    # ---------------------------------------------------------------------------------------------------------- hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before each forward; what it returns, if anything, replaces the arguments.

        Args:
            prepend: call it before the hooks that are there.
            with_kwargs: call `hook(module, args, kwargs)`, which returns None or both.
        """
        return self._add_hook(self._forward_pre_hooks, hook, prepend, with_kwargs)

    def _add_hook(
        self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool, with_kwargs: bool
    ) -> RemovableHandle:
        before = dict(hooks)
        handle = RemovableHandle(hooks, hook)
        if with_kwargs:
            self._hooks_with_kwargs.add(handle.id)
        if prepend:  # the handle removes from this very dict, so it is put in order in place
            for key in before:
                hooks[key] = hooks.pop(key)
        return handle

    def has_hooks(self) -> bool:
        """Whether calling this module does more than its `forward`."""
        return bool(self._forward_pre_hooks or self._forward_hooks or self._backward_pre_hooks or self._backward_hooks)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, result)` after each forward; what it returns, if anything, replaces the result.

        Args:
            prepend: call it before the hooks that are there.
            with_kwargs: call `hook(module, args, kwargs, result)`.
        """
        return self._add_hook(self._forward_hooks, hook, prepend, with_kwargs)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are there.

        Both are tuples, None for what is no tensor or has no gradient; keyword arguments are not among them. What it
        returns, if anything, takes the place of `grad_input`.
        """
        return self._add_hook(self.__dict__.setdefault("_backward_hooks", {}), hook, prepend, False)

    register_backward_hook = register_full_backward_hook

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before that; what it returns, if anything, takes the place of these."""
        return self._add_hook(self.__dict__.setdefault("_backward_pre_hooks", {}), hook, prepend, False)

    # ------------------------------------------------------------------------------------------------------- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The arguments to show between the parentheses of `repr`."""
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
