"""Optimizers with Keras' names, arguments and defaults; `tallow.optim` and `updates` compute their steps."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar, Unpack

from tallow import optim
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.optimizers import updates
from tallow.keras.optimizers.optimizer import LearningRate, Optimizer, Options


class SGD(Optimizer):
    """Stochastic gradient descent with optional momentum; see `updates.SGD`."""

    ARGUMENTS = ("momentum", "nesterov")

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        if not 0 <= momentum <= 1:
            raise ArgumentError(f"SGD: momentum must be from 0 to 1, not {momentum}")
        self.momentum = momentum
        self.nesterov = nesterov

    def slot_groups(self) -> tuple[tuple[str, ...], ...]:
        return (("momentum_buffer",),) if self.momentum else ()

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        nesterov = self.nesterov and self.momentum > 0  # Keras accepts nesterov without momentum
        return updates.SGD(params, self.learning_rate, self.momentum, nesterov=nesterov)


class RMSprop(Optimizer):
    """Divide the gradient by the root of a moving average of its square; see `updates.RMSprop`."""

    ARGUMENTS = ("rho", "momentum", "epsilon", "centered")

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho = rho
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered

    def slot_groups(self) -> tuple[tuple[str, ...], ...]:
        slots = {"square_avg": True, "momentum_buffer": self.momentum > 0, "grad_avg": self.centered}
        return tuple((name,) for name, is_kept in slots.items() if is_kept)

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return updates.RMSprop(
            params, self.learning_rate, self.rho, self.epsilon, momentum=self.momentum, centered=self.centered
        )


class Adagrad(Optimizer):
    """Divide the gradient by the root of the sum of all squared gradients; see `updates.Adagrad`."""

    ARGUMENTS = ("initial_accumulator_value", "epsilon")
    SLOTS = (("sum",),)

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon

    def initial_value(self, slot: str) -> float:
        return self.initial_accumulator_value

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        start = self.initial_accumulator_value
        return updates.Adagrad(params, self.learning_rate, initial_accumulator_value=start, eps=self.epsilon)


class Adadelta(Optimizer):
    """Steps in the units of the parameter; see `tallow.optim.Adadelta`."""

    ARGUMENTS = ("rho", "epsilon")
    SLOTS = (("square_avg", "acc_delta"),)

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-7,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho = rho
        self.epsilon = epsilon

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return optim.Adadelta(params, self.learning_rate, self.rho, self.epsilon)


class _Moments(Optimizer):
    """Base class of optimizers with moving averages of the gradient (beta_1) and of its magnitude (beta_2)."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("beta_1", "beta_2", "epsilon")
    SLOTS: ClassVar[tuple[tuple[str, ...], ...]] = (("exp_avg", "exp_avg_sq"),)

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    @property
    def betas(self) -> tuple[float, float]:
        """(beta_1, beta_2)."""
        return self.beta_1, self.beta_2


class Adam(_Moments):
    """Steps from moving averages of the gradient and of its square; see `updates.Adam`."""

    ARGUMENTS = (*_Moments.ARGUMENTS, "amsgrad")

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **options)
        self.amsgrad = amsgrad

    def slot_groups(self) -> tuple[tuple[str, ...], ...]:
        return (*self.SLOTS, ("max_exp_avg_sq",)) if self.amsgrad else self.SLOTS

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return updates.Adam(params, self.learning_rate, self.betas, self.epsilon, amsgrad=self.amsgrad)


class AdamW(Adam):
    """Adam with weight decay, 0.004 by default.

    Source:  Loshchilov & Hutter 2017, arXiv:1711.05101
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay=weight_decay, **options)


class Adamax(_Moments):
    """Adam with a decaying maximum of the gradient instead of the root mean square; see `updates.Adamax`."""

    SLOTS = (("exp_avg", "exp_inf"),)

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return updates.Adamax(params, self.learning_rate, self.betas, self.epsilon)


class Nadam(_Moments):
    """Adam with Nesterov momentum: `tallow.optim.NAdam` with a momentum_decay of 1."""

    NUMBERS = ("mu_product",)

    def step_state(self, steps: int) -> dict[str, float]:
        factors = (
            self.beta_1 * (1 - 0.5 * 0.96**step) for step in range(1, min(steps, 10_000) + 1)
        )  # the product is 0 by step 10,000
        return {"step": float(steps), "mu_product": prod(factors)}

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return optim.NAdam(params, self.learning_rate, self.betas, self.epsilon, momentum_decay=1.0)


class Lion(Optimizer):
    """Steps of equal size along the sign of a momentum; see `tallow.optim.Lion`."""

    ARGUMENTS = ("beta_1", "beta_2")
    SLOTS = (("exp_avg",),)

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1 = beta_1
        self.beta_2 = beta_2

    def step_state(self, steps: int) -> dict[str, float]:
        return {}

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return optim.Lion(params, self.learning_rate, (self.beta_1, self.beta_2))
