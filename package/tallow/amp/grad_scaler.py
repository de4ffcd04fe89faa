"""GradScaler: float16 gradients that would vanish are kept by scaling the loss."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from tallow import cuda
from tallow.autograd.graph import note_write
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError, CheckpointError, GraphError
from tallow.ops.together import alike, scale_all
from tallow.optim.loaded import number_fault
from tallow.tensor import Tensor

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """Scales the loss up before backward and the gradients down before the step; skips a step that overflowed.

        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)                        # only to clip gradients, say
        scaler.step(optimizer)
        scaler.update()

    The scale shrinks by `backoff_factor` after gradients with an infinity or NaN, and grows by `growth_factor` after
    `growth_interval` steps without.

    Args:    as torch.amp.GradScaler
    Raises:  GraphError where PyTorch raises RuntimeError: unscale_ or step twice before update. Where `device` is
        "cuda" and there is no GPU there is a warning, and the scaler does nothing.
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
            warnings.warn("GradScaler: there is no GPU; disabled", stacklevel=2)
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
        self._stage: dict[int, str] = {}  # of each optimizer since the last update, by its id
        # Of each of them, whether a gradient was not finite: at first as numbers on the gradients' devices.
        self._found: dict[int, list[Array] | bool] = {}

    def is_enabled(self) -> bool:
        return self._enabled

    def get_scale(self) -> float:
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def scale(self, outputs: Any) -> Any:
        """The loss, or every tensor in a list of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            scaled = [self.scale(item) for item in outputs]
            return tuple(scaled) if isinstance(outputs, tuple) else scaled
        raise ArgumentError(f"GradScaler.scale: expected a Tensor or a list of them, got {type(outputs).__name__}")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, in place, and see whether they are finite.

        Raises:  GraphError when it was done already since the last `update`
        """
        if not self._enabled:
            return
        stage = self._stage.get(id(optimizer), READY)
        if stage is UNSCALED:
            raise GraphError("unscale_() has already been called on this optimizer since the last update()")
        if stage is STEPPED:
            raise GraphError("unscale_() is being called after step()")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        found: list[Array] = []
        for arrays in alike([grad.array for grad in grads]):
            found.append(array_module(arrays[0]).zeros((), np.float32))
            scale_all(arrays, 1 / self._scale, found[-1])
        for grad in grads:
            note_write(grad)
        self._found[id(optimizer)] = found
        self._stage[id(optimizer)] = UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(*args, **kwargs)` with unscaled gradients; nothing, if one of them is not finite.

        Raises:  GraphError when it was done already since the last `update`; ArgumentError for a closure
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise ArgumentError("GradScaler.step: closures are not supported", mend="call optimizer.step(closure)")
        stage = self._stage.get(id(optimizer), READY)
        if stage is STEPPED:
            raise GraphError("step() has already been called since the last update()")
        if stage is READY:
            self.unscale_(optimizer)
        result = None if self._overflowed(id(optimizer)) else optimizer.step(*args, **kwargs)
        self._stage[id(optimizer)] = STEPPED
        return result

    def _overflowed(self, optimizer: int) -> bool:
        """Whether the optimizer's gradients overflowed; the device is waited for once."""
        found = self._found[optimizer]
        if not isinstance(found, bool):
            found = self._found[optimizer] = any(map(bool, found))
        return found

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Shrink or grow the scale after the steps since the last update, or set it.

        Raises:  GraphError when there was no step and no `unscale_`
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found:
            raise GraphError("no inf checks were recorded prior to update()", mend="call step(optimizer) first")
        elif any(map(self._overflowed, self._found)):
            self._scale *= self._backoff_factor
            self._good_steps = 0
        else:
            self._good_steps += 1
            if self._good_steps == self._growth_interval:
                self._scale *= self._growth_factor
                self._good_steps = 0
        self._stage.clear()
        self._found.clear()

    def _check_state(self, state_dict: dict[str, Any]) -> None:
        """Raises:  CheckpointError with all that is missing or cannot be gone on with"""
        own = self.state_dict()
        problems = [f"  missing  {name}" for name in own if name not in state_dict]
        for name in own.keys() & state_dict.keys():
            value, is_count = state_dict[name], isinstance(own[name], int)
            if wrong := number_fault(value):
                problems.append(f"  {name} {wrong}")
            elif (is_count and int(value) != value) or not value >= (0 if name == "_growth_tracker" else 1e-300):
                problems.append(f"  {name} is {value!r:.80}")
        if problems:
            raise CheckpointError("it is not the state of a GradScaler\n" + "\n".join(sorted(problems)))

    def state_dict(self) -> dict[str, Any]:
        """PyTorch's: {} for a scaler that does nothing."""
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
        if not self._enabled:
            return
        if not state_dict:
            raise GraphError(
                "GradScaler: the state dict is empty", mend="it may have been saved from one with enabled=False"
            )
        self._check_state(state_dict)
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._good_steps = int(state_dict["_growth_tracker"])
