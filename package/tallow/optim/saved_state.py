"""The state dict of an optimizer: written, checked as a whole, and read, in PyTorch's format."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, ClassVar

from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.errors import CheckpointError
from tallow.optim.moments import scalar
from tallow.optim.state_checks import number_fault, option_fault
from tallow.tape.hooks import RemovableHandle

Group = dict[str, Any]


class SavedState:
    """The part of an optimizer that saves and restores its state.

    Attributes:
        defaults: the options, by name.
        param_groups: a dict for each group, with its options and its parameters in "params".
        state: the optimizer's state of each parameter.
    """

    MOMENTS: ClassVar[tuple[str, ...]] = ()  # state with the dtype of the parameter and the shape of `moment_shape`
    REQUIRED: ClassVar[tuple[str, ...]] = ()  # state that a parameter has after a step, for `_required_state`
    SCALARS: ClassVar[tuple[str, ...]] = ("step",)  # state that is float32 on the CPU for every parameter

    defaults: dict[str, Any]
    param_groups: list[Group]
    state: defaultdict[Any, dict[str, Any]]
    _state_hooks: defaultdict[str, dict[int, Callable[..., Any]]]

    def register_state_dict_pre_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before each `state_dict()`; `prepend` puts it before the hooks there are."""
        return RemovableHandle(self._state_hooks["before saving"], hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after each `state_dict()`; it may return another dict."""
        return RemovableHandle(self._state_hooks["after saving"], hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict`, with a shallow copy; it may return another."""
        return RemovableHandle(self._state_hooks["before loading"], hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after each `load_state_dict`."""
        return RemovableHandle(self._state_hooks["after loading"], hook, prepend)

    def _run_state_hooks(self, when: str, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Call the hooks that see a state dict; return it, or what the last hook returned in its place."""
        for hook in list(self._state_hooks[when].values()):
            returned = hook(self, state_dict)
            state_dict = state_dict if returned is None else returned
        return state_dict

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the options, with indices instead of parameters, in PyTorch's format.

        {"state": {0: {"momentum_buffer": Tensor, ...}, ...}, "param_groups": [{"lr": 0.01, ..., "params": [0, 1]}]}

        The tensors are the optimizer's own, not copies.
        """
        for hook in list(self._state_hooks["before saving"].values()):
            hook(self)
        indices: dict[Tensor, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for i, param in enumerate(group["params"], start):
                indices.setdefault(param, i)
            start += len(group["params"])
            options = {name: value for name, value in group.items() if name != "params"}
            groups.append(options | {"params": [indices[param] for param in group["params"]]})
        state = {indices[key] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        return self._run_state_hooks("after saving", {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state of `state_dict()`, from tallow or PyTorch.

        Tensors are copied, in the dtype and to the device of their parameter. Options that the dict lacks get the
        optimizer's defaults.

        Raises:  CheckpointError that lists everything that does not fit; then nothing changes
        """
        state_dict = self._run_state_hooks("before loading", dict(state_dict))
        self.check_state_dict(state_dict)
        saved = copy.deepcopy(state_dict["param_groups"])
        by_index = self._params_by_index(saved)
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for key, entry in state_dict["state"].items():
            if key in by_index:
                param = by_index[key]
                state[param] = {name: self._copy_state(name, value, param) for name, value in entry.items()}
            else:
                state[key] = copy.deepcopy(entry)
        groups = []
        for own, group in zip(self.param_groups, saved, strict=True):
            # Keep entries that schedulers have stored in a group, unless the file has them.
            extra = {name: value for name, value in own.items() if name not in self.defaults}
            groups.append(self.defaults | extra | group | {"params": own["params"]})
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._state_hooks["after loading"].values()):
            hook(self)

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raise what `load_state_dict` would raise, without changing anything."""
        _check_form(state_dict)
        saved = state_dict["param_groups"]
        self._check_sizes(saved)
        self._check_options(saved)
        self._check_state(state_dict["state"], saved)

    def _params_by_index(self, saved: Sequence[Group]) -> dict[Any, Tensor]:
        """Return the optimizer's parameters by their indices in a state dict."""
        indices = chain.from_iterable(group["params"] for group in saved)
        by_index: dict[Any, Tensor] = {}
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        for index, param in zip(indices, params, strict=True):
            if by_index.setdefault(index, param) is not param:
                raise CheckpointError(f"loaded state dict has the index {index!r} for two parameters")
        return by_index

    def _check_sizes(self, saved: Sequence[Group]) -> None:
        if len(saved) != len(self.param_groups):
            raise CheckpointError(
                f"loaded state dict has a different number of parameter groups: {len(saved)}, not "
                f"{len(self.param_groups)}",
                hint="create the optimizer with the same groups as the saved one",
            )
        problems = [
            f"  group {i}: {len(other['params'])} parameters in the state dict, {len(own['params'])} in the optimizer"
            for i, (own, other) in enumerate(zip(self.param_groups, saved, strict=True))
            if len(own["params"]) != len(other["params"])
        ]
        if problems:
            raise CheckpointError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group\n"
                + "\n".join(problems),
                hint="check that the state belongs to this model",
            )

    def _check_options(self, saved: Sequence[Group]) -> None:
        problems = [
            f"  group {i}: {name} {problem}"
            for i, (own, other) in enumerate(zip(self.param_groups, saved, strict=True))
            for name, value in other.items()
            if name != "params" and (problem := self._option_fault(name, value, own))
        ]
        if problems:
            raise CheckpointError(
                f"the state dict has invalid options for this {type(self).__name__}\n" + "\n".join(problems),
                hint="check that the state belongs to this kind of optimizer and that the file is not damaged",
            )

    def _option_fault(self, name: str, value: Any, own: Group) -> str | None:
        """Return what is wrong with an option for a group, or None if it is valid."""
        if name == "param_names":
            is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
            return None if is_list and len(value) == len(own["params"]) else "are not a name for each parameter"
        return option_fault(name, own.get(name, self.defaults.get(name)), value)

    def _required_state(self, group: Group) -> tuple[str, ...]:
        """Return the names of the state that a parameter has after a step, if it has any."""
        return self.REQUIRED

    def _check_state(self, state: dict[Any, dict[str, Any]], saved: Sequence[Group]) -> None:
        by_index, problems = self._params_by_index(saved), []
        options = {n: self.defaults | group for group in saved for n in group["params"]}
        for key, entry in state.items():
            if key not in by_index:
                continue
            where = f"  parameter {key} {tuple(by_index[key].shape)}:"
            problems += [
                f"{where} {name} {problem}"
                for name, value in entry.items()
                if (problem := self._fault(name, value, by_index[key]))
            ]
            required = self._required_state(options[key]) if entry else ()
            problems += [f"{where} missing {name}" for name in required if name not in entry]
        if problems:
            raise CheckpointError(
                f"the state dict does not fit the parameters of this {type(self).__name__}\n" + "\n".join(problems),
                hint="check that the state belongs to this model, with the parameters in the same order",
            )

    def _fault(self, name: str, value: Any, param: Tensor) -> str | None:
        """Return what is wrong with a value of a parameter's state, or None if it is valid."""
        if name in self.MOMENTS:
            if not isinstance(value, Tensor):
                return f"is {type(value).__name__}, not a Tensor"
            return None if value.shape == self.moment_shape(name, param.shape) else f"has shape {tuple(value.shape)}"
        if name in self.SCALARS:
            problem = number_fault(value)
            return "is not a number" if problem else None if float(value) >= 0 else f"is {float(value)}"
        # `update` works on arrays; the state of a custom `step` may hold anything.
        is_fault = self._updates_arrays() and not isinstance(value, Tensor)
        return f"is {type(value).__name__}, not a Tensor" if is_fault else None

    def moment_shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the shape of a moment of a parameter with this shape; None if the parameter does not have it."""
        return shape

    def _copy_state(self, name: str, value: Any, param: Tensor) -> Any:
        """Return a copy of a loaded value, with tensors on the device and in the dtype of the parameter."""
        if name in self.SCALARS:
            return wrap(value.array.copy()) if isinstance(value, Tensor) else wrap(scalar(value))
        if isinstance(value, Tensor):
            array = dtypes.cast(value.array, param.dtype) if param.is_floating_point() else value.array
            array = devices.move(array, param.device)
            return wrap(array.copy() if array is value.array else array)
        if isinstance(value, dict):
            return {key: self._copy_state(key, item, param) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._copy_state("", item, param) for item in value)
        return copy.deepcopy(value)

    def _updates_arrays(self) -> bool:
        """Return whether `update` works on arrays; the state of a custom `step` may hold anything."""
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over attributes, as `load_state_dict` and pickling do."""
        raise NotImplementedError


def _check_form(state_dict: dict[str, Any]) -> None:
    """Raise CheckpointError unless a value from a file has the form of a state dict."""
    groups, state = state_dict.get("param_groups"), state_dict.get("state")
    lists = [group.get("params") for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []
    if (
        not isinstance(groups, list)
        or len(lists) != len(groups)
        or not all(isinstance(numbers, list) and all(isinstance(n, int | str) for n in numbers) for numbers in lists)
        or not isinstance(state, dict)
        or not all(isinstance(entry, dict) for entry in state.values())
    ):
        raise CheckpointError(
            "this is not the state of an optimizer", hint='expected {"state": {0: {...}}, "param_groups": [{...}]}'
        )
