"""Training checkpoints: exact resumption, all checks before any change, detection of damage."""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.schedulers import SCHEDULERS, one_cycle

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from tallow.io import nested, safetensors
from tallow.optim import lr_scheduler

OPTIMIZERS = [getattr(tl.optim, name) for name in tl.optim.__all__]
NO_STEPS = (tl.optim.Optimizer, tl.optim.Muon, tl.optim.SparseAdam)  # of vectors, or at all
OPTIMIZERS = [c for c in OPTIMIZERS if isinstance(c, type) and c not in NO_STEPS]


class Run:
    """Training with every kind of state: dropout, a buffer, an optimizer, a scheduler, shuffled batches."""

    def __init__(self, optimizer: Any, scheduler: Callable[[Any], Any], seed: int) -> None:
        tl.manual_seed(seed)
        self.shuffling = tl.Generator().manual_seed(seed + 1)
        self.model = tl.nn.Sequential(
            tl.nn.Linear(3, 8), tl.nn.BatchNorm1d(8), tl.nn.Dropout(0.3), tl.nn.Tanh(), tl.nn.Linear(8, 1)
        )
        self.optimizer = optimizer(self.model.parameters())
        self.scheduler = scheduler(self.optimizer)
        self.order: list[int] = []
        data = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
        self.x, self.y = tl.tensor(data[:, :3]), tl.tensor(data[:, 3:])

    def step(self) -> float:
        if not self.order:
            self.order = tl.randperm(16, generator=self.shuffling).tolist()
        batch, self.order = self.order[:4], self.order[4:]

        def loss() -> tl.Tensor:
            self.optimizer.zero_grad()
            value = tl.nn.functional.mse_loss(self.model(self.x[batch]), self.y[batch])
            value.backward()
            return value

        value = self.optimizer.step(loss).item()
        if isinstance(self.scheduler, lr_scheduler.ReduceLROnPlateau):
            self.scheduler.step(value)
        else:
            self.scheduler.step()
        return value

    def parts(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "generator": self.shuffling,
        }


def losses_of_both_runs(
    optimizer: Any, scheduler: Callable[[Any], Any], folder: Path
) -> tuple[list[float], list[float]]:
    """Return the losses of steps 6 to 10, uninterrupted and from a checkpoint after step 5."""
    run = Run(optimizer, scheduler, seed=3)
    for _ in range(5):
        run.step()
    path = folder / "run.safetensors"
    tl.save_checkpoint(path, **run.parts(), order=run.order, step=5)
    straight = [run.step() for _ in range(5)]
    again = Run(optimizer, scheduler, seed=99)
    again.step()  # the previous value is gone
    progress = tl.load_checkpoint(path, **again.parts())
    assert progress["step"] == 5
    again.order = progress["order"]
    return straight, [again.step() for _ in range(5)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.__name__)
def test_every_optimizer_resumes_bit_for_bit(optimizer: Any, tmp_path: Path) -> None:
    straight, again = losses_of_both_runs(lambda params: optimizer(params, lr=0.01), one_cycle, tmp_path)
    assert len(set(straight)) == 5
    assert straight == again


def test_no_scheduler_is_missing() -> None:
    assert SCHEDULERS.keys() | {"LRScheduler"} == set(lr_scheduler.__all__)


@pytest.mark.parametrize("scheduler", SCHEDULERS.values(), ids=SCHEDULERS)
def test_every_scheduler_resumes_bit_for_bit(scheduler: Callable[[Any], Any], tmp_path: Path) -> None:
    straight, again = losses_of_both_runs(lambda params: tl.optim.AdamW(params, lr=0.05), scheduler, tmp_path)
    assert len(set(straight)) == 5
    assert straight == again


