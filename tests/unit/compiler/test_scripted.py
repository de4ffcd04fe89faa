"""`jit.script` and `jit.trace` compile functions and modules under the originals' names."""

from __future__ import annotations

import copy
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

import tallow as tl
from tallow import jit, nn
from tallow.errors import ArgumentError, ShapeError, UnsupportedError

pytestmark = pytest.mark.cpu("plans are for the CPU")


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("scale", tl.tensor(2.0))

    @jit.export
    def twice(self, x: Any) -> Any:
        return 2 * self.forward(x)

    def forward(self, x: Any) -> Any:
        return self.linear(x) * self.scale if self.training else self.linear(x)


def half(x: Any) -> Any:
    return x / 2


@pytest.mark.parametrize("make", [jit.script, lambda module: jit.trace(module, tl.ones(1, 3))])
def test_a_module_keeps_its_names_and_its_mode(make: Any) -> None:
    module = Scaled()
    scripted = make(module)
    assert isinstance(scripted, jit.ScriptModule)
    assert scripted.original_name == "Scaled"
    assert list(scripted.state_dict()) == list(module.state_dict()) == ["scale", "linear.weight", "linear.bias"]
    assert [name for name, _ in scripted.named_modules()] == ["", "linear"]
    x = tl.randn(4, 3)
    for mode in (True, False):
        scripted.train(mode)
        assert module.training is mode is scripted.training
        for _ in range(3):
            assert tl.equal(scripted(x), module(x))
    assert len(scripted._compiled.plans) >= 2
    assert tl.equal(scripted.twice(x), 2 * module(x))
    scripted.load_state_dict({name: tl.zeros_like(value) for name, value in module.state_dict().items()})
    assert not scripted(x).any()
    assert scripted.double().linear.weight.dtype is module.linear.weight.dtype is tl.float64
    assert jit.script(nn.Sequential(module))[0] is module
    assert jit.script(scripted) is jit.freeze(scripted) is scripted


def test_a_scripted_module_trains() -> None:
    module = jit.script(Scaled())
    optimizer = tl.optim.SGD(module.parameters(), lr=0.05)
    x, y = tl.ones(5, 3), tl.ones(5, 2)
    losses = []
    for _ in range(6):
        loss = nn.functional.mse_loss(module(x), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses == sorted(losses, reverse=True)


def test_control_flow_on_values_is_followed_without_a_warning() -> None:
    @jit.script
    def towards_zero(x: Any, steps: int) -> Any:
        for _ in range(steps):
            x = x - 1 if x.sum() > 0 else x + 1
        return x

    assert isinstance(towards_zero, jit.ScriptFunction)
    assert [towards_zero(tl.ones(1) * n, 3).item() for n in (5, -5, 5, 0)] == [2, -2, 2, 1]


def test_a_traced_function() -> None:
    calls = []
    traced = jit.trace(lambda a, b: calls.append(1) or a @ b, (tl.ones(2, 2), tl.ones(2, 2)))
    assert calls == [1]
    assert traced(tl.eye(2), tl.eye(2)).tolist() == [[1, 0], [0, 1]]
    keyed = jit.trace(Scaled(), example_kwarg_inputs={"x": tl.ones(1, 3)})
    assert keyed(x=tl.ones(2, 3)).shape == (2, 2)
    with pytest.raises(ArgumentError, match="example_inputs"):
        jit.trace(half)


def test_copies_and_pickles() -> None:
    module = jit.script(Scaled())
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert isinstance(other, jit.ScriptModule)
        assert tl.equal(other(tl.ones(1, 3)), module(tl.ones(1, 3)))
        assert other.linear.weight is not module.linear.weight
    assert pickle.loads(pickle.dumps(jit.script(half)))(tl.ones(1)).item() == 0.5
    compiled = tl.compile(nn.Linear(3, 2))
    assert list(copy.deepcopy(compiled).state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]


def test_a_traced_module_comes_back_from_a_file(tmp_path: Path) -> None:
    module, path = Scaled(), tmp_path / "model.pt"
    jit.save(jit.trace(module, tl.ones(2, 3)), path)
    loaded = jit.load(path, map_location="cpu")
    x = tl.randn(5, 3)
    assert tl.equal(loaded(x), module(x))
    assert loaded.state_dict().keys() == module.state_dict().keys()
    loaded(x).sum().backward()
    assert all(p.grad is not None for p in loaded.parameters())


def test_a_loaded_module_is_saved_again_with_its_new_values(tmp_path: Path) -> None:
    jit.save(jit.trace(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), tl.ones(2, 3)), tmp_path / "first.pt")
    loaded, x = jit.load(tmp_path / "first.pt", map_location="cpu"), tl.randn(5, 3)
    with tl.no_grad():
        loaded.get_parameter("0.weight").add_(1)
    loaded(x)
    loaded.double().float()
    jit.save(loaded, tmp_path / "second.pt", {"note": "again"})
    notes = {"note": ""}
    again = jit.load(tmp_path / "second.pt", _extra_files=notes)
    assert notes == {"note": "again"}
    tl.testing.assert_close(dict(again.state_dict()), dict(loaded.state_dict()))
    assert tl.equal(again(x), loaded(x))


def test_a_module_that_fixes_its_batch_is_saved_with_one_hint(tmp_path: Path) -> None:
    class Fixed(nn.Module):
        def forward(self, x: tl.Tensor) -> tl.Tensor:
            return x @ tl.ones(3, 2) @ x

    with pytest.warns(UserWarning, match="the sizes of the example only: ") as caught:
        jit.save(jit.trace(Fixed(), tl.ones(2, 3)), tmp_path / "model.pt")
    assert str(caught[0].message).count("hint:") == 1


def test_a_module_of_one_size_is_saved_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with pytest.warns(UserWarning, match="the sizes of the example only: its arguments have no batch of 2"):
        jit.trace(Scaled(), tl.ones(1, 3)).save(path)
    with pytest.raises(ShapeError, match="the export was made for 1"):
        jit.load(path)(tl.ones(2, 3))


def test_archives_are_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    archive = tmp_path / "model.pt"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("model/constants.pkl", b"")
    for save in (jit.script(Scaled()).save, jit.script(half).save, lambda path: jit.save(half, path)):
        with pytest.raises(UnsupportedError, match=r"TorchScript archives\n.*state_dict"):
            save("model.pt")
    with pytest.raises(UnsupportedError, match=r"TorchScript archives\n.*state_dict"):
        jit.load(archive)


def test_names_of_older_programs() -> None:
    for decorate in (jit.ignore, jit.unused, jit.export, jit.ignore(drop=True), jit.script_if_tracing):
        assert decorate(half) is half
    assert jit.script(Scaled) is Scaled
    assert not jit.is_scripting()
    assert jit.isinstance([1], list[int])
    assert not jit.isinstance([1], (dict[str, int], str))
