"""The base of all optimizers: parameter groups, state, hooks, and the walk over the parameters.

An optimizer of tallow's is a constructor and `update`, a function of arrays (NumPy's or CuPy's alike) that changes one
parameter in place; or `update_many`, which changes several at once. Everything else is here. One that overrides `step`
instead, as PyTorch's are written, works as well.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import chain
from typing import Any, ClassVar, TypeVar

import numpy as np

from tallow import devices, dtypes
from tallow.apply import check_writable
from tallow.autograd.graph import note_write
from tallow.autograd.modes import enable_grad
from tallow.dtypes import HALVES, Array
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from tallow.ops.quiet import hush, restore
from tallow.optim.loaded import number_fault, option_fault
from tallow.optim.moments import scalar
from tallow.tensor import RemovableHandle, Tensor, wrap

Closure = Callable[[], Any]
Group = dict[str, Any]
Step = TypeVar("Step", bound=Callable[..., Any])


class _Required:
    """The default of an option that has none."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def _hooked(step: Step) -> Step:
    """A `step` with its hooks before and after. One that calls the `step` of its superclass is still one step."""

    @wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if devices.SEVERAL and (other := devices.beside(self.param_groups[0]["params"])) is not None:
            with other:
                return hooked(self, *args, **kwargs)
        if self._stepping:
            return step(self, *args, **kwargs)
        call: tuple[Any, ...] = (self, *args)
        for before in list(self._step_pre_hooks.values()):
            changed = before(self, call, kwargs)
            if changed is None:
                continue
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise ArgumentError(f"a step pre-hook must return None or (args, kwargs), not {changed!r}")
            call, kwargs = changed
        self._stepping = True
        try:
            result = step(*call, **kwargs)
        finally:
            self._stepping = False
        self._opt_called = True
        for after in list(self._step_post_hooks.values()):
            after(self, call, kwargs)
        return result

    return hooked  # type: ignore[return-value]


