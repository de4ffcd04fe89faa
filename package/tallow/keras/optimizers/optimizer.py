"""Base class of the optimizers: Keras' options around the steps of `tallow.optim`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import sqrt
from typing import Any, ClassVar, TypedDict

import numpy as np

from tallow import devices, dtypes, optim
from tallow.autograd import no_grad
from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, GraphError
from tallow.keras.lookup import find
from tallow.keras.naming import snake_case
from tallow.keras.optimizers import schedules
from tallow.keras.serialization import serialize_keras_object
from tallow.tape.graph import note_write

LearningRate = float | schedules.LearningRateSchedule | Callable[[], float]


class Options(TypedDict, total=False):
    """Options that every optimizer takes besides its own arguments; see `Optimizer`."""

    weight_decay: float | None
    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None
    name: str | None


class Optimizer:
    """Update a model's parameters from their gradients, with Keras' options.

    A subclass creates the optimizer of `tallow.optim` that computes the steps, in `make(params)`.

    Args:
        learning_rate: a number, a schedule, or a function without arguments.
        weight_decay: p = p - learning_rate · weight_decay · p before each step.
        clipnorm, global_clipnorm: the maximum norm of each gradient, or of all gradients as one vector.
        clipvalue: the maximum absolute value of a gradient's element. Set at most one of these three.
        use_ema: keep a moving average of the parameters, with `ema_momentum`, and assign it to the parameters every
            `ema_overwrite_frequency` steps, or at the end of `fit` if that is None.
        loss_scale_factor: multiply the loss by this factor before the gradients are computed and divide the gradients
            by it afterwards, which keeps small float16 gradients from underflowing.
        gradient_accumulation_steps: average the gradients of this many calls for one step.

    Raises:  ArgumentError for invalid or conflicting options
    """

    ARGUMENTS: ClassVar[tuple[str, ...]] = ()  # what get_config() saves besides the options
    SLOTS: ClassVar[tuple[tuple[str, ...], ...]] = ()  # see `slot_groups`
    NUMBERS: ClassVar[tuple[str, ...]] = ()  # entries of `step_state` that Keras' files store after the slots

    def __init__(
        self,
        learning_rate: LearningRate,
        *,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise ArgumentTypeError(
                f"{type(self).__name__}: unexpected arguments: {', '.join(unknown)}",
                hint=f"accepted arguments: learning_rate, {', '.join((*self.ARGUMENTS, *Options.__annotations__))}",
            )
        if sum(clip is not None for clip in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ArgumentError(f"{type(self).__name__}: set only one of clipnorm, clipvalue and global_clipnorm")
        if gradient_accumulation_steps is not None and gradient_accumulation_steps < 2:
            raise ArgumentError("gradient_accumulation_steps must be 2 or more, or None")
        if use_ema and not 0 <= ema_momentum <= 1:
            raise ArgumentError(f"ema_momentum must be from 0 to 1, not {ema_momentum}")
        self.name = name or snake_case(type(self).__name__)
        self.weight_decay = weight_decay
        self.clipnorm = clipnorm
        self.clipvalue = clipvalue
        self.global_clipnorm = global_clipnorm
        self.use_ema = use_ema
        self.ema_momentum = ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.loss_scale_factor = loss_scale_factor
        self.gradient_accumulation_steps = gradient_accumulation_steps
        # The state of training, which files store; created when training begins.
        self.inner: optim.Optimizer | None = None  # created when the parameters are known
        self.calls = 0  # calls of step(), including those that only accumulate
        self._loaded: dict[str, Any] | None = None  # state to load once the parameters are known
        self._undecayed: set[Tensor] = set()
        self.averages: dict[Tensor, Array] = {}
        self.accumulated: dict[Tensor, Array] = {}
        self._learning_rate: LearningRate = _check_rate(learning_rate)

    # ------------------------------------------------------------------------------------------------ the parameters

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        """Create the optimizer of `tallow.optim` that computes the steps; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} does not define make(params)")

    @property
    def built(self) -> bool:
        """True if the optimizer has parameters."""
        return self.inner is not None

    def build(self, variables: Iterable[Tensor]) -> None:
        """Add parameters to update; known parameters keep their state."""
        variables = list(variables)
        if self.inner is None:
            if not variables:
                raise ArgumentError("the model has no trainable parameters to optimize")
            self.inner = self.make(variables)
            if self._loaded is not None:
                state, self._loaded = self._loaded, None
                self._load(state)
            return
        present = {param for group in self.inner.param_groups for param in group["params"]}
        if new := [param for param in variables if param not in present]:
            self.inner.add_param_group({"params": new})

    def _params(self) -> list[Tensor]:
        if self.inner is None:
            raise GraphError(
                "the optimizer has no parameters",
                hint="check that the model has trainable parameters; outside fit, call optimizer.build(parameters)",
            )
        return [param for group in self.inner.param_groups for param in group["params"]]

    def exclude_from_weight_decay(self, var_list: Iterable[Tensor]) -> None:
        """Exclude these parameters from `weight_decay`."""
        self._undecayed.update(var_list)

    # ------------------------------------------------------------------------------------------------- learning rate

    @property
    def iterations(self) -> int:
        """The number of completed steps."""
        return self.calls // (self.gradient_accumulation_steps or 1)

    @property
    def set_rate(self) -> LearningRate:
        """The learning rate as it was set: a number, a schedule, or a function."""
        return self._learning_rate

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step. It can be set, unless it follows a schedule."""
        rate = self._learning_rate
        if isinstance(rate, schedules.LearningRateSchedule):
            return float(rate(self.calls))
        return float(rate()) if callable(rate) else _Rate(rate, self)

    @learning_rate.setter
    def learning_rate(self, value: LearningRate) -> None:
        if isinstance(self._learning_rate, schedules.LearningRateSchedule) and not callable(value):
            raise ArgumentTypeError(
                f"the learning rate follows a {type(self._learning_rate).__name__}, and cannot be set to a number",
                hint="create the optimizer with a number as learning_rate, or set another schedule",
            )
        self._learning_rate = _check_rate(value)

    # ------------------------------------------------------------------------------------------------------ the step

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Tensor | None, Tensor]]) -> int:
        """Take a step with pairs of a gradient and a parameter; return `iterations`."""
        grads, variables = zip(*grads_and_vars, strict=True)
        self.apply(grads, variables)
        return self.iterations

    def apply(self, grads: Sequence[Tensor | None], trainable_variables: Sequence[Tensor] | None = None) -> None:
        """Take a step with these gradients, of `trainable_variables` or of the parameters passed to `build`.

        Raises:  ArgumentError unless there are as many gradients as parameters; GraphError if all gradients are None
        """
        if trainable_variables is None:
            trainable_variables = self._params()
        else:
            self.build(trainable_variables)
        if len(grads) != len(trainable_variables):
            raise ArgumentError(f"{len(grads)} gradients for {len(trainable_variables)} parameters")
        others = {param: param.grad for param in self._params()}
        for param in others:
            param.grad = None
        for param, grad in zip(trainable_variables, grads, strict=True):
            others.pop(param, None)
            param.grad = grad
        self.step()
        for param, grad in others.items():
            param.grad = grad

    def step(self) -> None:
        """Take a step with the gradients in `param.grad`.

        Raises:  GraphError if no parameter has a gradient
        """
        params = [param for param in self._params() if param.grad is not None]
        if not params:
            raise GraphError(
                "no gradients for any parameter: the loss does not depend on them",
                hint="check that the output is not computed under no_grad, detached, or computed with NumPy",
            )
        grads = [dtypes.widen(param.grad.array) for param in params]  # type: ignore[union-attr]
        if self.loss_scale_factor is not None:
            grads = [grad / self.loss_scale_factor for grad in grads]
        ready = self._accumulate(params, grads) if self.gradient_accumulation_steps else grads
        if ready is not None:
            self._step(params, self._clip(ready))
        if self.use_ema:
            self._average()
        if ready is not None:
            _constrain(params)
        self.calls += 1

    def _step(self, params: list[Tensor], grads: list[Array]) -> None:
        assert self.inner is not None
        rate = self.learning_rate
        for param, grad in zip(params, grads, strict=True):
            if grad is not param.grad.array:  # type: ignore[union-attr]
                param.grad = wrap(dtypes.cast(grad, param.dtype))
            decay = self.decay_of(param)
            if decay and param not in self._undecayed:
                _assign(param, dtypes.widen(param.array) * (1 - rate * decay))
        self._set_rate(rate)
        self.inner.step()

    def decay_of(self, param: Tensor) -> float | None:
        """Return the weight decay of a parameter."""
        return self.weight_decay

    def _set_rate(self, rate: float) -> None:
        assert self.inner is not None
        for group in self.inner.param_groups:
            group["lr"] = rate

    def _clip(self, grads: list[Array]) -> list[Array]:
        if self.clipvalue is not None:
            return [array_module(grad).clip(grad, -self.clipvalue, self.clipvalue) for grad in grads]
        if self.clipnorm is not None:
            return [_scale_to_norm(grad, _norm([grad]), self.clipnorm) for grad in grads]
        if self.global_clipnorm is not None:
            norm = _norm(grads)
            return [_scale_to_norm(grad, norm, self.global_clipnorm) for grad in grads]
        return grads

    def _accumulate(self, params: list[Tensor], grads: list[Array]) -> list[Array] | None:
        """Accumulate gradients; return their mean after every `gradient_accumulation_steps` calls, otherwise None."""
        for param, grad in zip(params, grads, strict=True):
            self.accumulated[param] = self.accumulated[param] + grad if param in self.accumulated else grad.copy()
        assert self.gradient_accumulation_steps is not None
        if (self.calls + 1) % self.gradient_accumulation_steps:
            return None
        mean = [self.accumulated[param] / self.gradient_accumulation_steps for param in params]
        self.accumulated.clear()
        return mean

    def _average(self) -> None:
        for param in self._params():
            value = dtypes.widen(param.array)
            average = self.averages.setdefault(param, value.copy())
            average *= self.ema_momentum
            average += (1 - self.ema_momentum) * value
        if self.ema_overwrite_frequency and (self.iterations + 1) % self.ema_overwrite_frequency == 0:
            self._assign_averages()

    def _assign_averages(self) -> None:
        for param, average in self.averages.items():
            _assign(param, average)

    def finalize_variable_values(self, var_list: Iterable[Tensor]) -> None:
        """Assign the moving averages to the parameters at the end of training, if `use_ema` is set."""
        if self.use_ema:
            self._assign_averages()

    def scale_loss(self, loss: Tensor) -> Tensor:
        """Multiply a loss by `loss_scale_factor`."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    # --------------------------------------------------------------------------------------------------------- state

    def slot_groups(self) -> tuple[tuple[str, ...], ...] | None:
        """Return the names of the state arrays of `inner` per parameter, in the order of Keras' files.

        Each group stores an array of each of its names for one parameter after the other. None for an optimizer that
        Keras lacks.
        """
        return self.SLOTS

    def slot_shape(self, slot: str, weight: Tensor) -> tuple[int, ...] | None:
        """Return the shape of a parameter's state array; None if it has none in this slot."""
        return tuple(weight.shape)

    def initial_value(self, slot: str) -> float:
        """Return the value of a state array before the first step."""
        return 0.0

    def step_state(self, steps: int) -> dict[str, float]:
        """Return the scalars that `inner` stores for each parameter after `steps` steps."""
        return {"step": float(steps)}

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps, the learning rate, the state of `inner` and the moving averages."""
        state = {} if self._loaded is None else dict(self._loaded)
        if self.inner is not None:
            averages = [wrap(self.averages[param]) for param in self._params() if param in self.averages]
            state = {"inner": self.inner.state_dict(), "averages": averages}
        rate = self._learning_rate
        return {"calls": self.calls, "learning_rate": None if callable(rate) else rate} | state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state of `state_dict`; before `build`, the state waits for the parameters.

        Raises:  CheckpointError if the state belongs to other parameters
        """
        if "inner" in state_dict:
            state = {name: state_dict[name] for name in ("inner", "averages")}
            if self.inner is None:
                self._loaded = copy.deepcopy(state)
            else:
                self._load(state)
        self.calls = int(state_dict["calls"])
        if state_dict["learning_rate"] is not None and not callable(self._learning_rate):
            self._learning_rate = float(state_dict["learning_rate"])

    def _load(self, state: dict[str, Any]) -> None:
        assert self.inner is not None
        averages = state["averages"]
        params = self._params()
        if averages and [tuple(average.shape) for average in averages] != [tuple(param.shape) for param in params]:
            raise CheckpointError("the moving averages in the state belong to other parameters")
        self.inner.load_state_dict(state["inner"])
        if averages:
            arrays = (
                devices.move(average.array.copy(), param.device)
                for param, average in zip(params, averages, strict=True)
            )
            self.averages = dict(zip(params, arrays, strict=True))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        rate: Any = self._learning_rate
        if isinstance(rate, schedules.LearningRateSchedule):
            rate = serialize_keras_object(rate)
        elif callable(rate):
            rate = self.learning_rate
        names = (*self.ARGUMENTS, *Options.__annotations__)
        return {"learning_rate": rate} | {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
        """Create an optimizer from its configuration."""
        rate = config.get("learning_rate")
        if isinstance(rate, dict):
            config = config | {"learning_rate": schedules.deserialize(rate, custom_objects)}
        return cls(**config)


class FromOptim(Optimizer):
    """Adapter that makes an optimizer of `tallow.optim` a Keras optimizer.

    Args:
        source: the optimizer, or its class, which is created with its own defaults.
    """

    def __init__(self, source: Any) -> None:
        super().__init__(0.0, name="from_optim")
        self._source = source
        if isinstance(source, optim.Optimizer):
            self.inner = source

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return self._source(params)

    def build(self, variables: Iterable[Tensor]) -> None:
        """Add parameters, unless the optimizer already came with its own."""
        if not isinstance(self._source, optim.Optimizer):
            super().build(variables)

    def slot_groups(self) -> None:
        return None

    def get_config(self) -> dict[str, Any]:
        """Return the name in `tallow.optim` and the options of the first parameter group.

        Raises:  ArgumentError for an optimizer that is not part of tallow.optim
        """
        source = self._source.func if isinstance(self._source, partial) else self._source
        kind: type = source if isinstance(source, type) else type(source)
        if getattr(optim, kind.__name__, None) is not kind:
            raise ArgumentError(f"{kind.__name__} is not part of tallow.optim and cannot be saved by its name")
        group = {} if self.inner is None else self.inner.param_groups[0]
        return {"optimizer": kind.__name__, "options": {k: v for k, v in group.items() if not k.startswith("param")}}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
        kind = find(config["optimizer"], {name: getattr(optim, name) for name in optim.__all__}, "an optimizer")
        accepted = inspect.signature(kind).parameters
        return cls(partial(kind, **{name: value for name, value in config["options"].items() if name in accepted}))

    @property
    def learning_rate(self) -> float:
        if self.inner is None:
            raise GraphError("the learning rate is unknown before the optimizer has parameters")
        return _Rate(self.inner.param_groups[0]["lr"], self)

    @learning_rate.setter
    def learning_rate(self, value: LearningRate) -> None:
        if self.inner is None:
            raise GraphError("the learning rate is unknown before the optimizer has parameters")
        for group in self.inner.param_groups:
            group["lr"] = _check_rate(value)

    def _set_rate(self, rate: float) -> None:
        """Do nothing: each group keeps its own rate, which a scheduler may have set."""


class _Rate(float):
    """A learning rate, with the methods of Keras's variable that programs call most."""

    def __new__(cls, rate: float, optimizer: Optimizer) -> _Rate:
        """Return a rate of an optimizer."""
        self = super().__new__(cls, rate)
        self.optimizer = optimizer
        return self

    optimizer: Optimizer

    def assign(self, value: float) -> None:
        """Set the learning rate of the optimizer; this number stays as it is."""
        self.optimizer.learning_rate = value

    def numpy(self) -> np.float32:
        """Return the rate as a number of NumPy."""
        return np.float32(self)

    def __reduce__(self) -> Any:
        return float, (float(self),)


def _check_rate(rate: Any) -> LearningRate:
    if callable(rate):
        return rate
    try:
        if isinstance(rate, str):
            raise TypeError("a string")
        return float(rate)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"learning_rate must be a number, a schedule or a function, not {rate!r}",
        ) from error


def _assign(param: Tensor, value: Array) -> None:
    param.array[...] = dtypes.cast(value, param.dtype)
    note_write(param)


def _constrain(params: list[Tensor]) -> None:
    """Apply the constraints of the weights."""
    for param in params:
        constraint = getattr(param, "constraint", None)
        if constraint is not None:
            with no_grad():
                _assign(param, dtypes.widen(constraint(param).array))


def _norm(grads: list[Array]) -> float:
    return sqrt(sum(float((grad * grad).sum()) for grad in grads))


def _scale_to_norm(grad: Array, norm: float, limit: float) -> Array:
    return grad * (limit / norm) if norm > limit else grad
