"""keras.utils: splits, sliding windows, and datasets of batches by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import keras
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.keras import utils


def test_windows_are_those_of_keras_documentation() -> None:
    windows = utils.timeseries_dataset_from_array(np.arange(100), None, 10, sequence_stride=3, sampling_rate=2)
    (batch,) = list(iter(windows))
    assert batch[0].tolist() == list(range(0, 20, 2))
    assert batch[1].tolist() == list(range(3, 23, 2))
    assert batch[-1].tolist() == list(range(81, 101, 2))  # the last window that fits: its last step is step 99
    data = np.arange(12.0)[:, None]
    pairs = utils.timeseries_dataset_from_array(data, data[3:, 0], 3, batch_size=4)  # the value after each window
    assert [(x.shape, y.tolist()) for x, y in pairs] == [((4, 3, 1), [3, 4, 5, 6]), ((4, 3, 1), [7, 8, 9, 10]),
                                                         ((1, 3, 1), [11])]  # fmt: skip
    one = utils.timeseries_dataset_from_array(data, None, 3, batch_size=None, start_index=2, end_index=7)
    assert [x[:, 0].tolist() for x in one] == [[2, 3, 4], [3, 4, 5], [4, 5, 6]]
    numbers = [utils.timeseries_dataset_from_array(data, None, 3, shuffle=True, seed=1)[0] for _ in range(2)]
    np.testing.assert_array_equal(*numbers)
    assert sorted(numbers[0][:, 0, 0]) == list(range(10))
    with pytest.raises(ArgumentError, match="sequence_length=13 for 12 steps"):
        utils.timeseries_dataset_from_array(data, None, 13)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((0.8, None), (8, 2)), ((None, 3), (7, 3)), ((4, 0.25), (4, 2)), ((0.33, 0.33), (3, 3)), ((9, None), (9, 1))],
)
def test_split_dataset(sizes: Any, expected: tuple[int, int]) -> None:
    x = np.arange(20.0).reshape(10, 2)
    left, right = utils.split_dataset((x, x[:, 0]), *sizes)
    assert (len(left), len(right)) == expected
    np.testing.assert_array_equal(left[0][0], x[0])
    np.testing.assert_array_equal(right[len(right) - 1][0], x[-1])


def test_split_dataset_with_shuffling() -> None:
    data = tl.data.TensorDataset(tl.arange(10))
    left, right = utils.split_dataset(data, 0.5, shuffle=True, seed=3)
    assert sorted(int(sample[0]) for part in (left, right) for sample in part) == list(range(10))
    assert [int(sample[0]) for sample in left] != list(range(5))
    for sizes in ((None, None), (0, None), (1.0, None), (8, 3), (-1, None)):
        with pytest.raises(ArgumentError, match="split_dataset"):
            utils.split_dataset(data, *sizes)
    with pytest.raises(ArgumentTypeError, match="expected an array"):
        utils.split_dataset("abc", 0.5)


class Counted(utils.PyDataset):
    """Batches that return their number, endless unless `size` is given."""

    def __init__(self, size: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.size = size
        self.walks: list[str] = []

    @property
    def num_batches(self) -> int | None:
        return self.size

    def __getitem__(self, index: int) -> Any:
        if index == 7:
            raise KeyError("no such file")
        return np.full((2, 1), index, "float32"), np.zeros((2, 1), "float32")

    def on_epoch_begin(self) -> None:
        self.walks.append("begin")

    def on_epoch_end(self) -> None:
        self.walks.append("end")


def batches_seen_by(data: Any, **options: Any) -> list[float]:
    """Return the first number of each batch that a model is trained with."""
    numbers: list[float] = []

    class Noting(keras.Model):  # type: ignore[misc]
        def train_step(self, batch: Any) -> Any:
            numbers.append(float(batch[0][0, 0]))
            return super().train_step(batch)

    x = keras.Input((1,))
    model = Noting(x, keras.layers.Dense(1)(x))
    model.compile("sgd", "mse")
    model.fit(data, verbose=0, **options)
    return numbers


def test_batches_by_number() -> None:
    data = Counted(4)
    assert batches_seen_by(data, shuffle=False, epochs=2) == [0, 1, 2, 3] * 2
    assert data.walks.count("end") == 2
    tl.manual_seed(0)
    numbers = batches_seen_by(Counted(6), epochs=2)
    assert sorted(numbers[:6]) == sorted(numbers[6:]) == list(range(6))
    assert numbers != [*range(6), *range(6)]
    assert batches_seen_by(Counted(), steps_per_epoch=3, epochs=2) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(KeyError, match="no such file"):
        batches_seen_by(Counted(9), shuffle=False)
    with pytest.raises(ArgumentError, match="use_multiprocessing"):
        Counted(3, use_multiprocessing=True)


@pytest.mark.native
def test_threads_keep_the_order_of_batches() -> None:
    assert batches_seen_by(Counted(6, workers=3, max_queue_size=2), shuffle=False) == list(range(6))
    with pytest.raises(KeyError, match="no such file"):
        batches_seen_by(Counted(9, workers=2), shuffle=False)


def test_names_of_dtypes() -> None:
    assert utils.standardize_dtype("int") == "int64"
    assert utils.standardize_dtype(None) == "float32"
    assert utils.standardize_dtype(np.dtype("float64")) == utils.standardize_dtype(tl.float64) == "float64"
    assert keras.backend.is_float_dtype("bfloat16")
    assert keras.backend.is_int_dtype("uint8")
    assert not keras.backend.is_int_dtype("float16")
    assert utils.is_keras_tensor(keras.Input((1,)))
    with pytest.raises(ArgumentError, match="not the name of a dtype"):
        utils.standardize_dtype("float7")
