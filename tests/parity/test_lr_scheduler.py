"""Schedulers compared with PyTorch: equal learning rates and momenta for fifty steps, and transferable states."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

EPOCHS = 50
RTOL = 1e-12
Make = Callable[[Any, Any], Any]  # functions of the module of schedulers and an optimizer


class Halving:
    """A factor with state of its own."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, epoch: float) -> float:
        self.calls += 1
        return 0.5**self.calls


class Power:
    """A function with its parameter in an attribute."""

    def __init__(self) -> None:
        self.base = 0.9

    def __call__(self, cycle: float) -> float:
        return self.base**cycle


def sequence(s: Any, o: Any) -> Any:
    parts = [s.LinearLR(o, total_iters=7), s.CosineAnnealingLR(o, 20), s.StepLR(o, 4), s.ExponentialLR(o, 0.9)]
    return s.SequentialLR(o, parts, [7, 20, 31])


def nested(s: Any, o: Any) -> Any:
    inner = s.SequentialLR(o, [s.ConstantLR(o, total_iters=2), s.PolynomialLR(o, 5)], [4])
    return s.SequentialLR(o, [inner, s.LambdaLR(o, lambda epoch: 1 / (1 + epoch))], [15])


SCHEDULERS: dict[str, Make] = {
    "StepLR": lambda s, o: s.StepLR(o, 7),
    "StepLR-gamma": lambda s, o: s.StepLR(o, step_size=3, gamma=0.8),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [5, 20, 20, 33], gamma=0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o),
    "ConstantLR-options": lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=12),
    "LinearLR": lambda s, o: s.LinearLR(o),
    "LinearLR-down": lambda s, o: s.LinearLR(o, start_factor=1.0, end_factor=0.1, total_iters=40),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.93),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, total_iters=30, power=2.0),
    "PolynomialLR-defaults": lambda s, o: s.PolynomialLR(o),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 50),
    "CosineAnnealingLR-up-again": lambda s, o: s.CosineAnnealingLR(o, T_max=9, eta_min=0.01),
    "WarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 8),
    "WarmRestarts-longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=0.01),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=60),
    "OneCycleLR-whole": lambda s, o: s.OneCycleLR(o, max_lr=[0.5, 0.1], epochs=10, steps_per_epoch=5),
    "OneCycleLR-options": lambda s, o: s.OneCycleLR(
        o, 0.5, total_steps=55, pct_start=0.2, anneal_strategy="linear", base_momentum=0.7, max_momentum=0.8,
        div_factor=10.0, final_div_factor=100.0, three_phase=True,
    ),
    "OneCycleLR-no-momentum": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=55, cycle_momentum=False),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1, step_size_up=6),
    "CyclicLR-triangular2": lambda s, o: s.CyclicLR(
        o, base_lr=[0.01, 0.02], max_lr=[0.1, 0.3], step_size_up=4, step_size_down=9, mode="triangular2"
    ),
    "CyclicLR-exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, step_size_up=5, mode="exp_range", gamma=0.97),
    "CyclicLR-function": lambda s, o: s.CyclicLR(
        o, 0.01, 0.1, step_size_up=5, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations", cycle_momentum=False
    ),
    "CyclicLR-object": lambda s, o: s.CyclicLR(o, 0.01, 0.1, step_size_up=5, scale_fn=Power(), cycle_momentum=False),
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda epoch: 0.9**epoch, lambda epoch: 1 / (1 + epoch)]),
    "LambdaLR-object": lambda s, o: s.LambdaLR(o, Halving()),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.9 if epoch % 2 else 1.05),
    "SequentialLR": sequence,
    "SequentialLR-nested": nested,
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.LinearLR(o, total_iters=9), s.ExponentialLR(o, 0.95)]),
}  # fmt: skip

METRICS = [5, 4, 3, 3, 3, 3, 3, 2.9999, 2.9999, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1.5, 1.5, 1.5, 1.5, float("nan"), 0] * 3
PLATEAUS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "patient": {"patience": 2, "factor": 0.5},
    "absolute": {"patience": 1, "threshold": 0.5, "threshold_mode": "abs", "cooldown": 3},
    "max": {"mode": "max", "patience": 2, "min_lr": 0.001},
    "max-absolute": {"mode": "max", "patience": 2, "threshold_mode": "abs", "min_lr": [0.01, 0.0001]},
    "eps": {"patience": 0, "eps": 0.01},
}


def optimizer_of(module: Any, kind: str = "SGD") -> Any:
    groups = [{"params": [module.zeros(2).requires_grad_()], "lr": lr} for lr in (0.2, 0.03)]
    options = {"momentum": 0.5} if kind == "SGD" else {}
    return getattr(module.optim, kind)(groups, lr=0.1, **options)


