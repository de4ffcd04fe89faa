"""Saving a Module to a state dict and loading it back, by PyTorch's protocol.

A subclass may override `_save_to_state_dict` and `_load_from_state_dict` for its own entries; hooks may rename and add
entries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, CheckpointError
from tallow.nn.state import IncompatibleKeys, assign_value, misfit, wrong_shape
from tallow.tape.hooks import RemovableHandle

Hooks = dict[int, Callable[..., Any]]
EXTRA_STATE = "_extra_state"


class Stateful:
    """Mixin of Module with `state_dict` and `load_state_dict`."""

    _version = 1  # as in PyTorch: lets `_load_from_state_dict` of a class read the format of its earlier versions
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    # Few modules have these hooks: an instance gets a dict of its own with its first hook.
    _state_dict_pre_hooks: Hooks = {}  # noqa: RUF012 - replaced, never changed
    _state_dict_hooks: Hooks = {}  # noqa: RUF012
    _load_pre_hooks: Hooks = {}  # noqa: RUF012
    _load_post_hooks: Hooks = {}  # noqa: RUF012

    # ---------------------------------------------------------------------------------------------------------- saving

    def state_dict(
        self, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Tensor]:
        """Return parameters and persistent buffers by dotted name, sharing memory with the module.

        Args:
            destination: the dict to add to and return; None creates one.
            prefix: prefix of all names, such as "encoder.".
            keep_vars: return the parameters themselves instead of detached tensors.
        """
        state: Any = OrderedDict() if destination is None else destination
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(state, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in list(self._state_dict_hooks.values()):
            changed = hook(self, state, prefix, {"version": self._version})
            state = state if changed is None else changed
        return state

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Add the entries of this module, without its children."""
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if self._has_extra_state():
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            if tensor is not None and name not in self._non_persistent_buffers_set:
                yield name, tensor

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not Stateful.get_extra_state

    def get_extra_state(self) -> Any:
        """Return extra state to save in `state_dict`; a subclass that overrides it overrides `set_extra_state` too."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state")

    def set_extra_state(self, state: Any) -> None:
        """Restore the result of `get_extra_state` from a state dict."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state")

    # --------------------------------------------------------------------------------------------------------- loading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False, *, source: str = "state dict"
    ) -> IncompatibleKeys:
        """Load the values of a state dict; on an error, nothing is changed.

        Args:
            strict: raise for missing and unexpected names instead of returning them.
            assign: share the memory of the given tensors instead of copying, and take their dtype and device. Required
                for a module on device "meta", which has no memory to copy into.
            source: name of the origin of the values, for error messages.

        Raises:  CheckpointError with every name that is missing, unexpected or of another shape
        """
        loading = _Loading(source)
        loading.visit(self, dict(state_dict), "")
        if loading.problems or (strict and loading.keys_differ and not loading.post_hooks):
            raise loading.error(self, strict)
        for tensor, value in loading.plan:
            assign_value(tensor, value, assign)
        for module, hook in loading.post_hooks:  # may tie weights, and remove keys that are missing on purpose
            hook(module, loading.keys)
        if strict and loading.keys_differ:
            raise loading.error(self, strict)
        return loading.keys

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Plan what to load into this module, without its children: the entries that start with `prefix`.

        Nothing is copied until the whole model has been checked. An override may change `state_dict` before it calls
        this, or load values itself.
        """
        for hook in list(self._load_pre_hooks.values()):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        loading: _Loading = local_metadata["loading"]
        own = dict(self._own_state())
        for name, tensor in own.items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            value = state_dict[key]
            if not isinstance(value, Tensor):
                raise ArgumentTypeError(f"{loading.source}: {key!r} is {type(value).__name__}, not a Tensor")
            if value.shape != tensor.shape:
                error_msgs.append(wrong_shape(key, value, tensor))
            else:
                loading.plan.append((tensor, value))
        if self._has_extra_state():
            if prefix + EXTRA_STATE in state_dict:
                self.set_extra_state(state_dict[prefix + EXTRA_STATE])
            else:
                missing_keys.append(prefix + EXTRA_STATE)
            own[EXTRA_STATE] = None  # type: ignore[assignment]  # only the name matters from here on
        for key in state_dict:
            if key.startswith(prefix):
                first, dot, _ = key[len(prefix) :].partition(".")
                if first not in (self._modules if dot else own):
                    unexpected_keys.append(key)

    def _summary(self) -> str:
        """Return one line that names this module in an error."""
        return type(self).__name__

    # ----------------------------------------------------------------------------------------------------------- hooks

    def _add_state_hook(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        if kind not in self.__dict__:
            self.__dict__[kind] = {}
        return RemovableHandle(self.__dict__[kind], hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` collects the entries of the module."""
        return self._add_state_hook("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict`, to change the dict in place."""
        return self._add_state_hook("_state_dict_hooks", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call a hook before values are loaded, to change the state dict in place.

        It is called as `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)`.
        """
        return self._register_load_state_dict_pre_hook(lambda *args: hook(self, *args))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        """Register a load pre-hook that is called without the module, unless `with_module`; PyTorch's private name."""
        return self._add_state_hook("_load_pre_hooks", (lambda *args: hook(self, *args)) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after the values are loaded; it may change the two lists."""
        return self._add_state_hook("_load_post_hooks", hook)


class _Loading:
    """The state of one call of `load_state_dict`: it visits all modules before anything is copied.

    Attributes:
        plan: pairs of a tensor and the value to load into it.
        problems: lines of the error message.
        post_hooks: pairs of a module and its hook, children first.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.plan: list[tuple[Tensor, Tensor]] = []
        self.keys = IncompatibleKeys([], [])
        self.problems: list[str] = []
        self.post_hooks: list[tuple[Stateful, Callable[..., Any]]] = []

    def visit(self, module: Stateful, state: dict[str, Any], prefix: str) -> None:
        metadata = {"version": module._version, "loading": self}
        module._load_from_state_dict(state, prefix, metadata, True, *self.keys, self.problems)
        for name, child in module._modules.items():
            if child is not None:
                child_prefix = f"{prefix}{name}."
                entries = {key: value for key, value in state.items() if key.startswith(child_prefix)}
                self.visit(child, entries, child_prefix)
        self.post_hooks += [(module, hook) for hook in module._load_post_hooks.values()]

    @property
    def keys_differ(self) -> bool:
        return bool(self.keys.missing_keys or self.keys.unexpected_keys)

    def error(self, module: Stateful, strict: bool) -> CheckpointError:
        return misfit(self.source, module._summary(), self.keys if strict else None, self.problems)
