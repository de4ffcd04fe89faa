"""An optimizer's state as Keras' files store it: numbered arrays in a fixed order.

    the number of steps, the learning rate unless it follows a schedule, the moving averages of the weights, the
    accumulated gradients, and the algorithm's state of each weight, such as the two moments of Adam

For a LossScaleOptimizer, its own steps and rate, its counter and its scale precede the inner optimizer's state. Before
the first step, Keras stores the steps and the rates alone.

Source:  keras/src/optimizers/base_optimizer.py of Keras 3.15, and `build` of each optimizer
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import CheckpointError
from tallow.keras.optimizers import LossScaleOptimizer, Optimizer
from tallow.optim.moments import scalar


def is_known(optimizer: Any) -> bool:
    """Return whether Keras' files can hold the optimizer's state."""
    if isinstance(optimizer, LossScaleOptimizer):
        return is_known(optimizer.inner_optimizer)
    return isinstance(optimizer, Optimizer) and optimizer.slot_groups() is not None


def arrays(optimizer: Any, weights: Sequence[Tensor]) -> list[Any]:
    """Return the state in the order of the file.

    Args:    weights: the weights that the optimizer updates, in the order of the model
    """
    return list(_arrays(optimizer, weights))


def _arrays(optimizer: Any, weights: Sequence[Tensor]) -> Iterator[Any]:
    if isinstance(optimizer, LossScaleOptimizer):
        yield np.int32(0)
        yield np.float32(0)
        yield np.int32(optimizer.step_counter)
        yield np.float32(optimizer.dynamic_scale)
        yield from _arrays(optimizer.inner_optimizer, weights)
        return
    yield np.int32(optimizer.calls)
    if not callable(optimizer.set_rate):
        yield np.float32(optimizer.set_rate)
    if optimizer.use_ema:
        yield from (_to_host(optimizer.averages.get(weight), weight.shape) for weight in weights)
    if optimizer.gradient_accumulation_steps:
        yield from (_to_host(optimizer.accumulated.get(weight), weight.shape) for weight in weights)
    for group in optimizer.slot_groups() or ():
        for weight in weights:
            state = optimizer.inner.state.get(weight, {}) if optimizer.inner is not None else {}
            for slot in group:
                value, shape = state.get(slot), optimizer.slot_shape(slot, weight)
                if shape is not None:
                    yield _to_host(None if value is None else value.array, shape, optimizer.initial_value(slot))
    scalars = optimizer.step_state(optimizer.iterations)
    yield from (np.float32(scalars[name]) for name in optimizer.NUMBERS)


def _to_host(array: Array | None, shape: Sequence[int], default: float = 0.0) -> Array:
    if array is None:
        return np.full(tuple(shape), default, np.float32)
    return dtypes.widen(devices.move(array, devices.device("cpu")))


def restore(optimizer: Any, weights: Sequence[Tensor], saved: Sequence[Tensor], name: str) -> None:
    """Restore the optimizer's state from arrays.

    Raises:  CheckpointError for another number of arrays, or other shapes; then nothing changes
    """
    expected = arrays(optimizer, weights)
    if len(saved) == _untrained_arrays(optimizer) < len(expected) and not saved[0].item():
        _restore_rate(optimizer, saved[-1])
        return
    if len(expected) != len(saved):
        raise CheckpointError(
            f"{name}: the file has {len(saved)} optimizer arrays, {type(optimizer).__name__} has {len(expected)}",
            hint="load the model with compile=False, then call compile",
        )
    for index, (current, array) in enumerate(zip(expected, saved, strict=True)):
        if np.shape(current) != tuple(array.shape):
            raise CheckpointError(
                f"{name}: optimizer/vars/{index} has shape {tuple(array.shape)}, expected {np.shape(current)}"
            )
    _restore(optimizer, weights, iter(saved))


def _untrained_arrays(optimizer: Any) -> int:
    """Return the number of arrays that Keras stores for an optimizer without a step: steps and rates."""
    if isinstance(optimizer, LossScaleOptimizer):
        return 2 + _untrained_arrays(optimizer.inner_optimizer)
    return 1 if callable(optimizer.set_rate) else 2


def _restore_rate(optimizer: Any, value: Tensor) -> None:
    if isinstance(optimizer, LossScaleOptimizer):
        _restore_rate(optimizer.inner_optimizer, value)
    elif not callable(optimizer.set_rate):
        rate = float(value)
        if rate != float(np.float32(optimizer.set_rate)):  # an equal rate is kept, as the config has all its digits
            optimizer.learning_rate = rate


def _restore(optimizer: Any, weights: Sequence[Tensor], saved: Iterator[Tensor]) -> None:
    if isinstance(optimizer, LossScaleOptimizer):
        next(saved), next(saved)
        optimizer.step_counter, optimizer.dynamic_scale = int(next(saved)), float(next(saved))
        _restore(optimizer.inner_optimizer, weights, saved)
        return
    optimizer.calls = int(next(saved))
    if not callable(optimizer.set_rate):
        _restore_rate(optimizer, next(saved))
    if optimizer.use_ema:
        optimizer.averages = {weight: _to_device(next(saved), weight) for weight in weights}
        if not optimizer.calls:
            optimizer.averages = {}
    if optimizer.gradient_accumulation_steps:
        gathered = {weight: _to_device(next(saved), weight) for weight in weights}
        is_between = optimizer.calls % optimizer.gradient_accumulation_steps
        optimizer.accumulated = gathered if is_between else {}
    states: dict[Tensor, dict[str, Any]] = {weight: {} for weight in weights}
    for group in optimizer.slot_groups() or ():
        for weight in weights:
            for slot in (slot for slot in group if optimizer.slot_shape(slot, weight) is not None):
                states[weight][slot] = wrap(dtypes.cast(_to_device(next(saved), weight), weight.dtype))
    if optimizer.iterations and optimizer.slot_groups():
        scalars = optimizer.step_state(optimizer.iterations) | {name: next(saved).item() for name in optimizer.NUMBERS}
        steps = {key: wrap(scalar(value)) for key, value in scalars.items()}
        for weight, state in states.items():
            optimizer.inner.state[weight] = {**{key: value.clone() for key, value in steps.items()}, **state}


def _to_device(array: Tensor, weight: Tensor) -> Array:
    return devices.move(dtypes.widen(array.array).copy(), weight.device)
