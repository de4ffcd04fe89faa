"""The kernel table: choice of a kernel, its explanation, and how to change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tallow import kernels
from tallow.errors import ArgumentError, KernelUnavailable
from tallow.kernels import table

X = np.zeros(3, np.float32)


def positive(x: np.ndarray[Any, Any]) -> bool:
    """Positive numbers only."""
    return bool((x > 0).all())


@pytest.fixture
def empty_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty kernel table for one test, enabled, without the compiled kernels."""
    monkeypatch.setattr(table, "KERNELS", {})
    monkeypatch.setattr(table, "_providers", {})
    monkeypatch.setattr(table, "_candidates", {})
    monkeypatch.setattr(table, "_absent", {})
    monkeypatch.setattr(table, "_off", False)


@pytest.fixture
def double(empty_table: None) -> None:
    kernels.kernel("double", "array")(lambda x: ("array", x * 2))
    kernels.kernel("double", "native", accepts=positive)(lambda x: ("native", x * 2))


def chosen(x: np.ndarray[Any, Any]) -> str:
    backend, _ = kernels.run("double", x)
    assert backend == kernels.pick("double", "cpu", x).backend
    assert backend == table.of_array("double")(x)[0]
    return str(backend)


def test_a_kernel_is_chosen_where_it_accepts(double: None) -> None:
    assert chosen(X + 1) == "native"
    assert chosen(X - 1) == "array"
    assert chosen(X + 1) == "native"


def test_preference_decides_between_two_that_accept(double: None) -> None:
    kernels.kernel("double", "wasm")(lambda x: ("wasm", x * 2))
    assert chosen(X + 1) == "wasm"


def test_registering_replaces_and_takes_effect_at_once(double: None) -> None:
    assert chosen(X + 1) == "native"
    kernels.kernel("double", "native", accepts=lambda x: False)(lambda x: ("native", x))
    assert chosen(X + 1) == "array"


def test_a_subclass_of_ndarray_is_on_the_cpu(double: None) -> None:
    class Mapped(np.ndarray[Any, Any]):
        pass

    assert chosen((X + 1).view(Mapped)) == "native"


def test_off_leaves_the_array_code_and_comes_back(double: None) -> None:
    with kernels.off():
        assert chosen(X + 1) == "array"
    assert chosen(X + 1) == "native"


def test_off_comes_back_after_an_error(double: None) -> None:
    with pytest.raises(ZeroDivisionError), kernels.off():
        raise ZeroDivisionError
    assert chosen(X + 1) == "native"


def test_require_refuses_to_fall_back(double: None) -> None:
    with kernels.require("native"):
        assert chosen(X + 1) == "native"
        with pytest.raises(KernelUnavailable, match=r"takes positive numbers only(.|\n)*float32\[3\](.|\n)*hint"):
            kernels.run("double", X - 1)
    assert chosen(X - 1) == "array"


def test_an_unknown_name_raises(empty_table: None) -> None:
    with pytest.raises(KernelUnavailable, match="no kernel is called 'halve'"):
        kernels.run("halve", X)


def test_errors_for_a_name_without_array_code_list_what_its_kernels_accept(empty_table: None) -> None:
    kernels.kernel("double", "native", accepts=positive)(lambda x: x)
    with pytest.raises(KernelUnavailable, match="takes positive numbers only"):
        kernels.pick("double", "cpu", X)


def test_explain_prints_the_choice_and_the_reasons(double: None, capsys: pytest.CaptureFixture[str]) -> None:
    kernels.explain("double", X + 1)
    kernels.explain("double", X - 1)
    assert capsys.readouterr().out.splitlines() == [
        "double on cpu",
        "  wasm    no: has no such kernel",
        "  native  chosen",
        "  array   not needed",
        "double on cpu",
        "  wasm    no: has no such kernel",
        "  native  no: takes positive numbers only",
        "  array   chosen",
    ]


def test_explain_refuses_an_unknown_name_and_no_arguments(double: None) -> None:
    with pytest.raises(KernelUnavailable, match="no kernel is called 'doubl'"):
        kernels.explain("doubl", X)
    with pytest.raises(ArgumentError, match="without arguments"):
        kernels.explain("double")


def test_a_provider_runs_once_before_the_first_choice_and_not_while_off(double: None) -> None:
    calls = []

    def provider() -> dict[str, str]:
        calls.append(1)
        kernels.kernel("double", "wasm")(lambda x: ("wasm", x))
        return {"cuda": "a reason"}

    kernels.register_provider("cpu", provider)
    with kernels.off():
        assert chosen(X) == "array"
    assert calls == []
    assert [chosen(X), chosen(X), calls] == ["wasm", "wasm", [1]]
    assert "no: a reason" in table.explanation("double", "cuda", (X,))


def test_another_device_prefers_its_own_backend(double: None) -> None:
    kernels.kernel("double", "tpu")(lambda x: ("tpu", x))
    assert kernels.pick("double", "tpu", X).backend == "tpu"


def test_the_environment_accepts_on_and_off_only() -> None:
    assert table._kernels_are_off("off")
    assert not table._kernels_are_off("on")
    with pytest.raises(ValueError, match="TALLOW_KERNELS='no'"):
        table._kernels_are_off("no")


@pytest.mark.parametrize("x", [np.float32(-2), np.float64(-2), np.int64(-2)], ids=str)
def test_a_numpy_scalar_takes_the_array_code(x: Any) -> None:
    assert kernels.run("clamp_min", x, 1) == 1
    assert kernels.run("select", x > 0, 1.0, x) == -2
    with kernels.require("native"), pytest.raises(KernelUnavailable, match="clamp_min"):
        kernels.run("clamp_min", x, 1)
