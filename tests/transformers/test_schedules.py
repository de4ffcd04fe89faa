"""Learning rate schedules equal those of transformers at every step."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transformers.both import both

import tallow as tl
import tallow.transformers as mine
from tallow.errors import ArgumentError

SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("get_constant_schedule", {}),
    ("get_constant_schedule_with_warmup", {"num_warmup_steps": 3}),
    ("get_linear_schedule_with_warmup", {"num_warmup_steps": 3, "num_training_steps": 11}),
    ("get_linear_schedule_with_warmup", {"num_warmup_steps": 0, "num_training_steps": 7}),
    ("get_cosine_schedule_with_warmup", {"num_warmup_steps": 3, "num_training_steps": 11}),
    ("get_cosine_schedule_with_warmup", {"num_warmup_steps": 0, "num_training_steps": 9, "num_cycles": 1.5}),
    ("get_cosine_with_hard_restarts_schedule_with_warmup", {"num_warmup_steps": 2, "num_training_steps": 12}),
    (
        "get_cosine_with_hard_restarts_schedule_with_warmup",
        {"num_warmup_steps": 2, "num_training_steps": 12, "num_cycles": 3},
    ),
    ("get_polynomial_decay_schedule_with_warmup", {"num_warmup_steps": 2, "num_training_steps": 9}),
    (
        "get_polynomial_decay_schedule_with_warmup",
        {"num_warmup_steps": 2, "num_training_steps": 9, "power": 2.0, "lr_end": 1e-3},
    ),
    ("get_inverse_sqrt_schedule", {"num_warmup_steps": 3}),
    ("get_inverse_sqrt_schedule", {"num_warmup_steps": 0}),
    ("get_inverse_sqrt_schedule", {"num_warmup_steps": 2, "timescale": 5}),
    (
        "get_cosine_with_min_lr_schedule_with_warmup",
        {"num_warmup_steps": 2, "num_training_steps": 9, "min_lr": 2e-3},
    ),
    (
        "get_cosine_with_min_lr_schedule_with_warmup",
        {"num_warmup_steps": 2, "num_training_steps": 9, "min_lr_rate": 0.3},
    ),
    ("get_wsd_schedule", {"num_warmup_steps": 2, "num_decay_steps": 4, "num_training_steps": 12}),
    (
        "get_wsd_schedule",
        {"num_warmup_steps": 3, "num_decay_steps": 4, "num_stable_steps": 2, "warmup_type": "cosine"}
        | {"decay_type": "1-sqrt", "min_lr_ratio": 0.1},
    ),
    (
        "get_wsd_schedule",
        {"num_warmup_steps": 3, "num_decay_steps": 4, "num_training_steps": 9, "warmup_type": "1-sqrt"}
        | {"decay_type": "linear"},
    ),
]

NAMES: list[tuple[str, dict[str, Any] | None]] = [
    ("linear", None),
    ("cosine", None),
    ("cosine_with_restarts", {"num_cycles": 2}),
    ("polynomial", {"power": 3.0}),
    ("constant", None),
    ("constant_with_warmup", None),
    ("inverse_sqrt", None),
    ("cosine_with_min_lr", {"min_lr": 1e-3}),
    ("cosine_warmup_with_min_lr", {"min_lr": 1e-3}),
    ("cosine_warmup_with_min_lr", {"min_lr_rate": 0.1, "warmup_lr_rate": 0.2}),
    ("warmup_stable_decay", {"num_decay_steps": 3}),
]


def rates(torch: Any, make: Any, steps: int = 14) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=0.01)
    schedule = make(optimizer)
    found = []
    for _ in range(steps):
        found.append(schedule.get_last_lr()[0] * 100)
        optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_schedules(name: str, options: dict[str, Any]) -> None:
    both(lambda tf, torch: rates(torch, lambda optimizer: getattr(tf, name)(optimizer, **options)), tol=1e-7)


@pytest.mark.parametrize(("name", "options"), NAMES)
def test_get_scheduler(name: str, options: dict[str, Any] | None) -> None:
    both(
        lambda tf, torch: rates(
            torch, lambda optimizer: tf.get_scheduler(name, optimizer, 2, 10, scheduler_specific_kwargs=options)
        ),
        tol=1e-7,
    )


def test_plateau_schedule() -> None:
    def program(tf: Any, torch: Any) -> list[float]:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=0.01)
        schedule = tf.get_scheduler("reduce_lr_on_plateau", optimizer, scheduler_specific_kwargs={"patience": 1})
        rates = []
        for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0):
            schedule.step(loss)
            rates.append(optimizer.param_groups[0]["lr"])
        return rates

    both(program, tol=1e-8)


def optimizer() -> tl.optim.Optimizer:
    return tl.optim.SGD([tl.nn.Parameter(tl.zeros(2))], lr=0.01)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mine.get_scheduler("sine", optimizer(), 1, 2),
        lambda: mine.get_scheduler("linear", optimizer(), None, 2),
        lambda: mine.get_scheduler("linear", optimizer(), 1),
        lambda: mine.get_polynomial_decay_schedule_with_warmup(optimizer(), 1, 5, lr_end=1.0),
        lambda: mine.get_wsd_schedule(optimizer(), 1, 2),
        lambda: mine.get_wsd_schedule(optimizer(), 1, 2, 9, decay_type="step"),
        lambda: mine.get_cosine_with_min_lr_schedule_with_warmup(optimizer(), 1, 5),
        lambda: mine.get_cosine_with_min_lr_schedule_with_warmup(optimizer(), 1, 5, min_lr=0.1, min_lr_rate=0.1),
    ],
)
def test_schedules_refuse(make: Any) -> None:
    with pytest.raises(ArgumentError):
        make()
