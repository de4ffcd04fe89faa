"""Warnings are reported at the line of the program, as a warning about a line of tallow helps nobody."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

import tallow as tl
from tallow import keras, nn
from tallow.nn import functional as F

x, y = tl.ones(4), tl.ones(4, 1)
weight = nn.Parameter(tl.ones(1))
scheduled = tl.optim.SGD([weight], lr=0.1)
masked = keras.layers.Masking()(tl.ones(1, 2, 3))


def fit_for_one_step_of_three() -> None:
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    batches = iter([(tl.ones(2, 1).numpy(), tl.ones(2, 1).numpy())])
    model.fit(batches, steps_per_epoch=3, verbose=0)


CASES: dict[str, Callable[[], object]] = {
    "a function": lambda: F.mse_loss(x, y),
    "a function, with a keyword": lambda: F.l1_loss(x, target=y),
    "a layer": lambda: nn.MSELoss()(x, y),
    "a layer within a layer": lambda: nn.Sequential(nn.Dropout2d())(tl.ones(2, 3, 4)),
    "a constructor": lambda: nn.LSTM(2, 3, dropout=0.5),
    "an optimizer": lambda: tl.optim.Adam([weight, weight]),
    "a subclass of an optimizer": lambda: tl.optim.SGD([weight, weight], lr=0.1),
    "a method": lambda: tl.optim.lr_scheduler.StepLR(scheduled, 1).step(),
    "an older name": lambda: nn.init.uniform(weight),
    "a split": lambda: tl.utils.data.random_split(range(2), [0.9, 0.05, 0.05]),
    "a context": lambda: tl.autocast("cpu", dtype=tl.float64),
    "a layer of Keras": lambda: keras.layers.Flatten()(masked),
    "training with Keras": fit_for_one_step_of_three,
}


@pytest.mark.parametrize("case", CASES)
def test_a_warning_names_the_line_that_called_tallow(case: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CASES[case]()
    assert {warning.filename for warning in caught} == {__file__}
