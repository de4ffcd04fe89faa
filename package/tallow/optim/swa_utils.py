"""Averages of a model's weights during training, as torch.optim.swa_utils.

Source:  Izmailov et al. 2018, arXiv:1803.05407; exponential averages: Polyak & Juditsky 1992
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from tallow.autograd import no_grad
from tallow.core.creation import tensor
from tallow.core.tensor import Tensor
from tallow.devices import device as device_class
from tallow.dtypes import int64
from tallow.errors import ArgumentError
from tallow.lazy_names import names_of
from tallow.nn.channel_normalization import _BatchNorm
from tallow.nn.module import Module
from tallow.optim.lr_scheduler.scheduler import LRScheduler, per_group, values_of
from tallow.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[Any, Any, Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return a function for the exponential moving average: decay · average + (1 - decay) · current."""
    _check_decay(decay)
    return lambda average, current, num_averaged: decay * average + (1 - decay) * current


def get_swa_avg_fn() -> Average:
    """Return a function for the running mean: average + (current - average) / (number + 1)."""
    return lambda average, current, num_averaged: average + (current - average) / (num_averaged + 1)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Return a function like `get_ema_avg_fn`'s for lists of tensors, in place."""
    return _over_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """Return a function like `get_swa_avg_fn`'s for lists of tensors, in place."""
    return _over_lists(get_swa_avg_fn())


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ArgumentError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _over_lists(average: Average) -> Averages:
    def update(averages: Any, currents: Any, num_averaged: Any) -> None:
        with no_grad():
            for target, current in zip(averages, currents, strict=True):
                target.copy_(average(target, current, num_averaged))

    return update


class AveragedModel(Module):
    """A copy of a model, in the attribute `module`, whose parameters are averages of the model's over time.

    Args:
        model: is copied; no reference is kept.
        device: the device of the copy; by default the model's.
        avg_fn: (average, current, number of averaged) -> the new average; by default the running mean.
        multi_avg_fn: the same for lists of tensors, in place.
        use_buffers: also average the buffers, and round those of integers towards zero; otherwise they are copied from
            the model.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("AveragedModel: pass avg_fn or multi_avg_fn, not both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device_class(device))
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the model's current parameters to the average."""
        averages, sources = self._tensors_to_average(self.module), self._tensors_to_average(model)
        currents = [t.detach().to(device=o.device) for o, t in zip(averages, sources, strict=True)]
        with no_grad():
            if int(self.n_averaged) == 0:
                for average, current in zip(averages, currents, strict=True):
                    average.copy_(current)
            else:
                average_all = self.multi_avg_fn or _over_lists(self.avg_fn or get_swa_avg_fn())
                average_all([t.detach() for t in averages], currents, self.n_averaged)
            if not self.use_buffers:
                for buffer, last in zip(self.module.buffers(), model.buffers(), strict=True):
                    buffer.copy_(last)
            self.n_averaged += 1

    def _tensors_to_average(self, model: Module) -> list[Tensor]:
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]


class SWALR(LRScheduler):
    """Anneal from the current learning rate to `swa_lr` in `anneal_epochs`, then keep it constant.

    Args:    as torch.optim.swa_utils.SWALR; anneal_strategy: "cos" or "linear"
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ArgumentError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, lr in zip(optimizer.param_groups, per_group("swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = lr
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _swa_weight(self, step: int) -> float:
        """Return the weight of swa_lr at a step; the previous learning rate has the remaining weight."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        previous, current = self._swa_weight(step - 1), self._swa_weight(step)
        lrs = zip(values_of(self.optimizer, "lr"), values_of(self.optimizer, "swa_lr"), strict=True)
        starts = [(swa if previous == 1 else (lr - swa * previous) / (1 - previous), swa) for lr, swa in lrs]
        return [swa * current + start * (1 - current) for start, swa in starts]


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Set the running statistics of all BatchNorm modules to those of the data, by one pass over it.

    Args:    loader: yields batches, or tuples and lists whose first item is the batch
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta, was_training = [m.momentum for m in norms], model.training
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # cumulative mean over all batches
    model.train()
    with no_grad():
        for batch in loader:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            model(x if device is None else x.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(was_training)


__getattr__, __dir__ = names_of(__name__)
