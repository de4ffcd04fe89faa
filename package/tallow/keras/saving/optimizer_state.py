"""What Keras' files keep of an optimizer: numbered arrays in a fixed order.

    the number of steps, the learning rate unless it follows a schedule, the moving averages of the weights, the
    gradients gathered so far, and what the algorithm keeps for each weight, such as the two moments of Adam

A LossScaleOptimizer puts its own steps and rate, its counter and its scale in front of the inner optimizer's.

Source:  keras/src/optimizers/base_optimizer.py of Keras 3.15, and `build` of each optimizer
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.dtypes import Array
from tallow.errors import CheckpointError
from tallow.keras.optimizers import LossScaleOptimizer, Optimizer
from tallow.optim.moments import scalar
from tallow.tensor import Tensor, wrap

# Takes the next array, of a shape, or gives one: what walks through the state in the order of the file.
Exchange = Callable[[Any], Any]


def is_known(optimizer: Any) -> bool:
    """Whether Keras' files can hold the state."""
    if isinstance(optimizer, LossScaleOptimizer):
        return is_known(optimizer.inner_optimizer)
    return isinstance(optimizer, Optimizer) and optimizer.kept_slots() is not None


def arrays(optimizer: Any, weights: Sequence[Tensor]) -> list[Any]:
    """The state in the order of the file.

    Args:    weights: those the optimizer changes, in the order of the model
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
        yield from (_kept(optimizer.averages.get(weight), weight.shape) for weight in weights)
    if optimizer.gradient_accumulation_steps:
        yield from (_kept(optimizer.gathered.get(weight), weight.shape) for weight in weights)
    for group in optimizer.kept_slots() or ():
        for weight in weights:
            state = optimizer.inner.state.get(weight, {}) if optimizer.inner is not None else {}
            for slot in group:
                found, shape = state.get(slot), optimizer.slot_shape(slot, weight)
                if shape is not None:
                    yield _kept(None if found is None else found.array, shape, optimizer.first_value(slot))
    counted = optimizer.counted(optimizer.iterations)
    yield from (np.float32(counted[name]) for name in optimizer.NUMBERS)


def _kept(array: Array | None, shape: Sequence[int], first: float = 0.0) -> Array:
    if array is None:
        return np.full(tuple(shape), first, np.float32)
    return dtypes.widen(devices.move(array, devices.device("cpu")))


def restore(optimizer: Any, weights: Sequence[Tensor], given: Sequence[Tensor], name: str) -> None:
    """Put the optimizer where the arrays say it was.

    Raises:  CheckpointError for another number of arrays, or other shapes; nothing is changed then
    """
    expected = arrays(optimizer, weights)
    if len(expected) != len(given):
        raise CheckpointError(
            f"{name}: the optimizer has {len(given)} arrays in the file, and {type(optimizer).__name__} has "
            f"{len(expected)}",
            mend="load the model with compile=False, and compile it",
        )
    for index, (own, array) in enumerate(zip(expected, given, strict=True)):
        if np.shape(own) != tuple(array.shape):
            raise CheckpointError(
                f"{name}: optimizer/vars/{index} has shape {tuple(array.shape)}, expected {np.shape(own)}"
            )
    _restore(optimizer, weights, iter(given))


def _restore(optimizer: Any, weights: Sequence[Tensor], given: Iterator[Tensor]) -> None:
    if isinstance(optimizer, LossScaleOptimizer):
        next(given), next(given)
        optimizer.step_counter, optimizer.dynamic_scale = int(next(given)), float(next(given))
        _restore(optimizer.inner_optimizer, weights, given)
        return
    optimizer.calls = int(next(given))
    if not callable(optimizer.set_rate):
        rate = float(next(given))
        if rate != float(np.float32(optimizer.set_rate)):  # else the description has it with all its digits
            optimizer.learning_rate = rate
    if optimizer.use_ema:
        optimizer.averages = {weight: _moved(next(given), weight) for weight in weights}
        if not optimizer.calls:
            optimizer.averages = {}
    if optimizer.gradient_accumulation_steps:
        gathered = {weight: _moved(next(given), weight) for weight in weights}
        is_between = optimizer.calls % optimizer.gradient_accumulation_steps
        optimizer.gathered = gathered if is_between else {}
    states: dict[Tensor, dict[str, Any]] = {weight: {} for weight in weights}
    for group in optimizer.kept_slots() or ():
        for weight in weights:
            for slot in (slot for slot in group if optimizer.slot_shape(slot, weight) is not None):
                states[weight][slot] = wrap(dtypes.cast(_moved(next(given), weight), weight.dtype))
    if optimizer.iterations and optimizer.kept_slots():
        counted = optimizer.counted(optimizer.iterations) | {name: next(given).item() for name in optimizer.NUMBERS}
        steps = {key: wrap(scalar(value)) for key, value in counted.items()}
        for weight, state in states.items():
            optimizer.inner.state[weight] = {**{key: value.clone() for key, value in steps.items()}, **state}


def _moved(array: Tensor, weight: Tensor) -> Array:
    return devices.move(dtypes.widen(array.array).copy(), weight.device)
