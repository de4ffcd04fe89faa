"""Dtypes as values: names, copies, pickles; float8, uint16, uint64 and complex32, which hold values and convert."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

import tallow as tl
from tallow import dtypes

EVERY = (*dtypes.ALL, tl.uint64, *dtypes.PACKED)


@pytest.mark.cpu("CuPy has no dtypes of named fields")
@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_a_dtype_is_one_object_with_a_name(dtype: tl.dtype) -> None:
    assert repr(dtype) == f"tallow.{dtype.name}"
    assert getattr(tl, dtype.name) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is dtype
    assert not dataclasses.is_dataclass(dtype)
    x = tl.zeros(2, dtype=dtype)
    assert pickle.loads(pickle.dumps(x)).dtype is x.clone()[:1].dtype is dtype
    assert x.element_size() == dtype.itemsize


@pytest.mark.cpu("CuPy has no dtypes of named fields")
@pytest.mark.parametrize("dtype", dtypes.FLOAT8, ids=str)
def test_float8_keeps_its_own_values(dtype: tl.dtype) -> None:
    every = tl.arange(256).to(tl.uint8).view(dtype)
    values = every.float()
    finite = values.isfinite()
    assert values.to(dtype).view(tl.uint8)[finite].tolist() == tl.arange(256)[finite].tolist()
    assert values[finite].abs().max().item() == tl.finfo(dtype).max


@pytest.mark.cpu("CuPy has no dtypes of named fields")
def test_float8_rounds_to_the_nearest_even() -> None:
    x = tl.tensor([1.0625, 1.1875, 300.0, 1e6, -0.001])  # ties at 1/16 and 3/16
    assert x.to(tl.float8_e4m3fn).tolist() == [1.0, 1.25, 288.0, 448.0, -0.001953125]
    assert x.to(tl.float8_e5m2)[3].item() == float("inf")


@pytest.mark.cpu("CuPy has no dtypes of named fields")
def test_dtypes_that_only_hold_values_refuse_arithmetic() -> None:
    x = tl.ones(2, dtype=tl.float8_e4m3fn)
    with pytest.raises(tl.errors.TallowError):
        x + x
    with pytest.raises(tl.errors.DtypeError, match="float8"):
        tl.promote_types(tl.float8_e5m2, tl.float32)


def test_real_and_complex_dtypes_correspond() -> None:
    assert tl.complex64.to_real() is tl.float32
    assert tl.float64.to_complex() is tl.complex128
    assert tl.promote_types(tl.complex64, tl.float64) is tl.complex128
    assert tl.promote_types(tl.complex64, tl.int64) is tl.complex64
    assert tl.result_type(tl.ones(2, dtype=tl.float64), tl.tensor(1j)) is tl.complex128
