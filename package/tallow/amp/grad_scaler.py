"""GradScaler: scale the loss so that float16 gradients do not underflow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tallow import cuda
from tallow.core.tensor import Tensor
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError, CheckpointError, GraphError, warn
from tallow.ops.multi_tensor import alike, scale_all
from tallow.optim.state_checks import number_fault
from tallow.tape.graph import note_write

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """Scale the loss up before backward and the gradients down before the step; skip a step after an overflow.

        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)                        # optional, for example to clip gradients
        scaler.step(optimizer)
        scaler.update()

    The scale is multiplied by `backoff_factor` after gradients with an infinity or NaN, and by `growth_factor` after
    `growth_interval` steps without one. Arguments are as for torch.amp.GradScaler.

    Raises: GraphError for unscale_ or step twice before update. For device "cuda" without a GPU it warns, and the
        scaler does nothing.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and str(device).split(":")[0] == "cuda" and not cuda.is_available():
            warn("GradScaler: there is no GPU; disabled")
            enabled = False
        if enabled and not (growth_factor > 1 and backoff_factor < 1):
            raise ArgumentError(
                f"GradScaler: growth_factor={growth_factor} must exceed 1, backoff_factor={backoff_factor} be below it"
            )
        self._device = device
        self._enabled = enabled
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._good_steps = 0
        self._stage: dict[int, str] = {}  # id of an optimizer -> its stage since the last update
        # Id of an optimizer -> whether a gradient was not finite; until it is read, arrays on the gradients' devices.
        self._overflows: dict[int, list[Array] | bool] = {}

    def is_enabled(self) -> bool:
        """Return whether the scaler does anything."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the current scale; 1 if the scaler is disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks after an overflow."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of steps without an overflow after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps without an overflow after which the scale grows."""
        self._growth_interval = new_interval

    def scale(self, outputs: Any) -> Any:
        """Return the loss, or every tensor in a list, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            scaled = [self.scale(item) for item in outputs]
            return tuple(scaled) if isinstance(outputs, tuple) else scaled
        raise ArgumentError(f"GradScaler.scale: expected a Tensor or a list of them, got {type(outputs).__name__}")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimizer's parameters by the scale in place, and check that they are finite.

        Raises: GraphError if it was called already since the last `update`.
        """
        if not self._enabled:
            return
        stage = self._stage.get(id(optimizer), READY)
        if stage is UNSCALED:
            raise GraphError("unscale_() has already been called on this optimizer since the last update()")
        if stage is STEPPED:
            raise GraphError("unscale_() is being called after step()")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        overflows: list[Array] = []
        for arrays in alike([grad.array for grad in grads]):
            overflows.append(array_module(arrays[0]).zeros((), np.float32))
            scale_all(arrays, 1 / self._scale, overflows[-1])
        for grad in grads:
            note_write(grad)
        self._overflows[id(optimizer)] = overflows
        self._stage[id(optimizer)] = UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients and call `optimizer.step(*args, **kwargs)`, unless one of them is not finite.

        Raises: GraphError if it was called already since the last `update`; ArgumentError for a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise ArgumentError("GradScaler.step: closures are not supported", hint="call optimizer.step(closure)")
        stage = self._stage.get(id(optimizer), READY)
        if stage is STEPPED:
            raise GraphError("step() has already been called since the last update()")
        if stage is READY:
            self.unscale_(optimizer)
        result = None if self._overflowed(id(optimizer)) else optimizer.step(*args, **kwargs)
        self._stage[id(optimizer)] = STEPPED
        return result

    def _overflowed(self, optimizer: int) -> bool:
        """Return whether the optimizer's gradients overflowed. Waits for the device the first time."""
        overflow = self._overflows[optimizer]
        if not isinstance(overflow, bool):
            overflow = self._overflows[optimizer] = any(map(bool, overflow))
        return overflow

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Shrink or grow the scale after the steps since the last update, or set it.

        Raises: GraphError if there was no step and no `unscale_`.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._overflows:
            raise GraphError("no inf checks were recorded prior to update()", hint="call step(optimizer) first")
        elif any(map(self._overflowed, self._overflows)):
            self._scale *= self._backoff_factor
            self._good_steps = 0
        else:
            self._good_steps += 1
            if self._good_steps == self._growth_interval:
                self._scale *= self._growth_factor
                self._good_steps = 0
        self._stage.clear()
        self._overflows.clear()

    def _check_state(self, state_dict: dict[str, Any]) -> None:
        """Raise CheckpointError with all missing and invalid entries."""
        own = self.state_dict()
        problems = [f"  missing  {name}" for name in own if name not in state_dict]
        for name in own.keys() & state_dict.keys():
            value, is_count = state_dict[name], isinstance(own[name], int)
            if wrong := number_fault(value):
                problems.append(f"  {name} {wrong}")
            elif (is_count and int(value) != value) or not value >= (0 if name == "_growth_tracker" else 1e-300):
                problems.append(f"  {name} is {value!r:.80}")
        if problems:
            raise CheckpointError("this is not the state of a GradScaler\n" + "\n".join(sorted(problems)))

    def state_dict(self) -> dict[str, Any]:
        """Return the state, in PyTorch's format; {} for a disabled scaler."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._good_steps,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the state from `state_dict()`. Raises: CheckpointError for an invalid one, GraphError for {}."""
        if not self._enabled:
            return
        if not state_dict:
            raise GraphError("GradScaler: the state dict is empty", hint="it may come from a scaler with enabled=False")
        self._check_state(state_dict)
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._good_steps = int(state_dict["_growth_tracker"])
