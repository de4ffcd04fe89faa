"""torch.distributed.fsdp.wrap: which parts of a model FullyShardedDataParallel wraps."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tallow.errors import ArgumentError
from tallow.nn import ModuleDict, ModuleList, MultiheadAttention
from tallow.nn.module import Module

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wrap every part."""
    return True


def _module_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, module_classes: Iterable[type[Module]]
) -> bool:
    return recurse or isinstance(module, tuple(module_classes))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type[Module]]
) -> bool:
    """Wrap the parts of these classes."""
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Wrap the parts for which a function returns True."""
    return recurse or bool(lambda_fn(module))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Wrap parts with at least `min_num_params` elements of parameters that are not in wrapped parts themselves.

    Args:
        force_leaf_modules: classes whose parts are not wrapped, MultiheadAttention by default.
        exclude_wrap_modules: classes that are not wrapped, ModuleList and ModuleDict by default.
    """
    leaves = (MultiheadAttention,) if force_leaf_modules is None else tuple(force_leaf_modules)
    excluded = (ModuleList, ModuleDict) if exclude_wrap_modules is None else tuple(exclude_wrap_modules)
    is_large = nonwrapped_numel >= min_num_params
    return is_large and not isinstance(module, leaves if recurse else excluded)


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., bool]]) -> bool:
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


class ModuleWrapPolicy:
    """Wrap the parts of these classes."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = set(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return _module_wrap_policy(module, recurse, 0, self._module_classes)


class CustomPolicy:
    """Wrap the parts for which a function returns True. It must not return arguments of its own for a part."""

    def __init__(self, lambda_fn: Callable[[Module], Any]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        choice = recurse or self._lambda_fn(module)
        if not isinstance(choice, bool):
            raise ArgumentError(f"CustomPolicy: the function returned {choice!r}, expected True or False")
        return choice


class _Enabled:
    """The wrappers of the blocks of `enable_wrap`, the innermost last."""

    wrappers: list[Callable[[Module], Module]] = []  # noqa: RUF012 - of the process


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Let `wrap` use this class with these arguments within a block."""
    _Enabled.wrappers.append(functools.partial(wrapper_cls, **wrapper_kwargs))
    try:
        yield
    finally:
        _Enabled.wrappers.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """Wrap a module as `enable_wrap` says; outside of it, return the module."""
    return _Enabled.wrappers[-1](module, **wrap_overrides) if _Enabled.wrappers else module
