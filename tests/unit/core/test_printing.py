"""Printing, by the examples of PyTorch's documentation: torch.set_printoptions, torch.tensor, torch.arange."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tallow as tl


@pytest.fixture(autouse=True)
def usual_options() -> Iterator[None]:
    yield
    tl.set_printoptions(profile="default")


@pytest.mark.cpu("elsewhere the device is printed too")
def test_precision() -> None:
    tl.set_printoptions(precision=2)
    assert repr(tl.tensor([1.12345])) == "tensor([1.12])"


@pytest.mark.cpu("elsewhere the device is printed too")
def test_threshold_and_profile() -> None:
    tl.set_printoptions(threshold=5)
    assert repr(tl.arange(10)) == "tensor([0, 1, 2,  ..., 7, 8, 9])"
    tl.set_printoptions(profile="default")
    assert repr(tl.tensor([1.12345])) == "tensor([1.1235])"
    assert repr(tl.arange(10)) == "tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])"


@pytest.mark.cpu("elsewhere the device is printed too")
def test_documented_examples() -> None:
    assert repr(tl.tensor([[0.1, 1.2], [2.2, 3.1], [4.9, 5.2]])) == (
        "tensor([[0.1000, 1.2000],\n        [2.2000, 3.1000],\n        [4.9000, 5.2000]])"
    )
    assert repr(tl.tensor([0, 1])) == "tensor([0, 1])"
    assert repr(tl.tensor(3.14159)) == "tensor(3.1416)"
    assert repr(tl.tensor([])) == "tensor([])"
    assert repr(tl.arange(1, 2.5, 0.5)) == "tensor([1.0000, 1.5000, 2.0000])"
    assert repr(tl.tensor([1.0, 2.0], requires_grad=True)) == "tensor([1., 2.], requires_grad=True)"


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(tl.errors.ArgumentError, match="no profile 'tall'"):
        tl.set_printoptions(profile="tall")