def settings(optimizer: Any) -> list[float]:
    """Return the learning rate and the momentum of each group."""
    groups = optimizer.param_groups
    momenta = [g["betas"][0] if "betas" in g else g["momentum"] for g in groups]
    return [float(v) for v in [*(g["lr"] for g in groups), *momenta]]


def go(optimizer: Any, scheduler: Any, *arguments: Any) -> list[float]:
    optimizer.step()
    scheduler.step(*arguments)
    return settings(optimizer)


@pytest.mark.filterwarnings("ignore:Detected call")  # a sequence in a sequence takes two initial steps
@pytest.mark.filterwarnings("ignore:The epoch parameter")  # PyTorch's SequentialLR warns about its own calls
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_fifty_steps_are_pytorchs(name: str, kind: str) -> None:
    mine, theirs = (optimizer_of(m, kind) for m in (tl, torch))
    ours, reference = (SCHEDULERS[name](m.optim.lr_scheduler, o) for m, o in ((tl, mine), (torch, theirs)))
    assert settings(mine) == pytest.approx(settings(theirs), rel=RTOL)
    for epoch in range(EPOCHS):
        assert go(mine, ours) == pytest.approx(go(theirs, reference), rel=RTOL, abs=1e-16), f"epoch {epoch}"
        assert ours.get_last_lr() == pytest.approx(reference.get_last_lr(), rel=RTOL, abs=1e-16)


@pytest.mark.parametrize("options", PLATEAUS.values(), ids=PLATEAUS)
def test_plateaus_are_pytorchs(options: dict[str, Any]) -> None:
    mine, theirs = (optimizer_of(m) for m in (tl, torch))
    ours, reference = (m.optim.lr_scheduler.ReduceLROnPlateau(o, **options) for m, o in ((tl, mine), (torch, theirs)))
    for metric in METRICS:
        assert go(mine, ours, tl.tensor(metric)) == go(theirs, reference, torch.tensor(metric))
        assert (ours.best, ours.num_bad_epochs) == (reference.best, reference.num_bad_epochs)
    assert settings(mine) != settings(optimizer_of(tl))


def restore(name: str, optimizer: Any, scheduler: Any) -> tuple[Any, Any]:
    """Return another optimizer and scheduler, with the states of these."""
    other = optimizer_of(tl)
    copy = SCHEDULERS[name](tl.optim.lr_scheduler, other)
    copy.load_state_dict(scheduler.state_dict())
    other.load_state_dict(optimizer.state_dict())
    return other, copy


@pytest.mark.filterwarnings("ignore:Detected call")
@pytest.mark.parametrize("name", SCHEDULERS)
def test_state_dict_round_trip_is_bit_equal(name: str) -> None:
    uninterrupted = optimizer_of(tl)
    scheduler = SCHEDULERS[name](tl.optim.lr_scheduler, uninterrupted)
    for _ in range(13):
        go(uninterrupted, scheduler)
    other, copy = restore(name, uninterrupted, scheduler)
    for _ in range(EPOCHS - 13):
        assert go(other, copy) == go(uninterrupted, scheduler)


@pytest.mark.filterwarnings("ignore:Detected call")
@pytest.mark.filterwarnings("ignore:The epoch parameter")
@pytest.mark.parametrize("name", SCHEDULERS)
def test_continues_from_pytorchs_state(name: str) -> None:
    mine, theirs = (optimizer_of(m) for m in (tl, torch))
    ours, reference = (SCHEDULERS[name](m.optim.lr_scheduler, o) for m, o in ((tl, mine), (torch, theirs)))
    for _ in range(13):
        go(theirs, reference)
    ours.load_state_dict(reference.state_dict())
    mine.load_state_dict(theirs.state_dict())
    for _ in range(20):
        assert go(mine, ours) == pytest.approx(go(theirs, reference), rel=RTOL)


@pytest.mark.parametrize("epochs", [[0, 1, 5, 5, 12, 3], [0.5, 1.25, 3.75, 8.5, 21.25]])
@pytest.mark.parametrize("multiple", [1, 2])
def test_warm_restarts_accept_fractions_of_epochs(epochs: list[float], multiple: int) -> None:
    results = []
    for module in (tl, torch):
        optimizer = optimizer_of(module)
        scheduler = module.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 4, multiple)
        results.append([go(optimizer, scheduler, epoch) for epoch in epochs])
    for mine, theirs in zip(*results, strict=True):
        assert mine == pytest.approx(theirs, rel=RTOL)


