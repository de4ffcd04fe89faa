"""Parameters computed from other parameters, as torch.nn.utils.parametrize.

A parametrized layer gets a class of its own, with a property that computes the tensor on each access. The trained
tensors are `layer.parametrizations.<name>.original`, or `original0`, `original1`, ... if there are several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tallow.autograd import no_grad
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.lazy_names import names_of
from tallow.nn.container import ModuleDict, ModuleList
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]


class _Cache:
    """Tensors computed within `cached`, by module id and name; None outside of it."""

    tensors: dict[tuple[int, str], Tensor] | None = None


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order, and the original tensors that they start from."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            values: Any = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # as without the method: the original is the value itself
                        values = module.right_inverse(values)
        self.is_tensor = isinstance(values, Tensor)
        self.ntensors = 1 if self.is_tensor else len(values)
        self._names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        if self.is_tensor and isinstance(original, Parameter):
            original.data = values  # keep the object: an optimizer may refer to it
            self.register_parameter("original", original)
        else:
            for name, value in zip(self._names, (values,) if self.is_tensor else values, strict=True):
                if isinstance(original, Parameter):
                    self.register_parameter(name, Parameter(value.detach().clone(), original.requires_grad))
                else:
                    self.register_buffer(name, value)
        if not unsafe and self().shape != original.shape:
            raise ShapeError(
                f"a parametrization may not change the shape, here from {tuple(original.shape)} to "
                f"{tuple(self().shape)}",
                hint="pass unsafe=True to allow it",
            )

    def forward(self) -> Tensor:
        first, *rest = self
        value = first(*(getattr(self, name) for name in self._names))
        for module in rest:
            value = module(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that they compute `value`.

        Raises:  ArgumentError for a parametrization without a `right_inverse`
        """
        with no_grad():
            values: Any = value
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise ArgumentError(f"cannot assign: {type(module).__name__} has no right_inverse")
                values = module.right_inverse(values)
            for name, part in zip(self._names, (values,) if self.is_tensor else values, strict=True):
                getattr(self, name).copy_(part)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Replace a parameter or buffer of a module by `parametrization(original)`, and return the module.

    If the parametrization has a method `right_inverse(value)`, the first one uses it to choose an original that keeps
    the current value, and assigning to the tensor works. Further parametrizations apply to the result of the first.

    Raises:  ArgumentError for a name that the module does not have; ShapeError if the shape changes, unless `unsafe`
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    original = {**module._buffers, **module._parameters}.get(tensor_name)
    if original is None:
        raise ArgumentError(
            f"register_parametrization: {type(module).__name__} has no parameter or buffer {tensor_name!r}"
        )
    chain = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _become_parametrized(module)
    _add_property(type(module), tensor_name)
    module.parametrizations[tensor_name] = chain
    return module


def _become_parametrized(module: Module) -> None:
    """Give the module a class of its own, to which properties can be added."""
    plain = type(module)
    module.__class__ = type(f"Parametrized{plain.__name__}", (plain,), {"__module__": plain.__module__})
    module.parametrizations = ModuleDict()


def _add_property(cls: type[Module], name: str) -> None:
    """Add a property that computes the tensor on access and inverts the parametrizations on assignment."""

    def get(self: Module) -> Tensor:
        chain = self.parametrizations[name]
        if _Cache.tensors is None:
            return chain()
        key = (id(self), name)
        if key not in _Cache.tensors:
            _Cache.tensors[key] = chain()
        return _Cache.tensors[key]

    def assign(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(cls, name, property(get, assign))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether any tensor of the module, or the named one, is parametrized."""
    chains = module._modules.get("parametrizations")
    return isinstance(chains, ModuleDict) and (tensor_name is None or tensor_name in chains)


def type_before_parametrizations(module: Module) -> type:
    """Return the class of the module without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Turn a parametrized tensor back into an ordinary one, with its current value or the value of the original.

    Args:    leave_parametrized: keep the current, computed value
    Raises:  ArgumentError for a tensor that is not parametrized, or several originals without `leave_parametrized`
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"remove_parametrizations: {tensor_name!r} of {type(module).__name__} is not parametrized")
    chain = module.parametrizations[tensor_name]
    if not (leave_parametrized or chain.is_tensor):
        raise ArgumentError("remove_parametrizations: leave_parametrized=False needs a single original")
    value = getattr(module, tensor_name).detach() if leave_parametrized else chain.original
    is_parameter = bool(chain._parameters)
    requires_grad = any(p.requires_grad for p in chain.parameters(recurse=False))
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    if is_parameter:
        parameter = value if isinstance(value, Parameter) else Parameter(value, requires_grad)
        module.register_parameter(tensor_name, parameter)
    else:
        module.register_buffer(tensor_name, value)
    return module


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor only once within the block."""
    before, _Cache.tensors = _Cache.tensors, _Cache.tensors or {}
    try:
        yield
    finally:
        _Cache.tensors = before


__getattr__, __dir__ = names_of(__name__)
