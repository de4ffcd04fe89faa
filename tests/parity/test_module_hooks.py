"""Backward hooks, state-dict hooks, and methods that programs override, compared with PyTorch."""

from __future__ import annotations

import importlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl
from tallow.nn.hooks import register_module_forward_hook

BOTH = pytest.mark.parametrize("m", [tl, torch], ids=["tallow", "torch"])


def set_fixed_values(m: Any, module: Any) -> Any:
    rng = np.random.RandomState(0)
    with m.no_grad():
        for p in module.parameters():
            p.copy_(m.from_numpy(rng.standard_normal(tuple(p.shape)).astype(np.float32)))
    return module


def agree(program: Callable[[Any], Any]) -> Any:
    """Check that both modules give the same lists of recorded values."""
    ours, theirs = program(tl), program(torch)
    assert comparable(ours) == comparable(theirs)
    return ours


def comparable(x: Any) -> Any:
    if isinstance(x, tl.Tensor | torch.Tensor):
        return np.round(x.detach().numpy().astype(np.float64), 4).tolist()
    if isinstance(x, dict):
        return {key: comparable(value) for key, value in x.items()}
    return [comparable(item) for item in x] if isinstance(x, list | tuple) else x


def test_full_backward_hook_sees_the_gradients_and_replaces_them() -> None:
    def program(m: Any) -> Any:
        layer, seen = set_fixed_values(m, m.nn.Linear(3, 2)), []
        layer.register_full_backward_pre_hook(lambda mod, go: (go[0] * 2,))
        layer.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go)))
        layer.register_full_backward_hook(lambda mod, gi, go: (gi[0] + 1,))
        x = m.arange(6.0).view(2, 3).requires_grad_()
        layer(x).sum().backward()
        return seen, x.grad, layer.weight.grad

    agree(program)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")  # raised by PyTorch
def test_full_backward_hook_where_no_input_has_a_gradient() -> None:
    def program(m: Any) -> Any:
        model, seen = set_fixed_values(m, m.nn.Sequential(m.nn.Linear(3, 2), m.nn.Tanh())), []
        for layer in model:
            layer.register_full_backward_hook(lambda mod, gi, go: seen.append((type(mod).__name__, gi, go)))
        model(m.ones(2, 3)).sum().backward()
        return seen, model[0].weight.grad

    seen, _ = agree(program)
    assert [name for name, _, _ in seen] == ["Tanh", "Linear"]


def test_full_backward_hook_of_several_inputs_and_outputs() -> None:
    def program(m: Any) -> Any:
        class Pair(m.nn.Module):
            def forward(self, a, n, b):
                return a * n, b * 3, None

        module, seen = Pair(), []
        handle = module.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go)))
        a, b = m.ones(2, requires_grad=True), m.ones(2)
        module(a, 2, b)[0].sum().backward()
        handle.remove()
        module(a, 2, b)[0].sum().backward()
        return seen, a.grad

    seen, _ = agree(program)
    assert len(seen) == 1


def test_state_dict_hooks() -> None:
    def program(m: Any) -> Any:
        model, calls = set_fixed_values(m, m.nn.Sequential(m.nn.Linear(2, 1))), []
        model[0].register_state_dict_pre_hook(lambda mod, prefix, keep_vars: calls.append((prefix, keep_vars)))
        model[0].register_state_dict_post_hook(
            lambda mod, state, prefix, meta: state.update({prefix + "extra": m.zeros(1)})
        )
        model._register_state_dict_hook(lambda mod, state, prefix, meta: {"all." + k: v for k, v in state.items()})
        return model.state_dict(), calls

    agree(program)


def test_load_state_dict_hooks_rename_and_forgive() -> None:
    def program(m: Any) -> Any:
        model, calls = set_fixed_values(m, m.nn.Sequential(m.nn.Linear(2, 1))), []

        def rename(state, prefix, meta, strict, missing, unexpected, errors):
            calls.append((prefix, strict))
            state[prefix + "weight"] = state.pop(prefix + "kernel")

        model[0]._register_load_state_dict_pre_hook(rename)
        model.register_load_state_dict_pre_hook(lambda mod, state, *rest: calls.append((type(mod).__name__, len(rest))))
        model.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
        keys = model.load_state_dict({"0.kernel": m.ones(1, 2)})
        return calls, keys.missing_keys, keys.unexpected_keys, model.state_dict()

    agree(program)


def test_load_from_state_dict_may_be_overridden() -> None:
    def program(m: Any) -> Any:
        class Scaled(m.nn.Linear):
            _version = 2

            def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, *lists):
                if local_metadata.get("version", 1) < 3 and prefix + "weight" in state_dict:
                    state_dict[prefix + "weight"] = state_dict[prefix + "weight"] * 2
                super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *lists)

            def _save_to_state_dict(self, destination, prefix, keep_vars):
                super()._save_to_state_dict(destination, prefix, keep_vars)
                destination[prefix + "count"] = m.tensor(3)

        model = m.nn.ModuleDict({"a": Scaled(2, 1)})
        state = {"a.weight": m.ones(1, 2), "a.bias": m.zeros(1)}
        model.load_state_dict(state)
        return model.state_dict(), state

    agree(program)


