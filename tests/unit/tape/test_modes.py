"""no_grad, enable_grad, inference_mode, set_grad_enabled: as blocks, on functions, on generators."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

import tallow as tl
from tallow.errors import GraphError


@pytest.mark.parametrize("decorate", [tl.no_grad, tl.no_grad(), tl.inference_mode, tl.inference_mode()])
def test_a_mode_decorates_with_and_without_parentheses(decorate: Any) -> None:
    @decorate
    def is_recording(x: int, y: int = 0) -> tuple[bool, int]:
        return tl.is_grad_enabled(), x + y

    assert is_recording(1, y=2) == (False, 3)
    assert is_recording.__name__ == "is_recording"
    assert tl.is_grad_enabled()


def test_set_grad_enabled_switches_at_once_but_not_where_it_decorates() -> None:
    with tl.set_grad_enabled(mode=False):
        assert not tl.is_grad_enabled()

    @tl.set_grad_enabled(False)
    def is_recording() -> bool:
        return tl.is_grad_enabled()

    assert tl.is_grad_enabled()
    assert not is_recording()
    tl.set_grad_enabled(False)
    try:
        assert not tl.is_grad_enabled()
    finally:
        tl.set_grad_enabled(True)


@tl.no_grad()
def conversation() -> Generator[Any, Any, str]:
    replies = [tl.is_grad_enabled()]
    try:
        while True:
            try:
                replies.append((yield replies))
            except ValueError as error:
                replies.append(str(error))
            if replies[-1] == "stop":
                return "stopped"
    finally:
        replies.append(tl.is_grad_enabled())


def test_a_generator_runs_in_its_mode_and_its_consumer_does_not() -> None:
    talk = conversation()
    replies = next(talk)
    assert tl.is_grad_enabled()
    talk.send("hello")
    talk.throw(ValueError("oh"))
    assert tl.is_grad_enabled()
    with pytest.raises(StopIteration) as end:
        talk.send("stop")
    assert end.value.value == "stopped"
    assert replies == [False, "hello", "oh", "stop", False]


def test_closing_a_generator_runs_its_end_in_its_mode() -> None:
    talk = conversation()
    replies = next(talk)
    talk.close()
    assert replies == [False, False]
    assert tl.is_grad_enabled()


def test_inference_mode_stays_active_in_inner_blocks() -> None:
    x = tl.ones(2, requires_grad=True)
    with tl.inference_mode():
        with tl.no_grad():
            assert tl.is_inference_mode_enabled()
        with tl.enable_grad():
            assert not (x * 2).requires_grad
        assert tl.is_inference_mode_enabled()


def test_everything_made_in_inference_mode_is_marked_and_so_are_its_views() -> None:
    x = tl.ones(3)
    with tl.inference_mode():
        tensors = [tl.ones(3), tl.tensor([1.0]), tl.randn(2), x + 1, x.exp(), x.clone()]
        assert not x[:1].is_inference()
        x.add_(1)
    assert not x.is_inference()
    for y in tensors:
        assert y.is_inference()
        assert y[:1].is_inference()
        assert y.detach().is_inference()
        assert not y.clone().is_inference()
        assert not (y * 2).is_inference()


def test_inference_tensors_cannot_be_changed_outside() -> None:
    with tl.inference_mode():
        x = tl.ones(3)
    for write in (lambda: x.add_(1), lambda: x.__setitem__(0, 2), lambda: x.__setitem__(x > 0, 2), x.zero_):
        with pytest.raises(GraphError, match="inference_mode"):
            write()
    with pytest.raises(GraphError, match="inference_mode"):
        x.requires_grad_()
    with tl.inference_mode():
        x += 1
    assert x.tolist() == [2, 2, 2]


def test_a_view_made_unrecorded_of_what_has_a_history_cannot_be_written_recorded() -> None:
    z = tl.ones(3, requires_grad=True) * 1
    with tl.no_grad():
        v = z[:2]
    for write in (lambda: v.add_(1), lambda: v.__setitem__(v > 0, 0.0)):
        with pytest.raises(GraphError, match="made in no_grad mode"):
            write()
    assert z.tolist() == [1, 1, 1]