def test_learning_rates_that_are_tensors_and_half_weights_come_back(tmp_path: Path) -> None:
    path = tmp_path / "run"
    p = tl.ones(3, dtype=tl.bfloat16).requires_grad_()
    optimizer = tl.optim.Adam([p], lr=tl.tensor(0.25))
    p.grad = tl.ones(3, dtype=tl.bfloat16)
    optimizer.step()
    tl.save_checkpoint(path, optimizer=optimizer)
    other = tl.optim.Adam([tl.ones(3, dtype=tl.bfloat16).requires_grad_()])
    assert tl.load_checkpoint(path, optimizer=other) == {}
    ((group,), (entry,)) = other.param_groups, other.state.values()
    assert group["lr"].item() == 0.25
    assert entry["exp_avg"].dtype is tl.bfloat16
    assert group["betas"] == (0.9, 0.999)


def test_weights_are_those_of_a_safetensors_file(tmp_path: Path) -> None:
    path, model = tmp_path / "run.safetensors", tl.nn.Linear(2, 3)
    tl.save_checkpoint(path, model=model)
    loaded = tl.load(path)
    assert (loaded["model.weight"] == model.weight.cpu()).all()
    assert loaded["generators."].shape == (56,)


# ------------------------------------------------------------------------------------------------------------ progress

VALUES = [
    None, True, False, 0, -1, 2**80, -(2**200), 0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, "",
    "déjà vu \x00 \N{GRINNING FACE} $", [], {}, (), [1, [2.5, (None,)]], (1,), {"$": "tensor"}, {"a": {"$": 1}},
    {1: "one", "1": "text", -2: (3, {4: 5})}, Counter({7: 2, 3: 1}), {"a.b": 1, "a": {"b": 2}},
]  # fmt: skip


def roundtrip(folder: Path, **progress: Any) -> dict[str, Any]:
    tl.save_checkpoint(folder / "run", **progress)
    return tl.load_checkpoint(folder / "run")


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_progress_comes_back_equal_and_of_the_same_type(value: Any, tmp_path: Path) -> None:
    back = roundtrip(tmp_path, value=value)["value"]
    assert back == value
    assert repr(back) == repr(value)


def test_nan_comes_back(tmp_path: Path) -> None:
    assert math.isnan(roundtrip(tmp_path, best=math.nan)["best"])


@given(st.floats())
def test_every_float_comes_back_bit_for_bit(value: float) -> None:
    text, _ = nested.pack({"x": value})
    back = nested.unpack(text.encode(), "text", lambda name: tl.zeros(0))["x"]
    assert back == value or (math.isnan(back) and math.isnan(value))
    assert math.copysign(1, back) == math.copysign(1, value) or math.isnan(value)


def test_tensors_and_numpy_scalars_come_back(tmp_path: Path) -> None:
    back = roundtrip(
        tmp_path,
        history={"a.b": tl.tensor([1, 2]), "a": {"b": tl.tensor(2.5, requires_grad=True)}},
        loss=np.float32(0.1),
        count=np.int64(3),
        done=np.bool_(True),
        order=OrderedDict(z=1, a=2),
    )
    assert back["history"]["a.b"].tolist() == [1, 2]
    assert back["history"]["a"]["b"].item() == 2.5
    assert (back["loss"], back["count"], back["done"]) == (0.10000000149011612, 3, True)
    assert [type(back[name]) for name in ("loss", "count", "done", "order")] == [float, int, bool, dict]
    assert list(back["order"]) == ["z", "a"]


def test_loaded_values_do_not_need_the_file(tmp_path: Path) -> None:
    run = Run(adam, one_cycle, seed=1)
    run.step()
    tl.save_checkpoint(tmp_path / "run", **run.parts(), best=tl.ones(3))
    buffer = bytearray((tmp_path / "run").read_bytes())
    back = tl.load_checkpoint(buffer, **run.parts())
    before = state_of(run)
    buffer[:] = bytes(len(buffer))
    assert back["best"].tolist() == [1, 1, 1]
    assert state_of(run) == before