@pytest.mark.filterwarnings("ignore:The epoch parameter")
@pytest.mark.parametrize("name", ["StepLR", "MultiStepLR", "LinearLR", "ConstantLR", "PolynomialLR", "ExponentialLR"])
def test_closed_form_of_an_epoch(name: str) -> None:
    mine, theirs = (optimizer_of(m) for m in (tl, torch))
    ours, reference = (SCHEDULERS[name](m.optim.lr_scheduler, o) for m, o in ((tl, mine), (torch, theirs)))
    for epoch in (3, 20, 0, 49):
        assert go(mine, ours, epoch) == pytest.approx(go(theirs, reference, epoch), rel=RTOL)


def test_learning_rates_may_be_tensors() -> None:
    results = []
    for module in (tl, torch):
        rate = module.tensor(0.5)
        optimizer = module.optim.SGD([module.zeros(2).requires_grad_()], lr=rate)
        scheduler = module.optim.lr_scheduler.StepLR(optimizer, 2)
        rates = []
        for _ in range(5):
            optimizer.step()
            scheduler.step()
            rates.append(rate.item())
        assert optimizer.param_groups[0]["lr"] is rate
        results.append(rates)
    assert results[0] == pytest.approx(results[1], rel=1e-6)


def test_stepping_before_the_optimizer_warns() -> None:
    for module in (torch, tl):
        scheduler = module.optim.lr_scheduler.StepLR(optimizer_of(module), 2)
        with pytest.warns(UserWarning, match=r"lr_scheduler.step\(\)` before `optimizer.step"):
            scheduler.step()


NAMES = [n for n in torch.optim.lr_scheduler.__all__ if n != "LRScheduler"]


def test_all_of_pytorchs_schedulers_exist() -> None:
    assert set(torch.optim.lr_scheduler.__all__) == set(tl.optim.lr_scheduler.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_constructor_takes_pytorchs_arguments_in_order(name: str) -> None:
    mine, theirs = (inspect.signature(getattr(m.optim.lr_scheduler, name)).parameters for m in (tl, torch))
    assert [(p.name, p.default) for p in mine.values()] == [(p.name, p.default) for p in theirs.values()]


REFUSED: dict[str, Make] = {
    "no-optimizer": lambda s, o: s.StepLR(o.param_groups, 2),
    "no-optimizer-plateau": lambda s, o: s.ReduceLROnPlateau(3),
    "no-initial_lr": lambda s, o: s.StepLR(o, 2, last_epoch=4),
    "lambdas": lambda s, o: s.LambdaLR(o, [abs]),
    "no-function": lambda s, o: s.MultiplicativeLR(o, 0.5),
    "constant": lambda s, o: s.ConstantLR(o, factor=1.5),
    "linear-start": lambda s, o: s.LinearLR(o, start_factor=0),
    "linear-end": lambda s, o: s.LinearLR(o, end_factor=1.5),
    "restarts-0": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "restarts-mult": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0),
    "restarts-eta": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, eta_min="0"),
    "restarts-epoch": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1),
    "one-cycle-steps": lambda s, o: s.OneCycleLR(o, 0.1),
    "one-cycle-no-steps": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=0),
    "one-cycle-epochs": lambda s, o: s.OneCycleLR(o, 0.1, epochs=-1, steps_per_epoch=2),
    "one-cycle-start": lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=1.5),
    "one-cycle-shape": lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="cubic"),
    "one-cycle-lrs": lambda s, o: s.OneCycleLR(o, [0.1], 10),
    "one-cycle-over": lambda s, o: [
        s_.step() for s_ in [s.OneCycleLR(o, 0.1, 3)] for _ in [o.step()] for _ in range(4)
    ],
    "cyclic-mode": lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="square"),
    "plateau-factor": lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    "plateau-mode": lambda s, o: s.ReduceLROnPlateau(o, mode="mean"),
    "plateau-threshold": lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="x"),
    "plateau-lrs": lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]),
    "sequence-empty": lambda s, o: s.SequentialLR(o, [], []),
    "sequence-milestones": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 2)], [3]),
    "sequence-plateau": lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
    "sequence-of-numbers": lambda s, o: s.SequentialLR(o, [3], []),
    "chain-empty": lambda s, o: s.ChainedScheduler([]),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_errors_as_in_pytorch(call: Make) -> None:
    errors = []
    for module in (torch, tl):
        with pytest.raises(Exception) as caught:
            call(module.optim.lr_scheduler, optimizer_of(module))
        errors.append(caught.value)
    assert isinstance(errors[1], tl.errors.TallowError)
    assert isinstance(errors[1], type(errors[0])), errors


def test_momentum_cycles_need_a_momentum() -> None:
    for module in (torch, tl):
        optimizer = module.optim.Adagrad([module.zeros(2).requires_grad_()])
        for make in (
            lambda s, o: s.CyclicLR(o, 0.1, 0.2),
            lambda s, o: s.OneCycleLR(o, 0.1, 10),
        ):
            with pytest.raises(ValueError, match="must support momentum or beta1"):
                make(module.optim.lr_scheduler, optimizer)