class Optimizer:
    """Changes parameters by their gradients, as torch.optim.Optimizer.

    Args:
        params: tensors, or pairs of a name and a tensor; or dicts, one for each group of parameters, with "params" and
            the options in which the group differs from `defaults`.
        defaults: the options, by name.

    Attributes:
        param_groups: a dict for each group; schedulers change its options.
        state: by parameter, what the optimizer remembers of it.

    Dtypes:  float16 and bfloat16 parameters, and their state, are updated in float32 and rounded once a step

    Raises: ArgumentError for no parameters, one in two groups, or one that is not a leaf; ArgumentTypeError for what is
        not a Tensor.
    """

    MOMENTS: ClassVar[tuple[str, ...]] = ()  # state of the dtype of the parameter, and of `moment_shape`
    SCALARS: ClassVar[tuple[str, ...]] = ("step",)  # state that stays float32 on the CPU, whatever the parameter is

    _stepping = False
    _opt_called = False  # schedulers ask, under PyTorch's name

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _hooked(cls.__dict__["step"])  # type: ignore[method-assign]
        if "update" in cls.__dict__ and "update_many" not in cls.__dict__:
            cls.update_many = Optimizer.update_many  # type: ignore[method-assign]  # not that of the class between

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor) or not isinstance(params, Iterable):
            raise ArgumentTypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {type(params).__name__}",
                mend="pass model.parameters(), or a list of tensors",
            )
        if defaults.get("differentiable"):
            raise ArgumentError(
                f"{type(self).__name__}: differentiable=True: steps are computed on arrays and cannot be differentiated"
            )
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._step_pre_hooks: dict[int, Callable[..., Any]] = {}
        self._step_post_hooks: dict[int, Callable[..., Any]] = {}
        groups = list(params)
        if not groups:
            raise ArgumentError("optimizer got an empty parameter list", mend="does the model have parameters?")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    # ---------------------------------------------------------------------------------------------------- the step

    @_hooked
    def step(self, closure: Closure | None = None) -> Any:
        """Change each parameter that has a gradient.

        Args:
            closure: computes the loss again, with gradients; called first.

        Returns: what the closure returned, or None.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        token = hush()
        try:
            for group in self.param_groups:
                for params in _alike(group["params"]):
                    self._update_all(params, group)
        finally:
            restore(token)
        return loss

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        """Change one parameter, and its state, in place; what is new in `state` is kept for the next step.

        Arrays are float32 or float64. `state` is empty at first.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither update() nor step()")

    def update_many(
        self, params: list[Array], grads: list[Array], states: list[dict[str, Array]], group: Group
    ) -> None:
        """As `update`, for different parameters of one dtype on one kind of device; float16 and bfloat16 too."""
        for param, grad, state in zip(params, grads, states, strict=True):
            if param.dtype in HALVES:
                self._update_half(param, grad, state, group)
            else:
                self.update(param, grad, state, group)

    def _update_all(self, params: list[Tensor], group: Group) -> None:
        if devices.SEVERAL:
            there = [param for param in params if param.device == params[0].device]
            if len(there) < len(params):
                self._update_all(there, group)
                return self._update_all([param for param in params if param.device != params[0].device], group)
            if (other := devices.beside(there)) is not None:
                with other:
                    return self._update_all(params, group)
        for param in params:
            check_writable(param, type(self).__name__)
        known = [self.state.get(param, {}) for param in params]
        held = [{name: tensor.array for name, tensor in state.items()} for state in known]
        self.update_many([p.array for p in params], [p.grad.array for p in params], held, group)  # type: ignore[union-attr]
        for param, before, after in zip(params, known, held, strict=True):
            if len(after) > len(before):
                self.state[param] = before | {name: wrap(a) for name, a in after.items() if name not in before}
            note_write(param)

    def _update_half(self, array: Array, grad: Array, held: dict[str, Array], group: Group) -> None:
        wide = dtypes.widen(array)
        wide_state = {name: dtypes.widen(a) for name, a in held.items()}
        self.update(wide, dtypes.widen(grad), wide_state, group)
        half = dtypes.dtype_of(array)
        array[...] = dtypes.cast(wide, half)
        for name, a in wide_state.items():
            if name in self.SCALARS:
                held[name] = a
            elif name in held:
                held[name][...] = dtypes.cast(a, half)
            else:
                held[name] = dtypes.cast(a, half)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or set them to zero where `set_to_none` is False."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    param.grad.array[...] = 0
                    note_write(param.grad)

    def backward_step(self, loss: Tensor) -> None:
        """One step down the gradient of `loss`, and of it alone: gradients from before are dropped.

        Source: candle's `Optimizer::backward_step`.
        """
        self.zero_grad()
        loss.backward()
        self.step()

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return others in their place."""
        return RemovableHandle(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return RemovableHandle(self._step_post_hooks, hook)

    # ------------------------------------------------------------------------------------------------------ groups

    def add_param_group(self, param_group: Group) -> None:
        """Optimize further parameters, with options of their own where the dict has them.

        Raises: as the constructor.
        """
        if not isinstance(param_group, dict):
            raise ArgumentTypeError(f"param_group must be a dict, but got {type(param_group).__name__}")
        if "params" not in param_group:
            raise ArgumentError(f"param_group has no 'params', only {sorted(param_group)}")
        group = dict(param_group)
        group["params"], names = _split_names(group["params"])
        if names:
            group["param_names"] = names
        for i, param in enumerate(group["params"]):
            _check_param(param, names[i] if names else str(i))
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ArgumentError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        self._check_beside_others(group)
        self.param_groups.append(group)

    def _check_beside_others(self, group: Group) -> None:
        params = set(group["params"])
        if len(params) < len(group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; each is updated once for every time "
                "that it is there",
                stacklevel=4,
            )
        for other in self.param_groups:
            if ("param_names" in group) != ("param_names" in other):
                raise ArgumentError("all optimizer param groups should be with/without names")
            if not params.isdisjoint(other["params"]):
                raise ArgumentError("some parameters appear in more than one parameter group")

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params")
        return text + ")"

    # ------------------------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """The state and the options, with numbers in place of the parameters; PyTorch's format.

        {"state": {0: {"momentum_buffer": Tensor, ...}, ...}, "param_groups": [{"lr": 0.01, ..., "params": [0, 1]}]}

        The tensors are the optimizer's own, not copies.
        """
        places: dict[Tensor, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for i, param in enumerate(group["params"], start):
                places.setdefault(param, i)
            start += len(group["params"])
            options = {name: value for name, value in group.items() if name != "params"}
            groups.append(options | {"params": [places[param] for param in group["params"]]})
        state = {places[key] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned, here or in PyTorch.

        Tensors are copied, in the dtype and to the device of their parameter. Options that the dict does not have keep
        the optimizer's defaults.

        Raises: CheckpointError with all that does not fit, before anything is changed.
        """
        self.check_state_dict(state_dict)
        saved = copy.deepcopy(state_dict["param_groups"])
        by_number = self._numbered(saved)
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for key, entry in state_dict["state"].items():
            if key in by_number:
                param = by_number[key]
                state[param] = {name: self._taken_over(name, value, param) for name, value in entry.items()}
            else:
                state[key] = copy.deepcopy(entry)
        groups = []
        for own, group in zip(self.param_groups, saved, strict=True):
            # What schedulers have filed in a group stays, where the file does not say otherwise.
            filed = {name: value for name, value in own.items() if name not in self.defaults}
            groups.append(self.defaults | filed | group | {"params": own["params"]})
        self.__setstate__({"state": state, "param_groups": groups})

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raise what `load_state_dict` would raise, and change nothing."""
        _check_form(state_dict)
        saved = state_dict["param_groups"]
        self._check_sizes(saved)
        self._check_options(saved)
        self._check_state(state_dict["state"], saved)

    def _numbered(self, saved: Sequence[Group]) -> dict[Any, Tensor]:
        """The optimizer's parameters by the numbers that stand for them in a state dict."""
        numbers = chain.from_iterable(group["params"] for group in saved)
        by_number: dict[Any, Tensor] = {}
        own = chain.from_iterable(group["params"] for group in self.param_groups)
        for number, param in zip(numbers, own, strict=True):
            if by_number.setdefault(number, param) is not param:
                raise CheckpointError(f"loaded state dict has the number {number!r} for two parameters")
        return by_number

    def _check_sizes(self, saved: Sequence[Group]) -> None:
        if len(saved) != len(self.param_groups):
            raise CheckpointError(
                f"loaded state dict has a different number of parameter groups: {len(saved)}, not "
                f"{len(self.param_groups)}",
                mend="make the optimizer with the groups that it had when its state was saved",
            )
        problems = [
            f"  group {i}: {len(theirs['params'])} parameters in the state dict, {len(own['params'])} in the optimizer"
            for i, (own, theirs) in enumerate(zip(self.param_groups, saved, strict=True))
            if len(own["params"]) != len(theirs["params"])
        ]
        if problems:
            raise CheckpointError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group\n"
                + "\n".join(problems),
                mend="is it the state of another model?",
            )

    def _check_options(self, saved: Sequence[Group]) -> None:
        problems = [
            f"  group {i}: {name} {wrong}"
            for i, (own, theirs) in enumerate(zip(self.param_groups, saved, strict=True))
            for name, value in theirs.items()
            if name != "params" and (wrong := self._option_fault(name, value, own))
        ]
        if problems:
            raise CheckpointError(
                f"the state dict has options that this {type(self).__name__} cannot go on with\n" + "\n".join(problems),
                mend="is the file damaged, or is it the state of another optimizer?",
            )

    def _option_fault(self, name: str, value: Any, own: Group) -> str | None:
        """What is wrong with an option that is to stand in a group, if anything is."""
        if name == "param_names":
            is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
            return None if is_list and len(value) == len(own["params"]) else "are not a name for each parameter"
        return option_fault(name, own.get(name, self.defaults.get(name)), value)

    def _required_state(self, group: Group) -> tuple[str, ...]:
        """The names that the state of a parameter of a group has after a step, where it has any."""
        return ()

    def _check_state(self, state: dict[Any, dict[str, Any]], saved: Sequence[Group]) -> None:
        by_number, problems = self._numbered(saved), []
        options = {n: self.defaults | theirs for theirs in saved for n in theirs["params"]}
        for key, entry in state.items():
            if key not in by_number:
                continue
            where = f"  parameter {key} {tuple(by_number[key].shape)}:"
            problems += [
                f"{where} {name} {wrong}"
                for name, value in entry.items()
                if (wrong := self._fault(name, value, by_number[key]))
            ]
            required = self._required_state(options[key]) if entry else ()
            problems += [f"{where} it has no {name}" for name in required if name not in entry]
        if problems:
            raise CheckpointError(
                f"the state dict does not fit the parameters of this {type(self).__name__}\n" + "\n".join(problems),
                mend="is it the state of another model, or are the parameters in another order?",
            )

    def _fault(self, name: str, value: Any, param: Tensor) -> str | None:
        """What is wrong with a value of the state of this parameter, if anything is."""
        if name in self.MOMENTS:
            if not isinstance(value, Tensor):
                return f"is {type(value).__name__}, not a Tensor"
            return None if value.shape == self.moment_shape(name, param.shape) else f"has shape {tuple(value.shape)}"
        if name in self.SCALARS:
            wrong = number_fault(value)
            return "is not a number" if wrong else None if float(value) >= 0 else f"is {float(value)}"
        # An update works on arrays; what a `step` of somebody's own keeps is its own business.
        is_update = type(self).step is Optimizer.step
        return f"is {type(value).__name__}, not a Tensor" if is_update and not isinstance(value, Tensor) else None

    def moment_shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The shape of a moment of a parameter of this shape; None if such a parameter does not have it."""
        return shape

    def _taken_over(self, name: str, value: Any, param: Tensor) -> Any:
        """A copy of a loaded value, with tensors on the device and in the dtype of the parameter."""
        if name in self.SCALARS:
            return wrap(value.array.copy()) if isinstance(value, Tensor) else wrap(scalar(value))
        if isinstance(value, Tensor):
            array = dtypes.cast(value.array, param.dtype) if param.is_floating_point() else value.array
            array = devices.move(array, param.device)
            return wrap(array.copy() if array is value.array else array)
        if isinstance(value, dict):
            return {key: self._taken_over(key, item, param) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._taken_over("", item, param) for item in value)
        return copy.deepcopy(value)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_step_pre_hooks", {})
        self.__dict__.setdefault("_step_post_hooks", {})


def _alike(params: Iterable[Tensor]) -> Iterable[list[Tensor]]:
    """The parameters that have gradients, those of one dtype on one device together, and none twice in one list."""
    lists: dict[Any, list[Tensor]] = {}
    times: dict[Tensor, int] = {}
    for param in params:
        if param.grad is not None:
            array = param.array
            where = None if type(array) is np.ndarray else devices.device_of(array)
            times[param] = nth = times.get(param, 0) + 1
            lists.setdefault((array.dtype, where, nth), []).append(param)
    return lists.values()


def _split_names(params: Any) -> tuple[list[Any], list[str]]:
    """The parameters of a group, and their names if it was given pairs."""
    if isinstance(params, set):
        raise ArgumentTypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs",
            mend="use a list",
        )
    given = [params] if isinstance(params, Tensor) else list(params)
    names = [item[0] for item in given if isinstance(item, tuple)]
    if names and len(names) != len(given):
        raise ArgumentError(
            f"all optimizer params should be with/without names; {len(given) - len(names)} of {len(given)} have none"
        )
    return [item[1] if isinstance(item, tuple) else item for item in given], names


def _check_param(param: Any, called: str) -> None:
    if not isinstance(param, Tensor):
        raise ArgumentTypeError(
            f"optimizer can only optimize Tensors, but parameter {called} is {type(param).__name__}"
        )
    if not (param.is_leaf or param.retains_grad):
        raise ArgumentError(
            f"can't optimize a non-leaf Tensor: parameter {called} is the output of {param.grad_fn!r}",
            mend="pass the tensor that it was computed from, or tensor.detach().requires_grad_()",
        )


def _check_form(state_dict: dict[str, Any]) -> None:
    """What comes out of a file must have the form of a state dict before its parts are looked at."""
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
            "this is not the state of an optimizer", mend='expected {"state": {0: {...}}, "param_groups": [{...}]}'
        )