def make_cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ({"sets": [{1, 2}]}, ArgumentTypeError, r"progress\.best\.sets\.0 is set"),
        (np.zeros(2), ArgumentTypeError, r"progress\.best is ndarray"),
        (b"raw", ArgumentTypeError, "is bytes"),
        (1j, ArgumentTypeError, "is complex"),
        (np.longdouble(1), ArgumentTypeError, "is longdouble"),
        (lambda: 1, ArgumentTypeError, "is function"),
        ({(1, 2): 3}, ArgumentTypeError, r"the key \(1, 2\)"),
        ({True: 3}, ArgumentTypeError, "the key True"),
        ({0.5: 3}, ArgumentTypeError, "the key 0.5"),
        (2**2000, ArgumentError, "integer of 2001 bits"),
        ({2**2000: 1}, ArgumentError, "integer of 2001 bits"),
        ("\ud800", ArgumentError, "invalid character"),
        (make_cycle(), ArgumentError, "64 levels"),
    ],
)
def test_unsupported_values_are_named_and_the_old_file_stays(
    value: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    path.write_bytes(b"old")
    with pytest.raises(error, match=message):
        tl.save_checkpoint(path, best=value)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run"
    tl.save_checkpoint(path, step=1)

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        tl.save_checkpoint(path, step=2)
    assert tl.load_checkpoint(path) == {"step": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


# -------------------------------------------------------------------------------------------------------- mismatches


def state_of(run: Run) -> tuple[Any, ...]:
    """Return everything that loading may change, as plain values."""
    return (
        {name: tensor.tolist() for name, tensor in run.model.state_dict().items()},
        repr(run.optimizer.state_dict()),
        repr(run.scheduler.state_dict()),
        run.shuffling.get_state().tolist(),
        tl.get_rng_state().tolist(),
    )


def adam(params: Any) -> Any:
    return tl.optim.AdamW(params, lr=0.01)


def test_all_mismatches_are_listed_at_once_and_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    run = Run(adam, one_cycle, seed=1)
    run.step()
    parts = run.parts()
    parts["model"] = tl.nn.ModuleDict(
        {"a": tl.nn.Linear(3, 8), "b": tl.nn.Linear(2, 2), "d": tl.nn.Linear(1, 1).half()}
    )
    parts["optimizer"] = tl.optim.SGD([{"params": p} for p in run.model.parameters()])
    parts["generator"] = {"shuffling": run.shuffling}
    tl.save_checkpoint(path, **parts)
    parts["model"] = tl.nn.ModuleDict({"a": tl.nn.Linear(4, 8), "c": tl.nn.Linear(2, 2), "d": tl.nn.Linear(1, 1)})
    before, weights = state_of(run), parts["model"].a.weight.tolist()
    parts |= {
        "optimizer": run.optimizer,
        "scheduler": lr_scheduler.StepLR(run.optimizer, 2),
        "generator": {"shuffling": run.shuffling, "augmenting": tl.Generator()},
    }
    with pytest.raises(CheckpointError) as caught:
        tl.load_checkpoint(path, **parts)
    for line in (
        "model       missing      c.weight",
        "model       unexpected   b.bias",
        "model       wrong shape  a.weight: file (8, 3), model (8, 4)",
        "model       wrong dtype  d.weight: file tallow.float16, model tallow.float32",
        "optimizer   the file has the state of SGD, but the optimizer is AdamW",
        "optimizer   loaded state dict has a different number of parameter groups: 6, not 1",
        "scheduler   this is not the state of a StepLR",
        "missing     step_size",
        "generator   'augmenting' is missing from the file, which has 'shuffling'",
    ):
        assert line in str(caught.value)
    assert state_of(run) == before
    assert parts["model"].a.weight.tolist() == weights


def test_the_state_of_another_optimizer_is_refused(tmp_path: Path) -> None:
    p = tl.ones(2).requires_grad_()
    tl.save_checkpoint(tmp_path / "run", optimizer=adam([p]))
    sgd = tl.optim.SGD([p], lr=0.5)
    with pytest.raises(CheckpointError, match="optimizer   the file has the state of AdamW, but the optimizer is SGD"):
        tl.load_checkpoint(tmp_path / "run", optimizer=sgd)
    assert sgd.param_groups[0]["lr"] == 0.5
    tl.load_checkpoint(tmp_path / "run", optimizer=adam([p]))


def test_parts_that_the_file_lacks_are_named(tmp_path: Path) -> None:
    run = Run(adam, one_cycle, seed=1)
    before = state_of(run)
    tl.save_checkpoint(tmp_path / "run", step=1)
    with pytest.raises(CheckpointError) as caught:
        tl.load_checkpoint(tmp_path / "run", **run.parts())
    for part in ("model", "optimizer", "scheduler", "generator"):
        assert re.search(rf"^  {part} .*missing from the file", str(caught.value), re.MULTILINE)
    assert state_of(run) == before


def test_parts_not_requested_are_ignored(tmp_path: Path) -> None:
    run = Run(adam, one_cycle, seed=1)
    tl.save_checkpoint(tmp_path / "run", **run.parts())
    other = Run(adam, one_cycle, seed=2)
    tl.load_checkpoint(tmp_path / "run", model=other.model)
    assert (other.model[0].weight == run.model[0].weight).all()


def test_schedulers_within_schedulers_are_checked(tmp_path: Path) -> None:
    def sequence(optimizer: Any, *kinds: str) -> Any:
        return lr_scheduler.ChainedScheduler([SCHEDULERS[kind](optimizer) for kind in kinds])

    optimizer = adam([tl.ones(2).requires_grad_()])
    tl.save_checkpoint(tmp_path / "run", scheduler=sequence(optimizer, "StepLR", "ConstantLR"))
    for kinds, message in ((("StepLR",), "a list of 1 states"), (("StepLR", "StepLR"), "missing     step_size")):
        with pytest.raises(CheckpointError, match=message):
            tl.load_checkpoint(tmp_path / "run", scheduler=sequence(optimizer, *kinds))


class Counting(tl.nn.Linear):
    """A module whose extra state is not a tensor."""

    calls = 0

    def get_extra_state(self) -> Any:
        return {"calls": self.calls}

    def set_extra_state(self, state: Any) -> None:
        self.calls = state["calls"]


def test_extra_state_comes_back(tmp_path: Path) -> None:
    one, other = Counting(2, 2), Counting(2, 2)
    one.calls = 7
    tl.save_checkpoint(tmp_path / "run", model=one)
    tl.load_checkpoint(tmp_path / "run", model=other)
    assert other.calls == 7
    assert (other.weight == one.weight).all()


def test_a_model_on_meta_is_refused(tmp_path: Path) -> None:
    tl.save_checkpoint(tmp_path / "run", model=tl.nn.Linear(2, 2))
    with pytest.raises(CheckpointError, match="weight: the model is on device 'meta'"):
        tl.load_checkpoint(tmp_path / "run", model=tl.nn.Linear(2, 2, device="meta"))


def test_generators_must_be_generators(tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="'a' is int, not a Generator"):
        tl.save_checkpoint(tmp_path / "run", generator={"a": 3})  # type: ignore[dict-item]


# ------------------------------------------------------------------------------------------------------------- damage


def checkpoint_bytes(folder: Path) -> bytes:
    run = Run(adam, one_cycle, seed=1)
    run.step()
    tl.save_checkpoint(folder / "run", **run.parts(), step=5, best=math.inf)
    return (folder / "run").read_bytes()


def with_state(state: Any, version: str = "1") -> bytes:
    """Return a checkpoint with this text, or tree, as its state, and one tensor "t" of 40 zeros."""
    text = state if isinstance(state, str) else json.dumps(state)
    header = {
        "__metadata__": {"format": "tallow.checkpoint", "version": version, "state": text},
        "t": {"dtype": "U8", "shape": [40], "data_offsets": [0, 40]},
    }
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + bytes(40)


T = {"$": "tensor", "name": "t"}
EMPTY: dict[str, Any] = {"generators": {"": T}, "progress": {}}


def test_the_smallest_checkpoint_loads() -> None:
    assert tl.load_checkpoint(with_state(EMPTY)) == {}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("", "is empty; expected a JSON object"),
        ("{", "not valid JSON"),
        ('{"a": NaN}', "not valid JSON"),
        ('{"a": 1, "a": 2}', "appears twice"),
        ({}, "lacks generators or progress"),
        ({"generators": {}, "progress": []}, "lacks generators or progress"),
        (EMPTY | {"generators": {}}, "'' is missing from the file"),
        (EMPTY | {"generators": {"": 3}}, "not the state of a Generator"),
        (EMPTY | {"progress": {"a": {"$": "tensor", "name": "u"}}}, "no tensor 'u'"),
        (EMPTY | {"progress": {"a": {"$": "tensor", "name": ["u"]}}}, "which checkpoints do not contain"),
        (EMPTY | {"progress": {"a": {"$": "float", "value": "1e5"}}}, r"progress\.a is"),
        (EMPTY | {"progress": {"a": {"$": "tuple", "items": 3}}}, "which checkpoints do not contain"),
        (EMPTY | {"progress": {"a": {"$": "dict", "items": [[[], 3]]}}}, "which checkpoints do not contain"),
        (EMPTY | {"progress": {"a": {"$": "counter", "items": [[1]]}}}, "which checkpoints do not contain"),
        (EMPTY | {"progress": {"a": {"$": "code", "value": "1"}}}, "which checkpoints do not contain"),
        (EMPTY | {"progress": {"a": {"$": None}}}, "which checkpoints do not contain"),
        ('{"a":' + "[" * 100_000, "levels deep"),
        ('{"a":' + "9" * 5000 + "}", "not valid JSON"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_malformed_state_is_refused(state: Any, message: str) -> None:
    before = tl.get_rng_state().tolist()
    with pytest.raises(CheckpointError, match=message):
        tl.load_checkpoint(with_state(state))
    assert tl.get_rng_state().tolist() == before


def test_other_files_and_versions_are_refused(tmp_path: Path) -> None:
    safetensors.save({"a": tl.ones(2)}, tmp_path / "weights")
    with pytest.raises(CheckpointError, match="not a training checkpoint"):
        tl.load_checkpoint(tmp_path / "weights")
    with pytest.raises(CheckpointError, match="version '2' of the format"):
        tl.load_checkpoint(with_state(EMPTY, version="2"))
    with pytest.raises(FileNotFoundError):
        tl.load_checkpoint(tmp_path / "none")


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (3, "its state is not a dict"),
        ({}, "not the state of an optimizer"),
        ({"param_groups": [], "state": []}, "not the state of an optimizer"),
        ({"param_groups": [3], "state": {}}, "not the state of an optimizer"),
        ({"param_groups": [{"params": [[0]]}], "state": {}}, "not the state of an optimizer"),
        ({"param_groups": [{"params": [0]}], "state": {"0": 1}}, "not the state of an optimizer"),
        (
            {"param_groups": [{"params": ["0"]}], "state": {"0": {"exp_avg": T, "exp_avg_sq": 1, "step": "x"}}},
            r"parameter 0 \(2,\): exp_avg has shape \(40,\)[\s\S]* exp_avg_sq is int[\s\S]* step is not a number",
        ),
    ],
    ids=str,
)
def test_a_malformed_optimizer_state_is_refused(optimizer: Any, message: str) -> None:
    mine = adam([tl.ones(2).requires_grad_()])
    with pytest.raises(CheckpointError, match=message):
        tl.load_checkpoint(with_state(EMPTY | {"optimizer": optimizer}), optimizer=mine)
    assert not mine.state


@pytest.mark.parametrize("model", [3, [T], {"weight": 3, "bias": T}], ids=str)
def test_a_malformed_model_state_is_refused(model: Any) -> None:
    with pytest.raises(CheckpointError, match=r"not a dict|wrong type   weight: int, not a Tensor"):
        tl.load_checkpoint(with_state(EMPTY | {"model": model}), model=tl.nn.Linear(2, 2))


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(part: float, tmp_path: Path) -> None:
    valid = checkpoint_bytes(tmp_path)
    with pytest.raises(CheckpointError, match=r"truncated|too few"):
        tl.load_checkpoint(valid[: int(part * len(valid))])


def test_a_file_object_is_read_first() -> None:
    with pytest.raises(ArgumentTypeError, match="path or a bytes-like object"):
        tl.load_checkpoint(io.BytesIO())  # type: ignore[arg-type]
