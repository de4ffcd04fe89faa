"""An optimizer wrapper with loss scaling, which keeps float16 gradients from underflowing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow import dtypes, optim
from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras.optimizers.optimizer import LearningRate, Optimizer
from tallow.keras.serialization import deserialize_keras_object, serialize_keras_object

OPTIONS = ("inner_optimizer", "initial_scale", "dynamic_growth_steps", "name")


class LossScaleOptimizer(Optimizer):
    """Multiply the loss before the gradients are computed, and divide the gradients before the inner optimizer's step.

    A step with a gradient that is not finite is skipped and halves the scale; `dynamic_growth_steps` steps in a row
    without one double it.

    Raises:  ArgumentError for options that belong to the inner optimizer
    """

    def __init__(
        self,
        inner_optimizer: Optimizer,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
        **options: Any,
    ) -> None:
        if invalid := [key for key, value in options.items() if key not in UNUSED or value != UNUSED[key]]:
            raise ArgumentError(f"LossScaleOptimizer: {invalid[0]}", hint="pass it to the inner optimizer")
        if not isinstance(inner_optimizer, Optimizer):
            raise ArgumentTypeError(f"LossScaleOptimizer: {inner_optimizer!r:.100} is not a Keras optimizer")
        super().__init__(0.0, name=name)
        self.inner_optimizer = inner_optimizer
        self.inner_optimizer.loss_scale_factor = None  # otherwise gradients would be scaled twice
        self.initial_scale = initial_scale
        self.dynamic_growth_steps = dynamic_growth_steps
        self.dynamic_scale = float(initial_scale)
        self.step_counter = 0  # steps since the scale changed or a gradient was not finite

    # --------------------------------------------------------------------------------- delegated to the inner optimizer

    @property
    def built(self) -> bool:
        return self.inner_optimizer.built

    def build(self, variables: Iterable[Tensor]) -> None:
        self.inner_optimizer.build(variables)
        self.inner = self.inner_optimizer.inner

    def _params(self) -> list[Tensor]:
        return self.inner_optimizer._params()

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return self.inner_optimizer.make(params)

    @property
    def iterations(self) -> int:
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self) -> float:
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: LearningRate) -> None:
        self.inner_optimizer.learning_rate = value

    def finalize_variable_values(self, var_list: Iterable[Tensor]) -> None:
        self.inner_optimizer.finalize_variable_values(var_list)

    # --------------------------------------------------------------------------------------------------------- the step

    def scale_loss(self, loss: Tensor) -> Tensor:
        return loss * self.dynamic_scale

    def step(self) -> None:
        params = [param for param in self._params() if param.grad is not None]
        grads = [dtypes.widen(param.grad.array) for param in params]  # type: ignore[union-attr]
        if not all(bool(array_module(grad).isfinite(grad).all()) for grad in grads):
            self.dynamic_scale /= 2
            self.step_counter = 0
            return
        for param, grad in zip(params, grads, strict=True):
            param.grad = wrap(dtypes.cast(grad / self.dynamic_scale, param.dtype))
        self.inner_optimizer.step()
        self.step_counter += 1
        if self.step_counter == self.dynamic_growth_steps:
            self.dynamic_scale *= 2
            self.step_counter = 0

    # ------------------------------------------------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        inner = self.inner_optimizer.state_dict()
        return {"scale": self.dynamic_scale, "counter": self.step_counter, "inner_optimizer": inner}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.inner_optimizer.load_state_dict(state_dict["inner_optimizer"])
        self.dynamic_scale, self.step_counter = float(state_dict["scale"]), int(state_dict["counter"])

    def get_config(self) -> dict[str, Any]:
        config = {name: getattr(self, name) for name in OPTIONS}
        return config | {"inner_optimizer": serialize_keras_object(self.inner_optimizer)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
        inner = config["inner_optimizer"]
        if isinstance(inner, dict):
            inner = deserialize_keras_object(inner, custom_objects)
        return cls(**(config | {"inner_optimizer": inner}))


# Options of the inner optimizer that older files also store here, unused.
UNUSED = {
    "weight_decay": None, "clipnorm": None, "global_clipnorm": None, "clipvalue": None, "use_ema": False,
    "ema_momentum": 0.99, "ema_overwrite_frequency": None, "loss_scale_factor": None,
    "gradient_accumulation_steps": None, "dynamic": True,
}  # fmt: skip
