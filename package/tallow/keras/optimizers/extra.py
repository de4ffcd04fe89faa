"""Optimizers of Keras that PyTorch lacks, with their arguments and defaults; `extra_updates` computes their steps."""

from __future__ import annotations

from typing import Any, Unpack

from tallow import optim
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.optimizers import extra_updates
from tallow.keras.optimizers.algorithms import _Moments
from tallow.keras.optimizers.optimizer import LearningRate, Optimizer, Options


class Ftrl(Optimizer):
    """Follow the regularized leader, for sparse models; see `extra_updates.Ftrl`.

    Raises:  ArgumentError for a positive `learning_rate_power` or a negative strength
    """

    STRENGTHS = (
        "initial_accumulator_value", "l1_regularization_strength", "l2_regularization_strength",
        "l2_shrinkage_regularization_strength",
    )  # fmt: skip
    ARGUMENTS = ("learning_rate_power", *STRENGTHS, "beta")
    SLOTS = (("accumulator", "linear"),)

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        if learning_rate_power > 0:
            raise ArgumentError(f"Ftrl: learning_rate_power must not be positive, got {learning_rate_power}")
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta
        for name in self.STRENGTHS:
            if getattr(self, name) < 0:
                raise ArgumentError(f"Ftrl: {name} must not be negative, got {getattr(self, name)}")

    def initial_value(self, slot: str) -> float:
        return self.initial_accumulator_value if slot == "accumulator" else 0.0

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return extra_updates.Ftrl(
            params,
            lr=self.learning_rate,
            power=self.learning_rate_power,
            initial_accumulator_value=self.initial_accumulator_value,
            l1=self.l1_regularization_strength,
            l2=self.l2_regularization_strength,
            shrinkage=self.l2_shrinkage_regularization_strength,
            beta=self.beta,
        )


class Lamb(_Moments):
    """Adam with steps in proportion to the norm of each weight; see `extra_updates.Lamb`."""

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return extra_updates.Lamb(params, lr=self.learning_rate, betas=self.betas, eps=self.epsilon)


class Adafactor(Optimizer):
    """Adam with factored second moments, which need little memory; see `extra_updates.Adafactor`.

    Args:    relative_step: limit the rate to 1 / √step; ignored with a schedule.
    """

    ARGUMENTS = ("beta_2_decay", "epsilon_1", "epsilon_2", "clip_threshold", "relative_step")
    SLOTS = (("row", "column", "velocity"),)

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_2_decay: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        relative_step: bool = True,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_2_decay = beta_2_decay
        self.epsilon_1 = epsilon_1
        self.epsilon_2 = epsilon_2
        self.clip_threshold = clip_threshold
        self.relative_step = relative_step

    def slot_shape(self, slot: str, weight: Tensor) -> tuple[int, ...] | None:
        shape = tuple(weight.shape)
        if slot == "velocity":
            return shape
        if len(shape) < 2:
            return ()  # Keras' files store an unused scalar
        return shape[:-1] if slot == "row" else (*shape[:-2], shape[-1])

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        return extra_updates.Adafactor(
            params,
            lr=self.learning_rate,
            beta_2_decay=self.beta_2_decay,
            eps1=self.epsilon_1,
            eps2=self.epsilon_2,
            clip_threshold=self.clip_threshold,
            relative_step=self.relative_step and not callable(self.set_rate),
        )


class ScheduleFreeAdamW(Optimizer):
    """Adam that averages the weights instead of decaying the learning rate; see `extra_updates.ScheduleFreeAdamW`."""

    ARGUMENTS = ("beta_1", "beta_2", "epsilon", "warmup_steps")
    SLOTS = (("momentum", "velocity"),)

    def __init__(
        self,
        learning_rate: LearningRate = 0.0025,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        warmup_steps: int = 0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.warmup_steps = warmup_steps

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        betas = (self.beta_1, self.beta_2)
        return extra_updates.ScheduleFreeAdamW(
            params, lr=self.learning_rate, betas=betas, eps=self.epsilon, warmup_steps=self.warmup_steps
        )


class Muon(Optimizer):
    """Steps along nearly orthogonal matrices; see `extra_updates.Muon`.

    Args:
        exclude_embeddings: update the weights of Embedding layers with Adam.
        exclude_layers: not supported, because weights do not know their layers; only an empty list is accepted.
        adam_weight_decay: `weight_decay` of the weights that Adam updates.
        rms_rate: scales the step to a size that does not depend on the shape; None disables it.
    """

    ARGUMENTS = (
        "adam_beta_1", "adam_beta_2", "adam_weight_decay", "epsilon", "exclude_layers", "exclude_embeddings", "muon_a",
        "muon_b", "muon_c", "adam_lr_ratio", "momentum", "ns_steps", "nesterov", "rms_rate",
    )  # fmt: skip
    SLOTS = (("momentum", "velocity"),)

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        adam_beta_1: float = 0.9,
        adam_beta_2: float = 0.999,
        adam_weight_decay: float | None = 0.004,
        epsilon: float = 1e-7,
        weight_decay: float | None = 0.004,
        exclude_layers: Any = None,
        exclude_embeddings: bool = True,
        muon_a: float = 3.4445,
        muon_b: float = -4.7750,
        muon_c: float = 2.0315,
        adam_lr_ratio: float = 1,
        momentum: float = 0.95,
        ns_steps: int = 5,
        nesterov: bool = True,
        rms_rate: float | None = 0.2,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **options)
        if exclude_layers:
            raise ArgumentError(
                "Muon: exclude_layers is not supported", hint="use two optimizers, or remove exclude_layers"
            )
        self.adam_beta_1, self.adam_beta_2 = adam_beta_1, adam_beta_2
        self.adam_weight_decay = adam_weight_decay
        self.epsilon = epsilon
        self.exclude_layers: list[str] = []
        self.exclude_embeddings = exclude_embeddings
        self.muon_a, self.muon_b, self.muon_c = muon_a, muon_b, muon_c
        self.adam_lr_ratio = adam_lr_ratio
        self.momentum = momentum
        self.ns_steps = ns_steps
        self.nesterov = nesterov
        self.rms_rate = rms_rate

    def is_adam(self, weight: Any) -> bool:
        """Return whether Adam updates this weight."""
        is_embedding = self.exclude_embeddings and "embedding" in str(getattr(weight, "name", ""))
        return len(weight.shape) != 2 or is_embedding

    def decay_of(self, param: Tensor) -> float | None:
        return self.adam_weight_decay if self.is_adam(param) else self.weight_decay

    def slot_shape(self, slot: str, weight: Tensor) -> tuple[int, ...] | None:
        return tuple(weight.shape) if slot == "momentum" or self.is_adam(weight) else None

    def make(self, params: list[Tensor]) -> optim.Optimizer:
        groups = [
            {"params": [param for param in params if self.is_adam(param) is is_adam], "is_adam": is_adam}
            for is_adam in (False, True)
        ]
        return extra_updates.Muon(
            [group for group in groups if group["params"]],
            lr=self.learning_rate,
            betas=(self.adam_beta_1, self.adam_beta_2),
            eps=self.epsilon,
            adam_lr_ratio=self.adam_lr_ratio,
            momentum=self.momentum,
            nesterov=self.nesterov,
            ns_steps=self.ns_steps,
            coefficients=(self.muon_a, self.muon_b, self.muon_c),
            rms_rate=self.rms_rate,
            is_adam=True,
        )
