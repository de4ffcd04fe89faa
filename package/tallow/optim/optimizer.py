"""The base class of the optimizers: parameter groups, state, hooks, and the loop over the parameters.

A tallow optimizer consists of a constructor and `update`, a function of NumPy or CuPy arrays that updates one parameter
in place, or `update_many`, which updates several. This class does everything else. A subclass that overrides `step`
instead, as in PyTorch, also works.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import wraps
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from tallow import devices, dtypes
from tallow.core.apply import check_writable
from tallow.core.tensor import Tensor, wrap
from tallow.core.whole_calls import recorded_whole
from tallow.dtypes import HALVES, Array
from tallow.errors import ArgumentError, ArgumentTypeError, GraphError, warn
from tallow.ops.complex_numbers import view_as_complex, view_as_real
from tallow.ops.float_warnings import restore_warnings, suppress_warnings
from tallow.optim.saved_state import Group as Group
from tallow.optim.saved_state import SavedState
from tallow.tape.graph import note_write
from tallow.tape.hooks import RemovableHandle
from tallow.tape.modes import enable_grad, mode

Closure = Callable[[], Any]
Step = TypeVar("Step", bound=Callable[..., Any])


class _Required:
    """The default of an option without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def _with_hooks(step: Step) -> Step:
    """Wrap `step` to call its hooks. A `step` that calls the superclass's `step` counts as one step."""

    @wraps(step)
    def step_with_hooks(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if devices.MULTI_DEVICE and (guard := devices.guard_for(self.param_groups[0]["params"])) is not None:
            with guard:
                return step_with_hooks(self, *args, **kwargs)
        if mode.tracer is not None:
            return mode.tracer.whole(step_with_hooks, (self, *args), kwargs)
        if self._stepping:
            return step(self, *args, **kwargs)
        call: tuple[Any, ...] = (self, *args)
        for hook in list(self._step_pre_hooks.values()):
            replacement = hook(self, call, kwargs)
            if replacement is None:
                continue
            if not isinstance(replacement, tuple) or len(replacement) != 2:
                raise ArgumentError(f"a step pre-hook must return None or (args, kwargs), not {replacement!r}")
            call, kwargs = replacement
        self._stepping = True
        try:
            result = step(*call, **kwargs)
        finally:
            self._stepping = False
        self._opt_called = True
        for hook in list(self._step_post_hooks.values()):
            hook(self, call, kwargs)
        return result

    return step_with_hooks  # type: ignore[return-value]


class Optimizer(SavedState):
    """Update parameters from their gradients, as torch.optim.Optimizer.

    Args:
        params: tensors, or pairs of a name and a tensor; or dicts, one per parameter group, with "params" and the
            options in which the group differs from `defaults`.
        defaults: the options, by name.

    Attributes:
        param_groups: a dict for each group; schedulers change its options.
        state: the optimizer's state of each parameter.

    Dtypes:  float16 and bfloat16 parameters and their state are updated in float32 and rounded once per step
    Raises:  ArgumentError for no parameters, a parameter in two groups, or a non-leaf tensor; ArgumentTypeError for
        anything but a Tensor
    """

    _stepping = False
    _opt_called = False  # PyTorch's name; schedulers check it
    # Of an optimizer around another one, which may not call the constructor.
    _step_pre_hooks: dict[int, Callable[..., Any]] = MappingProxyType({})  # type: ignore[assignment]
    _step_post_hooks = _step_pre_hooks

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]
        if "update" in cls.__dict__ and "update_many" not in cls.__dict__:
            cls.update_many = Optimizer.update_many  # type: ignore[method-assign]  # not an intermediate class's version

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor) or not isinstance(params, Iterable):
            raise ArgumentTypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {type(params).__name__}",
                hint="pass model.parameters(), or a list of tensors",
            )
        if defaults.get("differentiable"):
            raise ArgumentError(
                f"{type(self).__name__}: differentiable=True: steps are computed on arrays and cannot be differentiated"
            )
        if defaults.get("fused") and defaults.get("foreach"):
            raise ArgumentError(
                "`fused` and `foreach` cannot be `True` together.", hint="neither has an effect in tallow"
            )
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._step_pre_hooks = {}
        self._step_post_hooks = {}
        self._state_hooks: defaultdict[str, dict[int, Callable[..., Any]]] = defaultdict(dict)
        groups = list(params)
        if not groups:
            raise ArgumentError("optimizer got an empty parameter list", hint="check that the model has parameters")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    # ---------------------------------------------------------------------------------------------------- the step

    @_with_hooks
    def step(self, closure: Closure | None = None) -> Any:
        """Update each parameter that has a gradient.

        Args:
            closure: recomputes the loss and the gradients; called first.

        Returns: the result of the closure, or None.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        token = suppress_warnings()
        try:
            for group in self.param_groups:
                for params in _group_by_device(group["params"]):
                    if params[0].grad.is_sparse:  # type: ignore[union-attr]
                        self._update_rows_of(params, group)
                    else:
                        self._update_all(params, group)
        finally:
            restore_warnings(token)
        return loss

    def update(self, param: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        """Update one parameter and its state in place; new entries of `state` are kept for the next step.

        Arrays are float32 or float64. `state` is empty at first.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither update() nor step()")

    def update_many(
        self, params: list[Array], grads: list[Array], states: list[dict[str, Array]], group: Group
    ) -> None:
        """Update several parameters of the same dtype, which may be half precision, on one kind of device."""
        for param, grad, state in zip(params, grads, states, strict=True):
            if param.dtype in HALVES:
                self._update_half(param, grad, state, group)
            else:
                self.update(param, grad, state, group)

    def update_rows(self, param: Array, rows: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        """Update one parameter from a sparse gradient, which has values in some rows of the table.

        Shapes:  rows (N,), ascending without repetition, grad (N, ...)
        Raises:  GraphError for optimizers that take no sparse gradients
        """
        name = type(self).__name__
        hint = ", please consider SparseAdam instead" if name in ("Adam", "AdamW") else ""
        raise GraphError(f"{name} does not support sparse gradients{hint}", hint="use SGD, Adagrad or SparseAdam")

    def _update_rows_of(self, params: list[Tensor], group: Group) -> None:
        """Update parameters from sparse gradients."""
        for param in params:
            grad: Any = param.grad.coalesce()  # type: ignore[union-attr]
            check_writable(param, type(self).__name__)
            if grad.sparse_dim() != 1 or param.array.dtype.kind != "f" or param.dtype in HALVES:
                raise GraphError(
                    f"{type(self).__name__}: a sparse gradient must be of rows of float32 or float64",
                    hint="call grad.to_dense()",
                )
            before = self.state.get(param, {})
            state = {name: t.array for name, t in before.items()}
            self.update_rows(param.array, grad.indices().array[0], grad.values().array, state, group)
            if len(state) > len(before):
                self.state[param] = before | {name: wrap(a) for name, a in state.items() if name not in before}
            note_write(param)

    def _update_all(self, params: list[Tensor], group: Group) -> None:
        if devices.MULTI_DEVICE:
            local = [param for param in params if param.device == params[0].device]
            if len(local) < len(params):
                self._update_all(local, group)
                return self._update_all([param for param in params if param.device != params[0].device], group)
            if (guard := devices.guard_for(local)) is not None:
                with guard:
                    return self._update_all(params, group)
        for param in params:
            check_writable(param, type(self).__name__)
        self.update_arrays(params, [p.array for p in params], [p.grad.array for p in params], group)  # type: ignore[union-attr]

    def update_arrays(self, params: list[Tensor], arrays: list[Array], grads: list[Array], group: Group) -> None:
        """Update parameters, given by their arrays, from gradients; their state is looked up and kept."""
        states = [self.state.get(param, {}) for param in params]
        state_arrays = [{name: t.array for name, t in state.items()} if state else {} for state in states]
        if any(array.dtype.kind == "c" for array in arrays):
            self._update_parts(arrays, grads, state_arrays, group)
        else:
            self.update_many(arrays, grads, state_arrays, group)
        for param, before, after in zip(params, states, state_arrays, strict=True):
            if len(after) > len(before):
                self.state[param] = before | {name: wrap(a) for name, a in after.items() if name not in before}
            note_write(param)

    def _update_parts(
        self, arrays: list[Array], grads: list[Array], states: list[dict[str, Array]], group: Group
    ) -> None:
        """Update parameters of which some are complex, as real ones with one more dim; their state is complex too."""
        real_states = [{name: parts_of(a) for name, a in state.items()} for state in states]
        self.update_many([parts_of(a) for a in arrays], [parts_of(g) for g in grads], real_states, group)
        for array, state, parts in zip(arrays, states, real_states, strict=True):
            for name in parts.keys() - state.keys():
                a = parts[name]
                state[name] = _whole(a) if array.dtype.kind == "c" and a.shape == (*array.shape, 2) else a

    def _update_half(self, array: Array, grad: Array, state: dict[str, Array], group: Group) -> None:
        wide = dtypes.widen(array)
        wide_state = {name: dtypes.widen(a) for name, a in state.items()}
        self.update(wide, dtypes.widen(grad), wide_state, group)
        half = dtypes.dtype_of(array)
        array[...] = dtypes.cast(wide, half)
        for name, a in wide_state.items():
            if name in self.SCALARS:
                state[name] = a
            elif name in state:
                state[name][...] = dtypes.cast(a, half)
            else:
                state[name] = dtypes.cast(a, half)

    @recorded_whole
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients, or set them to zero if `set_to_none` is False."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None and param.grad.is_sparse:
                    param.grad.zero_()
                elif param.grad is not None:
                    param.grad.array[...] = 0
                    note_write(param.grad)

    def backward_step(self, loss: Tensor) -> None:
        """Take one step along the gradient of `loss` alone; previous gradients are cleared.

        Source: candle's `Optimizer::backward_step`
        """
        self.zero_grad()
        loss.backward()
        self.step()

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return replacements of args and kwargs."""
        return RemovableHandle(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return RemovableHandle(self._step_post_hooks, hook)

    # ------------------------------------------------------------------------------------------------------ groups

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters, optionally with its own options.

        Raises:  as the constructor
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
        self._check_against_groups(group)
        self.param_groups.append(group)

    def _check_against_groups(self, group: Group) -> None:
        params = set(group["params"])
        if len(params) < len(group["params"]):
            warn("optimizer contains a parameter group with duplicate parameters; each is updated once per occurrence")
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

    def _updates_arrays(self) -> bool:
        return type(self).step is Optimizer.step

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_step_pre_hooks", {})
        self.__dict__.setdefault("_step_post_hooks", {})
        self.__dict__.setdefault("_state_hooks", defaultdict(dict))


def parts_of(array: Array) -> Array:
    """Return a view of complex numbers as real ones with one more dim; another array itself."""
    parts: Array = view_as_real.function(array)[0] if array.dtype.kind == "c" else array
    return parts


def _whole(parts: Array) -> Array:
    whole: Array = view_as_complex.function(parts)[0]
    return whole


def _group_by_device(params: Iterable[Tensor]) -> Iterable[list[Tensor]]:
    """Group the parameters with gradients by dtype and device; duplicates go to separate lists."""
    lists: dict[Any, list[Tensor]] = {}
    counts: dict[Tensor, int] = {}
    for param in params:
        if param.grad is not None:
            array = param.array
            device = None if type(array) is np.ndarray else devices.device_of(array)
            counts[param] = nth = counts.get(param, 0) + 1
            lists.setdefault((array.dtype, device, nth, param.grad.is_sparse), []).append(param)
    return lists.values()


def _split_names(params: Any) -> tuple[list[Any], list[str]]:
    """Return the parameters of a group, and their names if it contains pairs."""
    if isinstance(params, set):
        raise ArgumentTypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs",
            hint="use a list",
        )
    items = [params] if isinstance(params, Tensor) else list(params)
    names = [item[0] for item in items if isinstance(item, tuple)]
    if names and len(names) != len(items):
        raise ArgumentError(
            f"all optimizer params should be with/without names; {len(items) - len(names)} of {len(items)} have none"
        )
    return [item[1] if isinstance(item, tuple) else item for item in items], names


def _check_param(param: Any, name: str) -> None:
    if not isinstance(param, Tensor):
        raise ArgumentTypeError(f"optimizer can only optimize Tensors, but parameter {name} is {type(param).__name__}")
    if not (param.is_leaf or param.retains_grad):
        raise ArgumentError(
            f"can't optimize a non-leaf Tensor: parameter {name} is the output of <{type(param.grad_fn).__name__}>",
            hint="pass the tensor it was computed from, or tensor.detach().requires_grad_()",
        )