def test_extra_state_is_saved_and_loaded() -> None:
    def program(m: Any) -> Any:
        class Counting(m.nn.Module):
            def __init__(self):
                super().__init__()
                self.count = 0

            def get_extra_state(self):
                return {"count": self.count}

            def set_extra_state(self, state):
                self.count = state["count"]

        model, other = m.nn.Sequential(Counting()), m.nn.Sequential(Counting())
        model[0].count = 7
        other.load_state_dict(model.state_dict())
        return model.state_dict(), other[0].count

    agree(program)


@BOTH
def test_missing_extra_state_is_an_error(m: Any) -> None:
    class Extra(m.nn.Module):
        get_extra_state = set_extra_state = lambda self, state=None: None

    with pytest.raises(RuntimeError, match="_extra_state"):
        Extra().load_state_dict({})


def test_state_dict_adds_to_a_destination() -> None:
    def program(m: Any) -> Any:
        destination = OrderedDict(step=3)
        destination._metadata = {}  # PyTorch writes there
        set_fixed_values(m, m.nn.Linear(2, 1)).state_dict(destination=destination, prefix="layer.")
        return destination

    agree(program)


def test_loading_changes_nothing_when_something_does_not_fit() -> None:
    model = tl.nn.Sequential(tl.nn.Linear(2, 1), tl.nn.Linear(1, 1))
    before = {name: t.tolist() for name, t in model.state_dict().items()}
    state = {**{name: t + 1 for name, t in model.state_dict().items()}, "1.weight": tl.zeros(3, 3)}
    with pytest.raises(tl.errors.CheckpointError, match=r"wrong shape  1\.weight: file \(3, 3\), model \(1, 1\)"):
        model.load_state_dict(state)
    assert {name: t.tolist() for name, t in model.state_dict().items()} == before


@BOTH
def test_set_submodule(m: Any) -> None:
    model = m.nn.Sequential(m.nn.ModuleDict({"a": m.nn.Tanh()}))
    model.set_submodule("0.a", m.nn.ReLU())
    assert isinstance(model.get_submodule("0.a"), m.nn.ReLU)
    with pytest.raises(AttributeError):
        model.set_submodule("0.x.y", m.nn.ReLU())
    with pytest.raises(AttributeError):
        model.set_submodule("0.b", m.nn.ReLU(), strict=True)
    with pytest.raises(ValueError):
        model.set_submodule("", m.nn.ReLU())


@BOTH
def test_to_takes_a_memory_format_and_non_blocking(m: Any) -> None:
    model = m.nn.Conv2d(2, 3, 3).to("cpu", m.float64, True).to(memory_format=m.channels_last)
    assert model.weight.dtype is m.float64
    assert model.weight.stride() == (18, 1, 6, 2)
    assert model.bias.stride() == (1,)


@BOTH
def test_to_empty_gives_memory_to_a_module_on_meta(m: Any) -> None:
    model = m.nn.Linear(2, 3, device="meta").to_empty(device="cpu")
    model.load_state_dict({"weight": m.ones(3, 2), "bias": m.zeros(3)})
    assert model(m.ones(2)).tolist() == [2, 2, 2]


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")  # raised by PyTorch
def test_hooks_of_all_modules_come_before_those_of_one() -> None:
    def program(m: Any) -> Any:
        module = importlib.import_module("tallow.nn.hooks" if m is tl else "torch.nn.modules.module")
        model, seen = set_fixed_values(m, m.nn.Sequential(m.nn.Linear(3, 2), m.nn.Tanh())), []

        def note(what: str) -> Callable[..., Any]:
            return lambda mod, *rest, **kwargs: seen.append((what, type(mod).__name__, rest))

        handles = [
            module.register_module_forward_pre_hook(note("before")),
            module.register_module_forward_hook(note("after"), with_kwargs=True),
            module.register_module_forward_hook(lambda mod, args, y: y + 1 if isinstance(mod, m.nn.Tanh) else None),
            module.register_module_full_backward_pre_hook(note("gradient of outputs")),
            module.register_module_full_backward_hook(note("gradients")),
        ]
        model[1].register_forward_pre_hook(note("own before"))
        model[1].register_full_backward_hook(note("own gradients"))
        x = m.arange(6.0).view(2, 3).requires_grad_()
        model(x).sum().backward()
        for handle in handles:
            handle.remove()
        return seen, model(x), x.grad

    agree(program)


def test_hooks_of_all_modules_reach_compiled_modules() -> None:
    model = tl.nn.Linear(3, 2)
    compiled, x = tl.compile(model), tl.ones(2, 3)
    expected = [compiled(x) for _ in range(3)][-1]
    with register_module_forward_hook(lambda mod, args, y: y + 1):
        for _ in range(3):
            assert tl.equal(compiled(x), expected + 1)
    assert tl.equal(compiled(x), expected)


def test_backward_hooks_are_those_of_the_forward() -> None:
    def program(m: Any) -> Any:
        layer, seen = set_fixed_values(m, m.nn.Linear(3, 2)), []
        handle = layer.register_full_backward_hook(lambda mod, gi, go: seen.append(go))
        y = layer(m.ones(2, 3, requires_grad=True))
        handle.remove()
        y.sum().backward()
        return seen

    assert agree(program)
