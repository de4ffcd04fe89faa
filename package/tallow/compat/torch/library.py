"""torch.library: define ops by Python functions, and call them as `torch.ops.NAMESPACE.NAME`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from tallow.compat.absent import absent
from tallow.compat.registry import COMPOSITE, KEYS, OPS, CustomOp, keys_of, op_named, parsed
from tallow.compat.torch._ops import core_function
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_TRITON = "tallow runs no kernels of Triton; register a Python function"
triton_op, wrap_triton = (absent(f"torch.library.{name}", _TRITON) for name in ("triton_op", "wrap_triton"))
get_ctx = absent("torch.library.get_ctx", "sizes are known, so that no op makes an unknown one")
opcheck = absent("torch.library.opcheck", "compare the op with torch.autograd.gradcheck")
_TYPES = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str"}


class CustomOpDef:
    """An op that `custom_op` has defined. It is called as the function is."""

    def __init__(self, name: str, op: CustomOp, function: Callable[..., Any]) -> None:
        self._qualname, self._opoverload, self._init_fn = name, op, function
        self._namespace, _, self._name = name.partition("::")
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register the function for types of devices. Also a decorator."""
        return register_kernel(self._qualname, device_types, fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Register the function for tensors without values."""
        register_fake(self._qualname, fn)
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the gradient; see `register_autograd` of the module."""
        register_autograd(self._qualname, backward, setup_context=setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Return the function: vmap calls the op for each element."""
        return register_vmap(self._qualname, func)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Return the function."""
        return register_torch_dispatch(self._qualname, torch_dispatch_class, fn)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Do nothing; see `register_autocast` of the module."""


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Sequence[Any] | None = None,
) -> Any:
    """Define an op by a Python function. Also a decorator.

    Args:
        name: "namespace::name".
        mutates_args: the names of arguments that the function changes in place.
        device_types: the types of devices it is for; None means all.
        schema: its arguments and results in PyTorch's notation; None means those of the annotations.
        tags: without effect.
    """

    def defined(function: Callable[..., Any]) -> CustomOpDef:
        full = parsed(name)
        op = OPS[full] = CustomOp(full, schema or infer_schema(function, mutates_args=mutates_args))
        for key in keys_of(device_types):
            op.functions[key] = function
        return CustomOpDef(full, op, function)

    return defined if fn is None else defined(fn)


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None) -> str:
    """Return the arguments and results of an annotated function in PyTorch's notation."""
    signature = inspect.signature(prototype_function, eval_str=False)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        kind = _schema_type(parameter.annotation)
        changed = mutates_args == "unknown" or parameter.name in mutates_args
        kind = f"{kind}(a{len(parts)}!)" if changed and kind == "Tensor" else kind
        default = "" if parameter.default is parameter.empty else f"={parameter.default}"
        parts.append(f"{kind} {parameter.name}{default}")
    returned = signature.return_annotation
    result = "()" if returned in (None, "None", signature.empty) else _schema_type(returned)
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


def _schema_type(annotation: Any) -> str:
    if annotation in _TYPES:
        return _TYPES[annotation]
    text = str(annotation).replace("torch.", "").replace("typing.", "").replace("tallow.core.tensor.", "")
    return {"int": "SymInt", "Optional[Tensor]": "Tensor?", "Tensor | None": "Tensor?"}.get(text, text)


def define(qualname: str, schema: str | None = None, *, lib: Any = None, tags: Any = ()) -> Any:
    """Define an op by its arguments and results in PyTorch's notation; `impl` registers its functions."""
    op_named(parsed(qualname, getattr(lib, "ns", None))).schema = schema
    return lambda fn: fn


def impl(qualname: str, types: Any, func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """Register the function of an op for types of devices, or for a dispatch key. Also a decorator."""
    op = op_named(parsed(qualname, getattr(lib, "ns", None)))

    def registered(function: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys_of(types):
            op.functions[key] = function
        return function

    return registered if func is None else registered(func)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Register the function of an op for types of devices; None means all. Also a decorator."""
    return impl(_name_of(op), device_types, func, lib=lib)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Register the function of an op for tensors without values, on the device meta. Also a decorator.

    The op may be defined later, or never: a library in C++ would define it.
    """
    return impl(_name_of(op), "Meta", func, lib=lib)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Register the gradient of an op.

    Args:
        backward: of a context and the gradients of the results; returns those of the arguments, None for others.
        setup_context: of a context, `inputs` and `output`; stores what `backward` needs.
    """
    target = op_named(parsed(_name_of(op), getattr(lib, "ns", None)))
    target.backward, target.setup_context = backward, setup_context


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Return the function: vmap calls an op for each element. Also a decorator."""
    return func if func is not None else lambda function: function


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Return the function. Also a decorator."""
    return func if func is not None else lambda function: function


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Do nothing: an op of a program gets its arguments as they are under autocast."""


def _name_of(op: Any) -> str:
    if isinstance(op, CustomOpDef):
        return op._qualname
    op = getattr(op, "_overloadpacket", op)
    return op.name if isinstance(op, CustomOp) else str(getattr(op, "_qualified_op_name", op))


class _Kernel:
    """A function that computes an op, as `get_kernel` found it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def call_boxed(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the op. The keys, those that functions registered `with_keyset` get, decide nothing."""
        return self._function(*args, **kwargs)


def get_kernel(op: Any, dispatch_key: Any) -> _Kernel:
    """Return what computes an op now on a type of devices; later registrations do not change it.

    Args:
        op: a name such as "aten::sin", an op of `torch.ops`, or what `custom_op` returns.
        dispatch_key: such as "CPU".

    Raises: RuntimeError if the op does not exist, or has no function for the key.
    """
    namespace, _, name = parsed(_name_of(op)).partition("::")
    (key,) = keys_of(getattr(dispatch_key, "name", dispatch_key))
    functions = OPS[f"{namespace}::{name}"].functions if f"{namespace}::{name}" in OPS else {}
    function = next((functions[k] for k in (key, *COMPOSITE) if k in functions), None)
    if function is None and namespace == "aten" and key in KEYS.values():
        function = core_function(name)
    if function is None:
        raise ArgumentError(f"get_kernel: the op {namespace}::{name} does not exist, or has no function for {key}")
    return _Kernel(function)


def fallthrough_kernel(*args: object) -> None:
    """Raise: it stands for no function."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """The ops of a namespace.

    Args:
        ns: the namespace.
        kind: "DEF" for a new one, "FRAGMENT" for more ops of an old one, "IMPL" for functions alone.
        dispatch_key: the key of `impl`, where it gets none.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ArgumentError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an op by its name, arguments and results: "add_one(Tensor x) -> Tensor". Return its name."""
        name = schema.partition("(")[0].strip()
        op_named(parsed(name, self.ns)).schema = schema
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Register the function of an op for a dispatch key.

        Args:
            with_keyset: the function gets the keys of the call first: None, since they decide nothing here.
            allow_override: has no effect: a later function always replaces an earlier one.
        """
        if fn is not fallthrough_kernel:
            fn = partial(fn, None) if with_keyset else fn
            impl(parsed(_name_of(op_name), self.ns), dispatch_key or self.dispatch_key, fn)

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Do nothing: no op asks for a function that another does not have."""

    def _register_fake(self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, **options: Any) -> None:
        register_fake(parsed(op_name, self.ns), fn)

    def _destroy(self) -> None:
        """Do nothing: ops remain until the process ends."""


class _scoped_library(AbstractContextManager[Library]):
    """A block with a library."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.lib = Library(*args, **kwargs)

    def __enter__(self) -> Library:
        return self.lib

    def __exit__(self, *exc_info: object) -> None:
        """Do nothing: ops remain until the process ends."""
